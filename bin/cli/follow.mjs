/** `listen` and `tail`: what happens, as it happens. */
import { eventSource } from './event-source.mjs';
import { Stop } from './stop.mjs';

const POST_TIMEOUT_MS = 10_000;
const LOOK_MS = 1_000;

/**
 * Prints events as they come. With `forward` each one is posted there too, one after the other, with the signature of
 * the application's own secret, which the platform makes.
 */
export async function listen(api, { app, forward, json }, signal) {
  const target = forward === undefined ? undefined : urlOf(forward);
  const query = new URLSearchParams({
    ...(app === undefined ? {} : { app_uuid: app }),
    ...(target === undefined ? {} : { signed: 'true' }),
  });
  for await (const { event, data } of eventSource(api, `/events/stream?${query}`, signal)) {
    const sent = JSON.parse(data);
    const body = target === undefined ? sent : { webhook_id: sent.webhook_id, ...JSON.parse(sent.body) };
    const outcome = target === undefined ? '' : `  → ${await post(target, sent)}`;
    console.log(json ? JSON.stringify(body) : `${eventLine(event, body)}${outcome}`);
  }
}

async function post(target, { headers, body }) {
  const started = performance.now();
  try {
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    await response.arrayBuffer();
    return `${response.status} (${Math.round(performance.now() - started)} ms)`;
  } catch (error) {
    return `no answer (${error.cause?.code ?? error.name})`;
  }
}

function urlOf(text) {
  if (!URL.canParse(text) || !/^https?:/i.test(text)) throw new Stop(`--forward needs an http or https URL, not ${text}`);
  return new URL(text);
}

/** `12:00:01.234  session.answered  3f2b…  duration_seconds=4` */
function eventLine(event, body) {
  const { aud: _aud, event: _event, timestamp, webhook_id: _id, session_uuid, room_id, ...fields } = body;
  const about = session_uuid ?? room_id ?? '';
  const more = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`,
  );
  return [String(timestamp).slice(11, 23), event.padEnd(28), about, ...more].join('  ').trimEnd();
}

/** Prints the timelines of live calls as they grow: of one Session, of one application, or of all. */
export async function tail(api, { app, session, json }, signal) {
  const shown = new Map();
  while (!signal.aborted) {
    const calls =
      session === undefined
        ? await api
            .json(
              'GET',
              `/sessions?${new URLSearchParams({ state: 'live', limit: '100', ...(app === undefined ? {} : { app_uuid: app }) })}`,
            )
            .then(({ sessions }) => sessions.map((call) => call.session_uuid))
        : [session];
    // A call that has just ended is read once more, because its last entries come after it.
    for (const uuid of new Set([...calls, ...shown.keys()])) {
      const { entries } = await api.json('GET', `/sessions/${encodeURIComponent(uuid)}/timeline`).catch(() => ({ entries: [] }));
      const known = shown.get(uuid) ?? new Set();
      for (const entry of entries) {
        const name = JSON.stringify(entry);
        if (known.has(name)) continue;
        known.add(name);
        console.log(json ? JSON.stringify({ session_uuid: uuid, ...entry }) : `${uuid.slice(0, 8)}  ${entryLine(entry)}`);
      }
      if (calls.includes(uuid)) shown.set(uuid, known);
      else if (known.over === true) shown.delete(uuid);
      else known.over = true;
    }
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_MS);
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          resolve();
        },
        { once: true },
      );
    });
  }
}

/** One entry of a timeline as a line of text. */
export function entryLine({ at, kind, ...entry }) {
  const time = String(at).slice(11, 23);
  const line = (...parts) => [time, kind.padEnd(7), ...parts.filter((part) => part !== '')].join('  ');
  const rest = (fields) =>
    Object.entries(fields)
      .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`)
      .join(' ');
  switch (kind) {
    case 'command':
      return line(`${entry.method} ${entry.path}`, `${entry.status} in ${entry.took_ms} ms`);
    case 'sip':
      return line(
        `${entry.direction === 'in' ? '<-' : '->'} ${entry.first_line}`,
        `${entry.transport} ${entry.peer}`,
        entry.cseq,
      );
    case 'event': {
      const { aud: _aud, event: _event, timestamp: _at, session_uuid: _uuid, ...fields } = entry.body;
      return line(entry.name, rest(fields));
    }
    case 'webhook':
      return line(
        `attempt ${entry.attempt}`,
        entry.status === 0 ? entry.error : `${entry.status} in ${entry.took_ms} ms`,
        entry.response === '' ? '' : JSON.stringify(entry.response.slice(0, 100)),
        entry.next_at === '' ? '' : `next at ${entry.next_at}`,
      );
    case 'media': {
      const { what, ...fields } = entry;
      return line(what, rest(fields));
    }
    default:
      return line(rest(entry));
  }
}
