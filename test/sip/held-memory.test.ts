/** What is kept of messages that anybody may send does not hold the whole of them in memory. */
import { heapStats } from 'bun:jsc';
import { expect, test } from 'bun:test';
import { Refusals } from '../../src/carrier/refusals.ts';
import { SipTrace } from '../../src/history/sip-trace.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { bytes } from './pair.ts';

const MESSAGES = 500;
/** A byte of each character of the messages would be 15 MB. */
const HELD_MAX_BYTES = 6_000_000;
const PEER = { transport: 'udp', host: '203.0.113.9', port: 5060, flow: 1 } as const;

const message = (from: number, called = 'called') =>
  bytes(
    `INVITE sip:+15550002@${from}.example SIP/2.0\r\nVia: SIP/2.0/UDP ${from}.example;branch=z9hG4bK${from}\r\n` +
      `From: <sip:caller-${from}@x.example>;tag=tag-${from}\r\nTo: <sip:${called}-${from}@x.example>\r\n` +
      `Call-ID: call-${from}@x.example\r\nCSeq: 1 INVITE\r\nX-Long: ${'y'.repeat(30_000)}\r\n\r\n`,
  );

function heldBytes(): number {
  Bun.gc(true);
  return heapStats().extraMemorySize;
}

/** Looks at so many messages, and returns by how many bytes what is held became more. */
async function heldAfter(look: (message: Uint8Array, at: number) => void, called?: string): Promise<number> {
  const before = heldBytes();
  for (let at = 0; at < MESSAGES; at++) {
    look(message(at, called), at);
    // What a turn has on its stack is not collected.
    if (at % 50 === 49) await new Promise(setImmediate);
  }
  return heldBytes() - before;
}

test('The addresses that the parser remembers hold no more than themselves', async () => {
  expect(await heldAfter((each) => void parseMessage(each))).toBeLessThan(HELD_MAX_BYTES);
});

test('The beginning of a call that may never become one holds no more than what would be shown of it', async () => {
  const history = { begin() {}, ended() {}, add() {} };
  const trace = new SipTrace({ history, clock: new VirtualClock(), level: 'full', hidden: [] });
  expect(await heldAfter((each) => trace.message('in', each, PEER))).toBeLessThan(HELD_MAX_BYTES);
  expect(trace.size).toBe(MESSAGES);
});

test('The refusals that an operator is shown hold no more than their rows', async () => {
  const refusals = new Refusals();
  const look = (each: Uint8Array, at: number) => {
    const parsed = parseMessage(each);
    if (!parsed.ok || parsed.message.kind !== 'request') throw new Error('not read');
    refusals.record(parsed.message, PEER, 403, { reason: `reason ${at}`, remedy: '' }, at);
  };
  // The parser remembers no texts as long as that. There are 200 rows: of their messages it would be 6 MB.
  expect(await heldAfter(look, 'c'.repeat(600))).toBeLessThan(3_000_000);
  expect(refusals.list()).toHaveLength(200);
});
