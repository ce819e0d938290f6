/** SIP devices over real sockets: who registers, who calls, who is called, and who is kept out. */
import { afterEach, describe, expect, test } from 'bun:test';
import type { Device, DeviceDirectory } from '../../src/call/ports/devices.ts';
import { hexHash } from '../../src/hash.ts';
import { DEVICE_PING_MS, DEVICE_REGISTERS_MAX } from '../../src/limits.ts';
import { digestSecrets } from '../../src/sip/message/digest-server.ts';
import type { Binding, HeldBinding, RegisterOutcome } from '../../src/sip/registrar.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { answerTo, asUser } from './device-peer.ts';
import { Signals, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const ELSEWHERE = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});

/** A directory in memory with the users alice and bob of two applications. */
class Directory implements DeviceDirectory {
  readonly contacts = new Map<string, Binding[]>();
  readonly size = 2;
  away = false;
  /** What a change of bob's contacts waits for. */
  held = Promise.resolve();
  /** The node that has the connections of the contacts. */
  holder: HeldBinding['holder'] = 'here';
  find(username: string) {
    const appUuid = { alice: 'app', bob: 'other' }[username];
    return appUuid === undefined
      ? undefined
      : { username, appUuid, secrets: digestSecrets(hexHash, username, 'sidetone', `${username}'s secret`) };
  }
  async bindings(username: string) {
    if (this.away) throw new Error('away');
    return this.contacts.get(username) ?? [];
  }
  async change({ username }: Device, decide: (bound: readonly HeldBinding[]) => RegisterOutcome) {
    if (username === 'bob') await this.held;
    const { holder } = this;
    const outcome = decide((await this.bindings(username)).map((each) => ({ ...each, holder })));
    if (outcome.status === 200) this.contacts.set(username, [...outcome.bound]);
    return outcome;
  }
}

async function open(directory = new Directory(), clock?: VirtualClock) {
  const carrier = await TestCarrier.open([ELSEWHERE], { devices: directory, ...(clock === undefined ? {} : { clock }) });
  carriers.push(carrier);
  return { carrier, directory };
}

async function peerOf(carrier: TestCarrier, host?: string, transport: 'udp' | 'tcp' = 'udp'): Promise<RawPeer> {
  const peer = await RawPeer[transport](carrier.port(transport), host);
  peers.push(peer);
  return peer;
}

describe('a device', () => {
  test('registers after a challenge, is told its contacts, and is found where its packets came from', async () => {
    const { carrier, directory } = await open();
    const alice = await peerOf(carrier, '127.0.0.7');
    const { response } = await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice@192.168.1.4:5060>;expires=300' });
    expect(response).toMatch(/^SIP\/2.0 200/);
    expect(field(response, 'Contact')).toBe('<sip:alice@192.168.1.4:5060>;expires=300');
    const [bound] = directory.contacts.get('alice') ?? [];
    expect(bound).toMatchObject({ host: '127.0.0.7', port: alice.port, transport: 'udp', uri: 'sip:alice@192.168.1.4:5060' });
  });

  test('with a wrong password is refused and told to the operator; nobody learns which names exist', async () => {
    const { carrier, directory } = await open();
    const guesser = await peerOf(carrier, '127.0.0.66');
    for (const username of ['alice', 'nobody'])
      expect((await asUser(guesser, 'REGISTER', username, { password: 'guess' })).response).toMatch(/^SIP\/2.0 401/);
    expect(directory.contacts.size).toBe(0);
    expect(carrier.carrier.refusals().map(({ source, status, reason }) => [source, status, reason])).toEqual([
      ['127.0.0.66', 401, 'No device has that user name'],
      ['127.0.0.66', 401, 'The password of the device is wrong'],
    ]);
  });

  test('is told from a name of nobody by no secret that can be guessed', async () => {
    const { carrier } = await open();
    const guesser = await peerOf(carrier, '127.0.0.64');
    const uri = 'sip:+15550002@127.0.0.1';
    const told: string[] = [];
    for (const username of ['alice', 'nobody']) {
      const parts = { id: username, from: `<sip:${username}@x>;tag=g`, to: `<sip:${username}@x>` };
      guesser.send(guesser.request('REGISTER', parts));
      const nonce = /nonce="([^"]*)"/.exec(await guesser.until(/^SIP\/2.0 401/))?.[1];
      // An answer of nobody that is right would be stale at the second time.
      for (const cseq of [2, 3]) {
        const response = hexHash('MD5', `:${nonce}:${hexHash('MD5', `REGISTER:${uri}`)}`);
        const answer = `username="${username}", realm="sidetone", nonce="${nonce}", uri="${uri}", response="${response}"`;
        guesser.send(guesser.request('REGISTER', { ...parts, cseq, fields: `Authorization: Digest ${answer}\r\n` }));
        told.push((await guesser.until(/^SIP\/2.0 401/)).includes('stale=true') ? 'stale' : 'wrong');
      }
    }
    expect(told).toEqual(['wrong', 'wrong', 'wrong', 'wrong']);
    expect(carrier.carrier.refusals().map(({ count }) => count)).toEqual([2, 2]);
  });

  test('that guesses is not answered any more, and hurts no other', async () => {
    const { carrier } = await open();
    const guesser = await peerOf(carrier, '127.0.0.67');
    guesser.send(guesser.request('REGISTER', { id: 'last', from: '<sip:alice@x>;tag=l', to: '<sip:alice@x>' }));
    const challenge = await guesser.until(/^SIP\/2.0 401/);
    for (let i = 0; i < 10; i++) {
      const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice', `guess ${i}`);
      guesser.send(guesser.request('REGISTER', { id: `guess${i}`, from: '<sip:alice@x>;tag=g', to: '<sip:alice@x>', fields }));
      await guesser.until(/^SIP\/2.0 401/);
    }
    const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice');
    guesser.send(guesser.request('REGISTER', { id: 'last', cseq: 2, from: '<sip:alice@x>;tag=l', to: '<sip:alice@x>', fields }));
    const alice = await peerOf(carrier, '127.0.0.7');
    expect((await asUser(alice, 'REGISTER', 'alice')).response).toMatch(/^SIP\/2.0 200/);
    expect(guesser.heard).toEqual([]);
    expect(carrier.carrier.refusals()[0]).toMatchObject({
      source: '127.0.0.67',
      reason: expect.stringContaining('Too many wrong'),
    });
  });

  test('is guessed ten times a minute also by requests that hold many answers', async () => {
    const { carrier, directory } = await open();
    const guesser = await peerOf(carrier, '127.0.0.65');
    const names = { from: '<sip:alice@x>;tag=g', to: '<sip:alice@x>' };
    guesser.send(guesser.request('REGISTER', { id: 'first', ...names }));
    const challenge = await guesser.until(/^SIP\/2.0 401/);
    const answer = (password?: string) => answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice', password);
    const fields = Array.from({ length: 80 }, (_, i) => answer(`guess ${i}`)).join('') + answer();
    guesser.send(guesser.request('REGISTER', { id: 'many', ...names, fields }));
    expect(await guesser.until(/^SIP\/2.0 [2-6]/)).toMatch(/^SIP\/2.0 401/);
    expect(directory.contacts.size).toBe(0);
  });

  test('is not guessed from the address of another, nor once that one has gone', async () => {
    const { carrier } = await open();
    const alice = await peerOf(carrier, '127.0.0.68');
    await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice@127.0.0.68>' });
    alice.send(alice.request('REGISTER', { id: 'c', from: '<sip:bob@x>;tag=c', to: '<sip:bob@x>' }));
    const challenge = await alice.until(/^SIP\/2.0 401/);
    /** Guesses a password so often, and tells how many of the guesses were answered. */
    const guess = async (username: string, times: number) => {
      const address = `<sip:${username}@x>`;
      for (let i = 0; i < times; i++) {
        const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', username, `guess ${i}`);
        const id = `${username}${i}at${Math.random()}`;
        alice.send(alice.request('REGISTER', { id, from: `${address};tag=g`, to: address, fields }));
        await Bun.sleep(60);
      }
      return alice.heard.splice(0).filter((heard) => heard.startsWith('SIP/2.0 401')).length;
    };
    expect(await guess('bob', 13)).toBe(10);
    expect(await guess('alice', 13)).toBe(13);
    const { response } = await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice@127.0.0.68>;expires=0' });
    expect(response).toMatch(/^SIP\/2.0 200/);
    expect(await guess('alice', 3)).toBe(0);
  });

  test('is challenged while others at its address ask for unknown names, and for another device', async () => {
    const { carrier } = await open();
    const alice = await peerOf(carrier, '127.0.0.69');
    await asUser(alice, 'REGISTER', 'alice');
    const flood = await peerOf(carrier, '127.0.0.69');
    for (const username of ['nobody', 'bob'])
      for (let i = 0; i < 60; i++) {
        const address = `<sip:${username}@x>`;
        flood.send(flood.request('REGISTER', { id: `${username}${i}`, from: `${address};tag=f`, to: address }));
      }
    expect((await asUser(alice, 'REGISTER', 'alice')).response).toMatch(/^SIP\/2.0 200/);
    const answered = (username: string) => flood.heard.filter((heard) => heard.includes(`<sip:${username}@x>;tag=f`)).length;
    for (const username of ['nobody', 'bob']) expect(answered(username)).toBeWithin(20, 40);
  });

  test('is refused what is not known here, a registration that is too brief and one contact too many, and the operator is told', async () => {
    const { carrier, directory } = await open();
    const alice = await peerOf(carrier, '127.0.0.7');
    const fields = 'Require: outbound, timer\r\nProxy-Require: gruu\r\n';
    const { response } = await asUser(alice, 'REGISTER', 'alice', { fields });
    expect(response).toMatch(/^SIP\/2.0 420 Bad Extension/);
    expect(field(response, 'Unsupported')).toBe('outbound, gruu');
    const brief = await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice@127.0.0.7>;expires=5' });
    expect(brief.response).toMatch(/^SIP\/2.0 423 Interval Too Brief/);
    expect(field(brief.response, 'Min-Expires')).toBe('60');
    expect(directory.contacts.get('alice') ?? []).toEqual([]);
    const told = () => carrier.carrier.refusals().find(({ status }) => status !== 401);
    expect(told()).toMatchObject({ status: 423, remedy: expect.stringContaining('longer registration') });
    for (let restart = 0; restart < 10; restart++)
      await asUser(alice, 'REGISTER', 'alice', { contact: `<sip:alice-${restart}@127.0.0.7>` });
    const more = await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice-10@127.0.0.7>' });
    expect(more.response).toMatch(/^SIP\/2.0 403/);
    expect(told()).toMatchObject({ status: 403, reason: expect.stringContaining('10 contacts'), to: 'sip:alice@x' });
  });

  test('that restarts again and again, each time with another port and Contact, keeps one contact and rings once', async () => {
    const { carrier, directory } = await open();
    const named = ';+sip.instance="<urn:uuid:00000000-0000-4000-8000-000000000001>"';
    let phone = await peerOf(carrier, '127.0.0.7');
    for (let restart = 0; restart < 12; restart++) {
      phone = await peerOf(carrier, '127.0.0.7');
      const contact = `<sip:alice@127.0.0.7:${phone.port}>`;
      const { response } = await asUser(phone, 'REGISTER', 'alice', { contact: `${contact}${named}` });
      expect(response).toMatch(/^SIP\/2.0 200/);
      expect(field(response, 'Contact')).toBe(`${contact};expires=3600${named}`);
    }
    expect(directory.contacts.get('alice')).toMatchObject([{ port: phone.port }]);
    const signals = new Signals();
    const result = await carrier.carrier.dial({ appUuid: 'app', to: 'sip:alice', from: '+1', listener: signals.listener });
    if ('unavailable' in result) throw new Error(result.unavailable);
    result.leg.start();
    phone.respond(await phone.until(/^INVITE/), '486 Busy Here');
    expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  });

  test('may register where ten are bound and the connection of one is closed, and only then', async () => {
    const { carrier, directory } = await open();
    const phones: RawPeer[] = [];
    const register = async () => {
      const phone = await peerOf(carrier, '127.0.0.7', 'tcp');
      phones.push(phone);
      const contact = `<sip:alice@127.0.0.7:${phone.port};transport=tcp>`;
      return (await asUser(phone, 'REGISTER', 'alice', { contact })).response.slice(0, 11);
    };
    const ports = () => directory.contacts.get('alice')?.map(({ port }) => port) ?? [];
    for (let phone = 0; phone < 10; phone++) expect(await register()).toBe('SIP/2.0 200');
    const before = directory.contacts.get('alice') ?? [];
    expect(await register()).toBe('SIP/2.0 403');
    phones[4]?.close();
    for (let looks = 0; ports().length > 9 && looks < 400; looks++) await Bun.sleep(5);
    // The database was away as it closed, or the process was another one: the contact is bound still.
    directory.contacts.set('alice', [...before]);
    // Whether a connection of another node is up is not known here.
    directory.holder = 'elsewhere';
    expect(await register()).toBe('SIP/2.0 403');
    directory.holder = 'here';
    expect(await register()).toBe('SIP/2.0 200');
    const [lost, last] = [phones[4]?.port ?? 0, phones.at(-1)?.port ?? 0];
    expect(ports().toSorted()).toEqual([...before.map(({ port }) => port).filter((port) => port !== lost), last].toSorted());
    expect(await register()).toBe('SIP/2.0 403');
    // Nobody has connections of a process that is gone.
    directory.holder = 'nobody';
    expect(await register()).toBe('SIP/2.0 200');
  });

  test('with the right password is not banned, however often its registration is too brief', async () => {
    const carrier = await TestCarrier.open([ELSEWHERE], { devices: new Directory(), ban: { after: 3, sec: 600 } });
    carriers.push(carrier);
    const alice = await peerOf(carrier, '127.0.0.7');
    for (let times = 0; times < 6; times++) {
      const { response } = await asUser(alice, 'REGISTER', 'alice', { contact: '<sip:alice@127.0.0.7>;expires=5' });
      expect(response).toMatch(/^SIP\/2.0 423/);
    }
    expect(carrier.carrier.bans().total).toBe(0);
  });

  test('registers while the device of another application floods its registrations', async () => {
    const { carrier, directory } = await open();
    const flood = await peerOf(carrier, '127.0.0.69', 'tcp');
    const names = { from: '<sip:bob@x>;tag=b', to: '<sip:bob@x>', contact: '<sip:bob@127.0.0.69>' };
    // A stranger may send a few messages only.
    expect((await asUser(flood, 'REGISTER', 'bob', names)).response).toMatch(/^SIP\/2.0 200/);
    const free = Promise.withResolvers<void>();
    directory.held = free.promise;
    flood.send(flood.request('REGISTER', { id: 'first', ...names }));
    const challenge = await flood.until(/^SIP\/2.0 401/);
    for (let count = 1; count <= DEVICE_REGISTERS_MAX + 1; count++) {
      const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'bob', undefined, count);
      flood.send(flood.request('REGISTER', { id: `flood${count}`, cseq: 2, ...names, fields }));
    }
    expect(await flood.until(/^SIP\/2.0 [2-6]/)).toMatch(/^SIP\/2.0 503/);
    const alice = await peerOf(carrier, '127.0.0.7');
    expect((await asUser(alice, 'REGISTER', 'alice')).response).toMatch(/^SIP\/2.0 200/);
    free.resolve();
    expect(await flood.until(/^SIP\/2.0 [2-6]/)).toMatch(/^SIP\/2.0 200/);
  });

  test('is told to try again later while the database is away', async () => {
    const { carrier, directory } = await open();
    directory.away = true;
    const { response } = await asUser(await peerOf(carrier), 'REGISTER', 'alice');
    expect(response).toMatch(/^SIP\/2.0 503/);
    expect(field(response, 'Retry-After')).not.toBe('');
  });

  test.each([
    ['100', ''],
    ['+15550002', '+15550002'],
  ])('calls its application, which learns who calls and what was dialled: %s', async (number, did) => {
    const { carrier } = await open();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const alice = await peerOf(carrier, '127.0.0.7');
    const { response } = await asUser(alice, 'INVITE', 'alice', { number, body: sdp() });
    expect(response).toMatch(/^SIP\/2.0 200/);
    const [incoming] = carrier.incoming;
    expect(incoming?.call).toMatchObject({
      type: 'sip',
      appUuid: 'app',
      callerId: '',
      did,
      sip: { device: 'alice', dialled: number, codec: 'PCMU' },
    });
    expect(incoming?.call.sip).not.toHaveProperty('trunk');
  });

  test('that has called is transferred to a number at our host as it knows it', async () => {
    const { carrier } = await open();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const alice = await peerOf(carrier, '127.0.0.7');
    const { response, parts } = await asUser(alice, 'INVITE', 'alice', { number: '100', body: sdp() });
    alice.send(alice.request('ACK', { ...parts, cseq: 2, to: field(response, 'To'), body: '' }));
    const [incoming] = carrier.incoming;
    await incoming?.signals.until('leg.answered');
    incoming?.call.leg.transfers?.transfer({ number: '+972501112222' });
    expect(field(await alice.until(/^REFER /), 'Refer-To')).toBe('<sip:+972501112222@x>');
  });

  test('whose public address changes in a call hangs up from there by its password, and nobody else does', async () => {
    const { carrier } = await open();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const before = await peerOf(carrier, '127.0.0.7');
    const { response, parts } = await asUser(before, 'INVITE', 'alice', { number: '100', body: sdp() });
    const call = { ...parts, to: field(response, 'To'), body: '' };
    before.send(before.request('ACK', { ...call, cseq: 2 }));
    const [incoming] = carrier.incoming;
    await incoming?.signals.until('leg.answered');
    const after = await peerOf(carrier, '127.0.0.9');
    after.send(after.request('BYE', { ...call, cseq: 3 }));
    const challenge = await after.until(/^SIP\/2.0 401/);
    const proof = (cseq: number, password?: string) =>
      after.request('BYE', {
        ...call,
        cseq,
        fields: answerTo(challenge, 'BYE', 'sip:100@127.0.0.1', 'alice', password, cseq),
      });
    after.send(proof(4, 'a guess'));
    await after.until(/^SIP\/2.0 401[\s\S]*CSeq: 4/);
    expect(incoming?.signals.all.map(({ type }) => type)).not.toContain('leg.ended');
    after.send(proof(5));
    await after.until(/^SIP\/2.0 200[\s\S]*CSeq: 5/);
    await incoming?.signals.until('leg.ended');
  });

  test('is challenged also from the address of a trunk, and a stranger without its name is refused', async () => {
    const { carrier } = await open();
    const known = await peerOf(carrier, '127.0.0.200');
    known.send(known.request('INVITE', { id: 'spoof', from: '<sip:alice@x>;tag=s', body: sdp() }));
    await known.until(/^SIP\/2.0 401/);
    const stranger = await peerOf(carrier, '127.0.0.66');
    for (const method of ['INVITE', 'OPTIONS']) {
      stranger.send(stranger.request(method, { id: `strange${method}`, body: sdp() }));
      await stranger.until(new RegExp(`^SIP/2.0 403[\\s\\S]* ${method}\r`));
    }
    expect(carrier.incoming).toEqual([]);
    // A host that a device is registered from may ask.
    expect((await asUser(stranger, 'REGISTER', 'alice', { contact: '<sip:alice@127.0.0.66>' })).response).toMatch(
      /^SIP\/2.0 200/,
    );
    stranger.send(stranger.request('OPTIONS', { id: 'known' }));
    await stranger.until(/^SIP\/2.0 200[\s\S]* OPTIONS\r/);
  });
});

describe('a dial to a device', () => {
  /** Registers a device from that address and gives its peer. */
  async function registered(carrier: TestCarrier, host: string, username = 'alice', transport: 'udp' | 'tcp' = 'udp') {
    const peer = await peerOf(carrier, host, transport);
    const contact = `<sip:${username}@${host}:${peer.port}${transport === 'tcp' ? ';transport=tcp' : ''}>`;
    expect((await asUser(peer, 'REGISTER', username, { contact })).response).toMatch(/^SIP\/2.0 200/);
    return peer;
  }

  async function dial(carrier: TestCarrier, to = 'sip:alice') {
    const signals = new Signals();
    const result = await carrier.carrier.dial({ appUuid: 'app', to, from: '+15550002', listener: signals.listener });
    if ('unavailable' in result) return result.unavailable;
    result.leg.start();
    return { leg: result.leg, signals };
  }

  /** Dials alice, who has two phones, and gives both with the INVITEs that they got. */
  async function twoPhones() {
    const { carrier } = await open();
    const one = await registered(carrier, '127.0.0.7');
    const two = await registered(carrier, '127.0.0.8');
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    const [first, second] = await Promise.all([one.until(/^INVITE/), two.until(/^INVITE/)]);
    return { carrier, one, two, call, first, second };
  }

  async function endOf(signals: Signals) {
    const signal = await signals.until('leg.ended');
    return signal.type === 'leg.ended' ? signal.end : undefined;
  }

  test('rings all its contacts; the first that answers has the call, and the others are cancelled', async () => {
    const { carrier } = await open();
    const desk = await registered(carrier, '127.0.0.7');
    const mobile = await registered(carrier, '127.0.0.8', 'alice', 'tcp');
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    const [atDesk, atMobile] = await Promise.all([desk.until(/^INVITE/), mobile.until(/^INVITE/)]);
    desk.respond(atDesk, '180 Ringing', { tag: 'desk' });
    mobile.respond(atMobile, '180 Ringing', { tag: 'mobile' });
    await call.signals.until('leg.ringing');
    mobile.respond(atMobile, '200 OK', { tag: 'mobile', body: sdp() });
    await mobile.until(/^ACK/);
    const cancel = await desk.until(/^CANCEL/);
    // The phone that was too late shows no missed call then.
    expect(field(cancel, 'Reason')).toBe('SIP;cause=200;text="Call completed elsewhere"');
    desk.respond(cancel, '200 OK', { tag: 'desk' });
    desk.respond(atDesk, '487 Request Terminated', { tag: 'desk' });
    await call.signals.until('leg.answered');
    expect(call.signals.types().filter((type) => type === 'leg.ringing' || type === 'leg.answered')).toEqual([
      'leg.ringing',
      'leg.answered',
    ]);
    call.leg.hangup();
    mobile.respond(await mobile.until(/^BYE/), '200 OK');
    expect(await endOf(call.signals)).toMatchObject({ by: 'caller' });
    await carrier.idle();
  });

  test('is answered by one that described itself in a reliable 183, and not again in its 200', async () => {
    const { carrier } = await open();
    const desk = await registered(carrier, '127.0.0.7');
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    const invite = await desk.until(/^INVITE/);
    desk.respond(invite, '183 Session Progress', { tag: 'desk', fields: 'Require: 100rel\r\nRSeq: 1\r\n', body: sdp() });
    desk.respond(await desk.until(/^PRACK/), '200 OK', { tag: 'desk' });
    desk.respond(invite, '200 OK', { tag: 'desk' });
    await call.signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ remotePort: 6000 });
    call.leg.hangup();
    desk.respond(await desk.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('that two devices answer at once is one call: the second gets ACK and BYE', async () => {
    const { carrier, one, two, call, first, second } = await twoPhones();
    one.respond(first, '200 OK', { tag: 'one', body: sdp() });
    two.respond(second, '200 OK', { tag: 'two', body: sdp() });
    await call.signals.until('leg.answered');
    const late = await Promise.race([
      one.until(/^BYE/).then((bye) => [one, bye] as const),
      two.until(/^BYE/).then((bye) => [two, bye] as const),
    ]);
    late[0].respond(late[1], '200 OK');
    call.leg.hangup();
    const other = late[0] === one ? two : one;
    other.respond(await other.until(/^BYE/), '200 OK');
    expect(call.signals.types().filter((type) => type === 'leg.answered')).toHaveLength(1);
    await endOf(call.signals);
    await carrier.idle();
  });

  test('rings on where the first answers with audio that cannot be used, which is hung up on', async () => {
    const { carrier, one, two, call, first, second } = await twoPhones();
    one.respond(first, '200 OK', { tag: 'one', body: sdp('m=audio 0 RTP/AVP 98') });
    one.respond(await one.until(/^BYE/), '200 OK');
    two.respond(second, '200 OK', { tag: 'two', body: sdp() });
    await call.signals.until('leg.answered');
    call.leg.hangup();
    two.respond(await two.until(/^BYE/), '200 OK');
    expect(await endOf(call.signals)).toMatchObject({ by: 'caller' });
    await carrier.idle();
  });

  test('ends as rejected where one declines, and the others stop ringing', async () => {
    const { carrier, one, two, call, first, second } = await twoPhones();
    two.respond(second, '180 Ringing', { tag: 'two' });
    await call.signals.until('leg.ringing');
    one.respond(first, '603 Decline', { tag: 'one' });
    const cancel = await two.until(/^CANCEL/);
    expect(field(cancel, 'Reason')).toBe('SIP;cause=603');
    two.respond(cancel, '200 OK');
    two.respond(second, '487 Request Terminated', { tag: 'two' });
    expect(await endOf(call.signals)).toMatchObject({ cause: 'rejected' });
    await carrier.idle();
  });

  test('ends as busy where one is busy and another does not answer, and as not answered where none is registered', async () => {
    const { carrier } = await open();
    const unheard = await dial(carrier);
    if (typeof unheard === 'string') throw new Error(unheard);
    expect(await endOf(unheard.signals)).toMatchObject({ cause: 'not_answered' });
    const one = await registered(carrier, '127.0.0.7');
    const two = await registered(carrier, '127.0.0.8');
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    one.respond(await one.until(/^INVITE/), '480 Temporarily Unavailable');
    two.respond(await two.until(/^INVITE/), '486 Busy Here');
    expect(await endOf(call.signals)).toMatchObject({ cause: 'busy' });
    await carrier.idle();
  });

  test('ends as not answered, with words about the device, where its connection is gone or it does not respond', async () => {
    const gone = await open();
    const peer = await registered(gone.carrier, '127.0.0.7', 'alice', 'tcp');
    const [bound] = gone.directory.contacts.get('alice') ?? [];
    if (bound === undefined) throw new Error('not bound');
    peer.close();
    await Bun.sleep(50);
    gone.directory.contacts.set('alice', [bound]);
    const call = await dial(gone.carrier);
    if (typeof call === 'string') throw new Error(call);
    expect(await endOf(call.signals)).toMatchObject({ cause: 'not_answered', description: 'The device could not be reached' });
    const clock = new VirtualClock();
    const silent = await open(new Directory(), clock);
    const off = await registered(silent.carrier, '127.0.0.8');
    const unheard = await dial(silent.carrier);
    if (typeof unheard === 'string') throw new Error(unheard);
    await off.until(/^INVITE/);
    await clock.advance(33_000);
    expect(await endOf(unheard.signals)).toMatchObject({ cause: 'not_answered', description: 'The device did not respond' });
  });

  test('ends at once where the phone has stopped to answer pings, and rings it again once it is back', async () => {
    const clock = new VirtualClock();
    const { carrier } = await open(new Directory(), clock);
    const phone = await registered(carrier, '127.0.0.8');
    await clock.advance(DEVICE_PING_MS);
    phone.respond(await phone.until(/^OPTIONS sip:alice@/), '481 Call/Transaction Does Not Exist');
    // What comes behind it has been taken when this is answered.
    await asUser(phone, 'REGISTER', 'alice', { contact: `<sip:alice@127.0.0.8:${phone.port}>` });
    await clock.advance(DEVICE_PING_MS);
    await phone.until(/^OPTIONS sip:alice@/);
    await clock.advance(33_000);
    const unheard = await dial(carrier);
    if (typeof unheard === 'string') throw new Error(unheard);
    expect(await endOf(unheard.signals)).toMatchObject({ cause: 'not_answered', description: 'The device did not respond' });
    expect(phone.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
    await asUser(phone, 'REGISTER', 'alice', { contact: `<sip:alice@127.0.0.8:${phone.port}>` });
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    phone.respond(await phone.until(/^INVITE/), '486 Busy Here');
    expect(await endOf(call.signals)).toMatchObject({ cause: 'busy' });
  });

  test('of another application, or of nobody, is unknown', async () => {
    const { carrier } = await open();
    expect([await dial(carrier, 'sip:bob'), await dial(carrier, 'sip:nobody')]).toEqual(['unknown_device', 'unknown_device']);
  });

  test('is cancelled everywhere when the caller gives up', async () => {
    const { carrier } = await open();
    const one = await registered(carrier, '127.0.0.7');
    const call = await dial(carrier);
    if (typeof call === 'string') throw new Error(call);
    const invite = await one.until(/^INVITE/);
    one.respond(invite, '180 Ringing');
    await call.signals.until('leg.ringing');
    call.leg.cancel();
    one.respond(await one.until(/^CANCEL/), '200 OK');
    one.respond(invite, '487 Request Terminated');
    expect(await endOf(call.signals)).toMatchObject({ cause: 'cancelled' });
    await carrier.idle();
  });
});
