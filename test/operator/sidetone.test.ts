import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPlatform, type Platform } from '../http/platform.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';

let platform: Platform;
let server: ReturnType<typeof Bun.serve>;
const SIDETONE = join(import.meta.dir, '../../bin/sidetone');

beforeAll(async () => {
  platform = await openPlatform();
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => platform.app.fetch(request) });
  writeFileSync(join(platform.testStore.dataDir, 'operator.token'), `${OPERATOR_TOKEN}\n`);
});
afterAll(async () => {
  await server.stop(true);
  await platform.close();
});

async function sidetone(args: readonly string[], env: Record<string, string> = {}) {
  const url = `http://127.0.0.1:${server.port}`;
  const child = Bun.spawn(['node', SIDETONE, ...args], {
    env: { PATH: process.env.PATH ?? '', SIDETONE_URL: url, DATA_DIR: platform.testStore.dataDir, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

describe('bin/sidetone', () => {
  test('says its release, whatever stands beside --version, and without a platform', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dir, '../../package.json'), 'utf8'));
    for (const args of [['--version'], ['trunks', 'list', '--version']])
      expect(await sidetone(args, { SIDETONE_URL: 'http://127.0.0.1:9' })).toEqual({ out: `${version}\n`, err: '', code: 0 });
  });

  test('takes an application from nothing to a number, a caller ID and a trunk', async () => {
    const made = JSON.parse((await sidetone(['apps', 'create', 'cli', '--webhook-url', 'http://127.0.0.1:9/', '--json'])).out);
    expect(made.api_key).toMatch(/^sk_/);
    for (const args of [
      ['numbers', 'assign', '+15558001', made.app_uuid],
      ['caller-ids', 'add', made.app_uuid, '+15558002'],
      ['terminals', 'add', made.app_uuid, '1234567'],
      [
        'trunks',
        'set',
        'lab',
        '--uri',
        'sip:127.0.0.1:5080',
        '--cidr',
        '127.0.0.0/8',
        '--codec',
        'PCMU',
        '--set',
        'country_code=972',
        '--set',
        'priority=2',
      ],
      ['apps', 'update', made.app_uuid, '--block', 'playback.*'],
    ])
      expect(await sidetone(args)).toEqual({ out: 'done\n', err: '', code: 0 });
    const shown = (await sidetone(['apps', 'show', made.app_uuid])).out;
    for (const each of ['+15558001', '+15558002', '1234567', 'playback.*']) expect(shown).toContain(each);
    const list = (await sidetone(['apps', 'list'])).out.split('\n');
    expect(list[0]).toMatch(/^APP_UUID +NAME +WEBHOOK_URL +CREATED_AT$/);
    expect(list[1]).toContain(made.app_uuid);
    expect((await sidetone(['events', 'list'])).out).toStartWith('POSITION');
    const listed = (await sidetone(['trunks', 'list'])).out;
    expect(listed).toContain('sip:127.0.0.1:5080');
    // A trunk that is not to be registered is not called unregistered.
    expect(listed).not.toContain('false');
    expect(JSON.parse((await sidetone(['trunks', 'show', 'lab', '--json'])).out)).toMatchObject({
      country_code: '972',
      priority: 2,
    });
    expect((await sidetone(['refusals', 'list'])).out).toStartWith('AT');
  }, 120_000);

  test('prints what others wrote as one line that a terminal does not obey', async () => {
    const written = 'a\u001b]0;b\u0007\n+15550001 \u009b2J\u202e\u2028\u{e0041}';
    const escaped = 'a\\u001b]0;b\\u0007\\u000a+15550001 \\u009b2J\\u202e\\u2028\\udb40\\udc41';
    const { store } = platform.testStore;
    const made = await platform.operator('POST', '/operator/v1/apps', { name: 'quiet' });
    const app = String(made.body.app_uuid);
    await store.apps.patch(app, { name: written });
    const shown = await sidetone(['apps', 'show', app]);
    expect(shown.out.split('\n').filter((line) => line.includes(escaped))).toHaveLength(1);
    expect((await sidetone(['apps', 'list'])).out).toContain(`${escaped}  `);
    const { out } = await sidetone(['apps', 'show', app, '--json']);
    expect(JSON.parse(out).name).toBe(written);
    expect(out).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }, 60_000);

  test('says on an old Node which one it needs, in words that an old Node knows', async () => {
    const fake = join(platform.testStore.dataDir, 'old-node.cjs');
    writeFileSync(fake, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });\n");
    const { err, code } = await sidetone(['apps', 'list'], { NODE_OPTIONS: `--require ${fake}` });
    expect([err, code]).toEqual(['sidetone: Node 20.11 or newer is needed, this is 18.20.8: see https://nodejs.org\n', 1]);
    // An old Node refuses a module without an extension before its first line.
    expect(JSON.parse(readFileSync(join(SIDETONE, '../package.json'), 'utf8'))).toEqual({ type: 'commonjs' });
    const lines = readFileSync(SIDETONE, 'utf8').split('\n').slice(1);
    expect(lines.filter((line) => /^(import|export) /.test(line))).toEqual([]);
  });

  test('says in one line what is wrong', async () => {
    using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('', { status: 404 }) });
    const wrong: [string[], Record<string, string>, RegExp][] = [
      [['apps', 'fly'], {}, /unknown command: apps fly/],
      [['apps', 'show'], {}, /takes 1 argument/],
      [['help', 'aps'], {}, /unknown command: aps \(sidetone --help\)/],
      [['apps', 'fly', '--help'], {}, /unknown command: apps fly; there is apps list, apps create/],
      [['apps', '--colour'], {}, /^sidetone: Unknown option '--colour' \(sidetone --help\)$/m],
      [['trunks'], {}, /incomplete command: trunks; there is trunks list, trunks show, trunks set, trunks remove/],
      [['apps', 'update', 'app_x'], {}, /apps update needs something to change/],
      [['apps', 'list', '--deadline', '3'], {}, /apps list takes no --deadline: sidetone apps list/],
      [['trunks', 'set', 'a', '--uri', 'sip:b', '--set', 'weight=x'], {}, /--set weight must be a whole number .*, not "x"/],
      [['trunks', 'set', 'a', '--uri', 'sip:b', '--set', 'follow_redirects=1'], {}, /must be true or false, not 1/],
      [['apps', 'list', '--url', 'nonsense'], {}, /--url needs an http or https URL/],
      [
        ['apps', 'list', '--url', 'http://u:p@127.0.0.1:9'],
        {},
        /--url needs .* without user, .* not http:\/\/…@127\.0\.0\.1:9$/m,
      ],
      [['apps', 'list', '--url', 'http://:p@127.0.0.1:9'], {}, /--url needs .* without user, password, query and fragment/],
      [['apps', 'list'], { SIDETONE_URL: 'http://127.0.0.1:9/?a=1' }, /SIDETONE_URL needs .* without user, password, query and/],
      [['calls', 'erase', ''], {}, /SESSION is empty: sidetone calls erase SESSION/],
      [['apps', 'list'], { SIDETONE_URL: '', HTTP_HOST: 'a b' }, /HTTP_HOST and HTTP_PORT need/],
      [['apps', 'show', 'app_x'], {}, /404 not_found: Application not found/],
      [['apps', 'show', 'nonsense'], {}, /APP begins with app_, and "nonsense" does not: sidetone apps show APP/],
      [
        ['numbers', 'assign', 'app_x', '+15550001'],
        {},
        /NUMBER begins with \+, and "app_x" does not: sidetone numbers assign NUMBER/,
      ],
      [['caller-ids', 'add', '+15550001', 'app_x'], {}, /APP begins with app_, .*: sidetone caller-ids add APP NUMBER/],
      [['events', 'list', '--limit', '-3'], {}, /--limit needs a value; one that begins with - is written --limit=VALUE/],
      [['trunks', 'show', 'x', '--url'], {}, /--url needs a value/],
      [['events', 'list', '--event', 'nonsense'], {}, /400 invalid_request: event: must be the name of an event/],
      [['trunks', 'set', 'a'], {}, /trunks set needs --uri: sidetone trunks set NAME --uri URI/],
      [['trigger', 'session.ended'], {}, /trigger needs --app: sidetone trigger EVENT --app APP/],
      [['devices', 'set', 'app_x', 'alice'], {}, /devices set needs --password-file: sidetone devices set APP/],
      [
        ['apps', 'list'],
        { OPERATOR_TOKEN: 'wrong-token-wrong-token' },
        /401 unauthorized: Invalid operator token\. It is that of OPERATOR_TOKEN, and http.* has another: set OPERATOR_TOKEN or --data-dir/,
      ],
      [
        ['apps', 'list'],
        { DATA_DIR: '/nowhere' },
        /no operator token: .*ENOENT\)\. The first start of the platform \(npm start\) makes it/,
      ],
      [
        ['apps', 'list'],
        { SIDETONE_URL: 'http://127.0.0.1:1' },
        /no answer from .*\(bad port\); is the platform running\? Start it/,
      ],
      [['apps', 'list'], { OPERATOR_TOKEN: ' ' }, /the operator token in OPERATOR_TOKEN is empty/],
      [['apps', 'list'], { OPERATOR_TOKEN: 'one\ntwo' }, /the operator token in OPERATOR_TOKEN is no token: one has printable/],
      // An empty variable in a script must not mean "end all calls now".
      [['drain', '--deadline='], {}, /--deadline must be a whole number .*, not ""/],
      [['drain', '--deadline', 'soon'], {}, /--deadline must be a whole number .*, not "soon"/],
      [['apps', 'list'], { SIDETONE_URL: `http://127.0.0.1:${other.port}` }, /is not a Sidetone platform \(it answered 404\)/],
    ];
    for (const [args, env, message] of wrong) {
      const { out, err, code } = await sidetone(args, env);
      expect([out, code]).toEqual(['', 1]);
      expect(err).toMatch(message);
      expect(err.trim().split('\n').length).toBe(1);
    }
  }, 120_000);

  test('reads its variables as the platform does: without blanks around, and an IPv6 address in brackets or not', async () => {
    using six = Bun.serve({ hostname: '::1', port: 0, fetch: (request) => platform.app.fetch(request) });
    const blanks = {
      SIDETONE_URL: ' ',
      HTTP_PORT: ` ${six.port} `,
      DATA_DIR: ` ${platform.testStore.dataDir} `,
    };
    for (const HTTP_HOST of ['::1', '[::1]', ' [::1] '])
      expect(await sidetone(['apps', 'list', '--json'], { ...blanks, HTTP_HOST })).toMatchObject({ err: '', code: 0 });
  });

  test('says that what answers is no platform, whatever it answers, and that an answer broke off', async () => {
    const answers = new Map<string, () => Response>([
      ['page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
      ['broken', () => new Response('<html>', { headers: { 'content-type': 'application/json' } })],
      ['failed', () => new Response('<html>', { status: 502, headers: { 'content-type': 'application/json' } })],
    ]);
    using other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => answers.get(new URL(request.url).pathname.split('/')[1] ?? '')?.() ?? new Response('', { status: 404 }),
    });
    for (const [answer, status] of [
      ['page', 200],
      ['broken', 200],
      ['failed', 502],
    ] as const)
      for (const command of [['apps', 'list'], ['tail'], ['drain'], ['listen']]) {
        const { out, err, code } = await sidetone(command, { SIDETONE_URL: `http://127.0.0.1:${other.port}/${answer}` });
        expect({ answer, command, out, err, code }).toEqual({
          answer,
          command,
          out: '',
          err: `sidetone: http://127.0.0.1:${other.port}/${answer} is not a Sidetone platform (it answered ${status})\n`,
          code: 1,
        });
      }
    using cut = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"ap'),
      },
    });
    const { out, err, code } = await sidetone(['apps', 'list'], { SIDETONE_URL: `http://127.0.0.1:${cut.port}` });
    expect([out, code]).toEqual(['', 1]);
    expect(err).toMatch(/^sidetone: the answer of http.* broke off \(.*\); is the platform still running\?\n$/);
  }, 120_000);

  test('says that what answers is no platform where its JSON has another shape, and prints nothing of it', async () => {
    const answers = new Map<string, () => Response>([
      ['object', () => Response.json({})],
      ['list', () => Response.json([])],
      [
        'number',
        () => Response.json({ apps: 1, devices: 1, nodes: 1, trunks: 1, refusals: 1, events: 1, sessions: 1, entries: 1 }),
      ],
      [
        'null',
        () => Response.json({ apps: [null], nodes: [null], events: [null], sessions: [null], session: {}, entries: [null] }),
      ],
      ['empty', () => new Response(null, { status: 204 })],
      ['text', () => new Response('OK', { headers: { 'content-type': 'text/plain' } })],
      ['code', () => Response.json({ code: 1 }, { status: 404 })],
      ['stream', () => new Response('event: a\ndata: 1\n\n', { headers: { 'content-type': 'text/event-stream' } })],
    ]);
    using other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => answers.get(new URL(request.url).pathname.split('/')[1] ?? '')?.() ?? new Response('', { status: 404 }),
    });
    const commands = [
      ...[
        ['apps', 'list'],
        ['apps', 'create', 'x', '--json'],
        ['apps', 'show', 'app_1'],
        ['keys', 'add', 'app_1'],
      ],
      ...[
        ['devices', 'list', 'app_1'],
        ['nodes', 'list'],
        ['trunks', 'list'],
        ['trunks', 'show', 'x'],
        ['refusals', 'list'],
      ],
      ...[['events', 'list'], ['calls'], ['calls', 'show', 'x'], ['events', 'replay', 'evt_1'], ['secrets', 'rotate', 'app_1']],
      ...[
        ['nodes', 'drain', 'x'],
        ['trigger', 'session.ended', '--app', 'app_1'],
      ],
      ...[['tail'], ['tail', '--session', 'x'], ['drain'], ['listen'], ['listen', '--forward', 'http://127.0.0.1:9/']],
    ];
    // Every command gets one shape, and each other shape is what one of these gets: a program for each pair takes long.
    const some = [['apps', 'list'], ['tail'], ['apps', 'create', 'x', '--json'], ['drain'], ['listen']];
    const asked = [...answers.keys()].flatMap((answer, at) =>
      (answer === 'object' ? commands : [some[at % some.length] ?? []]).map((command) => [answer, command] as const),
    );
    const ask = async ([answer, command]: (typeof asked)[number]) => {
      const url = `http://127.0.0.1:${other.port}/${answer}`;
      const { out, err, code } = await sidetone(command, { SIDETONE_URL: url });
      const told = err.replace(/\d+\)/, 'N)');
      const line = `sidetone: ${url} is not a Sidetone platform (it answered N)\n`;
      expect({ answer, command, out, told, code }).toEqual({ answer, command, out: '', told: line, code: 1 });
    };
    while (asked.length > 0) await Promise.all(asked.splice(0, 4).map(ask));
  }, 120_000);

  test('prints as JSON what was done, and to what, where the answer has no body', async () => {
    const made = await platform.operator('POST', '/operator/v1/apps', { name: 'told' });
    const app = String(made.body.app_uuid);
    const file = join(platform.testStore.dataDir, 'told.password');
    writeFileSync(file, 'a long password');
    const commands: readonly (readonly [args: readonly string[], done: object])[] = [
      [['numbers', 'assign', '+15558077', app], { done: 'numbers assign', number: '+15558077', app_uuid: app }],
      [['numbers', 'unassign', '+15558077'], { done: 'numbers unassign', number: '+15558077' }],
      [['terminals', 'add', app, '7654321'], { done: 'terminals add', app_uuid: app, terminal_number: '7654321' }],
      [['devices', 'set', app, 'told', '--password-file', file], { done: 'devices set', app_uuid: app, username: 'told' }],
      [['apps', 'update', app, '--name', 'tells'], { done: 'apps update', app_uuid: app }],
    ];
    for (const [args, done] of commands) {
      const { out, err, code } = await sidetone([...args, '--json']);
      expect([JSON.parse(out), err, code]).toEqual([done, '', 0]);
    }
  }, 60_000);

  test('says where an application may call, and that it may call everywhere again', async () => {
    const made = await platform.operator('POST', '/operator/v1/apps', { name: 'bounded' });
    const app = String(made.body.app_uuid);
    const lists = async () => {
      const { allowed_destinations: allowed, blocked_destinations: blocked } = JSON.parse(
        (await sidetone(['apps', 'show', app, '--json'])).out,
      );
      return [allowed, blocked];
    };
    const bounds = ['--allow-destination', '+972', '--allow-destination', '+1', '--block-destination', '+1900'];
    expect((await sidetone(['apps', 'update', app, ...bounds])).code).toBe(0);
    expect(await lists()).toEqual([['+972', '+1'], ['+1900']]);
    const wrong = await sidetone(['apps', 'update', app, '--allow-destination', '972']);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('the beginning of an E.164 number')]);
    expect((await sidetone(['apps', 'update', app, '--all-destinations'])).code).toBe(0);
    expect(await lists()).toEqual([[], []]);
  }, 60_000);

  test('helps with the commands that begin with what was given', async () => {
    const all = (await sidetone(['--help'])).out;
    const calls = (await sidetone(['calls', '--help'])).out;
    for (const same of [
      ['help', 'calls'],
      ['calls', '-h'],
    ])
      expect((await sidetone(same)).out).toBe(calls);
    expect([all, calls].map((text) => text.includes('calls show SESSION [--sip]'))).toEqual([true, true]);
    expect([all, calls].map((text) => text.includes('trunks set NAME'))).toEqual([true, false]);
    // What `trunks set` does not name is reset, unlike with `apps update`.
    expect(all.replace(/\s+/g, ' ')).toContain('sets the trunk up whole: what is not given has its default');
    expect(all.split('\n').filter((line) => line.length > 120)).toEqual([]);
  }, 60_000);

  test('helps with one command where another begins with the same letters', async () => {
    const { out } = await sidetone(['dev', '--help']);
    expect([out.includes('a page with a button'), out.includes('devices list')]).toEqual([true, false]);
  }, 60_000);

  test('gives a shell the application that it made, under the names that the guides use', async () => {
    const { out, err } = await sidetone(['apps', 'create', 'shelled', '--shell']);
    expect(err).toBe('');
    const shell = spawnSync('sh', ['-c', `${out} echo "$APP:$KEY"; echo "$SECRET"`], { encoding: 'utf8' });
    const [credentials = '', secret = ''] = shell.stdout.split('\n');
    expect(secret).toStartWith('whsec_');
    const told = await platform.raw('/api/v1/app', { headers: { authorization: `Bearer ${credentials}` } });
    expect([told.status, told.body.app_uuid]).toEqual([200, credentials.split(':')[0]]);
  }, 60_000);

  test('tells a reader, and not a program, that a secret is shown once and that there are more events', async () => {
    const made = await sidetone(['apps', 'create', 'once']);
    expect(made.err).toBe('The key and the secret are shown this once: keep them.\n');
    const app = /app_[0-9a-f-]{36}/.exec(made.out)?.[0] ?? '';
    const key = await sidetone(['keys', 'add', app, '--json']);
    expect([key.err, JSON.parse(key.out).api_key.slice(0, 3)]).toEqual(['', 'sk_']);
    await sidetone(['apps', 'update', app, '--webhook-url', 'http://127.0.0.1:9/']);
    for (const _ of [1, 2]) await sidetone(['trigger', 'session.created', '--app', app]);
    const page = await sidetone(['events', 'list', '--app', app, '--limit', '1']);
    const position = page.out.split('\n')[1]?.split(' ')[0] ?? '';
    expect(page.err).toBe(`There are more: --after ${position}\n`);
    const rest = await sidetone(['events', 'list', '--app', app, '--after', position]);
    expect([rest.err, rest.out.trim().split('\n').length]).toEqual(['', 2]);
  }, 60_000);

  test('says of the last attempt of an event what the receiver answered, and why where it answered nothing', async () => {
    const facts = {
      position: 1,
      created_at: '-',
      event: 'room.created',
      session_uuid: '-',
      status: 'pending',
      webhook_id: 'evt_1',
    };
    const attempts = [
      [{ status: 204, error: '' }],
      [{ status: 502, error: 'http_status' }],
      [{ status: null, error: 'dns' }],
      [],
    ];
    const events = attempts.map((each) => ({ ...facts, attempts: each }));
    using log = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ events, next: '' }) });
    const { out } = await sidetone(['events', 'list'], { SIDETONE_URL: `http://127.0.0.1:${log.port}` });
    const [head = '', ...rows] = out.trimEnd().split('\n');
    const at = head.indexOf('LAST');
    expect(rows.map((row) => row.slice(at, head.indexOf('WEBHOOK_ID')).trim())).toEqual(['204', '502', 'dns', '']);
  }, 20_000);

  test('leaves empty the length of a call that is up, and the MOS of one that nobody was heard in', async () => {
    const facts = { created_at: '-', session_uuid: '-', type: 'phone_in', caller_id: '-', did: '-', trunk: 'lab' };
    const sessions = [
      { ...facts, state: 'answered', duration_seconds: 0, hangup_cause: '' },
      { ...facts, state: 'ended', duration_seconds: 5, hangup_cause: 'completed', quality: { mos: 0 } },
      { ...facts, state: 'ended', duration_seconds: 7, hangup_cause: 'completed', quality: { mos: 4.4 } },
    ];
    using calls = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ sessions, after: '' }) });
    const { out } = await sidetone(['calls'], { SIDETONE_URL: `http://127.0.0.1:${calls.port}` });
    const rows = out.trim().split('\n').slice(1);
    expect(rows.map((row) => row.split(/ +/).slice(6))).toEqual([
      ['lab'],
      ['lab', '5', 'completed'],
      ['lab', '7', 'completed', '4.4'],
    ]);
  }, 60_000);

  test('sends the fields of a trunk as text, number, list or switch, as each of them is', async () => {
    const set = ['trunks', 'set', 'kinds', '--uri', 'sip:127.0.0.1:5081', '--cidr', '127.0.0.0/8'];
    const more = ['outbound_prefix=00', 'follow_redirects=true', 'transfer_hosts=a.example,b.example', 'max_cps=5'];
    expect((await sidetone([...set, ...more.flatMap((pair) => ['--set', pair])])).code).toBe(0);
    expect(JSON.parse((await sidetone(['trunks', 'show', 'kinds', '--json'])).out)).toMatchObject({
      outbound_prefix: '00',
      follow_redirects: true,
      transfer_hosts: ['a.example', 'b.example'],
      max_cps: 5,
    });
  }, 60_000);
});
