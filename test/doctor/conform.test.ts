/** `sidetone conform FILE`, as a shell runs it. */
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../src/id.ts';

const folder = mkdtempSync(join(tmpdir(), 'sidetone-conform-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const session_uuid = newUuid();

/** A line of the log: an event of the Session, its body as text or as an object. */
function delivery(event: string, more: object, isText = true): string {
  const body = { aud: 'app_1', event, timestamp: '2026-01-01T00:00:00.000Z', session_uuid, ...more };
  const received_at = '2026-01-01T00:00:01.000Z';
  return JSON.stringify({ webhook_id: `evt_${newUuid()}`, received_at, body: isText ? JSON.stringify(body) : body });
}
const CREATED = delivery('session.created', { caller_id: '+15550001', did: '+15550002', type: 'phone_in' });
const ENDED = delivery('session.ended', { answered: false, hangup_cause: 'cancelled', duration_seconds: 0 }, false);

async function conform(text: string | undefined, ...flags: string[]) {
  const file = join(folder, newUuid());
  if (text !== undefined) writeFileSync(file, text);
  const child = Bun.spawn([process.execPath, 'src/doctor/conform.ts', file, ...flags], { stdout: 'pipe', stderr: 'pipe' });
  const [told, warned] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, told, warned: warned.replaceAll(file, 'FILE') };
}

test('A log that keeps every promise is 0, and blank lines are no deliveries', async () => {
  expect(await conform(`${CREATED}\n\n${ENDED}\n`)).toEqual({
    code: 0,
    told: '',
    warned: '2 events in 2 deliveries, 0 breaches\n',
  });
});

test('A breach is 1 with its line; what is missing counts unless calls may still run', async () => {
  const late = await conform(`${CREATED}\n${ENDED}\nno JSON\n${delivery('session.answered', {})}\n`);
  expect(late.code).toBe(1);
  expect(late.told).toStartWith('line 3: is not {webhook_id, received_at, body}\nline 4: ');
  expect(late.warned).toBe('3 events in 4 deliveries, 2 breaches\n');
  expect(await conform(CREATED)).toMatchObject({ code: 1, told: `at the end: session ${session_uuid}: no session.ended\n` });
  expect(await conform(CREATED, '--open')).toMatchObject({ code: 0, told: '' });
  const json = await conform(CREATED, '--json');
  expect(JSON.parse(json.told)).toEqual({
    ...{ events: 1, deliveries: 1, more: 0 },
    breaches: [{ where: 'at the end', what: `session ${session_uuid}: no session.ended` }],
  });
});

test('A file that is not there, or holds no delivery, is 2: nothing was checked', async () => {
  expect(await conform(undefined)).toMatchObject({ code: 2, warned: 'sidetone: FILE cannot be read (ENOENT)\n' });
  for (const empty of ['', '\n\n'])
    expect(await conform(empty)).toEqual({
      ...{ code: 2, told: '' },
      warned: 'sidetone: FILE holds no delivery, so that nothing was checked\n',
    });
});

test('What is told of a thousand breaches is told whole, also to a pipe that has no room for it', async () => {
  const file = join(folder, newUuid());
  writeFileSync(file, 'no JSON\n'.repeat(1_200));
  // The reader takes one byte at a time.
  const command = '"$0" src/doctor/conform.ts "$1" --json | dd bs=1 2>/dev/null';
  const child = Bun.spawn(['sh', '-c', command, process.execPath, file], { stdout: 'pipe' });
  const told = JSON.parse(await new Response(child.stdout).text());
  expect([told.breaches.length, told.more]).toEqual([1_000, 200]);
});
