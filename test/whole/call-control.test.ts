/** Hold and transfer through the whole platform: HTTP in, SIP out, events back. The far end is written by hand. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AUDIO, bodyOf, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { createRoom, hearUntil, join, level } from '../support/room-call.ts';
import { RtpPeer, toneWav } from '../support/rtp-peer.ts';

describe('call control', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();
  const api = (path: string, body?: unknown) => platform.api(app, 'POST', `/v1/sessions/${path}`, body);

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, '+15550002');
    peer = await RawPeer.carrierOf(platform);
  }, 60_000);
  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
  });

  /** What `session.created` says of the call with that Call-ID, which has come or comes. */
  async function created(id: string): Promise<Readonly<Record<string, unknown>>> {
    const find = () =>
      receiver.events.find(({ event, body }) => event === 'session.created' && Object(body.sip).call_id === id)?.body;
    await receiver.until(() => find() !== undefined, `session.created of ${id}`);
    return find() ?? {};
  }

  async function call(id: string, audio = AUDIO) {
    peer.send(peer.request('INVITE', { id, body: sdp(audio), fields: 'X-Ref: 7\r\n' }));
    const { session_uuid, sip } = await created(id);
    const uuid = String(session_uuid);
    expect(sip).toMatchObject({ call_id: id, codec: 'PCMU', headers: { 'X-Ref': '7' } });
    await api(`${uuid}/answer`);
    const to = field(await peer.until(/^SIP\/2.0 200[\s\S]* INVITE\r/), 'To');
    peer.send(peer.request('ACK', { id, to }));
    await receiver.event('session.answered', uuid);
    return { uuid, within: (method: string, cseq: number, parts = {}) => peer.request(method, { id, to, cseq, ...parts }) };
  }

  test('A call is held and resumed by the application, with an event for each', async () => {
    const { uuid } = await call('hold');
    expect((await api(`${uuid}/unhold`)).status).toBe(409);
    expect((await api(`${uuid}/hold`)).status).toBe(202);
    expect((await api(`${uuid}/hold`)).status).toBe(409);
    const held = await peer.until(/^INVITE sip:x@/);
    expect(bodyOf(held)).toContain('a=sendonly');
    peer.respond(held, '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
    expect((await receiver.event('session.held', uuid)).body).toMatchObject({ by: 'application' });
    expect((await api(`${uuid}/unhold`)).status).toBe(202);
    peer.respond(await peer.until(/^INVITE sip:x@[\s\S]*a=sendrecv/), '200 OK', { body: sdp() });
    expect((await receiver.event('session.resumed', uuid)).body).toMatchObject({ by: 'application' });
    await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
    peer.respond(await peer.until(/^BYE /), '200 OK');
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ quality: { codec: 'PCMU', packets_in: 0 } });
  }, 40_000);

  test('A caller on hold hears nothing of its Room, only what is played to it, and the Room again afterwards', async () => {
    const tone = (hz: number) => new Response(toneWav(hz, 1));
    const media = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: ({ url }) => tone(url.endsWith('/held') ? 900 : 600) });
    const play = async (path: string, file: string) => {
      const body = { type: 'files', urls: [`${media.url}${file}`], loop: 0 };
      expect((await platform.api(app, 'POST', path, body)).status).toBe(202);
    };
    const ear = await RtpPeer.open();
    const stage = { platform, receiver, app };
    const { uuid } = await call('room-hold', `m=audio ${ear.port} RTP/AVP 0`);
    const roomId = await createRoom(stage);
    await join(stage, roomId, uuid);
    await play(`/api/v1/rooms/${roomId}/playback/play`, 'room');
    const hears = (expected: readonly number[]) =>
      hearUntil({ ear }, (pcm) => [600, 900].every((hz) => level(pcm, hz) > -25 === expected.includes(hz)), `${expected}`);
    await hears([600]);

    expect((await api(`${uuid}/hold`)).status).toBe(202);
    peer.respond(await peer.until(/^INVITE sip:x@[\s\S]*a=sendonly/), '200 OK', {
      body: sdp(`m=audio ${ear.port} RTP/AVP 0`, 'a=recvonly'),
    });
    await receiver.event('session.held', uuid);
    await hears([]);
    await play(`/v1/sessions/${uuid}/playback/play`, 'held');
    await hears([900]);
    expect((await api(`${uuid}/playback/stop`)).status).toBe(202);

    expect((await api(`${uuid}/unhold`)).status).toBe(202);
    peer.respond(await peer.until(/^INVITE sip:x@[\s\S]*a=sendrecv/), '200 OK', { body: sdp(`m=audio ${ear.port} RTP/AVP 0`) });
    await receiver.event('session.resumed', uuid);
    await hears([600]);
    await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
    peer.respond(await peer.until(/^BYE /), '200 OK');
    await receiver.event('session.ended', uuid);
    await platform.api(app, 'DELETE', `/api/v1/rooms/${roomId}`);
    ear.close();
    await media.stop(true);
  }, 60_000);

  test('A call is transferred to a number; the far end hangs up, and session.ended follows', async () => {
    const { uuid, within } = await call('blind');
    const { status, body } = await api(`${uuid}/transfer`, { to: '+15550111' });
    expect(status).toBe(202);
    expect((await api(`${uuid}/transfer`, { to: '+15550111' })).status).toBe(409);
    const refer = await peer.until(/^REFER /);
    expect(field(refer, 'Refer-To')).toStartWith('<sip:+15550111@127.0.0.1');
    peer.respond(refer, '202 Accepted');
    const fields = 'Event: refer\r\nSubscription-State: terminated;reason=noresource\r\n';
    peer.send(within('NOTIFY', 2, { fields, type: 'message/sipfrag', body: 'SIP/2.0 200 OK\r\n' }));
    const completed = await receiver.event('session.transfer.completed', uuid);
    expect(completed.body.operation_uuid).toBe(body.operation_uuid);
    peer.send(within('BYE', 3));
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ hangup_cause: 'completed', hangup_by: 'caller' });
  }, 40_000);

  test('A call is transferred to another call by Replaces; an unknown one is 404, itself 409, a bad target 400', async () => {
    const [one, two] = [await call('first'), await call('second')];
    const to = (body: object) => api(`${one.uuid}/transfer`, body);
    expect((await to({ to_session_uuid: '0b7c1111-0000-4000-8000-000000000000' })).status).toBe(404);
    expect((await to({ to_session_uuid: one.uuid })).status).toBe(409);
    for (const bad of [
      {},
      { to: '+15550111', to_session_uuid: two.uuid },
      { to: 'sip:a:secret@x.example' },
      { to: 'sip:a@x.example?Replaces=1' },
      { to: `sip:a@${'x'.repeat(300)}` },
      { to: 'tel:+15550111' },
      { to: '+15550111', timeout_sec: 4 },
    ])
      expect((await to(bad)).status).toBe(400);
    expect((await to({ to_session_uuid: two.uuid })).status).toBe(202);
    const refer = await peer.until(/^REFER /);
    expect(decodeURIComponent(field(refer, 'Refer-To'))).toContain('Replaces=second;to-tag=second;from-tag=');
    peer.respond(refer, '603 Decline');
    expect((await receiver.event('session.transfer.failed', one.uuid)).body).toMatchObject({
      sip_status: 603,
      reason: 'refused',
    });
    for (const each of [one, two]) {
      peer.send(each.within('BYE', 2));
      await receiver.event('session.ended', each.uuid);
    }
  }, 40_000);

  test('A far end that asks for a transfer is told to the application', async () => {
    const { uuid, within } = await call('asked');
    peer.send(within('REFER', 2, { fields: 'Refer-To: <sip:+15550111@x>\r\n' }));
    await peer.until(/^SIP\/2.0 202/);
    const { body } = await receiver.event('session.transfer.requested', uuid);
    expect([body.target, 'to_session_uuid' in body]).toEqual(['sip:+15550111@x', false]);
    peer.send(within('BYE', 3));
    await receiver.event('session.ended', uuid);
  }, 40_000);

  /** Asks in a call to be connected with the far end of another one. Resolves with what the application is told. */
  async function ask(one: { readonly uuid: string; readonly refer: (referTo: string) => void }, referTo: string) {
    const asked = () => receiver.of(one.uuid).filter(({ event }) => event === 'session.transfer.requested');
    const before = asked().length;
    one.refer(referTo);
    await receiver.until(() => asked().length > before, 'session.transfer.requested');
    expect(asked().at(-1)?.body.target).toBe(referTo);
    return asked().at(-1)?.body.to_session_uuid;
  }

  test('A far end with two calls that asks to connect them is told with the Session of the other one', async () => {
    const [one, two] = [await call('customer'), await call('consulted')];
    const tagOf = (each: typeof one) => /tag=([^;\r]*)/.exec(field(each.within('OPTIONS', 1), 'To'))?.[1] ?? '';
    const referTo = `sip:+15550111@x?Replaces=${encodeURIComponent(`consulted;to-tag=${tagOf(two)};from-tag=consulted`)}`;
    const refer = (to: string) => peer.send(one.within('REFER', 2, { fields: `Refer-To: <${to}>\r\n` }));
    expect(await ask({ uuid: one.uuid, refer }, referTo)).toBe(two.uuid);
    peer.respond(await peer.until(/^NOTIFY [\s\S]*100 Trying/), '200 OK');
    // The application has connected the others: the two calls of this far end are over, and it is told that it is done.
    for (const each of [one, two]) expect((await platform.api(app, 'DELETE', `/v1/sessions/${each.uuid}`)).status).toBe(202);
    const done = await peer.until(/^NOTIFY /);
    expect([field(done, 'Subscription-State'), bodyOf(done)]).toEqual(['terminated;reason=noresource', 'SIP/2.0 200 OK\r\n']);
    peer.respond(done, '200 OK');
    for (const id of ['customer', 'consulted'])
      peer.respond(await peer.until(new RegExp(`^BYE [\\s\\S]*Call-ID: ${id}\r`)), '200 OK');
    for (const each of [one, two]) await receiver.event('session.ended', each.uuid);
  }, 40_000);

  test('No Session is told where the call to be connected is its own, unknown, over or of another application', async () => {
    const others = new Receiver();
    const other = await platform.application(others.url, '+15550003');
    platform.answerEveryCall(other, others);
    const foreign = peer.request('INVITE', { id: 'foreign', number: '+15550003', body: sdp() });
    peer.send(foreign);
    const foreignTo = field(await peer.until(/^SIP\/2.0 200[\s\S]* INVITE\r/), 'To');
    peer.send(peer.request('ACK', { id: 'foreign', number: '+15550003', to: foreignTo }));
    const { body: itself } = await others.event('session.answered');
    // One that rings: its dialog is known by the 180.
    const ringing = peer.request('INVITE', { id: 'ringing', body: sdp() });
    peer.send(ringing);
    const ringingTo = field(await peer.until(/^SIP\/2.0 180[\s\S]*Call-ID: ringing\r/), 'To');
    const { session_uuid: rings } = await created('ringing');
    const tagOf = (to: string) => /tag=([^;\r]*)/.exec(to)?.[1] ?? '';
    const naming = (id: string, to: string, more = '') =>
      `sip:x@x?Replaces=${encodeURIComponent(`${id};from-tag=${id};to-tag=${tagOf(to)}${more}`)}`;
    const [up, over] = [await call('up'), await call('over')];
    const ofTag = (each: typeof up) => field(each.within('OPTIONS', 1), 'To');
    peer.send(over.within('BYE', 2));
    await receiver.event('session.ended', over.uuid);
    const told: unknown[] = [];
    const wanted = [
      naming('foreign', foreignTo),
      naming('ringing', ringingTo, ';early-only'),
      naming('ringing', ringingTo),
      naming('ringing', `${ringingTo}0`),
      'sip:x@x?Replaces=%E0%3Bto-tag%3D1%3Bfrom-tag%3D2',
      naming('up', ofTag(up), ';early-only'),
      naming('over', ofTag(over)),
      'own',
    ];
    for (const [at, uri] of wanted.entries()) {
      const one = await call(`asks${at}`);
      const referTo = uri === 'own' ? naming(`asks${at}`, ofTag(one)) : uri;
      const refer = (to: string) => peer.send(one.within('REFER', 2, { fields: `Refer-To: <${to}>\r\n` }));
      told.push(await ask({ uuid: one.uuid, refer }, referTo));
      peer.send(one.within('BYE', 3));
      await receiver.event('session.ended', one.uuid);
    }
    expect(told).toEqual([undefined, rings, rings, ...Array(5).fill(undefined)]);
    peer.send(up.within('BYE', 2));
    await receiver.event('session.ended', up.uuid);
    peer.send(
      ringing
        .replace('INVITE sip', 'CANCEL sip')
        .replace('1 INVITE', '1 CANCEL')
        .replace(/Content-Type[\s\S]*/, '\r\n'),
    );
    await receiver.event('session.ended', String(rings));
    peer.send(peer.request('BYE', { id: 'foreign', number: '+15550003', to: foreignTo, cseq: 2 }));
    await others.event('session.ended', String(itself.session_uuid));
    await others.stop();
  }, 60_000);

  test('An INVITE that has to take another call over (Replaces) is 420, and Supported does not name it', async () => {
    const Replaces = 'Replaces: nobody;to-tag=1;from-tag=2\r\n';
    peer.send(peer.request('INVITE', { id: 'pickup', body: sdp(), fields: `${Replaces}Require: replaces\r\n` }));
    expect(field(await peer.until(/^SIP\/2.0 420/), 'Unsupported')).toBe('replaces');
    peer.send(peer.request('OPTIONS', { id: 'options' }));
    expect(field(await peer.until(/^SIP\/2.0 200[\s\S]* OPTIONS\r/), 'Supported')).not.toContain('replaces');
  }, 40_000);
});
