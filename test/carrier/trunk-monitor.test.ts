/** The registration and the probes of a trunk, on a clock of the test's own, over real sockets. */
import { afterEach, expect, test } from 'bun:test';
import { VirtualClock } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer } from './raw-peer.ts';

let carrier: TestCarrier | undefined;
let peer: RawPeer | undefined;
afterEach(async () => {
  await carrier?.close();
  peer?.close();
});

/** Resolves when `ready` holds, which packets on their way make true. */
async function until(ready: () => boolean, what: string): Promise<void> {
  for (let looks = 0; !ready(); looks++) {
    if (looks > 1_000) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('A registrar that answers again after a silence is registered with at once, long before the registration runs out', async () => {
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  const far = await RawPeer.udp(carrier.port('udp'));
  peer = far;
  const settings = { username: 'u', password: 'p', register: true };
  carrier.trunks.push(trunkTo(`sip:${far.host}:${far.port}`, settings));
  carrier.carrier.trunksChanged();
  const { carrier: running } = carrier;
  const status = () => running.trunkStatus('carrier');

  const first = await far.until(/^REGISTER /);
  far.respond(first, '200 OK', { fields: 'Expires: 300\r\n' });
  await until(() => status().registered, 'registered');
  await clock.advance(30_000);
  await far.until(/^OPTIONS /);
  await clock.advance(33_000);
  await until(() => status().lastProbe?.ok === false, 'a probe without an answer');
  expect(status().registered).toBe(true);

  // The probe of a minute after the start is under way by now.
  await until(() => far.heard.some((message) => message.startsWith('OPTIONS ')), 'another probe');
  const probe = far.heard.findLast((message) => message.startsWith('OPTIONS '));
  far.respond(probe ?? '', '200 OK');
  const again = await far.until(/^REGISTER /);
  expect(field(again, 'CSeq')).toBe('2 REGISTER');
  expect(status().lastProbe).toMatchObject({ ok: true });
  far.respond(again, '200 OK', { fields: 'Expires: 300\r\n' });
});
