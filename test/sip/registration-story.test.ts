/** Stories of a registration: registrars that answer anything or nothing, connections that close, starts and stops. */
import { expect, test } from 'bun:test';
import type { Peer } from '../../src/sip/flow.ts';
import fc from '../support/fast-check.ts';
import { seeded } from '../support/random.ts';
import { bytes, Party, START, text } from './pair.ts';

const PEERS: readonly Peer[] = [1, 2, 3].map((at) => ({
  ...{ transport: at === 3 ? 'udp' : 'tcp', host: `203.0.113.${at}`, port: 5060, flow: at },
}));
const CHALLENGE = 'WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5, qop="auth"';
/** What a registrar says to a REGISTER; `silent` is nothing, and `unsent` is a connection that does not come up. */
const answers = fc.constantFrom<readonly [status: number | 'silent' | 'unsent', ...fields: string[]]>(
  [200, 'Expires: 120'],
  [200, 'Expires: 3600'],
  [200, 'Expires: 0'],
  [200],
  [100],
  [401, CHALLENGE],
  [401, CHALLENGE.replace('"n"', '"m", stale=true')],
  [401],
  [403],
  [423, 'Min-Expires: 7200'],
  [423, 'Min-Expires: 1'],
  [500, 'Retry-After: 9'],
  [503],
  ['silent'],
  ['unsent'],
);
const moves = fc.oneof(
  { weight: 6, arbitrary: answers.map((answer) => ({ answer })) },
  { weight: 4, arbitrary: fc.oneof(fc.nat(3_000), fc.nat(100_000)).map((ms) => ({ ms })) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'start' as const }, { do: 'flow lost' as const }, { do: 'resolved' as const }) },
);
/** The longest that a registration rests: what a registrar may ask for, or what follows from refusals. */
const REST_MAX_MS = 3_600_000;

/** How many addresses each search finds, again and again. */
const reaches = fc.array(fc.nat(3), { minLength: 1, maxLength: 4 });

test('A registration comes up once a registrar accepts it, whatever came before, and leaves nothing behind when it is stopped.', () => {
  fc.assert(
    fc.property(reaches, fc.boolean(), fc.array(moves, { maxLength: 40 }), answers, (reaches, isLate, given, farewell) => {
      const party = new Party('192.0.2.1', seeded(7));
      let now = START;
      /** Searches for the addresses that are under way, where they take their time. */
      const searches: (() => void)[] = [];
      let count = 0;
      let isFound = false;
      const registration = party.agent.register('trunk', {
        ...{ registrar: 'sip:reg.example', address: 'sip:gw@reg.example', credentials: { username: 'gw', password: 'secret' } },
        resolve: (found) => {
          const answer = () => found(PEERS.slice(0, isFound ? 3 : (reaches[count++ % reaches.length] ?? 0)), now);
          if (isLate) searches.push(answer);
          else answer();
        },
      });
      const asked: { readonly request: string; readonly peer: Peer; readonly ticket: string }[] = [];
      const look = () => {
        for (const output of party.agent.take()) {
          if (output.type !== 'send') continue;
          const request = text(output.bytes);
          const known = asked.find((each) => each.request === request);
          if (known === undefined) asked.push({ request, peer: output.peer, ticket: output.ticket });
        }
      };
      const answer = ([status, ...fields]: readonly [number | 'silent' | 'unsent', ...string[]]) => {
        const last = asked.at(-1);
        if (last === undefined || status === 'silent') return;
        if (status === 'unsent') party.agent.sendFailed(last.ticket, now);
        else {
          const said = last.request.replace(/^.*\r\n/, `SIP/2.0 ${status} X\r\n`).replace(/^(Contact|Expires): .*\r\n/gm, '');
          const more = fields.map((field) => `${field}\r\n`).join('');
          party.agent.receive(bytes(said.replace('Content-Length', `${more}Content-Length`)), last.peer, now);
        }
        look();
      };
      const pass = (ms: number) => {
        const until = now + ms;
        for (let turn = 0; ; turn++) {
          const due = party.agent.nextDeadline();
          if (due > until) break;
          expect(turn).toBeLessThan(20_000);
          now = Math.max(now, due);
          party.agent.advance(now);
          look();
        }
        now = until;
      };
      const found = () => {
        for (const search of searches.splice(0)) search();
        look();
      };
      registration.start(now);
      look();
      for (const move of given) {
        if ('answer' in move) answer(move.answer);
        else if ('ms' in move) pass(move.ms);
        else if (move.do === 'start') registration.start(now);
        else if (move.do === 'flow lost') registration.flowLost(PEERS[0] ?? { transport: 'tcp', host: '', port: 0 }, now);
        else found();
        look();
        expect(registration.until === undefined).toBe(registration.state !== 'registered');
      }
      // Someone is asked at last, and accepts.
      const isUp = () => registration.state === 'registered' && (registration.until ?? 0) > now;
      isFound = true;
      for (const end = now + 2 * REST_MAX_MS; now < end && !isUp(); pass(1_000)) {
        found();
        answer([200, 'Expires: 120']);
      }
      expect(isUp()).toBe(true);
      const numbers = asked.map(({ request }) => Number(/^CSeq: (\d+)/m.exec(request)?.[1]));
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
      let overs = 0;
      const before = asked.length;
      registration.stop(now, () => overs++);
      look();
      expect(asked.length - before).toBe(1);
      // A challenge is answered once more.
      for (let times = 0; times < 3; times++) answer(farewell);
      found();
      pass(REST_MAX_MS);
      expect(overs).toBe(1);
      expect(asked.length - before).toBeLessThanOrEqual(3);
      expect({ ...party.agent.load(), ...party.agent.holdings() }).toEqual({
        dialogs: 0,
        transactions: 0,
        deadlines: 0,
        keys: 0,
      });
    }),
    { numRuns: 200 },
  );
});
