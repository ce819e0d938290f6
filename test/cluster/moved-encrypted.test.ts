/** Calls with another platform over TCP, and encrypted ones over TLS, go from a node that drains to another one. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call, connect, hearEachOther, listening, type Side } from '../srtp/side.ts';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';

const folder = mkdtempSync(join(tmpdir(), 'sidetone-moved-'));

describe.skipIf(!natsInstalled)('A node that drains', () => {
  let cluster: TestCluster;
  let near: Side;
  let far: Side;

  const sessionsOf = async (at: number): Promise<number> => {
    const metrics = await (await fetch(`${cluster.node(at).platform.url}/metrics`)).text();
    return Number(/^sidetone_sessions (\d+)$/m.exec(metrics)?.[1]);
  };
  const made = async (platform: Platform, number: string): Promise<Side> => {
    const receiver = new Receiver();
    const app = await platform.application(receiver.url, number);
    platform.answerEveryCall(app, receiver);
    return { platform, app, receiver, number };
  };
  beforeAll(async () => {
    const settings = listening(folder);
    const [three, platform] = await Promise.all([TestCluster.start(2, settings), Platform.start(settings)]);
    cluster = three;
    [near, far] = await Promise.all([made(cluster.node(0).platform, '+15550002'), made(platform, '+15550003')]);
  }, 60_000);
  afterAll(async () => {
    await cluster?.stop();
    await far?.platform.stop();
    for (const each of [near, far]) await each?.receiver.stop();
    rmSync(folder, { recursive: true });
  });

  test.each(['tcp', 'tls'] as const)(
    'hands over calls over %s, in either direction, which are heard both ways',
    async (transport) => {
      await connect(near, far, transport, folder);
      const calls = [await call(near, far), (await call(far, near)).toReversed()];
      for (const [own = '', theirs = ''] of calls) await hearEachOther(near, own, far, theirs, '1');
      const other = { ...near, platform: cluster.node(1).platform };
      const { body } = await near.platform.operator('GET', '/nodes');
      const id = Array.isArray(body.nodes) ? body.nodes.find(({ here }) => here === true)?.node_id : undefined;
      expect((await other.platform.operator('POST', `/nodes/${id}/drain`, { mode: 'move' })).status).toBe(202);
      const isMoved = async () => (await sessionsOf(0)) === 0 && (await sessionsOf(1)) === calls.length;
      await eventually(isMoved, 'the calls are at the other node');
      for (const [own = '', theirs = ''] of calls) {
        await hearEachOther(other, own, far, theirs, '2');
        expect((await other.platform.api(near.app, 'DELETE', `/v1/sessions/${own}`)).status).toBe(202);
        expect((await far.receiver.event('session.ended', theirs)).body).toMatchObject({ answered: true });
      }
      // Asked of the node itself, so that it takes calls again at once.
      expect((await near.platform.operator('POST', `/nodes/${id}/undrain`, {})).status).toBe(202);
    },
    90_000,
  );
});
