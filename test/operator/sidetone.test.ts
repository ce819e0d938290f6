import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR_TOKEN, openPlatform, type Platform } from '../http/platform.ts';

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
    expect((await sidetone(['trunks', 'list'])).out).toContain('sip:127.0.0.1:5080');
    expect(JSON.parse((await sidetone(['trunks', 'show', 'lab', '--json'])).out)).toMatchObject({
      country_code: '972',
      priority: 2,
    });
    expect((await sidetone(['refusals', 'list'])).out).toStartWith('AT');
  }, 120_000);

  test('says in one line what is wrong', async () => {
    const wrong: [string[], Record<string, string>, RegExp][] = [
      [['apps', 'fly'], {}, /unknown command: apps fly/],
      [['apps', 'show'], {}, /takes 1 argument/],
      [['apps', '--colour'], {}, /colour/],
      [['apps', 'show', 'nonsense'], {}, /404 not_found: Application not found/],
      [['apps', 'list'], { OPERATOR_TOKEN: 'wrong-token-wrong-token' }, /401 unauthorized: Invalid operator token/],
      [['apps', 'list'], { DATA_DIR: '/nowhere' }, /no operator token: .*ENOENT/],
      [['apps', 'list'], { SIDETONE_URL: 'http://127.0.0.1:1' }, /no answer from .*is the platform running/],
    ];
    for (const [args, env, message] of wrong) {
      const { out, err, code } = await sidetone(args, env);
      expect([out, code]).toEqual(['', 1]);
      expect(err).toMatch(message);
      expect(err.trim().split('\n').length).toBe(1);
    }
  }, 120_000);
});
