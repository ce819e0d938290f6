/** A media worker that is lost under calls that no media timeout watches. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { AUDIO, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

describe('a media worker that is lost', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();

  beforeAll(async () => {
    const preload = join(import.meta.dir, '../support/loses-worker.ts');
    platform = await Platform.start({ MEDIA_WORKERS: '1', BUN_OPTIONS: `--preload=${preload}` });
    app = await platform.application(receiver.url, '+15550002');
    peer = await RawPeer.carrierOf(platform);
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    peer?.close();
  });

  const created = () => receiver.events.filter(({ event }) => event === 'session.created');

  /** A call of the peer that rings here. */
  async function ringing(id: string, ...attributes: string[]): Promise<string> {
    const before = created().length;
    peer.send(peer.request('INVITE', { id, body: sdp(AUDIO, ...attributes) }));
    await receiver.until(() => created().length > before, 'another session.created');
    return String(created().at(-1)?.body.session_uuid);
  }

  async function answered(id: string, ...attributes: string[]): Promise<string> {
    const sessionUuid = await ringing(id, ...attributes);
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    const ok = await peer.until(/^SIP\/2.0 200/);
    peer.send(peer.request('ACK', { id, to: field(ok, 'To') }));
    await receiver.event('session.answered', sessionUuid);
    return sessionUuid;
  }

  test('ends a call that is held, one that is dialled with early media and one that is answered, and takes calls again by itself', async () => {
    const held = await answered('held', 'a=inactive');
    await receiver.event('session.held', held);
    const spoken = await answered('spoken');
    const order = { from: '+15550002', to: '+15550100', ring_timeout_sec: 300 };
    const { body } = await platform.api(app, 'POST', '/v1/sessions:dial', order);
    const early = String(body.session_uuid);
    const invite = await peer.until(/^INVITE /);
    peer.respond(invite, '183 Session Progress', { body: sdp() });
    await receiver.event('session.early_media_started', early);

    process.kill(platform.pid, 'SIGUSR2');
    for (const [sessionUuid, wasAnswered] of [
      [held, true],
      [spoken, true],
      [early, false],
    ] as const) {
      expect((await receiver.event('session.ended', sessionUuid, 20_000)).body).toMatchObject({
        answered: wasAnswered,
        hangup_cause: 'timeout',
        hangup_by: 'system',
      });
    }
    peer.respond(await peer.until(/^CANCEL /), '200 OK');
    await receiver.until(() => receiver.count('session.ended') === 3, 'the ends');
    while ((await fetch(`${platform.url}/readyz`)).status !== 200) await new Promise(setImmediate);
    const again = await answered('again');
    await platform.api(app, 'DELETE', `/v1/sessions/${again}`);
    expect((await receiver.event('session.ended', again)).body).toMatchObject({ answered: true, hangup_cause: 'completed' });
  }, 60_000);
});
