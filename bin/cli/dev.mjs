/**
 * `sidetone dev`: the platform on this machine with a loopback trunk, a number, and the demo application that answers
 * it. It takes the variables of `npm start`; unless told otherwise it ends the calls that are up when it is stopped,
 * and does not wait for them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { borrowNumber } from './borrowed-number.mjs';
import { Stop } from './stop.mjs';

const ROOT = join(import.meta.dirname, '../..');
const NUMBER = '+15550001';
const TRUNK = 'loopback';
const LOOPBACK = /^(localhost|127(\.[0-9]{1,3}){3}|::1|\[::1\])$/;
const START_MAX_MS = 120_000;

/** Runs until it is interrupted. `env` are the variables of `npm start`. */
export async function dev(signal, env) {
  const [HTTP_HOST, DATA_DIR, HTTP_PORT] = [env.HTTP_HOST || '127.0.0.1', env.DATA_DIR || './data', env.HTTP_PORT || '8080'];
  if (!LOOPBACK.test(HTTP_HOST))
    throw new Stop(`HTTP_HOST is ${HTTP_HOST}, and dev runs on loopback only: its demo lets everybody call`);
  // It installs packages and builds the media plane where they are missing, and says so.
  if (spawnSync(process.execPath, [join(ROOT, 'bin/prepare.mjs')], { stdio: 'inherit' }).status !== 0)
    throw new Stop('the platform could not be built');
  const interrupted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  const platform = await startPlatform(env, signal);
  if (platform === undefined) return;
  let demo;
  let giveBack;
  let silence;
  let how;
  try {
    const token = env.OPERATOR_TOKEN || readFileSync(join(DATA_DIR, 'operator.token'), 'utf8').trim();
    const operator = operatorApi(platform.url, token);
    const credentials = await demoCredentials(operator, platform.url, DATA_DIR);
    // Its dependencies are there only now, on a fresh clone.
    const { startDemo } = await import('../dev/demo.mjs');
    demo = await startDemo({
      platform: platform.url,
      credentials,
      number: NUMBER,
      port: HTTP_PORT === '0' ? 0 : Number(HTTP_PORT) + 1,
    });
    await operator('PUT', `/trunks/${TRUNK}`, { uri: 'loopback:' });
    giveBack = await borrowNumber(operator, NUMBER, credentials.appUuid);
    await operator('PUT', `/apps/${credentials.appUuid}/caller-ids/${encodeURIComponent(NUMBER)}`, {});
    await operator('PATCH', `/apps/${credentials.appUuid}`, { webhook_url: demo.hook });
    silence = async () => {
      const path = `/apps/${credentials.appUuid}`;
      const { webhook_url: url } = await operator('GET', path);
      // One that was set anew meanwhile stays.
      if (url === demo.hook) await operator('PATCH', path, { webhook_url: '' });
    };
    const { url: console } = await operator('POST', '/console-logins', {});
    welcome(platform.url, demo.url, console, credentials);
    how = await Promise.race([platform.ended, interrupted]);
  } catch (error) {
    // A second Ctrl-C has ended the platform before everything was set up there.
    if (!signal.aborted) throw error;
  } finally {
    // Nobody is there for its events any more: they would be retried, and `doctor` would find a fault in it.
    await silence?.().catch(() => undefined);
    await demo?.close();
    await giveBack?.().catch(({ message }) => console.error(`${NUMBER} stays with the application "demo": ${message}`));
    await platform.stop();
  }
  if (signal.aborted) return;
  if (how === 0) throw new Stop('the platform has ended, because another program told it to stop');
  throw new Stop(`the platform has ended (${how}); its log above says why, if it could`);
}

function welcome(url, page, login, { appUuid, apiKey }) {
  console.log(`
Sidetone is running. Open the page and press Call:

  Your first call   ${page}
  Console           ${login}   (works once, for five minutes)
  API reference     ${url}/docs/reference
  Credentials       ${appUuid}:${apiKey}   (application "demo", number ${NUMBER})
  Events            bin/sidetone listen --app ${appUuid}

Ctrl-C stops it, and gives the number back.`);
}

/**
 * Starts the platform and resolves when it takes calls. Warnings and errors of its log are shown. Where it is
 * interrupted before, it stops the platform and resolves with undefined.
 */
async function startPlatform(env, signal) {
  const child = spawn(join(ROOT, 'node_modules/.bin/bun'), ['--no-env-file', join(ROOT, 'src/main.ts')], {
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: '4096', ...env, SHUTDOWN_GRACE_SEC: env.SHUTDOWN_GRACE_SEC || '0' },
    // Ctrl-C is for this program, which has something to give back before it ends the platform.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise((resolve) => child.once('exit', (code, by) => resolve(code ?? by)));
  let resolve;
  let reject;
  const promise = new Promise((...both) => {
    [resolve, reject] = both;
  });
  ended.then((how) => reject(new Stop(`the platform ended with ${how} before it was ready`)));
  const timer = setTimeout(() => reject(new Stop('the platform was not ready in two minutes')), START_MAX_MS);
  // Whoever presses Ctrl-C once more does not want to wait: the platform is told so, and is not left behind.
  const hurry = () => child.kill('SIGINT');
  const interrupt = () => {
    process.on('SIGINT', hurry);
    reject(new Stop('interrupted'));
  };
  signal.addEventListener('abort', interrupt, { once: true });
  let rest = '';
  child.stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const isLogged = line.startsWith('{');
      // The secrets of the first application are told this once, outside the log.
      if (!isLogged) console.log(line);
      const entry = isLogged ? JSON.parse(line) : {};
      if (entry.http_port !== undefined) resolve(entry.url);
      if (entry.level === undefined ? false : isTrouble(entry.level)) console.error(line);
    }
  });
  child.stderr.on('data', (chunk) => process.stderr.write(chunk));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    process.off('SIGINT', hurry);
  };
  try {
    return { url: await promise, ended, stop };
  } catch (error) {
    await stop();
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** pino's levels are numbers: 40 is a warning. */
const isTrouble = (level) => (typeof level === 'number' ? level >= 40 : /^(warn|error|fatal)$/.test(level));

const operatorApi = (url, token) => async (method, path, body) => {
  const response = await fetch(`${url}/operator/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(15_000),
  });
  const answer = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Stop(`${method} ${path}: ${response.status} ${answer.message}`);
  return answer;
};

/** The demo's application, made once; its secrets are kept beside the platform's own. */
async function demoCredentials(operator, url, dataDir) {
  const file = join(dataDir, 'demo.json');
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8'));
    const known = await fetch(`${url}/api/v1/app`, { headers: { authorization: `Bearer ${kept.appUuid}:${kept.apiKey}` } });
    if (known.ok) return kept;
  } catch {
    // It is made below.
  }
  const made = await operator('POST', '/apps', { name: 'demo' });
  const credentials = { appUuid: made.app_uuid, apiKey: made.api_key, webhookSecret: made.webhook_secret };
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(file, JSON.stringify(credentials), { mode: 0o600 });
  return credentials;
}
