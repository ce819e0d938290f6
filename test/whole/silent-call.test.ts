/** Far ends that vanish without a word, on the whole platform with short time scales. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { AUDIO, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const ORPHAN_SEC = 4;

describe('a far end that is gone without a word', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start({ ORPHAN_TIMEOUT_SEC: String(ORPHAN_SEC) });
    app = await platform.application(receiver.url, '+15550002');
  }, 60_000);
  beforeEach(async () => {
    peer = await RawPeer.carrierOf(platform);
  });
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  /** A call from the peer that is answered with its audio held. */
  async function heldCall(id: string): Promise<string> {
    const parts = { id, body: sdp(AUDIO, 'a=inactive') };
    const before = receiver.events.filter(({ event }) => event === 'session.created').length;
    peer.send(peer.request('INVITE', parts));
    await peer.until(/^SIP\/2.0 180/);
    const created = () => receiver.events.filter(({ event }) => event === 'session.created');
    await receiver.until(() => created().length > before, 'another session.created');
    const sessionUuid = String(created().at(-1)?.body.session_uuid);
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    const ok = await peer.until(/^SIP\/2.0 200/);
    peer.send(peer.request('ACK', { id, to: field(ok, 'To') }));
    await receiver.event('session.held', sessionUuid);
    return sessionUuid;
  }
  const ended = (sessionUuid: string) => receiver.event('session.ended', sessionUuid, 30_000);
  const dial = async (ringSec: number) => {
    const order = { from: '+15550002', to: '+15550100', ring_timeout_sec: ringSec };
    const { body } = await platform.api(app, 'POST', '/v1/sessions:dial', order);
    return { sessionUuid: String(body.session_uuid), invite: await peer.until(/^INVITE /) };
  };

  test('while it holds the call: the call ends as never answered, by the system, and gets a BYE', async () => {
    const sessionUuid = await heldCall('held');
    await peer.until(/^OPTIONS /);
    expect((await ended(sessionUuid)).body).toMatchObject({
      answered: false,
      duration_seconds: 0,
      hangup_cause: 'timeout',
      hangup_by: 'system',
    });
    await peer.until(/^BYE /);
  }, 40_000);

  test('but answers each OPTIONS, keeps its held call; one that has forgotten it ends it with its duration', async () => {
    const sessionUuid = await heldCall('alive');
    const began = performance.now();
    for (let probes = 0; probes < 4; probes++) peer.respond(await peer.until(/^OPTIONS /), '501 Not Implemented');
    expect(performance.now() - began).toBeGreaterThan(ORPHAN_SEC * 1000);
    peer.respond(await peer.until(/^OPTIONS /), '481 Call/Transaction Does Not Exist');
    const { body } = await ended(sessionUuid);
    expect(body).toMatchObject({ answered: true, hangup_cause: 'timeout', hangup_by: 'system' });
    expect(Number(body.duration_seconds)).toBeGreaterThanOrEqual(2 * ORPHAN_SEC);
    await peer.until(/^BYE /);
  }, 60_000);

  test('in early media, without packets or messages: the call is cancelled and ends as timeout', async () => {
    const { sessionUuid, invite } = await dial(60);
    peer.respond(invite, '183 Session Progress', { body: sdp() });
    const cancel = await peer.until(/^CANCEL /, 15_000);
    peer.respond(cancel, '200 OK');
    peer.respond(invite, '487 Request Terminated');
    expect((await ended(sessionUuid)).body).toMatchObject({ answered: false, hangup_cause: 'timeout', hangup_by: 'system' });
  }, 40_000);

  test('while it rings, and does not answer the CANCEL either: the call ends at its ring timeout', async () => {
    const { sessionUuid, invite } = await dial(2);
    peer.respond(invite, '180 Ringing');
    await peer.until(/^CANCEL /);
    expect((await ended(sessionUuid)).body).toMatchObject({ answered: false, hangup_cause: 'timeout', hangup_by: 'system' });
  }, 40_000);
});
