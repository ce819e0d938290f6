/** Answered SIPp calls with an ear and a voice of ours, and Rooms to put them in. */
import type { Credentials, Platform } from './platform.ts';
import type { Receiver } from './receiver.ts';
import { RtpPeer } from './rtp-peer.ts';
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

/** An answered call that says a tone. */
export async function call({ platform, receiver, app }: Stage, hz: number): Promise<Caller> {
  const ear = await RtpPeer.open();
  const known = new Set(
    receiver.events.filter((event) => event.event === 'session.created').map((event) => event.body.session_uuid),
  );
  const peer = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port) } });
  const created = () => receiver.events.find((event) => event.event === 'session.created' && !known.has(event.body.session_uuid));
  await receiver.until(() => created() !== undefined, 'a call');
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
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
  }
  for (const { sipp: peer, ear } of callers) {
    await peer.done;
    ear.close();
  }
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
