/** SIP messages find their way into the timeline of their Session, without what must not be kept. */
import { describe, expect, test } from 'bun:test';
import { detached } from '../../src/bounds/detached.ts';
import { factText } from '../../src/event/call-report.ts';
import type { Entry, SipEntry } from '../../src/history/entry.ts';
import { SipTrace, type SipTraceOptions } from '../../src/history/sip-trace.ts';
import { SIP_TRACE_END_MAX_MESSAGES, SIP_TRACE_MAX_MESSAGES, SIP_TRACE_UNBOUND_MAX_CALLS } from '../../src/limits.ts';
import { redactor } from '../../src/sip/redaction.ts';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const PEER = { transport: 'udp', host: '192.0.2.7', port: 5060 };

function world(more: Partial<SipTraceOptions> = {}) {
  const clock = new VirtualClock();
  const kept = new Map<string, SipEntry[]>();
  const history = {
    begin() {},
    ended() {},
    add(sessionUuid: string, entry: Entry) {
      if (entry.kind === 'sip') kept.set(sessionUuid, [...(kept.get(sessionUuid) ?? []), entry]);
    },
  };
  const trace = new SipTrace({ history, clock, level: 'full', hidden: [], ...more });
  const tell = (direction: 'in' | 'out', text: string) => trace.message(direction, new TextEncoder().encode(text), PEER);
  const lines = (sessionUuid: string) => (kept.get(sessionUuid) ?? []).map((each) => `${each.direction} ${each.first_line}`);
  return { clock, trace, kept, tell, lines };
}

const message = (firstLine: string, callId: string, fromTag: string, cseq: string, more = '', body = '') =>
  `${firstLine}\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK1\r\nf: <sip:a@b>;tag=${fromTag}\r\nTo: <sip:b@c>\r\ni: ${callId}\r\nCSeq: ${cseq}\r\n${more}\r\n${body}`;
const invite = (callId: string, tag: string, more = '', body = '') =>
  message('INVITE sip:b@c SIP/2.0', callId, tag, '1 INVITE', more, body);

describe('the SIP of a call', () => {
  test('is kept from the first INVITE on, although its Session is made later', () => {
    const { trace, tell, lines } = world();
    tell('in', invite('x', 'far'));
    tell('out', message('SIP/2.0 100 Trying', 'x', 'far', '1 INVITE'));
    trace.bind('x', 'one', 'callee');
    tell('out', message('SIP/2.0 200 OK', 'x', 'far', '1 INVITE'));
    tell('in', message('BYE sip:b@c SIP/2.0', 'x', 'far', '2 BYE'));
    tell('out', message('INFO sip:a@b SIP/2.0', 'x', 'ours', '1 INFO'));
    expect(lines('one')).toEqual([
      'in INVITE sip:b@c SIP/2.0',
      'out SIP/2.0 100 Trying',
      'out SIP/2.0 200 OK',
      'in BYE sip:b@c SIP/2.0',
      'out INFO sip:a@b SIP/2.0',
    ]);
  });

  test('is found by a Call-ID of any octets and any length, as its Session was told of it', () => {
    for (const callId of ['\u00fcn\u00ef', 'esc\u001bx', `long${'x'.repeat(2_000)}`, `${'x'.repeat(511)}😀`]) {
      const { trace, tell, lines } = world();
      tell('in', invite(callId, 'far'));
      trace.bind(detached(factText(callId)), 'one', 'callee');
      tell('out', message('SIP/2.0 200 OK', callId, 'far', '1 INVITE'));
      expect(lines('one')).toEqual(['in INVITE sip:b@c SIP/2.0', 'out SIP/2.0 200 OK']);
    }
  });

  test('over the loopback trunk belongs to two Sessions with one Call-ID, each with its own messages', () => {
    const { trace, tell, lines } = world();
    trace.bind('x', 'caller', 'caller');
    tell('out', invite('x', 'tag-a'));
    tell('in', invite('x', 'tag-a'));
    trace.bind('x', 'callee', 'callee');
    tell('out', message('SIP/2.0 200 OK', 'x', 'tag-a', '1 INVITE'));
    tell('in', message('SIP/2.0 200 OK', 'x', 'tag-a', '1 INVITE'));
    tell('out', message('BYE sip:a@b SIP/2.0', 'x', 'tag-b', '1 BYE'));
    tell('in', message('BYE sip:a@b SIP/2.0', 'x', 'tag-b', '1 BYE'));
    expect(lines('caller')).toEqual(['out INVITE sip:b@c SIP/2.0', 'in SIP/2.0 200 OK', 'in BYE sip:a@b SIP/2.0']);
    expect(lines('callee')).toEqual(['in INVITE sip:b@c SIP/2.0', 'out SIP/2.0 200 OK', 'out BYE sip:a@b SIP/2.0']);
  });

  test('of one call is kept up to a hundred messages', () => {
    const { trace, tell, lines } = world();
    trace.bind('x', 'one', 'caller');
    for (let n = 0; n < SIP_TRACE_MAX_MESSAGES + 5; n++)
      tell('out', message('OPTIONS sip:b@c SIP/2.0', 'x', 'a', `${n} OPTIONS`));
    expect(lines('one')).toHaveLength(SIP_TRACE_MAX_MESSAGES);
  });

  test('of a long call, whose session was refreshed again and again, has its end', () => {
    const { trace, tell, lines } = world();
    trace.bind('x', 'one', 'callee');
    for (let n = 0; n < SIP_TRACE_MAX_MESSAGES; n++) tell('in', message('UPDATE sip:b@c SIP/2.0', 'x', 'far', `${n} UPDATE`));
    tell('in', message('UPDATE sip:b@c SIP/2.0', 'x', 'far', '200 UPDATE'));
    tell('in', message('BYE sip:b@c SIP/2.0', 'x', 'far', '201 BYE'));
    tell('out', message('SIP/2.0 200 OK', 'x', 'far', '201 BYE'));
    expect(lines('one').slice(SIP_TRACE_MAX_MESSAGES)).toEqual(['in BYE sip:b@c SIP/2.0', 'out SIP/2.0 200 OK']);
    for (let n = 0; n < 100; n++) tell('in', message('BYE sip:b@c SIP/2.0', 'x', 'far', '201 BYE'));
    expect(lines('one')).toHaveLength(SIP_TRACE_MAX_MESSAGES + SIP_TRACE_END_MAX_MESSAGES);
  });

  test('is kept up to 4 kB of each message', () => {
    const { trace, tell, kept } = world();
    tell('in', invite('x', 'far', '', 'y'.repeat(10_000)));
    trace.bind('x', 'one', 'callee');
    expect(kept.get('one')?.map(({ text }) => text.length)).toEqual([4_096]);
  });

  test('of a Session that makes several calls is kept up to a hundred messages in all', () => {
    const { trace, tell, lines } = world();
    for (const callId of ['x', 'y']) {
      trace.bind(callId, 'one', 'caller');
      for (let n = 0; n < SIP_TRACE_MAX_MESSAGES; n++)
        tell('out', message('OPTIONS sip:b@c SIP/2.0', callId, 'a', `${n} OPTIONS`));
    }
    expect(lines('one')).toHaveLength(SIP_TRACE_MAX_MESSAGES);
    trace.forget('one');
    expect(trace.size).toBe(0);
  });

  test('that never becomes a Session is forgotten, and a flood of it has a limit', async () => {
    const { trace, tell, clock } = world();
    for (let n = 0; n < SIP_TRACE_UNBOUND_MAX_CALLS + 50; n++) tell('in', invite(`x${n}`, 'far'));
    expect(trace.size).toBe(SIP_TRACE_UNBOUND_MAX_CALLS);
    await clock.advance(11_000);
    tell('in', invite('new', 'far'));
    expect(trace.size).toBe(1);
    tell('in', message('OPTIONS sip:b@c SIP/2.0', 'ping', 'a', '1 OPTIONS'));
    expect(trace.size).toBe(1);
  });

  test('is forgotten with its Session', () => {
    const { trace, tell } = world();
    trace.bind('x', 'one', 'caller');
    tell('out', invite('x', 'a'));
    trace.forget('one');
    expect(trace.size).toBe(0);
  });
});

describe('redaction', () => {
  test('credentials, keys and hidden fields are never kept, however they are folded or spelled', () => {
    const { trace, tell, kept } = world({ hidden: ['x-account'] });
    trace.bind('x', 'one', 'caller');
    const more =
      'authorization : Digest username="u",\r\n response="s3cret-a"\r\nProxy-Authorization: Digest response="s3cret-b"\r\nX-Account: s3cret-c\r\nX-Shown: yes\r\n';
    const body =
      'v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:s3cret-d\r\na=ice-pwd:s3cret-e\r\nm=audio 9 RTP/SAVP 0\r\nk=clear:s3cret-f\r\n';
    tell('out', invite('x', 'a', more, body));
    const text = kept.get('one')?.[0]?.text ?? '';
    expect(text).not.toContain('s3cret');
    expect(text).toContain('X-Shown: yes');
    expect(text).toContain('m=audio 9 RTP/SAVP 0');
  });

  test('the passwords of URIs are never kept, in no field and no start line; all else of a URI is', () => {
    const { trace, tell, kept } = world();
    const more =
      'Contact: "c" <sip:a:SECRET@192.0.2.7:5061;ob>, SIPS:b;x=1:SEC:RET@c\r\nRoute: <sip:192.0.2.7:5062;lr>\r\nRefer-To: sip:d@[2001:db8::1]:5063,sip:e:SEC@RET@f\r\n';
    trace.bind('x', 'one', 'caller');
    tell('out', message('INVITE sip:b:SECRET@c;user=phone SIP/2.0', 'x', 'ours', '1 INVITE', more));
    const [entry] = kept.get('one') ?? [];
    expect(entry?.first_line).toBe('INVITE sip:b:(not kept)@c;user=phone SIP/2.0');
    expect(entry?.text).toContain('INVITE sip:b:(not kept)@c;user=phone SIP/2.0\r\n');
    expect(entry?.text).toContain(
      'Contact: "c" <sip:a:(not kept)@192.0.2.7:5061;ob>, SIPS:b;x=1:(not kept)@c\r\nRoute: <sip:192.0.2.7:5062;lr>\r\n',
    );
    expect(JSON.stringify(entry)).not.toMatch(/SEC|RET/);
  });

  test('the body of an INFO or MESSAGE is never kept, nor that of anything unless it is asked for', () => {
    const info = message('INFO sip:b@c SIP/2.0', 'x', 'a', '2 INFO', '', 'Signal=4\r\nDuration=100\r\n');
    expect(redactor('full', [], 4_096)(info, '2 INFO')).not.toContain('Signal');
    const words = message('MESSAGE sip:b@c SIP/2.0', 'x', 'a', '3 MESSAGE', '', 'meet me at nine');
    expect(redactor('full', [], 4_096)(words, '3 MESSAGE')).not.toContain('meet me');
    expect(redactor('headers', [], 4_096)(invite('x', 'a', '', 'v=0\r\n'), '1 INVITE')).not.toContain('v=0');
    expect(redactor('off', [], 4_096)(invite('x', 'a', '', 'v=0\r\n'), '1 INVITE')).toBe('');
  });

  test('is neither kept nor waited for where SIP_TRACE is off', () => {
    const { trace, tell, kept } = world({ level: 'off' });
    tell('in', invite('x', 'far'));
    trace.bind('x', 'one', 'callee');
    tell('out', message('SIP/2.0 200 OK', 'x', 'far', '1 INVITE'));
    tell('in', invite('y', 'far'));
    expect([kept.size, trace.size]).toEqual([0, 0]);
  });

  test('is that of the message as the parser reads it: after line ends, with folded lines, with a broken CSeq', () => {
    const { trace, tell, kept, lines } = world();
    trace.bind('x', 'one', 'callee');
    tell('in', `\r\n\r\n${invite('x', 'far', 'Authorization: Digest response="s3cret-a"\r\n', 'k=clear:s3cret-b\r\n')}`);
    for (const cseq of ['\r\n 2 INFO', '2\r\n\tINFO', '2'])
      tell('in', message('INFO sip:b@c SIP/2.0', '\r\n x', 'far', cseq, '', 'Signal=4\r\n'));
    tell('in', invite('x', 'far', 'Authorization\r\n : Digest response="s3cret-c"\r\n'));
    expect(lines('one')).toEqual([
      'in INVITE sip:b@c SIP/2.0',
      ...Array.from({ length: 3 }, () => 'in INFO sip:b@c SIP/2.0'),
      'in INVITE sip:b@c SIP/2.0',
    ]);
    expect(JSON.stringify(kept.get('one'))).not.toMatch(/s3cret|Signal/);
  });

  test('a hidden name hides the fields of that name only, whatever signs it has', () => {
    const text = invite('x', 'a', 'X-A.B+c*: s3cret\r\nX-AxBBc: shown\r\nMy-X-A.B+c*: shown too\r\n');
    const kept = redactor('full', ['x-a.b+c*'], 4_096)(text, '1 INVITE');
    expect(kept).toContain('\r\nX-A.B+c*: (not kept)\r\nX-AxBBc: shown\r\nMy-X-A.B+c*: shown too\r\n');
  });

  test('holds for any text around a secret', () => {
    const noise = fc.string({ maxLength: 40 }).map((text) => text.replace(/[\r\n]/g, ' '));
    fc.assert(
      fc.property(
        noise,
        noise,
        fc.constantFrom('Authorization', 'PROXY-AUTHORIZATION', 'authorization'),
        (before, after, name) => {
          const text = invite(
            'x',
            'a',
            `Subject: ${before}\r\n${name}: Digest ${after}s3cret\r\n\tmore="s3cret"\r\nX-End: e\r\n`,
          );
          const kept = redactor('full', [], 4_096)(text, '1 INVITE');
          expect(kept).not.toContain('s3cret');
          expect(kept).toContain('X-End: e');
        },
      ),
    );
  });
});
