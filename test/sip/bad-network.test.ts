import { expect, test } from 'bun:test';
import type { Call } from '../../src/sip/call/call.ts';
import fc from '../support/fast-check.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party } from './pair.ts';

const action = fc.record({
  at: fc.integer({ min: 0, max: 12_000 }),
  who: fc.constantFrom('alice', 'bob'),
  what: fc.constantFrom('ring', 'progress', 'accept', 'refuse', 'hang up'),
});

const schedule = fc.record({
  seed: fc.integer(),
  loss: fc.constantFrom(0, 0.05, 0.3),
  duplicate: fc.constantFrom(0, 0.2),
  delayMs: fc.constantFrom(0, 50, 900),
  transport: fc.constantFrom('udp' as const, 'tcp' as const),
  reliable: fc.boolean(),
  actions: fc.array(action, { maxLength: 8 }),
  /** When whoever is still in the call hangs up. */
  last: fc.integer({ min: 0, max: 40_000 }),
  lastWho: fc.constantFrom('alice', 'bob', 'both'),
});

test('whatever the network does, every call ends once on both sides and nothing is left behind', () => {
  fc.assert(
    fc.property(schedule, (plan) => {
      const random = seeded(plan.seed);
      const alice = new Party('192.0.2.1', random);
      const bob = new Party('192.0.2.2', random);
      const network = new Network([alice, bob], plan, random);
      const call = dial(network, alice, bob, { transport: plan.transport, fields: plan.reliable ? [['require', '100rel']] : [] });
      const perform = (what: string, each: Call) => {
        const { now } = network;
        if (what === 'ring') each.provisional(180, new Uint8Array(0), now);
        else if (what === 'progress') each.provisional(183, bytes('v=0 early'), now);
        else if (what === 'accept') each.accept(bytes('v=0 answer'), now);
        else if (what === 'refuse') each.refuse(486, [], now);
        else each.hangUp(now);
      };
      for (const { at, who, what } of plan.actions) {
        network.after(at, () => {
          if (who === 'alice') {
            if (what === 'hang up') perform(what, call);
          } else for (const each of bob.invited) perform(what, each);
        });
      }
      network.after(plan.last, () => {
        if (plan.lastWho !== 'bob') perform('hang up', call);
        if (plan.lastWho !== 'alice') for (const each of bob.invited) perform('hang up', each);
      });
      // Whoever never heard of it ends the call too, in the end.
      network.after(60_000, () => {
        perform('hang up', call);
        for (const each of bob.invited) perform('hang up', each);
      });
      network.run();

      expect(alice.ends(call)).toHaveLength(1);
      expect(bob.invited.length).toBeLessThanOrEqual(1);
      for (const each of bob.invited) expect(bob.ends(each)).toHaveLength(1);
      for (const party of [alice, bob]) {
        for (const events of party.events.values()) expect(events.at(-1)?.type).toBe('ended');
        expect(party.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
        expect(party.agent.holdings()).toEqual({ deadlines: 0, keys: 0 });
      }
      const answered = alice.types(call).includes('answered');
      // Alice can only be in a call that Bob answered.
      if (answered)
        expect(
          network.wire.some(
            (each) => each.from === bob.host && each.line.startsWith('SIP/2.0 200') && each.data.includes('INVITE'),
          ),
        ).toBe(true);
      // What the callee takes for an answered call, the caller took for one too, or hung it up when the 200 came.
      const confirmed = bob.invited.some((each) => bob.types(each).includes('confirmed'));
      if (confirmed && !answered)
        expect(network.wire.some((each) => each.from === alice.host && each.line.startsWith('BYE'))).toBe(true);
      // Every final answer to the INVITE that arrived was acknowledged.
      const finals = network.wire.some(
        (each) => each.from === bob.host && /^SIP\/2\.0 [2-6]/.test(each.line) && / INVITE\r\n/.test(each.data),
      );
      if (finals && plan.loss === 0)
        expect(network.wire.some((each) => each.from === alice.host && each.line.startsWith('ACK '))).toBe(true);
    }),
    { numRuns: 400 },
  );
});

test('what others send, mutilated or repeated, neither throws nor leaves anything behind', () => {
  const edit = fc.record({
    message: fc.nat(30),
    at: fc.nat(900),
    take: fc.nat(40),
    put: fc.string({ maxLength: 20 }),
    to: fc.boolean(),
    after: fc.nat(3_000),
  });
  fc.assert(
    fc.property(fc.integer(), fc.array(edit, { maxLength: 30 }), (seed, edits) => {
      const random = seeded(seed);
      const alice = new Party('192.0.2.1', random);
      const bob = new Party('192.0.2.2', random);
      const network = new Network([alice, bob], CALM, random);
      for (const party of [alice, bob]) {
        party.react = (each, event) => {
          if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
          if (event.type === 'offer') each.answerOffer(bytes('v=0 again'), network.now);
        };
      }
      const call = dial(network, alice, bob, { fields: [['require', '100rel']] });
      for (const { message, at, take, put, to, after } of edits) {
        network.after(after, () => {
          const wire = network.wire[message % network.wire.length]?.data ?? '';
          const changed = wire.slice(0, at % wire.length) + put + wire.slice((at % wire.length) + take);
          (to ? alice : bob).agent.receive(
            bytes(changed),
            { transport: 'udp', host: '192.0.2.66', port: 5060, flow: 1 },
            network.now,
          );
        });
      }
      const hangUpAll = () => {
        for (const party of [alice, bob]) for (const each of [call, ...party.invited]) each.hangUp(network.now);
      };
      network.after(5_000, hangUpAll);
      network.after(60_000, hangUpAll);
      network.run();
      expect(alice.ends(call)).toHaveLength(1);
      for (const party of [alice, bob]) {
        for (const each of party.invited) expect(party.ends(each)).toHaveLength(1);
        expect({ ...party.agent.load(), ...party.agent.holdings() }).toEqual({
          dialogs: 0,
          transactions: 0,
          deadlines: 0,
          keys: 0,
        });
      }
    }),
    { numRuns: 300 },
  );
});
