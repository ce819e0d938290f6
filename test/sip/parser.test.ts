import { describe, expect, test } from 'bun:test';
import { SIP_BODY_MAX_BYTES, SIP_HEAD_MAX_BYTES, SIP_HEADER_MAX_FIELDS } from '../../src/limits.ts';
import { StreamFraming } from '../../src/sip/message/framing.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { makeResponse } from '../../src/sip/message/response.ts';
import { serialize } from '../../src/sip/message/serializer.ts';
import { parseNameAddress, parseUri } from '../../src/sip/message/uri.ts';
import { parseVia, stampVia } from '../../src/sip/message/via.ts';
import { cpuMs } from '../support/cpu-time.ts';
import fc from '../support/fast-check.ts';
import { bytes, text } from './pair.ts';

const lines = (...all: string[]) => bytes(`${all.join('\r\n')}\r\n\r\n`);
const INVITE = lines(
  'INVITE sip:bob@biloxi.example SIP/2.0',
  'Via: SIP/2.0/UDP pc33.atlanta.example;branch=z9hG4bK776asdhds',
  'Max-Forwards: 70',
  'To: Bob <sip:bob@biloxi.example>',
  'From: "Alice \\"A\\"" <sip:alice@atlanta.example>;tag=1928301774',
  'Call-ID: a84b4c76e66710@pc33.atlanta.example',
  'CSeq: 314159 INVITE',
  'Contact: <sip:alice@pc33.atlanta.example>',
  'Content-Length: 0',
);

const outcome = (message: Uint8Array): number | 'ok' | 'drop' => {
  const parsed = parseMessage(message);
  return parsed.ok ? 'ok' : (parsed.refuse?.status ?? 'drop');
};
const altered = (from: string | RegExp, to: string) => bytes(text(INVITE).replace(from, to));

describe('parsing', () => {
  test('reads the message that RFC 3261 opens with', () => {
    const parsed = parseMessage(INVITE);
    if (!parsed.ok || parsed.message.kind !== 'request') throw new Error('not read');
    expect(parsed.message).toMatchObject({ method: 'INVITE', uri: 'sip:bob@biloxi.example' });
    expect(parsed.message.headers.get('call-id')).toBe('a84b4c76e66710@pc33.atlanta.example');
    expect(parseNameAddress(parsed.message.headers.get('from') ?? '')).toMatchObject({
      display: 'Alice "A"',
      uri: 'sip:alice@atlanta.example',
    });
  });

  // The kinds of message RFC 4475 warns of, in our own words.
  const torture: [name: string, message: Uint8Array, expected: number | 'ok' | 'drop'][] = [
    [
      'compact forms, folding and odd white space',
      lines(
        'INVITE sip:a@b SIP/2.0',
        'v:  SIP / 2.0 / UDP  host.example ;branch=z9hG4bK1',
        'f: A',
        ' <sip:a@b>',
        '\t;tag=1',
        't:<sip:b@c>',
        'i: 1',
        'cSeQ:  9  INVITE',
        'l: 0',
      ),
      'ok',
    ],
    ['an unknown method with strange token characters', altered(/INVITE/g, "!inter-esting_Message.`~+'"), 'ok'],
    ['escaped nulls in the user part', altered('sip:bob@', 'sip:null-%00-null@'), 'ok'],
    ['a semicolon in the user part', altered('sip:bob@', 'sip:user;par=u%40example@'), 'ok'],
    ['an unknown URI scheme (answered 416 by the user agent)', altered('sip:bob@biloxi.example SIP', 'nobodyknows:me SIP'), 'ok'],
    ['a longer datagram than Content-Length says', bytes(`${text(INVITE)}trailing`), 'ok'],
    ['white space after the start line', altered('SIP/2.0\r\n', 'SIP/2.0  \r\n'), 400],
    ['a Via with separators and nothing between them', altered(/branch=z9hG4bK776asdhds/, ';;,;,,'), 400],
    ['another protocol version in Via too', bytes(text(INVITE).replaceAll('SIP/2.0', 'SIP/7.0')), 505],
    ['a NUL in a quoted pair', altered('\\"A\\"', '\\\0'), 'ok'],
    ['a NUL that no backslash precedes', altered('\\"A\\"', '\0'), 400],
    ['an extra colon and semicolons', altered('biloxi.example>', 'biloxi.example>;;,;,,'), 400],
    ['a body shorter than Content-Length', altered('Content-Length: 0', 'Content-Length: 9999'), 400],
    ['a negative Content-Length', altered('Content-Length: 0', 'Content-Length: -999'), 400],
    ['two Content-Lengths that differ', altered('Content-Length: 0', 'Content-Length: 0\r\nl: 5'), 400],
    ['a scalar that overflows CSeq', altered('314159', '36893488147419103232'), 400],
    ['CSeq of another method', altered('314159 INVITE', '8 OPTIONS'), 400],
    ['Max-Forwards above 255', altered('Max-Forwards: 70', 'Max-Forwards: 300'), 400],
    ['an open quote', altered('"Alice \\"A\\""', '"Mr. Watson'), 400],
    ['a Request-URI in angle brackets', altered('sip:bob@biloxi.example SIP', '<sip:bob@biloxi.example> SIP'), 400],
    ['white space inside the Request-URI', altered('sip:bob@biloxi.example SIP', 'sip:bob@ biloxi.example SIP'), 400],
    ['two From fields', altered('Max-Forwards: 70', 'From: <sip:x@y>;tag=2'), 400],
    ['no Call-ID', altered(/Call-ID.*\r\n/, ''), 400],
    ['no CSeq', altered(/CSeq.*\r\n/, ''), 400],
    ['no To', altered(/To:.*\r\n/, ''), 400],
    ['another protocol version', altered('SIP/2.0\r\n', 'SIP/7.0\r\n'), 505],
    ['a header line without a colon', altered('Max-Forwards: 70', 'Max-Forwards 70'), 400],
    ['a port that is no port', altered('pc33.atlanta.example;branch', 'pc33.atlanta.example:99999;branch'), 400],
    ['no Via at all', altered(/Via.*\r\n/, ''), 'drop'],
    ['a malformed ACK, which is never answered', altered(/INVITE/g, 'ACK').subarray(0, 60), 'drop'],
    ['a status code out of range', bytes(text(INVITE).replace(/^.*/, 'SIP/2.0 4294967301 better not break')), 'drop'],
    ['a status line without a code', bytes(text(INVITE).replace(/^.*/, 'SIP/2.0 OK')), 'drop'],
    ['HTTP', lines('GET / HTTP/1.1', 'Host: x'), 'drop'],
    ['a head that never ends', bytes('INVITE sip:a@b SIP/2.0\r\nVia: x'), 'drop'],
    ['too many header fields', altered('Max-Forwards: 70', Array.from({ length: 300 }, (_, i) => `X-${i}: y`).join('\r\n')), 400],
    ['a head beyond the limit', altered('Max-Forwards: 70', `X: ${'y'.repeat(40_000)}`), 'drop'],
    ['only line ends', bytes('\r\n\r\n'), 'drop'],
    ['nothing', new Uint8Array(0), 'drop'],
  ];
  for (const [name, message, expected] of torture)
    test(`answers ${name} with ${expected}`, () => expect(outcome(message)).toBe(expected));

  const read = (message: Uint8Array) => {
    const parsed = parseMessage(message);
    if (!parsed.ok) throw new Error(parsed.why);
    return parsed.message;
  };

  test('leaves out what follows the body, and the line ends that precede a datagram', () => {
    const withBody = text(INVITE).replace('Content-Length: 0', 'Content-Length: 5');
    expect(text(read(bytes(`${withBody}v=0\r\ntrailing`)).body)).toBe('v=0\r\n');
    expect(text(read(bytes(`${withBody.replace('Content-Length: 5\r\n', '')}v=0 and all`)).body)).toBe('v=0 and all');
    for (const ends of ['\r\n', '\r\n\r\n\r\n']) expect(read(bytes(`${ends}${text(INVITE)}`)).kind).toBe('request');
    for (const noise of ['\r', '\n', '\r\r\n', ' \r\n'])
      expect([noise, outcome(bytes(`${noise}${text(INVITE)}`))]).toEqual([noise, 'drop']);
  });

  test('takes a body and a head up to their limits', () => {
    const body = (length: number) => bytes(`${text(INVITE).replace(/Content-Length.*\r\n/, '')}${'x'.repeat(length)}`);
    expect([outcome(body(SIP_BODY_MAX_BYTES)), outcome(body(SIP_BODY_MAX_BYTES + 1))]).toEqual(['ok', 'drop']);
    const sized = (length: number) =>
      bytes(`${text(INVITE).replace('Content-Length: 0', `Content-Length: ${length}`)}${'x'.repeat(SIP_BODY_MAX_BYTES)}`);
    expect([outcome(sized(SIP_BODY_MAX_BYTES)), outcome(sized(SIP_BODY_MAX_BYTES + 1))]).toEqual(['ok', 400]);
    const head = (length: number) =>
      altered('Max-Forwards: 70', `X: ${'y'.repeat(length - INVITE.length + 'Max-Forwards: 70'.length - 'X: '.length)}`);
    expect(head(SIP_HEAD_MAX_BYTES)).toHaveLength(SIP_HEAD_MAX_BYTES);
    expect([outcome(head(SIP_HEAD_MAX_BYTES)), outcome(head(SIP_HEAD_MAX_BYTES + 1))]).toEqual(['ok', 'drop']);
    const fields = (count: number) => altered('Max-Forwards: 70', Array.from({ length: count - 7 }, () => 'X: y').join('\r\n'));
    expect([outcome(fields(SIP_HEADER_MAX_FIELDS)), outcome(fields(SIP_HEADER_MAX_FIELDS + 1))]).toEqual(['ok', 400]);
  });

  test('keeps the spelling of X- fields, and takes every other name in any case', () => {
    const { headers } = read(altered('Max-Forwards: 70', 'MAX-FORWARDS: 7\r\nX-Order-ID: 9\r\nx-plain: 1\r\nOther-Field: z'));
    expect([headers.get('max-forwards'), headers.get('x-order-id'), headers.get('other-field')]).toEqual(['7', '9', 'z']);
    expect(['x-order-id', 'x-plain', 'other-field'].map((name) => headers.spelling(name))).toEqual([
      'X-Order-ID',
      'x-plain',
      'other-field',
    ]);
  });

  test('reads a status line with and without a reason', () => {
    const reason = (line: string) => {
      const message = read(bytes(text(INVITE).replace(/^.*/, line)));
      return message.kind === 'response' ? [message.status, message.reason] : [];
    };
    expect([
      reason('SIP/2.0 200 OK'),
      reason('SIP/2.0 699 Not at all, ever'),
      reason('SIP/2.0 486 '),
      reason('sip/2.0 100'),
    ]).toEqual([
      ...[
        [200, 'OK'],
        [699, 'Not at all, ever'],
        [486, ''],
        [100, ''],
      ],
    ]);
    for (const line of ['SIP/2.0 700 X', 'SIP/2.0 099 X', 'SIP/2.0 20 X', 'SIP/2.0 2000 X', 'SIP/2.0  200 X', 'SIP/3.0 200 OK'])
      expect([line, outcome(bytes(text(INVITE).replace(/^.*/, line)))]).toEqual([line, 'drop']);
    // A response that is malformed is nobody's to answer.
    expect(
      outcome(
        bytes(
          text(INVITE)
            .replace(/^.*/, 'SIP/2.0 200 OK')
            .replace(/To:.*\r\n/, ''),
        ),
      ),
    ).toBe('drop');
  });

  test.each<[string, Uint8Array, number | 'ok' | 'drop']>([
    ['Max-Forwards of 255', altered('Max-Forwards: 70', 'Max-Forwards: 255'), 'ok'],
    ['Max-Forwards of 256', altered('Max-Forwards: 70', 'Max-Forwards: 256'), 400],
    ['no Max-Forwards', altered('Max-Forwards: 70\r\n', ''), 'ok'],
    ['an empty Call-ID', altered(/Call-ID: .*\r\n/, 'Call-ID:\r\n'), 400],
    ['a blank in Call-ID', altered(/Call-ID: .*\r\n/, 'Call-ID: a b\r\n'), 400],
    ['folding before any header field', bytes(text(INVITE).replace('\r\nVia', '\r\n  x\r\nVia')), 400],
    ['a bare line end in a field', altered('Max-Forwards: 70', 'Max-Forwards: 70\nX: y'), 400],
    ['a field without a name', altered('Max-Forwards: 70', ': 70'), 400],
    ['a method that is no token', altered(/INVITE/g, 'IN@VITE'), 'drop'],
    ['a request line of one word', bytes(text(INVITE).replace(/^.*/, 'INVITE')), 'drop'],
    ['a request line of two words', bytes(text(INVITE).replace(/^.*/, 'INVITE SIP/2.0')), 'drop'],
    ['a request line without a URI', bytes(text(INVITE).replace(/^.*/, 'INVITE  SIP/2.0')), 400],
    ['a protocol in lower case', bytes(text(INVITE).replace(/^(.*) SIP/, '$1 sip')), 'ok'],
    ['no protocol of ours', bytes(text(INVITE).replace(/^(.*) SIP.*/, '$1 XMPP/2.0')), 'drop'],
    [
      'an ACK with a fault',
      bytes(text(INVITE).replaceAll('INVITE', 'ACK').replace('Max-Forwards: 70', 'Max-Forwards: x')),
      'drop',
    ],
  ])('answers %s', (_name, message, expected) => expect(outcome(message)).toBe(expected));

  test('never throws and never hangs on random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (data) => void parseMessage(data)),
      { numRuns: 500 },
    );
  });

  test('never throws on a real message with bytes changed, cut or repeated, and what it accepts survives writing and reading', () => {
    const mutation = fc.record({
      at: fc.nat(INVITE.length - 1),
      take: fc.nat(20),
      put: fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('\r\n', '"', '<', ';', ',', '\0', ' ', '\r\n ')),
    });
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 5 }), (mutations) => {
        let message = text(INVITE);
        for (const { at, take, put } of mutations) message = message.slice(0, at) + put + message.slice(at + take);
        const parsed = parseMessage(bytes(message));
        if (!parsed.ok) return;
        const again = parseMessage(serialize(parsed.message));
        expect(again.ok).toBe(true);
        if (again.ok) expect(serialize(again.message)).toEqual(serialize(parsed.message));
      }),
      { numRuns: 2_000 },
    );
  });

  test('a control character in a folded line is refused like any other', () => {
    const folded = text(INVITE).replace('From: ', 'From:\r\n \0');
    expect(parseMessage(bytes(folded)).ok).toBe(false);
  });

  test('a control character in what an answer copies is none in the answer', () => {
    for (const field of ['Via: ', 'To: ', 'From: ', 'Call-ID: ', 'CSeq: ', 'Timestamp: 1'])
      for (const control of ['\r', '\n', '\0']) {
        const asked = text(INVITE).replace('Content-Length', 'Timestamp: 1\r\nContent-Length');
        const parsed = parseMessage(bytes(asked.replace(new RegExp(`(${field}.*)\r`), `$1;${control}X: y\r`)));
        const refused = parsed.ok ? undefined : parsed.refuse?.request;
        if (refused === undefined) throw new Error('not refused');
        const answer = text(serialize(makeResponse(refused, 400, 'tag')));
        expect([field, answer.replaceAll('\r\n', '')]).toEqual([field, expect.not.stringMatching(/[\r\n\0]/)]);
      }
  });

  test('long runs of separators take no longer than their length', () => {
    for (const noise of [
      ';'.repeat(30_000),
      ','.repeat(30_000),
      '"\\'.repeat(15_000),
      '<'.repeat(30_000),
      ' '.repeat(30_000),
      '%41'.repeat(9_000),
    ]) {
      const started = cpuMs();
      parseMessage(altered('Bob <sip:bob@biloxi.example>', noise));
      parseNameAddress(noise);
      parseUri(`sip:${noise}`);
      expect(cpuMs() - started).toBeLessThan(500);
    }
  });
});

describe('framing a stream', () => {
  const body = 'v=0\r\n';
  const second = bytes(`${text(INVITE).replace('Content-Length: 0', `l: ${body.length}`)}${body}`);
  const stream = new Uint8Array([...bytes('\r\n\r\n'), ...INVITE, ...bytes('\r\n'), ...second, ...INVITE]);
  const frames = (pieces: readonly Uint8Array[]) => {
    const framing = new StreamFraming();
    return pieces.flatMap((piece) => {
      framing.push(piece);
      const found: NonNullable<ReturnType<StreamFraming['next']>>[] = [];
      for (let frame = framing.next(); frame !== undefined; frame = framing.next()) found.push(frame);
      return found;
    });
  };
  const whole = [INVITE, second, INVITE].map((message) => text(message));

  test('cut at each byte gives the same messages', () => {
    for (let cut = 0; cut <= stream.length; cut++) {
      const found = frames([stream.slice(0, cut), stream.slice(cut)]);
      expect(found.flatMap((frame) => (frame.type === 'message' ? [text(frame.bytes)] : []))).toEqual(whole);
      expect(found.filter((frame) => frame.type === 'ping')).toHaveLength(1);
    }
    const singly = frames([...stream].map((byte) => new Uint8Array([byte])));
    expect(singly.flatMap((frame) => (frame.type === 'message' ? [text(frame.bytes)] : []))).toEqual(whole);
  });

  test('cut anyhow gives the same messages', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), stream.length];
        const pieces = at.slice(1).map((end, i) => stream.slice(at[i], end));
        expect(frames(pieces).flatMap((frame) => (frame.type === 'message' ? [text(frame.bytes)] : []))).toEqual(whole);
      }),
    );
  });

  test('reads a length that is folded, and none in a line that goes on with another field', () => {
    const bare = text(INVITE).replace(/Content-Length: 0\r\n/, '');
    for (const fields of [
      'Content-Length:\r\n 5',
      'Subject: hello\r\n l: 9\r\nContent-Length: 5',
      'Subject: hello\r\n\tl: 9\r\nl: 5',
    ]) {
      const message = bytes(`${bare.slice(0, -2)}${fields}\r\n\r\nv=0\r\n`);
      expect(frames([message, INVITE]).map((frame) => (frame.type === 'message' ? text(frame.bytes) : frame.type))).toEqual([
        text(message),
        text(INVITE),
      ]);
    }
  });

  test('closes on a head or a body that is too large, or a length that is no number', () => {
    const broken = (data: Uint8Array) => frames([data]).at(-1)?.type;
    expect(broken(bytes(`INVITE sip:a@b SIP/2.0\r\nX: ${'y'.repeat(40_000)}`))).toBe('broken');
    expect(broken(altered('Content-Length: 0', 'Content-Length: 999999'))).toBe('broken');
    expect(broken(altered('Content-Length: 0', 'Content-Length: one'))).toBe('broken');
    expect(broken(bytes(text(INVITE).replace('Content-Length: 0', 'Content-Length: 0\r\nl: 7')))).toBe('broken');
  });

  test('tells nothing more once it is broken, and lets go of what it holds', () => {
    const framing = new StreamFraming();
    framing.push(altered('Content-Length: 0', 'Content-Length: one'));
    expect(framing.next()).toEqual({ type: 'broken', why: 'bad Content-Length' });
    framing.push(INVITE);
    expect(framing.next()).toBeUndefined();
  });

  test('answers a keepalive once for those in a row, a lone line end not at all, and waits for half of one', () => {
    const kinds = (...pieces: string[]) => frames(pieces.map(bytes)).map(({ type }) => type);
    expect(kinds('\r\n\r\n')).toEqual(['ping']);
    expect(kinds('\r\n\r\n\r\n\r\n')).toEqual(['ping']);
    expect(kinds('\r\n\r\n', '\r\n\r\n')).toEqual(['ping', 'ping']);
    expect(kinds('\r', '\n', '\r')).toEqual([]);
    expect(kinds('\r', '\n', '\r', '\n')).toEqual(['ping']);
    expect(kinds(`\r\n${text(INVITE)}`)).toEqual(['message']);
    expect(kinds(`${text(INVITE)}\r\n\r\n${text(INVITE)}\r\n`)).toEqual(['message', 'ping', 'message']);
  });

  test('closes on line ends of which there are more in a row than a head may have bytes', () => {
    const kinds = (lineEnds: number) => frames([bytes('\r\n'.repeat(lineEnds)), INVITE]).map(({ type }) => type);
    expect(kinds(SIP_HEAD_MAX_BYTES / 2)).toEqual(['ping', 'message']);
    expect(kinds(SIP_HEAD_MAX_BYTES / 2 + 2)).toEqual(['broken']);
    expect(kinds(1_000_000)).toEqual(['broken']);
  });

  test('takes a head and a body up to their limits, in one piece or in many', () => {
    const sized = (length: number) =>
      bytes(`${text(INVITE).replace('Content-Length: 0', `Content-Length: ${length}`)}${'x'.repeat(length)}`);
    expect(frames([sized(SIP_BODY_MAX_BYTES)]).map(({ type }) => type)).toEqual(['message']);
    expect(frames([sized(SIP_BODY_MAX_BYTES + 1)]).map(({ type }) => type)).toEqual(['broken']);
    const head = (length: number) =>
      altered('Max-Forwards: 70', `X: ${'y'.repeat(length - INVITE.length + 'Max-Forwards: 70'.length - 'X: '.length)}`);
    for (const [length, type] of [
      [SIP_HEAD_MAX_BYTES, 'message'],
      [SIP_HEAD_MAX_BYTES + 1, 'broken'],
    ] as const) {
      const message = head(length);
      expect([length, frames([message]).map((frame) => frame.type)]).toEqual([length, [type]]);
      const halves = [message.slice(0, 100), message.slice(100, length - 2), message.slice(length - 2)];
      expect([length, frames(halves).at(-1)?.type]).toEqual([length, type]);
    }
  });

  test('takes two lengths that are alike, and a message without one for one without a body', () => {
    const kinds = (message: string) =>
      frames([bytes(message)]).map((frame) => (frame.type === 'message' ? frame.bytes.length : frame.type));
    const twice = text(INVITE).replace('Content-Length: 0', 'Content-Length: 0\r\nL : 0');
    expect(kinds(twice)).toEqual([twice.length]);
    const none = text(INVITE).replace('Content-Length: 0\r\n', '');
    expect(kinds(`${none}${none}`)).toEqual([none.length, none.length]);
  });

  test('never throws on random bytes in random pieces', () => {
    fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 20 }), (pieces) => void frames(pieces)));
  });
});

describe('a message of 32 kB that anybody may send', () => {
  const head = text(INVITE).slice(0, -2);
  const LONG: Readonly<Record<string, Uint8Array>> = {
    'has a field of 7,000 lines': bytes(`${head}Subject: x${'\r\n a'.repeat(7_000)}\r\n\r\n`),
    'has 30,000 blanks in its Via': altered('pc33.atlanta.example;', `pc33${' '.repeat(30_000)}example;`),
    'has 30,000 tabs before a colon in its Via': altered('pc33.atlanta.example;', `pc33${'\t'.repeat(30_000)}:a;`),
  };
  for (const [name, message] of Object.entries(LONG))
    test(`is read within 5 ms where it ${name}`, () => {
      const took = Array.from({ length: 10 }, () => {
        const began = performance.now();
        parseMessage(message);
        return performance.now() - began;
      });
      // The best of ten: the others may have waited for the machine.
      expect(Math.min(...took)).toBeLessThan(5);
    });

  test('is read with its continued lines as one value', () => {
    const read = (value: string) => {
      const parsed = parseMessage(bytes(`${head}Subject:${value}\r\n\r\n`));
      return parsed.ok ? parsed.message.headers.get('subject') : undefined;
    };
    expect(read(' a\r\n b \r\n\tc')).toBe('a b c');
    expect(read('\r\n a\r\n \r\n b')).toBe('a b');
    expect(read(' a\r\n ')).toBe('a');
  });

  test('is stamped with the source, whose zone stays here where it is link-local', () => {
    const value = 'SIP/2.0/UDP [fe80::1]:5070;branch=z9hG4bKa;rport';
    const via = parseVia(value);
    if (via === undefined) throw new Error('no Via');
    const stamped = stampVia(value, via, { host: 'fe80::1%eth0', port: 5071 });
    expect(stamped).toBe('SIP/2.0/UDP [fe80::1]:5070;branch=z9hG4bKa;received=fe80::1;rport=5071');
  });

  test('may have blanks around the colon of its port, and no others within its host', () => {
    for (const [sentBy, expected] of [
      ['h : 5070', 'ok'],
      ['h\t:\t5070', 'ok'],
      ['[::1] : 5070', 'ok'],
      ['h : 5070x', 400],
      ['h h:5070', 400],
      ['h :', 400],
    ] as const)
      expect([sentBy, outcome(altered('pc33.atlanta.example;', `${sentBy};`))]).toEqual([sentBy, expected]);
  });
});
