/**
 * The commands: how each is written, what it asks of the operator API, and how the answer is printed. The options that
 * a command takes are those in its `usage`.
 */
import { dev } from './dev.mjs';
import { drain } from './drain.mjs';
import { appFields, defined, deviceFields, nodeDrainFields, trunkFields } from './fields.mjs';
import { entryLine, listen, TIMELINE, tail } from './follow.mjs';
import { Stop } from './stop.mjs';
import { fieldLines } from './table.mjs';

const segment = encodeURIComponent;

const placeOf = ({ http_host: host, http_port: port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);

/** A row of `calls`. A call that is up has no length yet, and a MOS of 0 says that nothing was heard to judge by. */
const callRow = (call) => ({
  ...call,
  duration_seconds: call.state === 'ended' ? call.duration_seconds : '',
  mos: call.quality?.mos || '',
});

/** A list of the operator API, with the parameters that were given. */
const list = (path, parameters) => ['GET', `${path}?${new URLSearchParams(defined(parameters))}`];

/**
 * Name → command, in the order of the help. One of these says what it does:
 *
 *   ask(words, given)   [method, path, body] of the operator API. `answer` is the shape of what it answers (shape.mjs),
 *                       or gives it; without one there is no body. `rows` and `columns` print the answer as a table,
 *                       `text` as it likes; without them it is printed field by field. `note` is said to a reader
 *                       after it, `next` gives the cursor of the next page, and `shell` is what --shell prints instead.
 *   run                 a program of the platform, in its own runtime
 *   start(signal, env)  runs until it is interrupted, with these variables
 *   follow(api, given, signal)   reads from the operator API until it is interrupted
 */
export const COMMANDS = {
  dev: {
    usage: 'dev',
    about: 'the platform on this machine with a demo application and a page with a button: Call',
    start: dev,
  },

  'apps list': {
    usage: 'apps list',
    answer: { apps: [{ app_uuid: '' }] },
    ask: () => ['GET', '/apps'],
    rows: (body) => body.apps,
    columns: ['app_uuid', 'name', 'webhook_url', 'created_at'],
  },
  'apps create': {
    usage:
      'apps create NAME [--webhook-url URL] [--block EVENT]... [--max-rooms N] [--max-members N] [--allow-destination PREFIX]... [--block-destination PREFIX]... [--shell]',
    about:
      'calls, transfers and messages go to numbers that begin with an allowed PREFIX, all without one; --shell: prints one line for a shell, export APP=… KEY=… SECRET=…, to be kept in a file',
    answer: { app_uuid: '', api_key: '', webhook_secret: '' },
    ask: ([name], given) => ['POST', '/apps', { ...appFields(given), name }],
    note: 'The key and the secret are shown this once: keep them.',
    shell: ({ app_uuid, api_key, webhook_secret }) => `export APP=${app_uuid} KEY=${api_key} SECRET=${webhook_secret}`,
  },
  'apps show': { usage: 'apps show APP', answer: { app_uuid: '' }, ask: ([app]) => ['GET', `/apps/${segment(app)}`] },
  'apps update': {
    usage:
      'apps update APP [--name NAME] [--webhook-url URL] [--block EVENT]... [--unblock-all] [--max-rooms N] [--max-members N] [--allow-destination PREFIX]... [--block-destination PREFIX]... [--all-destinations]',
    ask([app], given) {
      const fields = appFields(given);
      if (Object.keys(fields).length === 0) throw new Stop('apps update needs something to change (sidetone apps update --help)');
      return ['PATCH', `/apps/${segment(app)}`, fields];
    },
  },
  'keys add': {
    usage: 'keys add APP',
    answer: { key_id: '', api_key: '' },
    ask: ([app]) => ['POST', `/apps/${segment(app)}/api-keys`, {}],
    note: 'The key is shown this once: keep it.',
  },
  'keys remove': {
    usage: 'keys remove APP KEY_ID',
    ask: ([app, key]) => ['DELETE', `/apps/${segment(app)}/api-keys/${segment(key)}`],
  },
  'secrets rotate': {
    usage: 'secrets rotate APP',
    answer: { webhook_secret: '' },
    ask: ([app]) => ['POST', `/apps/${segment(app)}/webhook-secrets`, {}],
    note: 'The secret is shown this once: keep it.',
  },
  'numbers assign': {
    usage: 'numbers assign NUMBER APP',
    ask: ([e164, app]) => ['PUT', `/numbers/${segment(e164)}`, { app_uuid: app }],
  },
  'numbers unassign': { usage: 'numbers unassign NUMBER', ask: ([e164]) => ['DELETE', `/numbers/${segment(e164)}`] },
  'caller-ids add': {
    usage: 'caller-ids add APP NUMBER',
    ask: ([app, e164]) => ['PUT', `/apps/${segment(app)}/caller-ids/${segment(e164)}`, {}],
  },
  'caller-ids remove': {
    usage: 'caller-ids remove APP NUMBER',
    ask: ([app, e164]) => ['DELETE', `/apps/${segment(app)}/caller-ids/${segment(e164)}`],
  },
  'terminals add': {
    usage: 'terminals add APP TERMINAL',
    ask: ([app, terminal]) => ['PUT', `/apps/${segment(app)}/payment-terminals/${segment(terminal)}`, {}],
  },
  'terminals remove': {
    usage: 'terminals remove APP TERMINAL',
    ask: ([app, terminal]) => ['DELETE', `/apps/${segment(app)}/payment-terminals/${segment(terminal)}`],
  },
  'devices list': {
    usage: 'devices list APP [--username USERNAME] [--after USERNAME] [--limit N]',
    answer: { devices: [{ username: '', contacts: [] }] },
    ask: ([app], { username, after, limit }) => list(`/apps/${segment(app)}/devices`, { username, after, limit }),
    next: (body) => body.after,
    rows: (body) => body.devices.map((device) => ({ ...device, contacts: device.contacts.length })),
    columns: ['username', 'registered_until', 'address', 'user_agent', 'contacts'],
  },
  'devices set': {
    usage: 'devices set APP USERNAME --password-file FILE',
    ask: ([app, username], given) => ['PUT', `/apps/${segment(app)}/devices/${segment(username)}`, deviceFields(given)],
  },
  'devices remove': {
    usage: 'devices remove APP USERNAME',
    ask: ([app, username]) => ['DELETE', `/apps/${segment(app)}/devices/${segment(username)}`],
  },
  drain: {
    usage: 'drain [--deadline SEC]',
    about: 'give the platform here no new calls, and wait until its calls are over',
    follow: drain,
  },
  'nodes list': {
    usage: 'nodes list',
    answer: { nodes: [{ node_id: '' }] },
    ask: () => ['GET', '/nodes'],
    rows: (body) => body.nodes.map(({ load, ...node }) => ({ ...node, ...load, http: placeOf(node) })),
    columns: [
      'node_id',
      'here',
      'http',
      'version',
      'started_at',
      'draining_at',
      'dead_at',
      'suspect',
      'unreached',
      'load',
      'sessions',
      'rooms',
    ],
  },
  'nodes drain': {
    usage: 'nodes drain NODE [--deadline SEC] [--mode wait|move]',
    answer: { node_id: '' },
    ask: ([node], given) => ['POST', `/nodes/${segment(node)}/drain`, nodeDrainFields(given)],
  },
  'nodes undrain': {
    usage: 'nodes undrain NODE',
    answer: { node_id: '' },
    ask: ([node]) => ['POST', `/nodes/${segment(node)}/undrain`, {}],
  },
  'trunks list': {
    usage: 'trunks list',
    answer: { trunks: [{ name: '', status: {} }] },
    ask: () => ['GET', '/trunks'],
    rows: (body) =>
      body.trunks.map(({ status, ...trunk }) => ({
        ...trunk,
        ...status,
        // A trunk that is not to be registered is not called unregistered.
        registered: trunk.register || status.registered ? status.registered : '',
        answers: status.last_probe?.ok ?? '',
      })),
    columns: ['name', 'uri', 'registered', 'answers', 'channels_in_use', 'calls_24h', 'failures_24h'],
  },
  'trunks show': { usage: 'trunks show NAME', answer: { uri: '' }, ask: ([name]) => ['GET', `/trunks/${segment(name)}`] },
  'trunks set': {
    usage:
      'trunks set NAME --uri URI [--cidr CIDR]... [--username USER] [--password-file FILE] [--register] [--max-channels N] [--codec CODEC]... [--set FIELD=VALUE]...',
    about:
      'sets the trunk up whole: what is not given has its default, but the password and tls.key, which stay; --set country_code=972, identity=pai, apps=APP,APP, tls.ca=@FILE and so on: docs/operations/carriers.md',
    ask: ([name], given) => ['PUT', `/trunks/${segment(name)}`, trunkFields(given)],
  },
  'trunks remove': { usage: 'trunks remove NAME', ask: ([name]) => ['DELETE', `/trunks/${segment(name)}`] },
  'refusals list': {
    usage: 'refusals list',
    answer: { refusals: [{ at: '' }] },
    ask: () => ['GET', '/refusals'],
    rows: (body) => body.refusals,
    columns: ['at', 'count', 'source', 'method', 'to', 'status', 'reason', 'remedy'],
  },
  'events list': {
    usage: 'events list [--app APP] [--session SESSION] [--event EVENT] [--status STATUS] [--after POSITION] [--limit N]',
    answer: { events: [{ webhook_id: '', attempts: [{}] }] },
    ask: (_, { app, session, event, status, after, limit }) =>
      list('/events', { app_uuid: app, session_uuid: session, event, status, after, limit }),
    rows: (body) =>
      body.events.map((event) => {
        const last = event.attempts.at(-1);
        // The status of an answer says more than that it was none of the 2xx.
        return { ...event, attempts: event.attempts.length, last: (last?.status ?? last?.error) || '' };
      }),
    columns: ['position', 'created_at', 'event', 'session_uuid', 'status', 'attempts', 'last', 'webhook_id'],
    next: (body) => body.next,
  },
  'events replay': {
    usage: 'events replay WEBHOOK_ID',
    answer: { webhook_id: '' },
    ask: ([id]) => ['POST', `/events/${segment(id)}/replay`, {}],
  },

  'calls list': {
    usage: 'calls [list] [--app APP] [--state live|ended|STATE] [--number NUMBER] [--after CURSOR] [--limit N]',
    answer: { sessions: [{ session_uuid: '' }] },
    ask: (_, { app, state, number, after, limit }) => list('/sessions', { app_uuid: app, state, number, after, limit }),
    rows: (body) => body.sessions.map(callRow),
    columns: [
      'created_at',
      'session_uuid',
      'type',
      'state',
      'caller_id',
      'did',
      'trunk',
      'duration_seconds',
      'hangup_cause',
      'mos',
    ],
    next: (body) => body.after,
  },
  'calls show': {
    usage: 'calls show SESSION [--sip]',
    about: 'what happened in a call, as text (--sip: its SIP messages)',
    answer: ({ sip }) => (sip ? '' : TIMELINE),
    ask: ([session], given) => ['GET', `/sessions/${segment(session)}/${given.sip ? 'sip.txt' : 'timeline'}`],
    text: ({ session, entries }) => `${fieldLines(session)}\n\n${entries.map(entryLine).join('\n')}`,
  },
  'calls erase': { usage: 'calls erase SESSION', ask: ([session]) => ['DELETE', `/sessions/${segment(session)}`] },
  listen: {
    usage: 'listen [--app APP] [--forward URL]',
    about: 'print events as they come, and post each to a URL of yours, signed as the platform signs',
    follow: listen,
  },
  tail: {
    usage: 'tail [--app APP] [--session SESSION]',
    about: 'print what happens in calls as it happens',
    follow: tail,
  },
  doctor: {
    usage: 'doctor',
    about: 'look at machine, settings and platform: what is wrong, and what mends it (exit 0, 1 or 2)',
    run: 'src/doctor/doctor.ts',
  },
  conform: {
    usage: 'conform FILE [--open]',
    about:
      'hold the log of a receiver, a line {webhook_id, received_at, body} a delivery, against what is promised about events (--open: calls may still run)',
    run: 'src/doctor/conform.ts',
  },
  trigger: {
    usage: 'trigger EVENT --app APP',
    about: 'send a sample of an event to the application\'s webhook, marked "test": true',
    answer: { webhook_id: '' },
    ask([event], { app }) {
      return ['POST', `/apps/${segment(app)}/events`, { event }];
    },
  },
};
