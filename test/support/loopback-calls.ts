/**
 * A platform on which one application calls the number of another over a loopback trunk: the caller's side is driven by
 * the test, the called side is what is tried. Files of `keys-123#.wav` are there to be played as keys.
 */
import { keysWav } from './keypad.ts';
import { type Credentials, Platform } from './platform.ts';
import { Receiver } from './receiver.ts';
import { toneWav } from './rtp-peer.ts';

export const CALLER = '+15550001';
export const CALLED = '+15550002';

export class LoopbackCalls {
  readonly platform: Platform;
  readonly caller: Credentials;
  readonly called: Credentials;
  /** Hears the webhooks of the caller, and of the called one until that has a URL of its own. */
  readonly receiver: Receiver;
  readonly #files = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      const keys = /keys-(\d+)\.wav$/.exec(request.url)?.[1];
      return new Response(keys === undefined ? toneWav(700, 0.5) : keysWav(keys), { headers: { 'content-type': 'audio/wav' } });
    },
  });

  private constructor(platform: Platform, caller: Credentials, called: Credentials, receiver: Receiver) {
    this.platform = platform;
    this.caller = caller;
    this.called = called;
    this.receiver = receiver;
  }

  static async start(environment: Readonly<Record<string, string>> = {}): Promise<LoopbackCalls> {
    const receiver = new Receiver();
    const platform = await Platform.start(environment);
    const caller = await platform.application(receiver.url, CALLER);
    const called = await platform.application(receiver.url, CALLED);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    return new LoopbackCalls(platform, caller, called, receiver);
  }

  /** Places a call; resolves with the caller's Session once it is answered. */
  async dial(): Promise<string> {
    const terms = { from: CALLER, to: CALLED, ring_timeout_sec: 10 };
    const made = await this.platform.api(this.caller, 'POST', '/v1/sessions:dial', terms);
    if (made.status !== 202) throw new Error(`the dial was answered ${made.status}: ${JSON.stringify(made.body)}`);
    const session = String(made.body.session_uuid);
    await this.receiver.event('session.answered', session);
    return session;
  }

  /** The URL of a file that holds these keys, as tones. */
  keys(digits: string): string {
    return `http://127.0.0.1:${this.#files.port}/keys-${digits}.wav`;
  }

  /** The URL of half a second of a tone that is no key: a voice, to a Room. */
  get voice(): string {
    return `http://127.0.0.1:${this.#files.port}/voice.wav`;
  }

  /** Presses keys on the caller's side. */
  press(session: string, digits: string): ReturnType<Platform['api']> {
    return this.platform.api(this.caller, 'POST', `/v1/sessions/${session}/playback/play`, {
      type: 'files',
      urls: [this.keys(digits)],
    });
  }

  async stop(): Promise<void> {
    await this.platform.stop();
    await this.receiver.stop();
    await this.#files.stop(true);
  }
}
