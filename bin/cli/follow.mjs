/** `listen` and `tail`: what happens, as it happens. */
import { eventSource } from './event-source.mjs';
import { parsed } from './operator-api.mjs';
import { plain, plainJson } from './plain.mjs';
import { hasShape } from './shape.mjs';
import { Stop } from './stop.mjs';

const POST_TIMEOUT_MS = 10_000;
const LOOK_MS = 1_000;
/** Calls that are followed at a time; of more the newest are. */
const CALLS_MAX = 2_000;
/** How often a call is looked at after its end: entries still come then, webhooks that are tried again aside. */
const LATE_LOOKS = 3;

/** An event of the stream with the signature that a delivery of it has. */
const SIGNED = { webhook_id: '', headers: {}, body: '' };

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
    const sent = parsed(data);
    if (event === undefined || !hasShape(sent, target === undefined ? {} : SIGNED)) throw api.stranger(200);
    const body = target === undefined ? sent : { webhook_id: sent.webhook_id, ...parsed(sent.body) };
    const outcome = target === undefined ? '' : `  → ${await post(target, sent)}`;
    console.log(json ? plainJson(body) : plain(`${eventLine(event, body)}${outcome}`));
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

/**
 * Prints the timelines of calls as they grow: of one Session until it is over, of one application, or of all. Live
 * calls are looked at, and those that began since the last look, which may be over already. What cannot be read at
 * first stops the command; an outage later is waited out.
 */
export async function tail(api, { app, session, json }, signal) {
  const shown = new Map();
  let since;
  let isFirst = true;
  let isDown = false;
  while (!signal.aborted) {
    try {
      const look = session === undefined ? await callsOf(api, app, since) : { calls: [session], since };
      // A call that has just ended is read once more, because its last entries come after it.
      for (const uuid of new Set([...look.calls, ...shown.keys()])) {
        const isOver = await show(api, uuid, shown, json, isFirst && session !== undefined);
        if (isOver && session !== undefined) return;
      }
      forgetOver(shown, look.calls);
      since = look.since;
      if (isDown) console.error('connected again');
      isFirst = false;
      isDown = false;
    } catch (error) {
      if (isFirst || !(error instanceof Stop)) throw error;
      if (!isDown) console.error(`${error.message}; trying again`);
      isDown = true;
    }
    await pause(LOOK_MS, signal);
  }
}

/** What is read of the timeline of a call. */
export const TIMELINE = { session: { ended_at: '' }, entries: [{ at: '', kind: '' }] };

/** Prints what is new in the timeline of a call. True: it is over, and nothing more comes. */
async function show(api, uuid, shown, json, mustBeThere) {
  let timeline;
  try {
    timeline = await api.json('GET', `/sessions/${encodeURIComponent(uuid)}/timeline`, TIMELINE);
  } catch (error) {
    if (mustBeThere || error.status !== 404) throw error;
    // It was erased meanwhile, or is over and no history is kept (CALL_HISTORY_DAYS=0).
    return true;
  }
  const known = shown.get(uuid) ?? { entries: new Set(), looksSinceEnd: 0, isUnlisted: false };
  shown.set(uuid, known);
  for (const entry of timeline.entries) {
    const name = JSON.stringify(entry);
    if (known.entries.has(name)) continue;
    known.entries.add(name);
    // The calls of a minute begin alike, with the time.
    console.log(json ? plainJson({ session_uuid: uuid, ...entry }) : `${uuid.slice(-8)}  ${entryLine(entry)}`);
  }
  if (timeline.session.ended_at !== '') known.looksSinceEnd += 1;
  return known.looksSinceEnd > LATE_LOOKS;
}

/** Forgets the calls that were not listed twice in a row: the last entries of a call come after its end. */
function forgetOver(shown, calls) {
  for (const [uuid, known] of shown) {
    if (calls.includes(uuid)) continue;
    if (known.isUnlisted) shown.delete(uuid);
    known.isUnlisted = true;
  }
}

/**
 * The calls that are live, and those that began at `since` or later, live or not. `since` of the answer is the
 * platform's time of this look, with a margin: its Date is in whole seconds, and is set a little after the calls were
 * listed.
 */
async function callsOf(api, app, since) {
  const live = await listed(api, app, { state: 'live' });
  const begun = since === undefined ? [] : (await listed(api, app, { created_after: new Date(since).toISOString() })).calls;
  return { calls: [...new Set([...live.calls, ...begun])], since: (Number.isNaN(live.at) ? Date.now() : live.at) - LOOK_MS };
}

/** The newest calls of a query, at most CALLS_MAX. `at` is the platform's time of the first page. */
async function listed(api, app, query) {
  const calls = [];
  let after = '';
  let at;
  do {
    const all = new URLSearchParams({ limit: '100', ...(app === undefined ? {} : { app_uuid: app }), ...query });
    if (after !== '') all.set('after', after);
    const { headers, body: page } = await api.ask('GET', `/sessions?${all}`, { sessions: [{ session_uuid: '' }], after: '' });
    at ??= Date.parse(headers.get('date') ?? '');
    calls.push(...page.sessions.map((call) => call.session_uuid));
    after = page.after;
  } while (after !== '' && calls.length < CALLS_MAX);
  return { calls, at };
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal.addEventListener('abort', over);
    if (signal.aborted) over();
  });

/** One entry of a timeline as a line of text. */
export const entryLine = (entry) => plain(lineOf(entry));

function lineOf({ at, kind, ...entry }) {
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
      const { aud: _aud, event: _event, timestamp: _at, session_uuid: _uuid, ...fields } = entry.body ?? {};
      return line(entry.name, rest(fields));
    }
    case 'webhook':
      return line(
        `attempt ${entry.attempt}`,
        entry.status === 0 ? entry.error : `${entry.status} in ${entry.took_ms} ms`,
        entry.response ? JSON.stringify(String(entry.response).slice(0, 100)) : '',
        !entry.next_at ? '' : `next at ${entry.next_at}`,
      );
    case 'media': {
      const { what, ...fields } = entry;
      return line(what, rest(fields));
    }
    default:
      return line(rest(entry));
  }
}
