/** Probes of one trunk that are under way at once. The agent is a real one, on a clock of the test's own. */
import { expect, test } from 'bun:test';
import { AgentDriver } from '../../src/carrier/agent-driver.ts';
import type { Trunk } from '../../src/carrier/carrier.ts';
import { TrunkMonitor } from '../../src/carrier/trunk/trunk-monitor.ts';
import { SIP_PROBE_INTERVAL_SEC, SIP_T1_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { countingAgent, trunkTo } from './harness.ts';

const INTERVAL_MS = SIP_PROBE_INTERVAL_SEC * 1000;
/** Timer F, after which a probe counts as unanswered. */
const SILENCE_MS = 64 * SIP_T1_MS;
const peerAt = (host: string) => ({ transport: 'udp', host, port: 5060, flow: 0 }) as const;

/** A monitor of trunks whose peers answer where `there` has their addresses. */
function monitored(resolve: (trunk: Trunk) => readonly string[], lastUsed: (now: number) => number = () => 0) {
  const clock = new VirtualClock();
  const there = new Set<string>();
  const asked: string[] = [];
  /** The methods of requests, and the port that a router before us gives to them. */
  const sent: string[] = [];
  const router = { port: 40_000 };
  const agent = countingAgent('192.0.2.200');
  const driver = new AgentDriver(agent, clock, silentLog, {
    ...{ onInvite() {}, onRefused() {}, onVia() {} },
    onProbed: ({ name, status, tookMs, seenAt }) => monitor.onProbed(name, status, tookMs, seenAt),
    onMessage: (direction, bytes, peer) => {
      if (direction === 'in') return;
      asked.push(peer.host);
      const answer = Buffer.from(bytes)
        .toString()
        .replace(/^.*\r\n/, 'SIP/2.0 200 OK\r\n')
        .replace(/;rport/, `;received=198.51.100.1;rport=${router.port}`);
      sent.push(/^[A-Z]+/.exec(Buffer.from(bytes).toString())?.[0] ?? '');
      if (there.has(peer.host)) queueMicrotask(() => driver.receive(Buffer.from(answer), peer));
    },
  });
  const monitor: TrunkMonitor = new TrunkMonitor({
    ...{ driver, clock, log: silentLog },
    resolve: async (trunk) => resolve(trunk).map(peerAt),
    lastUsed: () => lastUsed(clock.now()),
    registers: () => true,
  });
  const told = () => ({ answers: monitor.status('carrier').lastProbe?.ok, down: monitor.down });
  return { clock, monitor, there, asked, sent, router, told };
}

test('A probe of an address that a trunk had before says nothing about the one that it has now', async () => {
  const { clock, monitor, there, told } = monitored(({ uri }) => [uri.slice('sip:'.length)]);
  there.add('192.0.2.2');
  monitor.update([trunkTo('sip:192.0.2.1')]);
  await clock.advance(INTERVAL_MS + 10_000);
  monitor.update([trunkTo('sip:192.0.2.2')]);
  // The operator asks at once whether the new address is right.
  monitor.probeNow('carrier');
  await settle();
  expect(told()).toEqual({ answers: true, down: 0 });
  await clock.advance(SILENCE_MS - 10_000);
  expect(told()).toEqual({ answers: true, down: 0 });
});

test('A trunk of two addresses is there by the second one, however many probes of the first are under way', async () => {
  const { clock, monitor, there, asked, told } = monitored(() => ['192.0.2.1', '192.0.2.2']);
  there.add('192.0.2.2');
  monitor.update([trunkTo('sip:carrier.example')]);
  for (let probes = 0; probes < 3; probes++) {
    monitor.probeNow('carrier');
    await clock.advance(5_000);
  }
  await clock.advance(SILENCE_MS);
  expect(told()).toEqual({ answers: true, down: 0 });
  expect(asked.filter((host) => host === '192.0.2.2')).toHaveLength(3);
});

test('A trunk whose probes overlap and are all unanswered is down, until one is answered', async () => {
  const { clock, monitor, there, told } = monitored(() => ['192.0.2.1', '192.0.2.2']);
  monitor.update([trunkTo('sip:carrier.example')]);
  await clock.advance(INTERVAL_MS + 2 * SILENCE_MS);
  expect(told()).toEqual({ answers: false, down: 1 });
  there.add('192.0.2.1');
  await clock.advance(INTERVAL_MS);
  expect(told()).toEqual({ answers: true, down: 0 });
  // Probes that began before it was back are over by now.
  await clock.advance(2 * SILENCE_MS);
  expect(told()).toEqual({ answers: true, down: 0 });
});

const REGISTERED = { register: true, username: 'me', password: 'secret' };

test('A registered trunk that carries a call is asked all the same, so that a router keeps the way for its calls to us', async () => {
  const { clock, monitor, there, sent, told } = monitored(
    () => ['192.0.2.1'],
    (now) => now,
  );
  there.add('192.0.2.1');
  monitor.update([trunkTo('sip:192.0.2.1', REGISTERED)]);
  await settle();
  await clock.advance(4 * INTERVAL_MS + 1_000);
  expect(sent).toEqual(['REGISTER', 'OPTIONS', 'OPTIONS', 'OPTIONS', 'OPTIONS']);
  expect(INTERVAL_MS).toBeLessThan(30_000);
  // It carries a call, so that it counts as there whatever it answers.
  there.clear();
  await clock.advance(2 * SILENCE_MS);
  expect(told().down).toBe(0);
});

test('A trunk is registered anew when a router before us has given us another port, and once only', async () => {
  const { clock, monitor, there, sent, router } = monitored(() => ['192.0.2.1']);
  there.add('192.0.2.1');
  monitor.update([trunkTo('sip:192.0.2.1', REGISTERED)]);
  await settle();
  await clock.advance(2 * INTERVAL_MS + 1_000);
  expect(sent).toEqual(['REGISTER', 'OPTIONS', 'OPTIONS']);
  router.port++;
  await clock.advance(3 * INTERVAL_MS);
  expect(sent).toEqual(['REGISTER', 'OPTIONS', 'OPTIONS', 'OPTIONS', 'REGISTER', 'OPTIONS', 'OPTIONS']);
});
