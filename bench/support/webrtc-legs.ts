/**
 * Sides of a comparison whose far ends are WebRTC peers in this process (libdatachannel): its ICE, DTLS and SRTP, PCMU
 * in packets of 20 ms. The peers' CPU is not counted, only the server's.
 */
import { Platform } from '../../test/support/platform.ts';
import { Receiver } from '../../test/support/receiver.ts';
import { freePort } from '../../test/support/sipp.ts';
import { mulawTone, tokenOf, WebrtcPeer } from '../../test/support/webrtc-peer.ts';
import { pastRateLimit } from './calls.ts';
import { cpuNs, median } from './usage.ts';

const ROOM = 10;
const FRAMES = 50;

/** One side: a server whose legs are these peers. */
export interface WebrtcSide {
  readonly name: string;
  readonly pid: number;
  readonly peers: readonly WebrtcPeer[];
  stop(): Promise<void>;
}

/** The platform with so many answered calls by WHIP, in Rooms of ten. */
export async function productWebrtc(legs: number, address: string): Promise<WebrtcSide> {
  const receiver = new Receiver();
  const platform = await Platform.start({ WEBRTC_LISTEN: `${address}:${await freePort()}`, MEDIA_TIMEOUT_SEC: '3600' });
  const app = await platform.application(receiver.url, '+15550002');
  const peers: WebrtcPeer[] = [];
  const post = (path: string, body: object) => pastRateLimit(() => platform.api(app, 'POST', path, body));
  const stop = async () => {
    for (const peer of peers) peer.close();
    await platform.stop();
    await receiver.stop();
  };
  try {
    let room = '';
    for (let at = 0; at < legs; at += 1) {
      if (at % ROOM === 0) room = String((await post('/api/v1/rooms', {})).body.room_id);
      const { peer } = await WebrtcPeer.call(tokenOf(await post('/v1/webrtc-tokens', {})), { address });
      peers.push(peer);
      await receiver.event('session.created', peer.sessionUuid);
      await post(`/v1/sessions/${peer.sessionUuid}/answer`, {});
      await receiver.event('session.answered', peer.sessionUuid);
      await peer.connected();
      await post(`/api/v1/rooms/${room}/members`, { session_uuid: peer.sessionUuid });
      await receiver.event('room.member.joined', peer.sessionUuid);
    }
    return { name: 'product', pid: platform.pid, peers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Lets the peers of each side talk in turn, `rounds` times, and returns the median of what a leg cost its server, in µs
 * a second. A round with under 97 % of its packets is thrown away.
 */
export async function interleavedWebrtc(
  sides: readonly WebrtcSide[],
  rounds: number,
  seconds: number,
): Promise<Map<string, number>> {
  const costs = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      const { us, delivered } = await talk(side, seconds);
      const counts = delivered >= 0.97;
      if (counts) costs.get(side.name)?.push(us);
      console.log(
        `WebRTC, ${side.name.padEnd(8)} ${us.toFixed(1)} us a leg and second, ${(delivered * 100).toFixed(1)} % delivered${counts ? '' : ' (thrown away)'}`,
      );
    }
  }
  return new Map([...costs].map(([name, values]) => [name, median(values)]));
}

async function talk({ pid, peers }: WebrtcSide, seconds: number): Promise<{ us: number; delivered: number }> {
  for (const [at, peer] of peers.entries()) {
    const tone = mulawTone(300 + 50 * (at % ROOM), 3_000);
    const frames = Array.from({ length: FRAMES }, (_, frame) => tone(frame));
    peer.say((frame) => frames[frame % FRAMES] ?? new Uint8Array(160));
  }
  await Bun.sleep(1_000);
  for (const peer of peers) peer.packets.length = 0;
  const before = cpuNs(pid);
  const from = performance.now();
  await Bun.sleep(seconds * 1_000);
  const tookMs = performance.now() - from;
  const us = (cpuNs(pid) - before) / peers.length / tookMs;
  const heard = peers.reduce((sum, peer) => sum + peer.packets.length, 0);
  for (const peer of peers) peer.hush();
  return { us, delivered: heard / (peers.length * (tookMs / 20)) };
}
