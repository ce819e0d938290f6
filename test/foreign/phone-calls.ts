/** A platform with one application, and calls between it and telephones. */
import { expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toneShare } from '../media/sound.ts';
import { Baresip, type BaresipOptions } from '../support/baresip.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';
const CALLEE = '+15550100';
/** The tones that a telephone and the platform say. */
const [PHONE_HZ, PLATFORM_HZ] = [440, 1000];

export class PhoneCalls {
  readonly receiver = new Receiver();
  readonly platform: Platform;
  #app: Credentials | undefined;
  #phones: Baresip[] = [];
  readonly #media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(toneWav(PLATFORM_HZ, 1.5), { headers: { 'content-type': 'audio/wav' } }),
  });

  private constructor(platform: Platform) {
    this.platform = platform;
  }

  static async open(environment: Readonly<Record<string, string>> = {}): Promise<PhoneCalls> {
    const calls = new PhoneCalls(await Platform.start({ SIP_TRACE: 'full', ...environment }));
    calls.#app = await calls.platform.application(calls.receiver.url, NUMBER);
    return calls;
  }

  async close(): Promise<void> {
    await this.hangUpPhones();
    await this.platform.stop();
    await this.receiver.stop();
    await this.#media.stop(true);
  }

  get app(): Credentials {
    if (this.#app === undefined) throw new Error('not open');
    return this.#app;
  }

  api(path: string, body: unknown = {}) {
    return this.platform.api(this.app, 'POST', path, body);
  }

  async phone(options: BaresipOptions = {}): Promise<Baresip> {
    const started = await Baresip.start({ hz: PHONE_HZ, ...options });
    this.#phones.push(started);
    return started;
  }

  async hangUpPhones(): Promise<void> {
    for (const phone of this.#phones.splice(0)) await phone.stop();
  }

  async trunk(uri: string, more: Readonly<Record<string, unknown>> = {}, name = 'carrier'): Promise<void> {
    const put = await this.platform.operator('PUT', `/trunks/${name}`, { uri, inbound_cidrs: ['127.0.0.0/8'], ...more });
    expect([put.status, put.body]).toEqual([204, {}]);
  }

  /** A telephone calls `host` and is answered. Returns the Session. */
  async callIn(from: Baresip, host = this.platform.sipUdp): Promise<string> {
    const before = this.receiver.count('session.created');
    from.events.splice(0);
    from.command('dial', `sip:${NUMBER}@${host}`);
    const created = () => this.receiver.events.filter(({ event }) => event === 'session.created');
    await Promise.race([
      this.receiver.until(() => created().length > before, 'session.created'),
      // The end of its call before may be told only now: that of this one comes after its description.
      from.eventAfter('CALL_LOCAL_SDP', 'CALL_CLOSED').then(({ param }) => {
        throw new Error(`the call was refused: ${param}`);
      }),
    ]);
    const uuid = String(created().at(-1)?.body.session_uuid);
    expect((await this.api(`/v1/sessions/${uuid}/answer`)).status).toBe(202);
    await this.receiver.event('session.answered', uuid);
    await from.event('CALL_ESTABLISHED');
    return uuid;
  }

  /** The platform calls a telephone, which answers. Returns the Session. */
  async callOut(phone: Baresip, to = CALLEE): Promise<string> {
    phone.events.splice(0);
    const dialled = await this.api('/v1/sessions:dial', { from: NUMBER, to, ring_timeout_sec: 20 });
    const uuid = String(dialled.body.session_uuid);
    const over = this.receiver.event('session.ended', uuid).then(({ body }) => {
      throw new Error(`the call ended: ${JSON.stringify(body)}`);
    });
    over.catch(() => {}); // no end is waited for once it is answered
    await Promise.race([this.receiver.event('session.answered', uuid), over]);
    return uuid;
  }

  /** Hangs up, and resolves with `session.ended` when the telephone knows it too. */
  async hangUp(uuid: string, phone: Baresip): Promise<Readonly<Record<string, unknown>>> {
    await this.platform.api(this.app, 'DELETE', `/v1/sessions/${uuid}`);
    await phone.event('CALL_CLOSED');
    return (await this.receiver.event('session.ended', uuid)).body;
  }

  /** The telephone hangs up. Resolves with `session.ended`. */
  async hangUpBy(phone: Baresip, uuid: string): Promise<Readonly<Record<string, unknown>>> {
    phone.command('hangup');
    await phone.event('CALL_CLOSED');
    return (await this.receiver.event('session.ended', uuid)).body;
  }

  /**
   * Sees that each side hears the other, and hangs up. Resolves with `session.ended`. `rate` is that of the codec; with
   * 48 kHz the telephone hears in stereo.
   */
  async hearEachOther(uuid: string, phone: Baresip, rate = 8_000): Promise<Readonly<Record<string, unknown>>> {
    const { receiver } = this;
    const recording = await this.api(`/v1/sessions/${uuid}/recordings`, { direction: 'both', channels: 'mono' });
    await receiver.event('recording.became_available', uuid);
    const play = { type: 'files', urls: [`http://127.0.0.1:${this.#media.port}/tone.wav`] };
    expect((await this.api(`/v1/sessions/${uuid}/playback/play`, play)).status).toBe(202);
    await receiver.event('playback.ended', uuid);
    const ended = await this.hangUp(uuid, phone);
    const { quality } = ended;
    expect(quality).toMatchObject({ packets_lost: 0, packets_in: expect.any(Number) });
    const wav = readFileSync(join(this.platform.dataDir, 'recordings', `${recording.body.recording_uuid}.wav`)).subarray(44);
    const recorded = Array.from({ length: Math.floor(wav.length / 2) }, (_, i) => wav.readInt16LE(2 * i));
    const heard = rate === 48_000 ? phone.heard().filter((_, at) => at % 2 === 0) : phone.heard();
    expect(best(recorded, rate, PHONE_HZ)).toBeGreaterThan(0.1);
    expect(best(recorded, rate, PHONE_HZ, PLATFORM_HZ)).toBeGreaterThan(0.97);
    expect(best(heard, rate, PLATFORM_HZ)).toBeGreaterThan(0.98);
    return ended;
  }

  /** The next report on how a call sounds, which its timeline has every ten seconds. */
  async report(uuid: string): Promise<Readonly<Record<string, unknown>>> {
    const reports = async () => {
      const { entries }: { entries: readonly Readonly<Record<string, unknown>>[] } = JSON.parse(
        await this.kept(uuid, 'timeline'),
      );
      return entries.filter(({ kind }) => kind === 'quality');
    };
    const before = (await reports()).length;
    for (let looks = 0; looks < 300; looks++) {
      const next = (await reports())[before];
      if (next !== undefined) return next;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no report on ${uuid}`);
  }

  /** What the operator may read of a call. */
  async kept(uuid: string, what: 'timeline' | 'sip.txt'): Promise<string> {
    const token = readFileSync(join(this.platform.dataDir, 'operator.token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    return await (await fetch(`${this.platform.url}/operator/v1/sessions/${uuid}/${what}`, { headers })).text();
  }
}

/** The share of these tones in the tenth of a second that has most of them. */
function best(samples: readonly number[], rate: number, ...tones: readonly number[]): number {
  const tenth = rate / 10;
  let most = 0;
  for (let at = 0; at + tenth <= samples.length; at += tenth) {
    const part = samples.slice(at, at + tenth);
    const share = tones.reduce((sum, hz) => sum + toneShare(part, hz, rate), 0);
    if (part.some((sample) => Math.abs(sample) > 500)) most = Math.max(most, share);
  }
  return most;
}
