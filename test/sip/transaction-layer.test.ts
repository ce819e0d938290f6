/** The transaction layer alone: which transaction a message belongs to, and where the answer goes (RFC 3261 §17). */
import { describe, expect, test } from 'bun:test';
import type { Peer, PeerProfile } from '../../src/sip/flow.ts';
import type { SipRequest, SipResponse } from '../../src/sip/message/message.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { makeResponse } from '../../src/sip/message/response.ts';
import { TransactionLayer } from '../../src/sip/transaction/layer.ts';
import type { ServerTransaction } from '../../src/sip/transaction/server.ts';
import { bytes, text } from './pair.ts';

const FAR: Peer = { transport: 'udp', host: '192.0.2.9', port: 5099, flow: 3 };

/** Whatever call a request is said to be of. */
const CALL = {};

function layer(transactions = 100, isOfCall = (_: SipRequest) => false) {
  let tokens = 0;
  const sent: { text: string; peer: Peer }[] = [];
  const requests: ServerTransaction[] = [];
  const acks: SipRequest[] = [];
  const under = new TransactionLayer(
    { token: () => `t${++tokens}`, fraction: () => 0.5 },
    transactions,
    {
      onRequest: (transaction) => void requests.push(transaction),
      onAck: (ack) => void acks.push(ack),
      callOf: (request) => (isOfCall(request) ? CALL : undefined),
    },
    (data, peer) => void sent.push({ text: text(data), peer }),
  );
  under.now = 1_000_000;
  return { under, sent, requests, acks };
}

interface Parts {
  readonly via?: string;
  readonly from?: string;
  readonly to?: string;
  readonly callId?: string;
  readonly cseq?: number;
  readonly cseqMethod?: string;
  readonly uri?: string;
}
const read = (message: string) => {
  const parsed = parseMessage(bytes(message));
  if (!parsed.ok) throw new Error(parsed.why);
  return parsed.message;
};
function request(method: string, parts: Parts = {}): SipRequest {
  const { via = 'h.example:5070;branch=z9hG4bKa', from = ';tag=f', to = '', callId = 'c', cseq = 1, uri = 'sip:b@x' } = parts;
  const message = read(
    `${method} ${uri} SIP/2.0\r\nVia: SIP/2.0/UDP ${via}\r\nFrom: <sip:a@x>${from}\r\nTo: <sip:b@x>${to}\r\nCall-ID: ${callId}\r\nCSeq: ${cseq} ${method}\r\n\r\n`,
  );
  if (message.kind !== 'request') throw new Error('no request');
  return message;
}

/** The To tag of a refusal by another layer, whose secret is another one. */
function layerTag(of: SipRequest): string | undefined {
  const { under, sent } = layer(0);
  under.newBranch();
  under.refuse(of, 403, FAR);
  return /;tag=([0-9a-f]{24})/.exec(sent[0]?.text ?? '')?.[1];
}

describe('a request', () => {
  /** How many requests are told when these come one after the other. */
  const told = (...all: readonly SipRequest[]) => {
    const { under, requests } = layer();
    for (const each of all) under.receive(each, FAR);
    return requests.length;
  };

  test('is one with another of its branch, sent-by and method (RFC 3261 §17.2.3)', () => {
    const options = request('OPTIONS');
    expect(told(options, request('OPTIONS'))).toBe(1);
    expect(told(options, request('OPTIONS', { via: 'H.EXAMPLE:5070;branch=z9hG4bKa' }))).toBe(1);
    for (const via of [
      'h.example:5070;branch=z9hG4bKb',
      'h.example:5071;branch=z9hG4bKa',
      'h.example;branch=z9hG4bKa',
      'i.example:5070;branch=z9hG4bKa',
    ])
      expect([via, told(options, request('OPTIONS', { via }))]).toEqual([via, 2]);
    expect(told(options, request('INFO'))).toBe(2);
  });

  test('of a client without the magic cookie is told apart by what it says (RFC 2543)', () => {
    for (const branch of ['', ';branch=1', ';branch=z9hG4bK']) {
      const via = `h.example:5070${branch}`;
      const first = request('OPTIONS', { via });
      expect([branch, told(first, request('OPTIONS', { via }))]).toEqual([branch, 1]);
      const others: Parts[] = [
        { callId: 'd' },
        { cseq: 2 },
        { from: ';tag=g' },
        { uri: 'sip:c@x' },
        { via: `h.example:5071${branch}` },
      ];
      for (const other of others)
        expect([branch, other, told(first, request('OPTIONS', { via, ...other }))]).toEqual([branch, other, 2]);
    }
  });

  test('that came on another path while the first is worked on is known for one that is merged (§8.2.2.2)', () => {
    const { under, requests } = layer();
    const other = 'h.example:5070;branch=z9hG4bKb';
    const merged = (parts: Parts) => {
      under.receive(request('INVITE', parts), FAR);
      const last = requests.at(-1);
      return last !== undefined && under.isMerged(last);
    };
    expect([merged({}), merged({ via: other })]).toEqual([false, true]);
    const [first, second] = requests;
    if (first === undefined || second === undefined) throw new Error('no request');
    const apart: Parts[] = [{ callId: 'd' }, { cseq: 2 }, { from: ';tag=g' }];
    for (const [at, parts] of apart.entries())
      expect([parts, merged({ ...parts, via: `${other}${at}` })]).toEqual([parts, false]);
    // Within a dialog none is merged, and the end of a merged one leaves the first as it is.
    expect([merged({ to: ';tag=t', via: `${other}t` }), merged({ to: ';tag=t', via: `${other}u` })]).toEqual([false, false]);
    under.forget(second);
    expect(merged({ via: `${other}v` })).toBe(true);
    under.forget(first);
    expect(merged({ via: `${other}w` })).toBe(false);
  });

  test('is known while its transaction is there, as its ACK is, to the host that sent it', () => {
    const { under, requests } = layer();
    const invite = request('INVITE');
    const knows = (each: SipRequest, source = FAR) => under.knows(each, source);
    expect(knows(invite)).toBe(false);
    under.receive(invite, FAR);
    expect([knows(request('INVITE')), knows(request('ACK')), knows(request('INFO'))]).toEqual([true, true, false]);
    expect([knows(request('INVITE'), { ...FAR, port: 1 }), knows(request('INVITE'), { ...FAR, host: '192.0.2.8' })]).toEqual([
      true,
      false,
    ]);
    expect(under.inviteOf(request('CANCEL'))).toBe(requests[0]);
    expect(under.inviteOf(request('CANCEL', { via: 'h.example:5070;branch=z9hG4bKb' }))).toBeUndefined();
  });

  test('that is a CANCEL is answered with the To tag of its INVITE, to the host that sent that (RFC 3261 §9.2)', () => {
    const haveItsTag = (from: Peer, ...all: readonly SipRequest[]) => {
      const { under, requests } = layer();
      under.receive(request('INVITE'), FAR);
      for (const each of all) under.receive(each, from);
      return requests.slice(1).map(({ tag }) => tag === requests[0]?.tag);
    };
    expect(haveItsTag(FAR, request('CANCEL'), request('INFO'))).toEqual([true, false]);
    expect(haveItsTag({ ...FAR, host: '192.0.2.8' }, request('CANCEL'))).toEqual([false]);
    expect(haveItsTag(FAR, request('CANCEL', { via: 'h.example:5070;branch=z9hG4bKb' }))).toEqual([false]);
  });

  test('beyond the limit is answered 503 without Retry-After and told to nobody', () => {
    const { under, sent, requests } = layer(2);
    for (const branch of ['a', 'b', 'c'])
      under.receive(request('OPTIONS', { via: `h.example;branch=z9hG4bK${branch};rport` }), FAR);
    expect([requests.length, under.size, sent.length]).toEqual([2, 2, 1]);
    expect(sent[0]?.text).toStartWith('SIP/2.0 503 ');
    expect(sent[0]?.text).not.toContain('Retry-After');
    expect(sent[0]?.peer.port).toBe(5099);
  });

  test('has the last tenth of the places where it is of a call, or cancels one', () => {
    const { under, sent, requests } = layer(20, ({ method }) => method === 'BYE');
    const send = (method: string, count: number) => {
      for (let i = 0; i < count; i++) under.receive(request(method, { via: `h.example;branch=z9hG4bK${i}` }), FAR);
    };
    send('INVITE', 20);
    expect([requests.length, sent.length]).toEqual([18, 2]);
    send('CANCEL', 1);
    send('BYE', 1);
    expect([requests.length, sent.length]).toEqual([20, 2]);
    send('BYE', 2);
    expect([requests.length, sent.length]).toEqual([20, 3]);
  });

  test('that is answered without state has one To tag each time that it comes (RFC 3261 §8.2.7)', () => {
    const { under, sent } = layer(0);
    const refused = (branch: string) => request('INVITE', { via: `h.example;branch=z9hG4bK${branch};rport` });
    for (const branch of ['a', 'a', 'b']) under.refuse(refused(branch), 403, FAR);
    for (const branch of ['a', 'a', 'b']) under.receive(refused(branch), FAR);
    const tags = sent.map((each) => /\r\nTo: [^\r]*;tag=([0-9a-f]{24})\r\n/.exec(each.text)?.[1] ?? '');
    expect([tags[0], tags[2]]).toEqual([tags[1], tags[5]]);
    expect(new Set(tags).size).toBe(2);
    expect(tags).not.toContain('');
    expect(layerTag(refused('a'))).not.toBe(tags[0]);
  });

  test('of ours beyond the limit is not sent', () => {
    const { under, sent } = layer(1);
    const owner = { onResponse() {}, onTimeout() {}, onUnreachable() {} };
    expect(under.request(request('OPTIONS'), 'z9hG4bKa', FAR, owner)).toBeDefined();
    expect([under.request(request('OPTIONS'), 'z9hG4bKb', FAR, owner), sent.length]).toEqual([undefined, 1]);

    const { under: large } = layer(20);
    const sentBy = (method: string, to = '') =>
      Array.from({ length: 20 }, (_, at) => large.request(request(method, { to }), `z9hG4bK${at}`, FAR, owner)).filter(Boolean)
        .length;
    expect([sentBy('INVITE'), sentBy('BYE', ';tag=far')]).toEqual([18, 2]);
  });
});

describe('an answer', () => {
  /** The peer that the answer to a request with that Via goes to, and the Via in it. */
  const answered = (via: string, source = FAR) => {
    const { under, sent, requests } = layer();
    under.receive(request('OPTIONS', { via }), source);
    requests[0]?.respond(200);
    const { peer, text: answer = '' } = sent[0] ?? {};
    return { peer, via: /\r\nVia: SIP\/2.0\/UDP (.*)\r\n/.exec(answer)?.[1] };
  };

  test('goes to the port of the request where it has rport, else to that of its Via, or 5060 (§18.2.2, RFC 3581)', () => {
    const to = (via: string, source?: Peer) => answered(via, source).peer?.port;
    expect(to('h.example:5070;branch=z9hG4bKa;rport')).toBe(5099);
    expect(to('h.example:5070;branch=z9hG4bKa')).toBe(5070);
    expect(to('h.example;branch=z9hG4bKa')).toBe(5060);
    expect(answered('h.example:5070;branch=z9hG4bKa;rport').via).toBe(
      'h.example:5070;branch=z9hG4bKa;received=192.0.2.9;rport=5099',
    );
    expect(answered('192.0.2.9:5070;branch=z9hG4bKa').via).toBe('192.0.2.9:5070;branch=z9hG4bKa');
    // Over a connection it is that, and the port of the Via is for a new one.
    expect(to('h.example:5070;branch=z9hG4bKa;rport', { ...FAR, transport: 'tcp' })).toBe(5070);
    expect(to('h.example;branch=z9hG4bKa;rport', { ...FAR, transport: 'tls' })).toBe(5061);
  });

  test('may open a connection to a device that is else reached on its own alone', () => {
    const peer = (profile?: PeerProfile) =>
      answered('h.example:5070;branch=z9hG4bKa', { ...FAR, transport: 'tcp', ...(profile === undefined ? {} : { profile }) })
        .peer;
    const device = { staysOnFlow: true, contactUser: 'we' };
    expect(peer(device)).toEqual({ ...FAR, transport: 'tcp', port: 5070, profile: { ...device, staysOnFlow: false } });
    expect(peer({ contactUser: 'we' })).toEqual({ ...FAR, transport: 'tcp', port: 5070, profile: { contactUser: 'we' } });
    expect(peer()).toEqual({ ...FAR, transport: 'tcp', port: 5070 });
  });

  test('without a transaction has the source in its Via, and the fields that are given', () => {
    const { under, sent } = layer();
    under.refuse(request('OPTIONS', { via: 'h.example;branch=z9hG4bKa;rport' }), 403, FAR, [['x-why', 'stranger']]);
    expect(sent[0]?.text).toMatch(/^SIP\/2.0 403 [\s\S]*;received=192.0.2.9;rport=5099\r\n[\s\S]*\r\nx-why: stranger\r\n/);
    expect([sent[0]?.peer.host, sent[0]?.peer.port, under.size]).toEqual(['192.0.2.9', 5099, 0]);
  });

  test('to a request of ours is taken by its branch and method, and has no second Via (§8.1.3.3)', () => {
    const taken = (change: (message: string) => string) => {
      const { under } = layer();
      const responses: SipResponse[] = [];
      const owner = { onResponse: (each: SipResponse) => void responses.push(each), onTimeout() {}, onUnreachable() {} };
      const sent = request('OPTIONS');
      under.request(sent, 'z9hG4bKa', FAR, owner);
      const { status, reason, headers } = makeResponse(sent, 200, 't');
      const lines = headers.names.map((name, at) => `${name}: ${headers.values[at]}\r\n`).join('');
      under.receive(read(change(`SIP/2.0 ${status} ${reason}\r\n${lines}\r\n`)), FAR);
      return responses.length;
    };
    expect(taken((message) => message)).toBe(1);
    expect(taken((message) => message.replace('z9hG4bKa', 'z9hG4bKb'))).toBe(0);
    expect(taken((message) => message.replace('1 OPTIONS', '1 INFO'))).toBe(0);
    expect(taken((message) => message.replace('\r\nfrom', '\r\nvia: SIP/2.0/UDP other.example;branch=z9hG4bKo\r\nfrom'))).toBe(0);
    expect(taken((message) => message.replace('\r\nfrom', ', SIP/2.0/UDP other.example;branch=z9hG4bKo\r\nfrom'))).toBe(0);
  });
});

describe('an ACK', () => {
  const invited = (status?: number, hasOwner = false) => {
    const all = layer();
    all.under.receive(request('INVITE'), FAR);
    const [transaction] = all.requests;
    if (transaction === undefined) throw new Error('no request');
    const owned: SipRequest[] = [];
    let unacknowledged = 0;
    if (hasOwner) transaction.owner = { onAck: (ack) => void owned.push(ack), onUnacknowledged: () => void unacknowledged++ };
    if (status !== undefined) transaction.respond(status);
    const ack = (via?: string) => all.under.receive(request('ACK', via === undefined ? {} : { via }), FAR);
    return { ...all, transaction, owned, ack, unacknowledged: () => unacknowledged };
  };

  test('of a refusal ends its transaction, and is told to nobody', () => {
    const { ack, acks, owned, under, sent, transaction, unacknowledged } = invited(486, true);
    ack();
    for (let second = 1; second <= 60; second++) {
      under.now += 1_000;
      under.deadlines.advance(under.now);
    }
    expect([acks.length, owned.length, sent.length, under.size, unacknowledged()]).toEqual([0, 0, 1, 0, 0]);
    expect(transaction.finalStatus).toBe(486);
  });

  test('that never comes for a refusal is told to the owner after 32 s', () => {
    const { under, unacknowledged } = invited(486, true);
    for (let at = 0; at < 32; at++) {
      expect(unacknowledged()).toBe(0);
      under.now += 1_000;
      under.deadlines.advance(under.now);
    }
    expect([unacknowledged(), under.size]).toEqual([1, 0]);
  });

  test('of a 2xx on the branch of its INVITE is for the owner, or for the call where there is none', () => {
    const owned = invited(200, true);
    owned.ack();
    expect([owned.owned.length, owned.acks.length]).toEqual([1, 0]);
    const free = invited(200);
    free.ack();
    expect(free.acks).toHaveLength(1);
    const refused = invited(300);
    refused.ack();
    const open = invited();
    open.ack();
    expect([refused.acks.length, open.acks.length]).toEqual([0, 0]);
  });

  test('with a branch of its own is for the call', () => {
    const { ack, acks, requests } = invited(200, true);
    ack('h.example:5070;branch=z9hG4bKack');
    expect([acks.length, requests.length]).toEqual([1, 1]);
  });
});

test('A final answer is sent once, and with one tag', () => {
  const { under, sent, requests } = layer();
  under.receive(request('OPTIONS'), FAR);
  const [transaction] = requests;
  expect(transaction?.finalStatus).toBeUndefined();
  expect(transaction?.send(transaction.make(180))).toBe(true);
  expect(transaction?.finalStatus).toBeUndefined();
  expect(transaction?.send(transaction.make(200))).toBe(true);
  expect(transaction?.send(transaction.make(486))).toBe(false);
  expect([transaction?.finalStatus, sent.length]).toEqual([200, 2]);
  const tags = sent.map((each) => /\r\nTo: .*;tag=(.*)\r\n/.exec(each.text)?.[1]);
  expect([tags[0], new Set(tags).size]).toEqual([transaction?.tag, 1]);
});
