/**
 * CPU of one call: INVITE, 100, 180, 200, ACK, BYE, 200 between two user agents of ours, without sockets (the pair does
 * both ends: halve it for one) and with UDP sockets on loopback. Prints µs of CPU a call, the best and the median of
 * the rounds.
 *
 *   bun bench/sip-call.ts [rounds] [calls]
 */
import { AgentDriver } from '../src/carrier/agent-driver.ts';
import { systemEntropy } from '../src/carrier/entropy.ts';
import { openListener } from '../src/carrier/socket/listener.ts';
import { systemClock } from '../src/clock.ts';
import { hexHash } from '../src/hash.ts';
import { silentLog } from '../src/log.ts';
import { Negotiation } from '../src/sdp/negotiation.ts';
import type { Call } from '../src/sip/call/call.ts';
import type { Peer } from '../src/sip/flow.ts';
import { UserAgent, type UserAgentOptions } from '../src/sip/user-agent.ts';

const ROUNDS = Number(process.argv[2] ?? 7);
const CALLS = Number(process.argv[3] ?? 2_000);
const NONE = new Uint8Array(0);
const offer = new Negotiation({ host: '127.0.0.1', port: 20_000, codecs: ['PCMU', 'PCMA'], sessionId: 1 }).offer();

const options = (host: string, port: number): UserAgentOptions => ({
  entropy: systemEntropy(),
  hash: hexHash,
  product: 'Sidetone',
  sessionExpiresSec: 1800,
  local: () => ({ host, port }),
});
const order = (peer: Peer) => ({
  peer,
  uri: `sip:+15550100@${peer.host}`,
  from: '<sip:+15550199@127.0.0.1>',
  to: '<sip:+15550100@127.0.0.1>',
  body: offer,
  credentials: undefined,
  fields: [],
});

/** Both ends of every call in memory; the answer to each offer is made as the carrier makes it. */
function inMemory(calls: number): void {
  const a: Peer = { transport: 'udp', host: '127.0.0.1', port: 5060, flow: 1 };
  const b: Peer = { transport: 'udp', host: '127.0.0.2', port: 5060, flow: 1 };
  const alice = new UserAgent(options(a.host, 5060));
  const bob = new UserAgent(options(b.host, 5060));
  let now = 1_000_000;
  const settle = () => {
    for (let moved = true; moved; ) {
      moved = false;
      for (const [from, to, source] of [
        [alice, bob, a],
        [bob, alice, b],
      ] as const) {
        for (const output of from.take()) {
          moved = true;
          if (output.type === 'send') to.receive(output.bytes, source, now);
          else if (output.type === 'invite') {
            output.call.provisional(180, NONE, now);
            const answer = new Negotiation({ host: '127.0.0.1', port: 20_002, codecs: ['PCMU', 'PCMA'], sessionId: 2 }).answer(
              output.request.body,
            );
            if ('body' in answer) output.call.accept(answer.body, now);
          }
        }
      }
    }
  };
  for (let i = 0; i < calls; i++) {
    const call = alice.invite(order(b), now);
    settle();
    call?.hangUp(now);
    settle();
    now += 20;
    alice.advance(now);
    bob.advance(now);
  }
}

/** The same over two UDP sockets of this process, a window of calls in flight. */
async function overUdp(calls: number): Promise<void> {
  const clock = systemClock();
  const listen = [{ transport: 'udp', host: '127.0.0.1', port: 0 } as const];
  const party = async (onInvite: (call: Call) => void) => {
    let port = 5060;
    const driver: AgentDriver = new AgentDriver(
      new UserAgent({ ...options('127.0.0.1', 0), local: () => ({ host: '127.0.0.1', port }) }),
      clock,
      silentLog,
      {
        onInvite: ({ call }) => onInvite(call),
        onRefused() {},
        onProbed() {},
        onMessage() {},
        onVia() {},
      },
    );
    const sockets = await openListener({
      listen,
      tls: undefined,
      advertise: [],
      clock,
      tlsOf: () => undefined,
      isKnown: () => true,
      isBanned: () => false,
      log: silentLog,
      onMessage: (bytes, source) => driver.receive(bytes, source),
      onLost() {},
    });
    port = sockets.ports[0]?.port ?? 0;
    driver.attach(sockets);
    return { driver, sockets, port };
  };
  const bob = await party((call) => {
    bob.driver.listen(call, () => {});
    bob.driver.run((now) => call.provisional(180, NONE, now));
    bob.driver.run((now) => call.accept(offer, now));
  });
  const alice = await party(() => {});
  const peer: Peer = { transport: 'udp', host: '127.0.0.1', port: bob.port, flow: 0 };
  let left = calls;
  let ended = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const next = () => {
    if (left-- <= 0) return;
    alice.driver.run((now) => {
      const call = alice.driver.agent.invite(order(peer), now);
      if (call === undefined) throw new Error('too many calls');
      alice.driver.listen(call, (event) => {
        if (event.type === 'answered') alice.driver.run((at) => call.hangUp(at));
        if (event.type !== 'ended') return;
        if (event.end.why !== 'local') throw new Error(`a call failed: ${event.end.why}`);
        if (++ended === calls) resolve();
        else queueMicrotask(next);
      });
    });
  };
  for (let i = 0; i < 20; i++) next();
  await promise;
  for (const each of [alice, bob]) {
    each.driver.close();
    await each.sockets.close();
  }
}

const cpu = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
const rounds: Record<string, number[]> = { 'in memory, both ends': [], 'over UDP, both ends': [] };
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, work] of [
    ['in memory, both ends', inMemory],
    ['over UDP, both ends', overUdp],
  ] as const) {
    const before = cpu();
    await work(CALLS);
    // The first round warms up.
    if (round > 0) rounds[name]?.push((cpu() - before) / CALLS);
  }
}
for (const [name, all] of Object.entries(rounds)) {
  const sorted = all.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  console.log(
    `${name}: best ${(sorted[0] ?? 0).toFixed(0)} µs, median ${median.toFixed(0)} µs of CPU a call; one end about ${(median / 2).toFixed(0)} µs`,
  );
}
process.exit(0);
