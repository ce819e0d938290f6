/**
 * Calls from browsers by WHIP, with libdatachannel as the browser: everything that is heard is compared by its tone.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { purity, toneWav } from '../support/rtp-peer.ts';
import { mulawTone, type PeerOptions, type Token, tokenOf, WebrtcPeer, whip } from '../support/webrtc-peer.ts';

const NUMBER = '+15550002';
const FRAGMENT = { 'content-type': 'application/trickle-ice-sdpfrag' };

describe('a call from a browser', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const peers: WebrtcPeer[] = [];
  const media = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(1000, 2)) });

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
  }, 60_000);

  afterAll(async () => {
    for (const peer of peers) peer.close();
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
  const newToken = async (terms = {}): Promise<Token> => tokenOf(await api('POST', '/v1/webrtc-tokens', terms));

  async function ring(token: Token, options: PeerOptions = {}): Promise<WebrtcPeer> {
    const { peer, response } = await WebrtcPeer.call(token, options);
    peers.push(peer);
    expect(response.status).toBe(201);
    return peer;
  }

  async function answered(token: Token, options: PeerOptions = {}): Promise<WebrtcPeer> {
    const peer = await ring(token, options);
    expect((await api('POST', `/v1/sessions/${peer.sessionUuid}/answer`, {})).status).toBe(202);
    await receiver.event('session.answered', peer.sessionUuid);
    return peer;
  }

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    return Number(new RegExp(`^sidetone_${name} ([0-9]+)$`, 'm').exec(text)?.[1]);
  };

  test('it rings, is answered, hears what is played, is heard, presses keys, and its end tells how it sounded', async () => {
    const token = await newToken({ caller_id: NUMBER, to: '+15550199', client_state: 'desk 4' });
    const peer = await ring(token);
    const created = await receiver.event('session.created', peer.sessionUuid);
    expect(created.body).toMatchObject({ type: 'webrtc', caller_id: NUMBER, did: '+15550199', client_state: 'desk 4' });
    expect((await api('GET', `/v1/sessions/${peer.sessionUuid}`)).body).toMatchObject({ type: 'webrtc', status: 'ringing' });

    await api('POST', `/v1/sessions/${peer.sessionUuid}/answer`, {});
    await receiver.event('session.answered', peer.sessionUuid);
    const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
    const before = peer.packets.length;
    await api('POST', `/v1/sessions/${peer.sessionUuid}/playback/play`, { type: 'files', urls });
    await peer.until(() => purity(peer.heard(before), 1000) > 0.98, 'the tone that is played');

    peer.say(mulawTone(440));
    peer.press(5);
    expect((await receiver.event('dtmf.received', peer.sessionUuid)).body).toMatchObject({ digit: '5', method: 'rfc4733' });
    await api('POST', `/v1/sessions/${peer.sessionUuid}/playback/stop`, {});
    await api('POST', `/v1/sessions/${peer.sessionUuid}/dtmf/collect`, { max_digits: 1 });
    peer.press(7);
    expect((await receiver.event('digits.collected', peer.sessionUuid)).body).toMatchObject({ digits: '7', status: 'success' });

    expect((await peer.hangUp()).status).toBe(200);
    const ended = await receiver.event('session.ended', peer.sessionUuid);
    expect(ended.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'caller' });
    const quality = ended.body.quality as Record<string, number>;
    expect(quality.packets_in).toBeGreaterThan(5);
    expect(quality).toMatchObject({ codec: 'PCMU', packets_lost: 0 });
    const timeline = await platform.operator('GET', `/sessions/${peer.sessionUuid}/timeline`);
    const entries = timeline.body.entries as { readonly what?: string }[];
    expect(entries.map(({ what }) => what)).toContain('link_connected');
    // The offer's passwords are nobody's to read.
    expect(JSON.stringify(timeline.body)).not.toContain('ice-pwd');
  });

  test('two browsers in a Room hear each other, and not themselves; PCMA beside PCMU', async () => {
    const token = await newToken();
    const a = await answered(token);
    const b = await answered(token, { codec: [8, 'PCMA/8000'] });
    const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
    for (const { sessionUuid } of [a, b]) {
      await api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: sessionUuid });
      await receiver.event('room.member.joined', sessionUuid);
    }
    a.say(mulawTone(440));
    await b.until(() => b.packets.length > 50, 'the mix');
    expect(new Set(b.packets.map(({ payloadType }) => payloadType))).toEqual(new Set([8]));
    b.say((frame) => mulawTone(660)(frame).map((octet) => alawOf(octet)));
    await a.until(() => purity(a.heard(), 660) > 0.95, 'the other one');
    expect(purity(a.heard(), 440)).toBeLessThan(0.02);
    await Promise.all([a.hangUp(), b.hangUp()]);
    await receiver.event('session.ended', b.sessionUuid);
  });

  test.each([
    ['G722', [9, 'G722/8000'], 160],
    ['opus', [111, 'OPUS/48000/2'], 960],
  ] as const)(
    '%s: a tone that is played comes back as it came, and is heard by another browser',
    async (codec, offered, units) => {
      const token = await newToken();
      const peer = await answered(token, { codec: offered });
      const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
      await api('POST', `/v1/sessions/${peer.sessionUuid}/playback/play`, { type: 'files', urls });
      await receiver.event('playback.ended', peer.sessionUuid);
      const said = peer.packets.filter(({ payload }) => payload.length > 40).slice(5, 95);
      expect(said.length).toBeGreaterThan(80);
      const steps = said.slice(1).filter((packet, at) => packet.timestamp - (said[at]?.timestamp ?? 0) === units);
      expect(steps.length).toBeGreaterThan(75);

      const other = await answered(token);
      const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
      for (const { sessionUuid } of [peer, other]) {
        await api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: sessionUuid });
        await receiver.event('room.member.joined', sessionUuid);
      }
      peer.say((frame) => said[frame % said.length]?.payload ?? new Uint8Array(), units);
      await other.until(() => purity(other.heard(), 1000) > 0.9, 'the tone that was played');
      peer.press(9, units / 20);
      expect((await receiver.event('dtmf.received', peer.sessionUuid)).body).toMatchObject({ digit: '9', duration_ms: 100 });
      await Promise.all([peer.hangUp(), other.hangUp()]);
      const ended = await receiver.event('session.ended', peer.sessionUuid);
      expect(ended.body.quality).toMatchObject({ codec });
    },
  );

  test('the application rejects it, or hangs up: the browser is told by the end of the handshake’s connection', async () => {
    const token = await newToken();
    const rejected = await ring(token);
    await api('POST', `/v1/sessions/${rejected.sessionUuid}/reject`, { reason: 'busy' });
    expect((await receiver.event('session.ended', rejected.sessionUuid)).body).toMatchObject({
      hangup_cause: 'busy',
      answered: false,
    });
    const left = await answered(token);
    await api('DELETE', `/v1/sessions/${left.sessionUuid}`);
    await left.until(() => left.states.includes('closed') || left.states.includes('disconnected'), 'the goodbye');
    expect((await receiver.event('session.ended', left.sessionUuid)).body).toMatchObject({ hangup_by: 'callee' });
    expect((await left.hangUp()).status).toBe(404);
  });

  /** A call, and its offer, to be sent again with another direction. */
  async function offering(direction: string) {
    let offer = '';
    const alter = (sdp: string) => {
      offer = sdp;
      return sdp.replace('a=sendrecv', `a=${direction}`);
    };
    const peer = await answered(await newToken(), { alter });
    const again = async (other: string) => {
      const response = await whip(peer.location, 'PATCH', offer.replace('a=sendrecv', `a=${other}`));
      return /a=(sendrecv|sendonly|recvonly|inactive)\r/.exec(await response.text())?.[1];
    };
    return { peer, again };
  }

  test('our hold takes effect at our side, and is told to the application, but to no browser that offers meanwhile', async () => {
    const { peer, again } = await offering('sendrecv');
    await api('POST', `/v1/sessions/${peer.sessionUuid}/hold`, {});
    expect((await receiver.event('session.held', peer.sessionUuid)).body).toMatchObject({ by: 'application' });
    expect([await again('inactive'), await again('sendrecv')]).toEqual(['inactive', 'sendrecv']);
    await api('POST', `/v1/sessions/${peer.sessionUuid}/unhold`, {});
    const resumed = () => receiver.of(peer.sessionUuid).filter(({ event }) => event === 'session.resumed');
    await receiver.until(() => resumed().length === 2, 'both to resume');
    expect(resumed().map(({ body }) => body.by)).toEqual(['far_end', 'application']);
    await peer.hangUp();
  });

  test('a browser that listened first, and speaks later, holds the call and takes it back', async () => {
    const { peer, again } = await offering('recvonly');
    expect([await again('inactive'), await again('sendrecv')]).toEqual(['inactive', 'sendrecv']);
    expect([await again('inactive'), await again('sendrecv')]).toEqual(['inactive', 'sendrecv']);
    await receiver.event('session.resumed', peer.sessionUuid);
    await peer.hangUp();
    await receiver.event('session.ended', peer.sessionUuid);
    const told = receiver.names(peer.sessionUuid).filter((name) => name === 'session.held' || name === 'session.resumed');
    expect(told).toEqual(['session.held', 'session.resumed']);
  });

  test('a browser with another certificate than it said is not let in, and its Session ends as failed', async () => {
    const failed = await metric('webrtc_handshakes_failed_total');
    const alter = (offer: string) =>
      offer.replace(/(a=fingerprint:sha-256 )(..)/, (_, head, byte) => `${head}${byte === 'AA' ? 'BB' : 'AA'}`);
    const peer = await ring(await newToken(), { alter });
    const ended = await receiver.event('session.ended', peer.sessionUuid);
    expect(ended.body).toMatchObject({ answered: false, hangup_cause: 'failed', hangup_by: 'network' });
    expect(peer.packets).toHaveLength(0);
    expect(await metric('webrtc_handshakes_failed_total')).toBe(failed + 1);
  });

  test('floods of STUN, of media before the handshake and of junk are counted, and a call goes on through them', async () => {
    const peer = await answered(await newToken());
    const { port } = peer;
    const names = ['webrtc_checks_unknown_total', 'webrtc_packets_strange_total'];
    const before = await Promise.all(names.map(metric));
    const socket = createSocket('udp4');
    const stun = Buffer.alloc(28);
    stun.writeUInt16BE(1, 0);
    stun.writeUInt16BE(8, 2);
    stun.writeUInt32BE(0x2112a442, 4);
    const rtp = Buffer.alloc(172, 0x80);
    let answers = 0;
    socket.on('message', () => answers++);
    for (let round = 0; round < 200; round++) {
      for (const each of [stun, rtp, Buffer.from([22, 0xfe, 0xfd, 0]), Buffer.from([70, 1, 2, 3])])
        socket.send(each, port, '127.0.0.1');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const from = peer.packets.length;
    await peer.until(() => peer.packets.length > from + 25, 'audio in spite of the flood');
    const after = await Promise.all(names.map(metric));
    for (const [at, name] of names.entries()) expect([name, (after[at] ?? 0) > (before[at] ?? 0) + 50]).toEqual([name, true]);
    expect(answers).toBe(0);
    socket.close();
    await peer.hangUp();
  });

  test('a token is for its application and its time: none, a wrong one and a revoked one are refused', async () => {
    const made = await api('POST', '/v1/webrtc-tokens', {});
    const token = tokenOf(made);
    for (const authorization of [undefined, 'Bearer', `Basic ${token.token}`]) {
      const response = await fetch(token.url, { method: 'POST', headers: authorization === undefined ? {} : { authorization } });
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(await response.json()).toMatchObject({ code: 'unauthorized' });
    }
    expect((await whip({ ...token, token: 'wt_wrong' }, 'POST', 'v=0')).status).toBe(401);
    expect((await api('POST', '/v1/webrtc-tokens', { caller_id: '+15550999' })).status).toBe(403);
    expect((await api('POST', '/v1/webrtc-tokens', { ttl_sec: 59 })).status).toBe(400);
    const other = await platform.application(receiver.url, '+15550077');
    expect((await platform.api(other, 'DELETE', `/v1/webrtc-tokens/${made.body.token_id}`)).status).toBe(404);
    expect((await api('DELETE', `/v1/webrtc-tokens/${made.body.token_id}`)).status).toBe(204);
    expect((await whip(token, 'POST', 'v=0')).status).toBe(401);
    expect((await api('DELETE', `/v1/webrtc-tokens/${made.body.token_id}`)).status).toBe(404);
    expect(platform.output).not.toContain(token.token);
  });

  test('a token calls from a number of its application, which need not be one of its caller IDs', async () => {
    const own = '+15550078';
    await platform.operator('PUT', `/numbers/${encodeURIComponent(own)}`, { app_uuid: app.appUuid });
    expect((await api('POST', '/v1/webrtc-tokens', { caller_id: own })).status).toBe(201);
  });

  test('a token has ten live Sessions at most, and takes another when one is over', async () => {
    const token = await newToken();
    let offer = '';
    const first = await ring(token, { alter: (made) => (offer = made) });
    /** The bucket of a token is empty for a second after ten offers. */
    const post = async (): Promise<Response> => {
      for (;;) {
        const response = await whip(token, 'POST', offer);
        if (response.status !== 429) return response;
      }
    };
    const others = await Promise.all(Array.from({ length: 9 }, () => whip(token, 'POST', offer)));
    expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 201));
    expect((await post()).status).toBe(409);
    await first.hangUp();
    const another = await post();
    expect(another.status).toBe(201);
    for (const { headers } of [...others, another])
      expect((await whip({ ...token, url: headers.get('location') ?? '' }, 'DELETE')).status).toBe(200);
  });

  test('a call is hung up with the token that began it, although no other one can be begun with it any more', async () => {
    const made = await api('POST', '/v1/webrtc-tokens', {});
    const token = tokenOf(made);
    const peer = await answered(token);
    expect((await api('DELETE', `/v1/webrtc-tokens/${made.body.token_id}`)).status).toBe(204);
    expect((await whip(token, 'POST', 'v=0')).status).toBe(401);
    const stranger = await whip({ ...(await newToken()), url: `${token.url}/${peer.sessionUuid}` }, 'DELETE');
    expect(stranger.status).toBe(404);
    expect((await peer.hangUp()).status).toBe(200);
    await receiver.event('session.ended', peer.sessionUuid);
  });

  test('what is no offer of audio is refused and leaves nothing behind; any page may ask', async () => {
    const token = await newToken();
    const sessions = await metric('sessions');
    expect((await whip(token, 'POST', 'v=0', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await whip(token, 'POST', 'hello')).status).toBe(400);
    expect((await whip(token, 'POST', `v=0\r\n${'a=x\r\n'.repeat(5000)}`)).status).toBe(413);
    const refused = await WebrtcPeer.call(token, {
      alter: (offer) =>
        offer
          .replace('PCMU/8000', 'EVRC/8000')
          .replace(/ 0 101/, ' 97 101')
          .replace('rtpmap:0', 'rtpmap:97'),
    });
    refused.peer.close();
    expect(refused.response.status).toBe(422);
    expect(refused.response.headers.get('access-control-allow-origin')).toBe('*');
    const preflight = await fetch(token.url, { method: 'OPTIONS', headers: { origin: 'https://shop.example' } });
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'Authorization, Content-Type, If-Match',
    ]);
    expect((await fetch(token.url, { headers: { authorization: `Bearer ${token.token}` } })).headers.get('allow')).toBe(
      'OPTIONS, POST',
    );
    expect(await metric('sessions')).toBe(sessions);
  });

  test('a token has ten live Sessions at most, and another token does not reach them', async () => {
    const token = await newToken();
    const calls: WebrtcPeer[] = [];
    for (let call = 0; call < 10; call++) calls.push(await ring(token));
    const eleventh = await WebrtcPeer.call(token);
    eleventh.peer.close();
    expect([409, 429]).toContain(eleventh.response.status);
    const [first] = calls;
    const location = first?.location ?? token;
    expect((await whip({ ...location, token: (await newToken()).token }, 'DELETE')).status).toBe(404);
    const trickle = 'a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n';
    expect((await whip(location, 'PATCH', trickle, FRAGMENT)).status).toBe(428);
    expect((await whip(location, 'PATCH', trickle, { ...FRAGMENT, 'if-match': '"other"' })).status).toBe(412);
    const restarted = await whip(location, 'PATCH', trickle, { ...FRAGMENT, 'if-match': '*' });
    expect([restarted.status, restarted.headers.get('content-type')]).toEqual([200, FRAGMENT['content-type']]);
    const fragment = await restarted.text();
    expect(fragment).toContain('a=ice-ufrag:');
    const repeated = await whip(location, 'PATCH', trickle, { ...FRAGMENT, 'if-match': '*' });
    expect([repeated.status, repeated.headers.get('etag')]).toEqual([200, restarted.headers.get('etag')]);
    expect(await repeated.text()).toBe(fragment);
    for (const call of calls) await call.hangUp();
    await receiver.event('session.ended', first?.sessionUuid);
  });

  test('is hung up at its location also when the platform was killed meanwhile', async () => {
    const peer = await ring(await newToken());
    await receiver.event('session.created', peer.sessionUuid);
    await platform.kill();
    await platform.start();
    const { pathname } = new URL(peer.location.url);
    const location = { ...peer.location, url: `${platform.url}${pathname}` };
    expect((await whip(location, 'DELETE')).status).toBe(200);
    expect((await receiver.event('session.ended', peer.sessionUuid)).body).toMatchObject({
      answered: false,
      duration_seconds: 0,
    });
    expect((await whip(location, 'DELETE')).status).toBe(404);
  }, 60_000);
});

/** A-law of a mu-law octet, close enough for a tone. */
function alawOf(octet: number): number {
  const code = ~octet & 0xff;
  const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84;
  const value = magnitude >> 4;
  const exponent = value < 32 ? 0 : Math.floor(Math.log2(value)) - 4;
  const mantissa = exponent === 0 ? (value >> 1) & 15 : (value >> exponent) & 15;
  return ((code & 0x80 ? 0 : 0x80) | (exponent << 4) | mantissa) ^ 0x55;
}
