/** A platform is sent signals while its database does not answer. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync, rmSync } from 'node:fs';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';
import { AUDIO, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { eventually } from '../cluster/harness.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { Platform } from '../support/platform.ts';
import { fillDataDir } from '../support/postgres-template.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550002';
const dataDir = dataDirectory('sidetone-stop-');
const receiver = new Receiver();
let server: EmbeddedServer;
let proxy: FaultProxy;
let platform: Platform;
let peer: RawPeer;
beforeAll(async () => {
  await fillDataDir(dataDir);
  server = await startEmbedded(dataDir, silentLog);
  proxy = await FaultProxy.start({ path: `${server.socketDir}/.s.PGSQL.${server.port}` });
  platform = await Platform.start({
    DATABASE_URL: `postgres://sidetone@127.0.0.1:${proxy.port}/postgres`,
    ORPHAN_TIMEOUT_SEC: '2',
  });
  peer = await RawPeer.udp(Number(platform.sipUdp.split(':')[1]));
}, 60_000);
afterAll(async () => {
  peer?.close();
  await platform?.stop();
  proxy?.stop();
  await server?.stop();
  rmSync(dataDir, { recursive: true, force: true });
  await receiver.stop();
});

test('A stop while the database does not answer hangs up, is over in time, and the next start tells each end once', async () => {
  const app = await platform.application(receiver.url, NUMBER);
  receiver.secrets.set(app.appUuid, app.webhookSecret);
  await platform.trunk(`127.0.0.1:${peer.port}`);
  const ids = ['first', 'second', 'third'];
  const sessions: string[] = [];
  for (const id of ids) {
    peer.send(peer.request('INVITE', { id, body: sdp(AUDIO) }));
    const created = () =>
      receiver.events.find(({ event, body }) => event === 'session.created' && JSON.stringify(body).includes(id));
    await receiver.until(() => created() !== undefined, 'session.created');
    const sessionUuid = String(created()?.body.session_uuid);
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`, {});
    const to = field(await peer.until(new RegExp(`^SIP/2.0 200[\\s\\S]*Call-ID: ${id}`)), 'To');
    peer.send(peer.request('ACK', { id, to }));
    await receiver.event('session.answered', sessionUuid);
    sessions.push(sessionUuid);
  }

  proxy.set('blackhole');
  const began = performance.now();
  platform.signal('SIGTERM');
  const ended = platform.ended();
  for (const id of ids) peer.respond(await peer.until(new RegExp(`^BYE [\\s\\S]*Call-ID: ${id}`), 20_000), '200 OK');
  expect(await ended).toBe(0);
  expect(performance.now() - began).toBeLessThan(30_000);

  proxy.set('reset');
  proxy.set('pass');
  await platform.start();
  for (const sessionUuid of sessions) {
    const { body } = await receiver.event('session.ended', sessionUuid);
    expect(body).toMatchObject({ hangup_by: 'system' });
    expect(receiver.names(sessionUuid)).toEqual(['session.created', 'session.answered', 'session.ended']);
  }
}, 120_000);

test('SIGHUP while the platform starts, as of a reload at boot, does not end it', async () => {
  await platform.kill();
  proxy.set('blackhole');
  const starting = platform.start();
  const { pid } = platform;
  await eventually(() => catches(pid, 1), 'the handler');
  platform.signal('SIGHUP');
  await eventually(() => platform.output.includes('"signal":"SIGHUP"'), 'the line of the log');
  proxy.set('pass');
  await starting;
  expect([platform.pid, (await fetch(`${platform.url}/readyz`)).status]).toEqual([pid, 200]);
}, 60_000);

/** Whether a process handles a signal itself (proc(5), SigCgt). */
function catches(pid: number, signal: number): boolean {
  const [, mask = '0'] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${mask}`) & (1n << BigInt(signal - 1))) !== 0n;
}
