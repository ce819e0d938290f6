/**
 * Messages of the kinds that RFC 4475 and RFC 5118 warn of, in our own words, over UDP and over TCP in pieces, while a
 * call is up. Each has the status that it is answered with; 0 means that it is not answered. The call hears nothing of
 * them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

interface Case {
  readonly name: string;
  /** The message; `BRANCH`, `NAME` and `TRANSPORT` are filled in. */
  readonly message: string;
  readonly status: number;
  /** The status over a stream, where the framing sees another message, or closes the connection (0). */
  readonly stream?: number;
}

const OPTIONS = [
  'OPTIONS sip:+15550002@127.0.0.1 SIP/2.0',
  'Via: SIP/2.0/TRANSPORT host.example;branch=z9hG4bKBRANCH;rport',
  'Max-Forwards: 70',
  'From: "A. Caller" <sip:caller@a.example>;tag=t1',
  'To: <sip:+15550002@b.example>',
  'Call-ID: NAME',
  'CSeq: 7 OPTIONS',
  'Contact: <sip:caller@host.example>',
];
/** The plain OPTIONS with some of its lines replaced or added, by header name or place. */
function options(changes: Readonly<Record<string, string | readonly string[]>> = {}, body = ''): string {
  const added = new Set(Object.keys(changes));
  const lines = OPTIONS.flatMap((line, i) => {
    const name = i === 0 ? 'first' : line.slice(0, line.indexOf(':'));
    added.delete(name);
    return changes[name] ?? line;
  });
  for (const name of added) lines.push(...[changes[name] ?? []].flat());
  const length = lines.some((line) => /^(Content-Length|l) *:/i.test(line)) ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return `${[...lines, ...length].join('\r\n')}\r\n\r\n${body}`;
}
const method = (name: string, more: Readonly<Record<string, string>> = {}) =>
  options({ first: `${name} sip:+15550002@127.0.0.1 SIP/2.0`, CSeq: `CSeq: 7 ${name}`, ...more });

const cases: Case[] = [
  { name: 'a plain OPTIONS', message: options(), status: 200 },
  {
    name: 'compact forms, folding, odd case and white space everywhere',
    message: options({
      From: ['f  :', ' "A. Caller"', '\t<sip:caller@a.example>', ' ;tag = t1'],
      To: 'TO : \t<sip:+15550002@b.example> ; unknown-parameter',
      'Call-ID': 'i:NAME',
      CSeq: 'cSeQ:\t  0007   OPTIONS',
      Contact: 'M: <sip:caller@host.example>  , "other" <sip:x@y.example>;q=0.1',
      NewFangledHeader: ['NewFangledHeader:   value', '  folded, "un;usual"'],
    }),
    status: 200,
  },
  { name: 'a method of every token character', message: method("!interesting-Method0123456789_*+`.%indeed'~"), status: 501 },
  {
    name: 'escapes in the user part',
    message: options({ first: 'OPTIONS sip:sip%3Auser%40example.com@b.example;x=%30 SIP/2.0' }),
    status: 200,
  },
  {
    name: 'an escaped NUL in the user part',
    message: options({ From: 'From: <sip:null-%00-null@a.example>;tag=t1' }),
    status: 200,
  },
  {
    name: 'a percent sign that escapes nothing, in a token',
    message: options({ Contact: 'Contact: <sip:caller@host.example>;expires=%41' }),
    status: 200,
  },
  {
    name: 'no white space between name and bracket',
    message: options({ From: 'From: caller<sip:caller@a.example>;tag=t1' }),
    status: 200,
  },
  { name: 'a NUL in a quoted pair', message: options({ From: 'From: "a \\\0 b" <sip:caller@a.example>;tag=t1' }), status: 200 },
  {
    name: 'very long values',
    message: options({
      Long: `Long: ${'y'.repeat(4_000)}`,
      Via: [
        `Via: SIP/2.0/TRANSPORT host.example;branch=z9hG4bKBRANCH${'0'.repeat(300)};rport`,
        ...Array.from({ length: 20 }, (_, i) => `Via: SIP/2.0/UDP proxy${i}.example;branch=z9hG4bK${i}`),
      ],
    }),
    status: 200,
  },
  {
    name: 'a semicolon in the user part',
    message: options({ first: 'OPTIONS sip:user;par=u%40example.net@b.example SIP/2.0' }),
    status: 200,
  },
  {
    name: 'unknown transports in Via',
    message: options({
      Via: ['Via: SIP/2.0/TRANSPORT host.example;branch=z9hG4bKBRANCH;rport', 'Via: SIP/2.0/UNKNOWN t6.example;branch=z9hG4bK2'],
    }),
    status: 200,
  },
  {
    name: 'IPv6 in brackets in every place',
    message: options({
      first: 'OPTIONS sip:+15550002@[2001:db8::10] SIP/2.0',
      Contact: 'Contact: <sip:caller@[2001:db8::1]:5070>',
      From: 'From: <sip:caller@[2001:db8::9]>;tag=t1',
    }),
    status: 200,
  },
  {
    name: 'an IPv6 address in received, without brackets',
    message: options({ Via: 'Via: SIP/2.0/TRANSPORT [2001:db8::9:1];received=2001:db8:0:0:1::3;branch=z9hG4bKBRANCH;rport' }),
    status: 200,
  },
  {
    name: 'an IPv6 address that has lost its brackets in the Request-URI',
    message: options({ first: 'OPTIONS sip:2001:db8::10 SIP/2.0' }),
    status: 400,
  },
  {
    name: 'an IPv6 address with too many characters',
    message: options({ first: 'OPTIONS sip:+15550002@[2001:db8:::z] SIP/2.0' }),
    status: 400,
  },
  {
    name: 'separators with nothing between them in Via and Contact',
    message: options({ Via: 'Via: SIP/2.0/TRANSPORT host.example;;,;,,;rport', Contact: 'Contact: "" <> ;,"",;,' }),
    status: 400,
  },
  {
    name: 'a body shorter than Content-Length',
    message: options({ 'Content-Length': 'Content-Length: 9999' }, 'v=0\r\n'),
    status: 400,
    stream: 0,
  },
  { name: 'a negative Content-Length', message: options({ 'Content-Length': 'Content-Length: -999' }), status: 400, stream: 0 },
  {
    name: 'two Content-Lengths that differ',
    message: options({ 'Content-Length': ['Content-Length: 0', 'l: 13'] }),
    status: 400,
    stream: 0,
  },
  { name: 'a CSeq beyond 31 bits', message: options({ CSeq: 'CSeq: 36893488147419103232 OPTIONS' }), status: 400 },
  { name: 'Max-Forwards beyond 255', message: options({ 'Max-Forwards': 'Max-Forwards: 300' }), status: 400 },
  { name: 'an open quote in To', message: options({ To: 'To: "Mr. J. User <sip:j.user@b.example>' }), status: 400 },
  {
    name: 'a Request-URI in angle brackets',
    message: options({ first: 'OPTIONS <sip:+15550002@b.example> SIP/2.0' }),
    status: 400,
  },
  {
    name: 'white space inside the Request-URI',
    message: options({ first: 'OPTIONS sip:+15550002@b.example; lr SIP/2.0' }),
    status: 400,
  },
  {
    name: 'white space after the start line',
    message: options({ first: 'OPTIONS sip:+15550002@b.example SIP/2.0  ' }),
    status: 400,
  },
  {
    name: 'another protocol version',
    message: options({
      first: 'OPTIONS sip:+15550002@b.example SIP/7.0',
      Via: 'Via: SIP/7.0/TRANSPORT host.example;branch=z9hG4bKBRANCH;rport',
    }),
    status: 505,
  },
  { name: 'CSeq of another method', message: options({ CSeq: 'CSeq: 8 INVITE' }), status: 400 },
  {
    name: 'a response code out of range',
    message: options({ first: 'SIP/2.0 4294967301 better not break the receiver' }),
    status: 0,
  },
  { name: 'a response to nothing', message: options({ first: 'SIP/2.0 200 OK' }), status: 0 },
  { name: 'a response without a reason', message: options({ first: 'SIP/2.0 100' }), status: 0 },
  {
    name: 'a branch that is only the magic cookie',
    message: options({ Via: 'Via: SIP/2.0/TRANSPORT host.example;branch=z9hG4bK;rport' }),
    status: 200,
  },
  { name: 'no Call-ID, From and To', message: options({ 'Call-ID': 'X-A: 1', From: 'X-B: 1', To: 'X-C: 1' }), status: 400 },
  {
    name: 'an unknown URI scheme',
    message: options({ first: 'OPTIONS nobodyKnowsThisScheme:totallyopaque SIP/2.0' }),
    status: 416,
  },
  { name: 'a scheme of another kind', message: options({ first: 'OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0' }), status: 416 },
  {
    name: 'unknown schemes in From and To',
    message: options({ From: 'From: <http://www.a.example>;tag=t1', To: 'To: isbn:2983792873' }),
    status: 200,
  },
  {
    name: 'an option tag that nobody knows, required',
    message: options({ Require: 'Require: nothingSupportsThis, nothingSupportsThisEither' }),
    status: 420,
  },
  {
    name: 'two Content-Types',
    message: options({ 'Content-Type': ['Content-Type: application/sdp', 'c: text/plain'] }),
    status: 400,
  },
  {
    name: 'more than one value of headers that may have one',
    message: options({
      From: ['From: <sip:a@a.example>;tag=1', 'From: <sip:b@a.example>;tag=2'],
      'Max-Forwards': ['Max-Forwards: 1', 'Max-Forwards: 5'],
    }),
    status: 400,
  },
  { name: 'Max-Forwards 0', message: options({ 'Max-Forwards': 'Max-Forwards: 0' }), status: 200 },
  {
    name: 'a REGISTER',
    message: method('REGISTER', { Contact: 'Contact: <sip:user@host.example?Route=%3Csip:x.example%3E>' }),
    status: 405,
  },
  { name: 'a MESSAGE', message: method('MESSAGE'), status: 405 },
  { name: 'a BYE of no dialog', message: method('BYE', { To: 'To: <sip:+15550002@b.example>;tag=none' }), status: 481 },
  {
    name: 'a PRACK of no dialog',
    message: method('PRACK', { To: 'To: <sip:+15550002@b.example>;tag=none', RAck: 'RAck: 1 1 INVITE' }),
    status: 481,
  },
  { name: 'a CANCEL of nothing', message: method('CANCEL'), status: 481 },
  { name: 'an ACK of nothing', message: method('ACK'), status: 0 },
  { name: 'a control character in a header', message: options({ 'X-Control': 'X-Control: a\0b' }), status: 400 },
  { name: 'a header line without a colon', message: options({ Broken: 'Broken header' }), status: 400 },
  {
    name: 'an unknown content encoding',
    message: options(
      {
        first: 'INVITE sip:+15550002@127.0.0.1 SIP/2.0',
        CSeq: 'CSeq: 7 INVITE',
        'Content-Encoding': 'Content-Encoding: zip',
        'Content-Type': 'Content-Type: application/sdp',
      },
      'PK',
    ),
    status: 415,
  },
  {
    name: 'a body of an unknown type',
    message: options(
      {
        first: 'INVITE sip:+15550002@127.0.0.1 SIP/2.0',
        CSeq: 'CSeq: 7 INVITE',
        'Content-Type': 'Content-Type: application/unknown',
      },
      '<audio/>',
    ),
    status: 415,
  },
  {
    name: 'an INVITE without a Contact',
    message: options({ first: 'INVITE sip:+15550002@127.0.0.1 SIP/2.0', CSeq: 'CSeq: 7 INVITE', Contact: 'X-D: 1' }),
    status: 400,
  },
];

describe('while a call is up', () => {
  let carrier: TestCarrier;
  let caller: RawPeer;
  let udp: RawPeer;
  let incoming: Incoming;
  let to = '';

  beforeAll(async () => {
    carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9')]);
    caller = await RawPeer.udp(carrier.port('udp'));
    udp = await RawPeer.udp(carrier.port('udp'));
    const taken = new Promise<Incoming>((resolve) => {
      carrier.onIncoming = (each) => {
        each.call.leg.answer();
        resolve(each);
      };
    });
    caller.send(caller.request('INVITE', { id: 'up', body: sdp() }));
    incoming = await taken;
    to = field(await caller.until(/^SIP\/2.0 200/), 'To');
    caller.send(caller.request('ACK', { id: 'up', to }));
    await incoming.signals.until('leg.answered');
  });
  afterAll(async () => {
    caller.close();
    udp.close();
    await carrier.close();
  });

  let count = 0;
  const filled = (message: string, transport: string) => {
    const id = `torture${++count}`;
    return { id, message: message.replaceAll('BRANCH', id).replaceAll('NAME', id).replaceAll('TRANSPORT', transport) };
  };
  /** Asks for a plain OPTIONS after the message, so that an answer that never comes is known without waiting. */
  const verdict = async (peer: RawPeer, id: string): Promise<number> => {
    const after = `after-${id}`;
    peer.send(peer.request('OPTIONS', { id: after }));
    await peer.until(new RegExp(`^SIP/2.0 200[\\s\\S]*Call-ID: ${after}\\r`));
    const answer = peer.heard.splice(0).findLast((message) => !/^SIP\/2.0 1/.test(message));
    return answer === undefined ? 0 : Number(answer.slice(8, 11));
  };

  for (const { name, message, status, stream = status } of cases) {
    test(`${name} over UDP is ${status === 0 ? 'not answered' : `answered ${status}`}`, async () => {
      const { id, message: whole } = filled(message, 'UDP');
      udp.send(whole);
      expect(await verdict(udp, id)).toBe(status);
    });

    test(`${name} over TCP in pieces ${stream === 0 && status !== 0 ? 'closes the connection or waits' : `is ${stream === 0 ? 'not answered' : `answered ${stream}`}`}`, async () => {
      const tcp = await RawPeer.tcp(carrier.port('tcp'));
      const { id, message: whole } = filled(message, 'TCP');
      for (let at = 0; at < whole.length; at += 97) tcp.send(whole.slice(at, at + 97));
      if (stream === status) expect(await verdict(tcp, id)).toBe(stream);
      tcp.close();
    });
  }

  test('none of them has touched it, or left anything behind', async () => {
    expect(incoming.signals.types()).toEqual(['leg.answered']);
    expect(carrier.carrier.load().dialogs).toBe(1);
    caller.send(caller.request('BYE', { id: 'up', to, cseq: 2 }));
    await caller.until(/^SIP\/2.0 200/);
    await incoming.signals.until('leg.ended');
    expect(carrier.carrier.load().dialogs).toBe(0);
  });
});
