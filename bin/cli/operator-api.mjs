/** The operator API, as its command line reaches it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Stop } from './stop.mjs';

const TIMEOUT_MS = 15_000;

/**
 * The operator API at `--url`, with the token of OPERATOR_TOKEN or DATA_DIR. `open` gives the response of a success;
 * anything else throws Stop. `ask` is `open` within TIMEOUT_MS, `json` its body. `base` is the platform's address.
 */
export function operatorApi(given) {
  const base = origin(given);
  const { token, from } = operatorToken(given);
  const authorization = `Bearer ${token}`;
  const open = async (path, headers, signal, method = 'GET', body = undefined) => {
    let response;
    try {
      response = await fetch(`${base}/operator/v1${path}`, {
        method,
        headers: { authorization, ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
      });
    } catch (error) {
      throw new Stop(
        `no answer from ${base} (${error.cause?.code ?? error.cause?.message ?? error.name}); ` +
          'is the platform running? Start it (npm start), or say with --url where it is',
      );
    }
    if (response.ok) return response;
    const isOurs = response.headers.get('content-type')?.startsWith('application/json');
    const answer = isOurs ? await response.json() : {};
    if (answer.code === undefined)
      throw new Stop(`${base} is not a Sidetone platform (it answered ${response.status})`, response.status);
    const refusal = `${response.status} ${answer.code}: ${answer.message}`;
    if (response.status !== 401) throw new Stop(refusal, response.status);
    throw new Stop(
      `${refusal}. It is that of ${from}, and ${base} has another: set OPERATOR_TOKEN or --data-dir as it was started with`,
      response.status,
    );
  };
  const ask = (method, path, body) => open(path, {}, AbortSignal.timeout(TIMEOUT_MS), method, body);
  const json = async (method, path, body) => (await ask(method, path, body)).json();
  return { open, ask, json, base };
}

/** The token, and the name of the place that it is from. */
function operatorToken(given) {
  if (process.env.OPERATOR_TOKEN) return { token: process.env.OPERATOR_TOKEN, from: 'OPERATOR_TOKEN' };
  const file = join(given['data-dir'] ?? (process.env.DATA_DIR || './data'), 'operator.token');
  try {
    return { token: readFileSync(file, 'utf8').trim(), from: file };
  } catch (error) {
    throw new Stop(
      `no operator token: ${file} cannot be read (${error.code}). The first start of the platform (npm start) makes it; ` +
        'for a platform elsewhere set OPERATOR_TOKEN, or --data-dir to its DATA_DIR',
    );
  }
}

/** A variable that is empty counts as one that is not set, as it does to the platform. */
function origin(given) {
  const host = process.env.HTTP_HOST || '127.0.0.1';
  const port = process.env.HTTP_PORT || '8080';
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
  const url = given.url ?? (process.env.SIDETONE_URL || `http://${reachable}:${port}`);
  if (!URL.canParse(url) || !/^https?:/i.test(url)) throw new Stop(`--url needs an http or https URL, not ${url}`);
  return url.replace(/\/$/, '');
}
