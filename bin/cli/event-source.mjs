/** Server-sent events of the operator API, read for as long as the command runs. */
import { Stop } from './stop.mjs';

const RETRY_MS = 1_000;
const LINE_MAX_CHARS = 16 * 1024 * 1024;

/**
 * Yields `{id, event, data}` of `path` and comes back with the last id when the connection breaks. `api.stream(path,
 * headers, signal)` makes a request. Ends when `signal` is aborted.
 */
export async function* eventSource(api, path, signal, said = (line) => console.error(line)) {
  let last;
  let isFirst = true;
  let isDown = false;
  while (!signal.aborted) {
    try {
      const response = await api.stream(path, last === undefined ? {} : { 'last-event-id': last }, signal);
      if (isDown) said('connected again');
      isFirst = false;
      isDown = false;
      for await (const message of messages(response.body)) {
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
    }
    if (signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Splits a stream of bytes into messages (WHATWG HTML §9.2.6). */
async function* messages(body) {
  const decoder = new TextDecoder();
  let rest = '';
  let message = {};
  for await (const chunk of body) {
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
