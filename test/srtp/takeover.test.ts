/** `kill -9` with CALL_TAKEOVER: calls with another platform over TCP, and encrypted ones over TLS, go on. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { call, connect, hearEachOther, listening, type Side } from './side.ts';

const folder = mkdtempSync(join(tmpdir(), 'sidetone-takeover-'));
const open: Side[] = [];
let near: Side;
let far: Side;

async function side(number: string, settings: Readonly<Record<string, string>>): Promise<Side> {
  const receiver = new Receiver();
  const platform = await Platform.start(settings);
  const made = { platform, receiver, number, app: await platform.application(receiver.url, number) };
  open.push(made);
  platform.answerEveryCall(made.app, receiver);
  return made;
}

beforeAll(async () => {
  const settings = listening(folder);
  [near, far] = await Promise.all([
    side('+15550002', { ...settings, CALL_TAKEOVER: 'on', ORPHAN_TIMEOUT_SEC: '8' }),
    side('+15550003', settings),
  ]);
}, 60_000);
afterAll(async () => {
  for (const { platform, receiver } of open) {
    await platform.stop();
    await receiver.stop();
  }
  rmSync(folder, { recursive: true });
});

test.each(['tcp', 'tls'] as const)(
  'Calls over %s go on, in either direction, and are heard both ways',
  async (transport) => {
    await connect(near, far, transport, folder);
    const calls = [await call(near, far), (await call(far, near)).toReversed()];
    for (const [own = '', theirs = ''] of calls) await hearEachOther(near, own, far, theirs, '1');
    await near.platform.kill();
    await near.platform.start();
    for (const [own = '', theirs = ''] of calls) {
      await hearEachOther(near, own, far, theirs, '2');
      expect((await near.platform.api(near.app, 'DELETE', `/v1/sessions/${own}`)).status).toBe(202);
      expect((await far.receiver.event('session.ended', theirs)).body).toMatchObject({ answered: true });
      expect((await near.receiver.event('session.ended', own)).body).toMatchObject({ answered: true });
    }
  },
  90_000,
);
