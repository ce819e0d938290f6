/** Answered SIPp calls with an ear and a voice of ours, and Rooms to put them in. */
import type { Credentials, Platform } from './platform.ts';
import type { Receiver } from './receiver.ts';
import { decodeMulaw, RtpPeer } from './rtp-peer.ts';
import { type Sipp, sipp } from './sipp.ts';
import { Speaker } from './speaker.ts';

export interface Caller {
  readonly sessionUuid: string;
  readonly ear: RtpPeer;
  readonly speaker: Speaker;
  readonly sipp: Sipp;
}

export interface Stage {
  readonly platform: Platform;
  readonly receiver: Receiver;
  readonly app: Credentials;
}

let numbered = 0;

const placed = (platform: Platform, ear: RtpPeer, caller: string): Promise<Sipp> =>
  sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port), caller } });

/** An answered call that says a tone. Several may be placed at a time: each has a number of its own. */
export async function call({ platform, receiver, app }: Stage, hz: number): Promise<Caller> {
  const ear = await RtpPeer.open();
  const caller = `+1555${String(1_000_000 + numbered++)}`;
  const created = () => receiver.events.find(({ event, body }) => event === 'session.created' && body.caller_id === caller);
  let peer = await placed(platform, ear, caller);
  const came = receiver.until(() => created() !== undefined, 'a call');
  came.catch(() => {});
  await Promise.race([came, peer.done]);
  if (created() === undefined && peer.errors().includes('SIP/2.0 503')) {
    // A platform whose database did not answer in time refuses a call, so that a carrier routes it elsewhere.
    peer = await placed(platform, ear, caller);
    await receiver.until(() => created() !== undefined, 'the call again');
  }
  if (created() === undefined) throw new Error(`there is no call: ${peer.errors()}`);
  const sessionUuid = String(created()?.body.session_uuid);
  await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
  await receiver.event('session.answered', sessionUuid);
  await ear.until(() => ear.source !== undefined, 'audio');
  return { sessionUuid, ear, speaker: new Speaker(ear, hz), sipp: peer };
}

export async function createRoom({ platform, app }: Stage, more: Record<string, unknown> = {}): Promise<string> {
  const made = await platform.api(app, 'POST', '/api/v1/rooms', more);
  if (made.status !== 201) throw new Error(`room: ${made.status} ${JSON.stringify(made.body)}`);
  return String(made.body.room_id);
}

/** Joins and waits for `room.member.joined`. */
export async function join({ platform, receiver, app }: Stage, roomId: string, sessionUuid: string): Promise<void> {
  const joining = await platform.api(app, 'POST', `/api/v1/rooms/${roomId}/members`, { session_uuid: sessionUuid });
  if (joining.status !== 202) throw new Error(`join: ${joining.status} ${JSON.stringify(joining.body)}`);
  const joined = () =>
    receiver.of(sessionUuid).some((event) => event.event === 'room.member.joined' && event.body.room_id === roomId);
  await receiver.until(joined, 'the join');
}

/** Ends calls and frees their sockets. */
export async function hangUp({ platform, app }: Stage, ...callers: Caller[]): Promise<void> {
  for (const { sessionUuid, speaker } of callers) {
    speaker.stop();
    // A platform that is busy refuses it for a moment, and the call would go on.
    let status = 0;
    do ({ status } = await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`));
    while (status === 429 || status === 503);
  }
  for (const { sipp: peer, ear } of callers) {
    await peer.done;
    ear.close();
  }
}

/** Packets in which ramps and buffers settle, and those of the half second that is judged. */
const SETTLING = 15;
const JUDGED = 25;

/**
 * The first half second, from `since` on, that a caller hears and of which `holds` is true. What the callers say comes
 * from this process, which is late with it on a busy machine: no one half second can be held against the platform.
 */
export async function hearUntil(
  { ear }: Pick<Caller, 'ear'>,
  holds: (heard: Float32Array) => boolean,
  what: string,
  since = ear.packets.length + SETTLING,
): Promise<Float32Array> {
  let from = since;
  let heard: Float32Array = new Float32Array();
  const isHeard = (): boolean => {
    for (; ear.packets.length >= from + JUDGED; from += 5) {
      heard = decodeMulaw(ear.packets.slice(from, from + JUDGED));
      if (holds(heard)) return true;
    }
    return false;
  };
  await ear.until(isHeard, what, 20_000);
  return heard;
}

/** That part of a recording, of `length` samples, in which all of the tones are heard best, for the same reason. */
export function bestPart(samples: Float32Array, tones: readonly number[], length: number): Float32Array {
  let best: Float32Array = samples.subarray(0, length);
  let bestDb = Number.NEGATIVE_INFINITY;
  for (let at = 0; at + length <= samples.length; at += 800) {
    const part = samples.subarray(at, at + length);
    const db = Math.min(...tones.map((hz) => level(part, hz)));
    if (db > bestDb) [best, bestDb] = [part, db];
  }
  return best;
}

/** Amplitude of a tone in samples at 8 kHz, in dB of full scale. */
export function level(samples: Float32Array, hz: number, rate = 8000): number {
  let real = 0;
  let imaginary = 0;
  for (const [at, sample] of samples.entries()) {
    const angle = (2 * Math.PI * hz * at) / rate;
    real += sample * Math.cos(angle);
    imaginary += sample * Math.sin(angle);
  }
  return 20 * Math.log10((2 * Math.hypot(real, imaginary)) / samples.length + 1e-9);
}
