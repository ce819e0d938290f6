/** How long what one member of a Room says takes to another one. */
import type { Caller } from '../support/room-call.ts';
import { decodeMulaw } from '../support/rtp-peer.ts';

const EVERY_PACKETS = 25;
const LOUD = 0.2;
/** The loudest code of mu-law, and silence. */
const CLICK = 0x80;
const SILENCE = 0xff;

/**
 * Has a caller say so many clicks, one each half second, and finds each in what the other hears: from when its packet
 * was sent until its first loud sample is due to be heard, by the packet it came in. Milliseconds. `phaseMs`: 0 to 20,
 * the place of its packets between the platform's ticks, which stand still: a mix makes 0 to 20 ms of it.
 */
export async function roomDelays(from: Caller, to: Caller, clicks: number, phaseMs: number): Promise<readonly number[]> {
  from.speaker.stop();
  const sentAt: number[] = [];
  const began = to.ear.packets.length;
  const started = Math.ceil(performance.now() / 20) * 20 + phaseMs;
  const packet = Buffer.alloc(172);
  packet.writeUInt8(0x80, 0);
  packet.writeUInt32BE(Math.floor(Math.random() * 2 ** 32), 8);
  for (let said = 0; said <= (clicks + 1) * EVERY_PACKETS; ) {
    for (; said * 20 <= performance.now() - started; said++) {
      const isClick = said > 0 && said % EVERY_PACKETS === 0;
      packet.writeUInt16BE(said & 0xffff, 2);
      packet.writeUInt32BE(said * 160, 4);
      packet.fill(isClick ? CLICK : SILENCE, 12);
      from.ear.send(from.ear.source?.port ?? 9, Buffer.from(packet));
      if (isClick) sentAt.push(performance.now());
    }
    await Bun.sleep(1);
  }
  await Bun.sleep(300);
  const heardAt: number[] = [];
  for (const each of to.ear.packets.slice(began)) {
    const first = decodeMulaw([each]).findIndex((sample) => Math.abs(sample) > LOUD);
    const at = each.at + first / 8;
    if (first >= 0 && at - (heardAt.at(-1) ?? 0) > 250) heardAt.push(at);
  }
  return sentAt
    .flatMap((sent) => heardAt.filter((at) => at >= sent && at < sent + 250).map((at) => at - sent))
    .sort((a, b) => a - b);
}
