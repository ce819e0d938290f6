/** What comes to another node than that of its call: bodies, requests of browsers, SIP, and dials to devices. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { asUser } from '../carrier/device-peer.ts';
import { field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { patiently } from '../support/patiently.ts';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sippInstalled } from '../support/sipp.ts';
import { tokenOf, WebrtcPeer, whip } from '../support/webrtc-peer.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { eventually, natsInstalled, TestCluster, type TestNode } from './harness.ts';
import { RawCaller } from './raw-caller.ts';

const NUMBER = '+15550002';
const PASSWORD = 'open-sesame';

describe.skipIf(!natsInstalled || !sippInstalled)('through another node', () => {
  let cluster: TestCluster;
  let app: Credentials;
  let sessionUuid = '';
  const receiver = new Receiver();
  const running: LiveCalls[] = [];

  const node = (at: number): TestNode => cluster.node(at);
  const portOf = (at: number) => Number(node(at).platform.sipUdp.split(':')[1]);
  const post = (at: number, path: string, body: unknown) =>
    patiently(() => node(at).platform.api(app, 'POST', `/v1/sessions/${sessionUuid}${path}`, body));
  /** The same URL at another node. */
  const at = (n: number, url: unknown): string => {
    const { pathname, search } = new URL(String(url));
    return node(n).platform.url + pathname + search;
  };
  /** Sends a body, and again where the other node was too busy to be reached: nothing was taken of it then. */
  const push = async (url: string, body: () => BodyInit): Promise<Response> => {
    for (;;) {
      const response = await fetch(url, { method: 'POST', headers: pushHeaders(), body: body() });
      if (response.status !== 503 || !(await response.clone().text()).includes('cannot be reached')) return response;
    }
  };
  const pushHeaders = () => ({
    authorization: `Bearer ${app.appUuid}:${app.apiKey}`,
    'content-type': 'application/octet-stream',
  });
  const bytesOf = async (url: string, init?: RequestInit) => {
    const response = await fetch(url, init);
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
  };

  beforeAll(async () => {
    cluster = await TestCluster.start(2, { WEBHOOK_RETRY_SCALE: '0.1', NODE_BURIAL_SEC: '8' });
    app = await cluster.application(receiver, NUMBER);
    const calls = await callsTo(node(0).platform, app, receiver, 1);
    running.push(calls);
    sessionUuid = calls.sessions[0] ?? '';
  }, 60_000);

  afterAll(async () => {
    for (const { sipp } of running) sipp.stop();
    await cluster?.stop();
    await receiver.stop();
  });

  test('a push is taken at the pace at which it is heard, once', async () => {
    const seconds = 5;
    const { body } = await post(1, '/playback/play', {
      type: 'push',
      media_format: { encoding: 'pcm_s16le', sample_rate: 8000 },
    });
    const { url } = JSON.parse(JSON.stringify(body)).ingest;
    const started = performance.now();
    const slice = new Uint8Array(1600);
    const audio = () => {
      let sent = 0;
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          if (sent >= seconds * 10) controller.close();
          else controller.enqueue(slice);
          sent += 1;
        },
      });
    };
    const taken = await push(at(1, url), audio);
    expect([taken.status, await taken.json()]).toEqual([
      200,
      { operation_uuid: body.operation_uuid, bytes_received: seconds * 16_000 },
    ]);
    // Two seconds are kept ahead, so the last byte is taken that long before it is heard, and no sooner.
    expect(performance.now() - started).toBeGreaterThan((seconds - 3.5) * 1000);
    const again = await push(at(1, url), () => slice);
    expect(again.status).toBe(409);
    const ended = await receiver.event('playback.ended', sessionUuid);
    expect(ended.body).toMatchObject({ operation_uuid: body.operation_uuid });
    expect((await push(at(1, url).replace(/[0-9a-f]{4}$/, '0000'), () => slice)).status).toBe(404);
  }, 30_000);

  test('a browser trickles, restarts ICE and hangs up, with a token of that node, as at the node of its call', async () => {
    const made = tokenOf(await node(0).platform.api(app, 'POST', '/v1/webrtc-tokens', {}));
    const { peer, response } = await WebrtcPeer.call({ ...made, url: at(1, made.url) });
    expect(response.status).toBe(201);
    const uuid = peer.sessionUuid;
    expect((await node(0).platform.api(app, 'POST', `/v1/sessions/${uuid}/answer`, {})).status).toBe(202);
    await peer.until(() => peer.packets.length > 5, 'audio');
    const away = { ...made, url: at(0, peer.location.url) };
    const ask = (ufrag: string, ifMatch: Record<string, string>) =>
      whip(
        away,
        'PATCH',
        `a=ice-ufrag:${ufrag}\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n`,
        { 'content-type': 'application/trickle-ice-sdpfrag', ...ifMatch },
      );
    expect((await ask('abcd', {})).status).toBe(428);
    expect((await ask('abcd', { 'if-match': '"other"' })).status).toBe(412);
    const restarted = await ask('abcd', { 'if-match': String(response.headers.get('etag')) });
    expect([restarted.status, await restarted.text()]).toEqual([200, expect.stringContaining('a=ice-ufrag:')]);
    const etag = String(restarted.headers.get('etag'));
    expect(etag).not.toBe(response.headers.get('etag'));
    // The same restart again changes nothing.
    expect((await ask('abcd', { 'if-match': etag })).status).toBe(204);

    node(0).nats.set('blackhole');
    const lost = await ask('abcd', { 'if-match': etag });
    node(0).nats.set('pass');
    expect([lost.status, lost.headers.get('retry-after')]).toEqual([503, '2']);
    const another = tokenOf(await node(0).platform.api(app, 'POST', '/v1/webrtc-tokens', {}));
    await eventually(async () => (await whip({ ...away, token: another.token }, 'DELETE')).status === 404, 'NATS to be back');
    expect((await whip(away, 'DELETE')).status).toBe(200);
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true, hangup_by: 'caller' });
    expect((await whip(away, 'DELETE')).status).toBe(404);
    peer.close();
  }, 30_000);

  test('a SIP request within a call is worked on by the node that has it, and answered by the one that it came to; of no call it is 481', async () => {
    const before = new Set(receiver.events);
    receiver.misbehave = ({ event, session_uuid }) => {
      if (event === 'session.created')
        void patiently(() => node(1).platform.api(app, 'POST', `/v1/sessions/${session_uuid}/answer`));
      return undefined;
    };
    const caller = await RawCaller.call(node(0).platform.sipUdp, NUMBER, 440);
    const answered = () => receiver.events.find((each) => each.event === 'session.answered' && !before.has(each));
    await receiver.until(() => answered() !== undefined, 'the answer');
    receiver.misbehave = undefined;
    const uuid = String(answered()?.body.session_uuid);
    expect(await caller.ask('OPTIONS', portOf(1))).toBe(200);
    expect(await caller.ask('OPTIONS', portOf(1), '<sip:x@x>;tag=nobody')).toBe(481);
    expect(await caller.ask('BYE', portOf(1))).toBe(200);
    const ended = await receiver.event('session.ended', uuid);
    expect(ended.body).toMatchObject({ hangup_by: 'caller', hangup_cause: 'completed' });
    expect(await caller.ask('BYE', portOf(0))).toBe(481);
    caller.close();
  }, 30_000);

  test.each([
    ['over TCP', 'tcp', '127.0.0.9'],
    ['behind NAT', 'udp', '192.168.1.4'],
  ] as const)('a device %s is called by the node that it registered with', async (name, transport, contactHost) => {
    const username = `device-${transport}`;
    const { platform } = node(0);
    const put = await platform.operator('PUT', `/apps/${app.appUuid}/devices/${username}`, { password: PASSWORD });
    expect(put.status).toBe(204);
    const address = transport === 'tcp' ? platform.sipTcp : platform.sipUdp;
    const peer = await RawPeer[transport](Number(address.split(':')[1]), '127.0.0.9');
    const contact = `<sip:${username}@${contactHost}:${peer.port};transport=${transport}>`;
    const registered = await asUser(peer, 'REGISTER', username, { contact, password: PASSWORD });
    expect([name, registered.response]).toEqual([name, expect.stringMatching(/^SIP\/2.0 200/)]);
    const order = { from: NUMBER, to: `sip:${username}` };
    const byApplication = (at: number) =>
      node(at).platform.api(app, 'POST', '/v1/sessions:dial', { ...order, ring_timeout_sec: 10 });
    const byOperator = (at: number) => node(at).platform.operator('POST', `/apps/${app.appUuid}/dial`, order);
    for (const dial of [() => byApplication(1), () => byApplication(0), () => byOperator(1), () => byOperator(0)]) {
      const dialled = await dial();
      expect(dialled.status).toBe(202);
      const uuid = String(dialled.body.session_uuid);
      const invite = await peer.until(/^INVITE/);
      // It would hear UDP from anywhere on this machine, a router would not let it through.
      expect(field(invite, 'Contact')).toContain(`:${address.split(':')[1]}`);
      peer.respond(invite, '200 OK', { body: sdp() });
      await receiver.event('session.answered', uuid);
      const hangup = () => node(1).platform.operator('POST', `/apps/${app.appUuid}/sessions/${uuid}/hangup`);
      // A node that did not answer in time may have hung up all the same; the next answer says that the call is over.
      expect([202, 404, 409]).toContain((await patiently(hangup)).status);
      peer.respond(await peer.until(/^BYE/), '200 OK');
      await receiver.event('session.ended', uuid);
    }
    peer.close();
  });

  test('devices that one node sets up, changes and takes down are so at the other at once', async () => {
    const began = performance.now();
    const peer = await RawPeer.udp(portOf(1));
    const path = `/apps/${app.appUuid}/devices/roaming`;
    // A node that knows no device at all challenges nobody.
    const isChallenged = async () => {
      peer.send(peer.request('REGISTER', { id: crypto.randomUUID(), from: '<sip:x@x>;tag=x', to: '<sip:x@x>' }));
      return (await peer.until(/^SIP\/2.0 [2-6]/)).startsWith('SIP/2.0 401');
    };
    await node(0).platform.operator('PUT', `/apps/${app.appUuid}/devices/resident`, { password: PASSWORD });
    await eventually(isChallenged, 'a node that knows a device');
    const registers = async (password: string) => {
      const contact = `<sip:roaming@127.0.0.1:${peer.port}>`;
      const { response } = await asUser(peer, 'REGISTER', 'roaming', { contact, password });
      return /^SIP\/2.0 200/.test(response);
    };
    for (const password of ['one', 'two', 'three', 'four', 'five']) {
      expect((await node(0).platform.operator('PUT', path, { password })).status).toBe(204);
      await eventually(() => registers(password), `a registration with the password ${password}`);
      expect((await node(0).platform.operator('DELETE', path)).status).toBe(204);
      await eventually(async () => !(await registers(password)), 'a registration that is refused');
    }
    peer.close();
    // Each of the ten changes would wait for the look that a node takes every five seconds, if nothing were told.
    expect(performance.now() - began).toBeLessThan(15_000);
  }, 60_000);

  /** An answered call of a far end that is written by hand, on one trunk with all others. */
  async function rawCall(at: number, id: string) {
    const peer = await RawPeer.udp(portOf(at));
    peer.send(peer.request('INVITE', { id, body: sdp() }));
    const created = () =>
      receiver.events.find(
        ({ event, body }) => event === 'session.created' && JSON.stringify(body).includes(`"call_id":"${id}"`),
      );
    await receiver.until(() => created() !== undefined, 'the call');
    const uuid = String(created()?.body.session_uuid);
    expect((await patiently(() => node(at).platform.api(app, 'POST', `/v1/sessions/${uuid}/answer`))).status).toBe(202);
    const to = field(await peer.until(/^SIP\/2.0 200[\s\S]* INVITE\r/), 'To');
    peer.send(peer.request('ACK', { id, to }));
    await receiver.event('session.answered', uuid);
    const within = (method: string, cseq: number, parts = {}) => peer.request(method, { id, to, cseq, ...parts });
    const end = async (cseq: number) => {
      peer.send(within('BYE', cseq));
      await receiver.event('session.ended', uuid);
      peer.close();
    };
    return { uuid, peer, to, within, end };
  }

  test('a call is transferred to a call of another node by Replaces; while that node cannot be reached it is 503', async () => {
    const [one, two] = await Promise.all([rawCall(0, 'transferred'), rawCall(1, 'replaced')]);
    const transfer = (at: number, to_session_uuid: string) =>
      node(at).platform.api(app, 'POST', `/v1/sessions/${one.uuid}/transfer`, { to_session_uuid });
    expect((await transfer(0, crypto.randomUUID())).status).toBe(404);
    node(1).nats.set('blackhole');
    const away = await transfer(0, two.uuid);
    node(1).nats.set('pass');
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '2']);

    // Through the node of the other call, too: the command is carried out where the call is that it is about.
    let ordered = await transfer(1, two.uuid);
    await eventually(async () => {
      if (ordered.status !== 202) ordered = await transfer(1, two.uuid);
      return ordered.status === 202;
    }, 'the transfer');
    const refer = await one.peer.until(/^REFER /);
    const [, ourTag] = /tag=([^;\r]+)/.exec(two.to) ?? [];
    expect(decodeURIComponent(field(refer, 'Refer-To'))).toBe(
      `<sip:x@127.0.0.1:${two.peer.port}?Replaces=replaced;to-tag=replaced;from-tag=${ourTag}>`,
    );
    one.peer.respond(refer, '202 Accepted');
    const fields = 'Event: refer\r\nSubscription-State: terminated;reason=noresource\r\n';
    one.peer.send(one.within('NOTIFY', 2, { fields, type: 'message/sipfrag', body: 'SIP/2.0 200 OK\r\n' }));
    const completed = await receiver.event('session.transfer.completed', one.uuid);
    expect(completed.body.operation_uuid).toBe(ordered.body.operation_uuid);
    await Promise.all([one.end(3), two.end(2)]);
  }, 30_000);

  test('a far end that asks to connect its calls is told with the Session of the other one, on another node', async () => {
    const [one, two] = await Promise.all([rawCall(0, 'asking'), rawCall(1, 'consulted')]);
    const later = await rawCall(0, 'asking-later');
    const [, ourTag] = /tag=([^;\r]+)/.exec(two.to) ?? [];
    const asked = async ({ uuid, within, peer }: typeof one) => {
      const told = () => receiver.of(uuid).filter(({ event }) => event === 'session.transfer.requested');
      const before = told().length;
      const replaces = encodeURIComponent(`consulted;from-tag=consulted;to-tag=${ourTag}`);
      peer.send(within('REFER', 2, { fields: `Refer-To: <sip:x@x?Replaces=${replaces}>\r\n` }));
      await receiver.until(() => told().length > before, 'session.transfer.requested');
      return told().at(-1)?.body.to_session_uuid;
    };
    expect(await asked(one)).toBe(two.uuid);
    // The event does not wait for a node that cannot be reached.
    node(1).nats.set('blackhole');
    const unknown = await asked(later);
    node(1).nats.set('pass');
    expect(unknown).toBeUndefined();
    await Promise.all([one.end(3), two.end(2), later.end(3)]);
  }, 30_000);

  test('a recording is heard while it grows, and fetched when it is finished, with ranges', async () => {
    const made = await post(1, '/recordings', { direction: 'both', channels: 'mono', include_gaps: true });
    expect(made.status).toBe(202);
    const { recording_uuid: recordingUuid } = made.body;
    await post(1, '/playback/play', { type: 'silence' });
    const available = await receiver.event('recording.became_available', sessionUuid);
    const pull = available.body.pull_url ?? available.body.media_url;
    const growing = bytesOf(at(1, pull));
    await Bun.sleep(1_000);
    await post(1, `/recordings/${recordingUuid}/stop`, {});
    await receiver.event('recording.ended', sessionUuid);
    const heard = await growing;
    expect(heard.status).toBe(200);
    const own = await bytesOf(at(0, pull));
    const other = await bytesOf(at(1, pull));
    expect([own.status, other.status]).toEqual([200, 200]);
    expect(own.bytes.length).toBeGreaterThan(8_000);
    expect(other.bytes.equals(own.bytes)).toBe(true);
    expect(other.headers.get('etag')).toBe(own.headers.get('etag'));
    // The sizes in the header are told at the end only.
    expect(heard.bytes.subarray(44).equals(own.bytes.subarray(44))).toBe(true);
    const part = { headers: { range: 'bytes=100-199' } };
    const direct = await bytesOf(at(0, pull), part);
    let ranged = await bytesOf(at(1, pull), part);
    // A node that is too busy to answer the other in time is 503 with Retry-After, and asked again.
    await eventually(async () => {
      if (ranged.status === 503) ranged = await bytesOf(at(1, pull), part);
      return ranged.status !== 503;
    }, 'the other node to answer in time');
    expect([ranged.status, ranged.headers.get('content-range')]).toEqual([206, direct.headers.get('content-range')]);
    expect(ranged.bytes.equals(direct.bytes)).toBe(true);
    expect((await bytesOf(`${at(1, pull)}0`)).status).toBe(403);
    expect((await bytesOf(`${node(1).platform.url}/internal/v1/stream`)).status).toBe(404);

    // Its node is killed: the recording is not lost, and away until its DATA_DIR is back.
    await node(0).platform.kill();
    running[0]?.sipp.stop();
    await eventually(async () => (await bytesOf(at(1, pull))).status === 503, 'the node to be missed');
    await node(0).platform.start();
    await eventually(async () => (await bytesOf(at(1, pull))).status === 200, 'the recording to be back');
    expect((await bytesOf(at(1, pull))).bytes.equals(own.bytes)).toBe(true);
  }, 60_000);
});
