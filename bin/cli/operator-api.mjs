/** The operator API, as its command line reaches it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasShape } from './shape.mjs';
import { Stop } from './stop.mjs';

const TIMEOUT_MS = 15_000;

/**
 * The operator API at `--url`, with the token of OPERATOR_TOKEN or DATA_DIR. `stream` gives the response that
 * server-sent events come by. `ask` reads an answer within TIMEOUT_MS and gives `{headers, text, body}`, and `json` the
 * `body`: what the JSON says, the text of a plain text, or undefined where there is none. All throw Stop for anything
 * but a success, and for an answer without the shape that the command reads (shape.mjs): a server of another kind
 * answers with JSON too. `base` is the platform's address, and `stranger(status)` the Stop that says so of it.
 */
export function operatorApi(given) {
  const base = origin(given);
  const { token, from } = operatorToken(given);
  const authorization = `Bearer ${token}`;
  const open = async (types, path, headers, signal, method = 'GET', body = undefined) => {
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
        `no answer from ${base} (${reasonOf(error)}); ` +
          'is the platform running? Start it (npm start), or say with --url where it is',
      );
    }
    if (response.ok && types.test(response.headers.get('content-type') ?? OF_NO_BODY)) return response;
    const answer = response.ok ? undefined : parsed(await response.text().catch(() => ''));
    if (!hasShape(answer, { code: '', message: '' })) throw stranger(base, response.status);
    const refusal = `${response.status} ${answer.code}: ${answer.message}`;
    if (response.status !== 401) throw new Stop(refusal, response.status);
    throw new Stop(
      `${refusal}. It is that of ${from}, and ${base} has another: set OPERATOR_TOKEN or --data-dir as it was started with`,
      response.status,
    );
  };
  const ask = async (method, path, shape, body) => {
    const response = await open(ANSWER, path, {}, AbortSignal.timeout(TIMEOUT_MS), method, body);
    const { status, headers } = response;
    const text = await response.text().catch((error) => {
      throw new Stop(`the answer of ${base} broke off (${error.cause?.code ?? error.name}); is the platform still running?`);
    });
    const isText = /^text\/plain\b/i.test(headers.get('content-type') ?? '');
    const answer = text === '' ? undefined : isText ? text : parsed(text);
    if (!hasShape(answer, shape)) throw stranger(base, status);
    return { headers, text, body: answer };
  };
  const json = async (method, path, shape, body) => (await ask(method, path, shape, body)).body;
  const stream = (path, headers, signal) => open(STREAM, path, headers, signal);
  return { stream, ask, json, base, stranger: (status) => stranger(base, status) };
}

/** The reason for which no answer came, as Node names it, and in words where none came for too long. */
const reasonOf = (error) =>
  error.name === 'TimeoutError' ? 'none in time' : (error.cause?.code ?? error.cause?.message ?? error.name);

/** The media types of answers, and that of a stream of events. */
const ANSWER = /^(application\/json|text\/plain)\b/i;
const STREAM = /^text\/event-stream\b/i;
/** The media type that stands for an answer without one: 204 has none. */
const OF_NO_BODY = 'text/plain';

const stranger = (base, status) => new Stop(`${base} is not a Sidetone platform (it answered ${status})`, status);

/** The object that a JSON text has, or undefined: what a proxy answers is not always what it says. */
export function parsed(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The token, and the name of the place that it is from. */
function operatorToken(given) {
  const { token, from } = keptToken(given);
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new Stop(
      `the operator token in ${from} is ${token === '' ? 'empty' : 'no token: one has printable ASCII characters, and no spaces'}`,
    );
  return { token, from };
}

function keptToken(given) {
  if (process.env.OPERATOR_TOKEN) return { token: process.env.OPERATOR_TOKEN.trim(), from: 'OPERATOR_TOKEN' };
  const file = join(given['data-dir'] ?? variable('DATA_DIR') ?? './data', 'operator.token');
  try {
    return { token: readFileSync(file, 'utf8').trim(), from: file };
  } catch (error) {
    throw new Stop(
      `no operator token: ${file} cannot be read (${error.code}). The first start of the platform (npm start) makes it; ` +
        'for a platform elsewhere set OPERATOR_TOKEN, or --data-dir to its DATA_DIR',
    );
  }
}

/** The text of a variable as the platform reads it: one of blanks alone, or of nothing, counts as not set. */
const variable = (name) => process.env[name]?.trim() || undefined;

function origin(given) {
  // The platform takes an IPv6 address with and without brackets.
  const host = (variable('HTTP_HOST') ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1');
  const port = variable('HTTP_PORT') ?? '8080';
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
  const told = variable('SIDETONE_URL');
  const url = given.url ?? told ?? `http://${reachable}:${port}`;
  const named =
    given.url !== undefined ? '--url needs' : told !== undefined ? 'SIDETONE_URL needs' : 'HTTP_HOST and HTTP_PORT need to make';
  // fetch refuses a user with a TypeError, and the path that follows would be part of the query.
  const { username, password } = URL.canParse(url) ? new URL(url) : {};
  const isPlain = /^https?:/i.test(url) && !/[?#]/.test(url) && username === '' && password === '';
  // The output of scripts is kept, and the password of a proxy is nobody's to read there.
  const shown = url.replace(/\/\/.*@/, '//…@');
  if (!isPlain) throw new Stop(`${named} an http or https URL without user, password, query and fragment, not ${shown}`);
  return url.replace(/\/$/, '');
}
