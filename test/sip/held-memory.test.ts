/** What is kept of messages that anybody may send does not hold the whole of them in memory. */
import { heapStats } from 'bun:jsc';
import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sipFacts } from '../../src/carrier/leg/sip-facts.ts';
import { Refusals } from '../../src/carrier/refusals.ts';
import { SipTrace } from '../../src/history/sip-trace.ts';
import { readBrowserOffer } from '../../src/sdp/browser-offer.ts';
import type { Call } from '../../src/sip/call/call.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { pathOf } from '../../src/sip/message/path.ts';
import { register } from '../../src/sip/registrar.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { bytes, Party, START, text } from './pair.ts';

const MESSAGES = 500;
/** A byte of each character of the messages would be 15 MB. */
const HELD_MAX_BYTES = 6_000_000;
const PEER = { transport: 'udp', host: '203.0.113.9', port: 5060, flow: 1 } as const;

const message = (from: number, called = 'called') =>
  bytes(
    `INVITE sip:+15550002@${from}.example SIP/2.0\r\nVia: SIP/2.0/UDP ${from}.example;branch=z9hG4bK${from}\r\n` +
      `From: <sip:caller-${from}@x.example>;tag=tag-${from}\r\nTo: <sip:${called}-${from}@x.example>\r\n` +
      `Call-ID: call-${from}@x.example\r\nCSeq: 1 INVITE\r\nContact: <sip:me@${from}.example>\r\nUser-Agent: ${from}\r\n` +
      `Path: <sip:edge-${from}.example;lr>\r\nX-Long: ${'y'.repeat(30_000)}\r\n\r\n`,
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

test('What events tell of a call, and what is kept of a contact that registers, holds nothing of the message beside it', async () => {
  const kept: unknown[] = [];
  const look = (each: Uint8Array) => {
    const parsed = parseMessage(each);
    if (!parsed.ok || parsed.message.kind !== 'request') throw new Error('not read');
    const { headers } = parsed.message;
    kept.push(sipFacts(headers, 'carrier', 'pcmu'), pathOf(headers));
    headers.set('expires', '300');
    const registered = register(parsed.message, [], PEER, START);
    if (registered.status !== 200) throw new Error(`${registered.status}`);
    kept.push(registered.stored);
  };
  expect(await heldAfter(look)).toBeLessThan(HELD_MAX_BYTES / 3);
  expect(kept).toHaveLength(3 * MESSAGES);
});

test('What is kept of the offer of a browser holds nothing of the offer beside it', async () => {
  const folder = join(import.meta.dir, '../sdp/offer');
  const offer = readFileSync(join(folder, readdirSync(folder)[0] ?? ''), 'utf8').replace(/\r?\n/g, '\r\n');
  const kept: unknown[] = [];
  const held = await heldAfter((_, at) => {
    const read = readBrowserOffer(bytes(`${offer}a=x-${at}:${'z'.repeat(9_000)}\r\n`), ['opus', 'PCMU']);
    if ('refused' in read) throw new Error(read.why);
    kept.push(read);
  });
  expect(kept).toHaveLength(MESSAGES);
  expect(held).toBeLessThan(HELD_MAX_BYTES / 3);
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

/** Longer than the messages that set a call up are kept for their repetitions (RFC 3261, 64*T1). */
const SET_UP_MS = 33_000;
const LONG = `X-Long: ${'y'.repeat(30_000)}\r\n`;

/** The messages that the party has sent since it was asked last, and the calls that came to it. */
function sent(party: Party): { readonly messages: string[]; readonly calls: Call[] } {
  const outputs = party.agent.take();
  return {
    messages: outputs.flatMap((each) => (each.type === 'send' ? [text(each.bytes)] : [])),
    calls: outputs.flatMap((each) => (each.type === 'invite' ? [each.call] : [])),
  };
}

const field = (of: string, name: string) => new RegExp(`^${name}: (.*)\r$`, 'mi').exec(of)?.[1] ?? '';

test('A call that came in and is up holds nothing of its INVITE but what its dialog is made of', async () => {
  const party = new Party('192.0.2.1', Math.random);
  const calls: Call[] = [];
  const held = await heldAfter((_, at) => {
    const about = `From: <sip:caller@x.example>;tag=f${at}\r\nCall-ID: held-${at}@x.example\r\n`;
    const via = `Via: SIP/2.0/UDP ${PEER.host};branch=z9hG4bKheld${at}`;
    const invite =
      `INVITE sip:+15550002@192.0.2.1 SIP/2.0\r\n${via}\r\n${about}To: <sip:+15550002@192.0.2.1>\r\nCSeq: 1 INVITE\r\n` +
      `Contact: <sip:caller@${PEER.host}>\r\n${LONG}Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0`;
    party.agent.receive(bytes(invite), PEER, START);
    for (const call of sent(party).calls) {
      calls.push(call);
      call.accept(bytes('v=0'), START);
    }
    const to = field(sent(party).messages.at(-1) ?? '', 'To');
    const ack = `ACK sip:192.0.2.1 SIP/2.0\r\n${via}ack\r\n${about}To: ${to}\r\nCSeq: 1 ACK\r\n\r\n`;
    party.agent.receive(bytes(ack), PEER, START);
    party.agent.advance(START + SET_UP_MS);
    party.agent.take();
  });
  expect(calls).toHaveLength(MESSAGES);
  expect(party.agent.load()).toEqual({ dialogs: MESSAGES, transactions: 0 });
  expect(held).toBeLessThan(2_000_000);
});

test('A call that we made and is up holds nothing of the INVITE and the answer but what its dialog is made of', async () => {
  const party = new Party('192.0.2.1', Math.random);
  const to = `sip:+15550100@${PEER.host}`;
  const held = await heldAfter((_, at) => {
    const more = { from: '<sip:+15550199@192.0.2.1>', to: `<${to}>`, body: bytes('v=0'), credentials: undefined };
    party.agent.invite({ peer: PEER, uri: to, fields: [['x-long', 'z'.repeat(30_000)]], ...more }, START);
    const invite = sent(party).messages[0] ?? '';
    const same = ['Via', 'From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${field(invite, name)}\r\n`).join('');
    const answer =
      `SIP/2.0 200 OK\r\n${same}To: <${to}>;tag=far${at}\r\nContact: <sip:far@${PEER.host}>\r\n` +
      `${LONG}Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0`;
    party.agent.receive(bytes(answer), PEER, START);
    party.agent.take();
    party.agent.advance(START + SET_UP_MS);
    party.agent.take();
  });
  expect(party.agent.load()).toEqual({ dialogs: MESSAGES, transactions: 0 });
  expect(held).toBeLessThan(2_000_000);
});
