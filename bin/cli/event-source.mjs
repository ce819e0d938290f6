/** Server-sent events of the operator API, read for as long as the command runs. */
import { Stop } from './stop.mjs';

const RETRY_MS = 1_000;
const LINE_MAX_CHARS = 16 * 1024 * 1024;
/** The platform says something every five seconds, so that a connection that says nothing for so long is none. */
const SILENCE_MAX_MS = 30_000;

/**
 * Yields `{id, event, data}` of `path` and comes back with the last id when the connection breaks. `api.stream(path,
 * headers, signal)` makes a request. Ends when `signal` is aborted. A machine that lost its power closes nothing: where
 * nothing comes for `silenceMs` the connection counts as broken.
 */
export async function* eventSource(api, path, signal, said = (line) => console.error(line), silenceMs = SILENCE_MAX_MS) {
  let last;
  let isFirst = true;
  let isDown = false;
  while (!signal.aborted) {
    const silence = silenceAfter(silenceMs);
    try {
      const either = AbortSignal.any([signal, silence.signal]);
      const response = await api.stream(path, last === undefined ? {} : { 'last-event-id': last }, either);
      if (isDown) said('connected again');
      isFirst = false;
      isDown = false;
      for await (const message of messages(response.body, silence.heard)) {
        if (message.id !== undefined) last = message.id;
        if (message.event === 'gap') said('some events are older than the log and were missed');
        else if (message.data !== undefined) yield message;
      }
    } catch (error) {
      if (signal.aborted) return;
      // The first connection has to succeed: a wrong token or URL is no outage.
      if (error instanceof Stop && isFirst) throw error;
      if (!isDown) said(`the connection was lost (${error.cause?.code ?? error.message}); trying again`);
      isDown = true;
    } finally {
      silence.end();
    }
    if (signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** A signal that is aborted when `heard` was not called for `ms`, until `end` is. */
function silenceAfter(ms) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new DOMException(`nothing came for ${ms / 1000} s`, 'TimeoutError')), ms);
  return { signal: abort.signal, heard: () => timer.refresh(), end: () => clearTimeout(timer) };
}

/** Splits a stream of bytes into messages (WHATWG HTML §9.2.6). `heard` is called for each piece of it. */
async function* messages(body, heard) {
  const decoder = new TextDecoder();
  let rest = '';
  let message = {};
  for await (const chunk of body) {
    heard();
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > LINE_MAX_CHARS) throw new Error('a line of the stream is too long');
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (message.event !== undefined || message.data !== undefined || message.id !== undefined) yield message;
        message = {};
        continue;
      }
      const colon = line.indexOf(':');
      if (colon <= 0) continue;
      const [field, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
      if (field === 'data') message.data = message.data === undefined ? value : `${message.data}\n${value}`;
      else message[field] = value;
    }
  }
}
