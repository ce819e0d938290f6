/** Stories of calls that are up: who changes the session, who refreshes it, who looks for the other, who hands over. */
import { expect, test } from 'bun:test';
import type { Call } from '../../src/sip/call/call.ts';
import type { CallEvent } from '../../src/sip/call/call-event.ts';
import fc from '../support/fast-check.ts';
import { seeded } from '../support/random.ts';
import { bytes, dial, Network, Party, text } from './pair.ts';

type What = 'offer' | 'probe' | 'refer' | 'hand over' | 'lose' | 'hang up';
/** What becomes of an offer of the far end: it is answered at once, after so many milliseconds, or refused. */
type Answering = number | 'refuse';

/** One side of the call: what it has described, and what it takes the far end to have described. */
class Side {
  readonly party: Party;
  readonly network: Network;
  readonly answering: readonly Answering[];
  call: Call;
  mine: string;
  theirs: string;
  /** What our re-INVITE that is under way describes. */
  offered: string | undefined;
  ends: CallEvent[] = [];
  /** Our last offer was neither answered nor refused yet. */
  isWaiting = false;
  /** Another node has the call, and asks the far end to follow. */
  isMoving = false;
  far: Side | undefined;
  referrals: string[] = [];
  #said = 0;
  #answers = 0;

  constructor(
    party: Party,
    network: Network,
    call: Call,
    told: readonly [mine: string, theirs: string],
    how: readonly Answering[],
  ) {
    this.party = party;
    this.network = network;
    this.call = call;
    [this.mine, this.theirs] = told;
    this.answering = how;
  }

  get isUp(): boolean {
    return this.ends.length === 0;
  }

  /** Whether no exchange is under way, and none waits. */
  get isSettled(): boolean {
    return this.isUp && !this.isWaiting && this.call.snapshot(true) !== undefined;
  }

  #describe = (): string => `v=0 of ${this.party.host} ${++this.#said}`;

  hear(event: CallEvent): void {
    if (event.type === 'ended') this.ends.push(event);
    else if (event.type === 'offer') this.#answer(text(event.body));
    else if (event.type === 'answer') {
      this.mine = this.offered ?? this.mine;
      this.theirs = text(event.body);
    }
    if (event.type === 'answer' || event.type === 'offer_refused') {
      if (this.offered !== undefined) this.isWaiting = false;
      this.offered = undefined;
      const isLeft = this.isMoving && event.type === 'offer_refused';
      this.isMoving = false;
      // The node that goes on must be followed.
      if (isLeft) this.call.hangUp(this.network.now);
    }
    if (event.type === 'refer') this.referrals.push(event.outcome.phase);
  }

  #answer(offer: string): void {
    const how = this.answering[this.#answers++ % this.answering.length] ?? 0;
    const { call, network } = this;
    // What was agreed on before is not refused: it refreshes the session.
    if (how === 'refuse' && offer !== this.theirs && this.far?.isMoving !== true) call.refuseOffer(488, network.now);
    else {
      network.after(how === 'refuse' ? 0 : how, () => {
        // It may be over, or another node's, by then.
        if (call !== this.call || !this.isUp) return;
        this.mine = this.#describe();
        this.theirs = offer;
        call.answerOffer(bytes(this.mine), network.now);
      });
    }
  }

  do(what: What): void {
    const { call, network } = this;
    if (!this.isUp) return;
    if (what === 'offer') this.#offer();
    else if (what === 'probe') call.probe(network.now);
    else if (what === 'refer') {
      this.referrals = [];
      call.refer(() => '<sip:third@192.0.2.3>', network.now);
    } else if (what === 'hand over') this.#goOn(call.snapshot(true));
    else if (what === 'hang up') call.hangUp(network.now);
  }

  #offer(endedBy?: readonly (481 | 408)[]): void {
    this.isWaiting = true;
    this.call.offer(
      () => {
        this.offered = this.#describe();
        return bytes(this.offered);
      },
      this.network.now,
      endedBy,
    );
  }

  /** Another node goes on, and makes the far end follow. */
  #goOn(snapshot: ReturnType<Call['snapshot']>): void {
    const { call, network, party } = this;
    if (snapshot === undefined) return;
    call.abandon();
    const next = party.agent.resume(structuredClone(snapshot), 1_000, undefined, network.now);
    if (next === undefined) throw new Error('too many calls');
    this.call = next;
    this.isMoving = true;
    this.#offer([]);
  }
}

const action = fc.record({
  at: fc.oneof(fc.nat(3_000), fc.nat(200_000)),
  who: fc.constantFrom(0, 1),
  what: fc.oneof(
    { weight: 6, arbitrary: fc.constant<What>('offer') },
    { weight: 3, arbitrary: fc.constantFrom<What>('probe', 'refer', 'hand over') },
    { weight: 1, arbitrary: fc.constant<What>('hang up') },
  ),
});
const answering = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant<Answering>(0) },
    { weight: 1, arbitrary: fc.nat(1_500) },
    { weight: 1, arbitrary: fc.constant<Answering>('refuse') },
  ),
  { minLength: 1, maxLength: 4 },
);
const plans = fc.record({
  seed: fc.noShrink(fc.integer()),
  loss: fc.constantFrom(0, 0, 0.05, 0.3),
  duplicate: fc.constantFrom(0, 0.2),
  delayMs: fc.constantFrom(0, 50, 900),
  transport: fc.constantFrom('udp' as const, 'tcp' as const),
  /** The far ends allow UPDATE. The session is refreshed by re-INVITE else. */
  hasUpdate: fc.boolean(),
  refresher: fc.constantFrom('uac', 'uas'),
  answering: fc.tuple(answering, answering),
  actions: fc.array(action, { maxLength: 12 }),
});

test('whoever changes a session, both sides have the same one when neither is at it, and on a good network no call is lost', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const random = seeded(plan.seed);
      const parties = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)] as const;
      const [alice, bob] = parties;
      const weather = { loss: 0, duplicate: 0, delayMs: 0 };
      const network = new Network(parties, weather, random);
      for (const party of parties) {
        const receive = party.agent.receive.bind(party.agent);
        party.agent.receive = (data, source, now) => {
          const said = text(data).replace(/^(Session-Expires: )\d+\r/im, `$190;refresher=${plan.refresher}\r`);
          receive(bytes(plan.hasUpdate ? said : said.replace(', UPDATE', '')), source, now);
        };
      }
      bob.react = (each, event) => {
        if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
      };
      const call = dial(network, alice, bob, { transport: plan.transport });
      network.run(100);
      const [callee] = bob.invited;
      if (callee === undefined) throw new Error('no call came');
      const sides = [
        new Side(alice, network, call, ['v=0 offer', 'v=0 answer'], plan.answering[0]),
        new Side(bob, network, callee, ['v=0 answer', 'v=0 offer'], plan.answering[1]),
      ] as const;
      const [here, there] = sides;
      here.far = there;
      there.far = here;
      Object.assign(weather, { loss: plan.loss, duplicate: plan.duplicate, delayMs: plan.delayMs });
      const agree = () => {
        if (!here.isSettled || !there.isSettled) return;
        expect([here.mine, here.theirs]).toEqual([there.theirs, there.mine]);
      };
      for (const side of sides)
        side.party.react = (each, event) => {
          if (each !== side.call || event.type === 'invite') return;
          side.hear(event);
          // One message may tell several things.
          network.after(0, agree);
        };
      for (const { at, who, what } of plan.actions) network.after(at, () => sides[who]?.do(what));
      for (let ms = 10_000; ms < 400_000; ms += 10_000) network.after(ms, agree);
      network.run(400_000);
      agree();
      const whys = sides.flatMap(({ ends }) => ends.flatMap((event) => (event.type === 'ended' ? [event.end.why] : [])));
      if (plan.loss === 0) {
        // A request that crosses a BYE hears 481.
        if (whys.length > 0) expect(whys).toContain('local');
        else expect(sides.map(({ isWaiting }) => isWaiting)).toEqual([false, false]);
      }
      for (const { ends, referrals } of sides) {
        expect(ends.length).toBeLessThanOrEqual(1);
        expect([[], ['accepted'], ['refused'], ['accepted', 'completed'], ['accepted', 'failed']]).toContainEqual(referrals);
      }
      for (const side of sides) side.call.hangUp(network.now);
      network.run();
      for (const { ends, party } of sides) {
        expect(ends).toHaveLength(1);
        expect({ ...party.agent.load(), ...party.agent.holdings() }).toEqual({
          ...{ dialogs: 0, transactions: 0, deadlines: 0, keys: 0 },
        });
      }
    }),
    { numRuns: 200 },
  );
});
