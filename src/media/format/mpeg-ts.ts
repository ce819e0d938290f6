/**
 * MPEG transport stream (ISO 13818-1), as far as the segments of HLS need it: packets of 188 bytes in, the bytes of its
 * first stream of MPEG audio, or of AAC in ADTS, out.
 *
 *   PID 0: PAT → PID of the PMT → PID of the stream of type 3, 4 or 15 → PES packets, whose heads are left out
 *
 * Pure.
 */

const PACKET_BYTES = 188;
const SYNC = 0x47;

export type TransportAudio = 'mpeg' | 'aac';

/** The stream types that are read (§2.4.4.9, table 2-34). */
const AUDIO_TYPES: ReadonlyMap<number, TransportAudio> = new Map([
  [0x03, 'mpeg'],
  [0x04, 'mpeg'],
  [0x0f, 'aac'],
]);

export class TransportDemux {
  readonly #wanted: TransportAudio | undefined;
  #rest: Uint8Array = new Uint8Array(0);
  #pmtPid: number | undefined;
  #audioPid: number | undefined;
  #kind: TransportAudio | undefined;
  #unsupported = false;
  /** Whether a PES packet has begun; what comes before is a part without its head. */
  #begun = false;

  /** Makes a reader. It reads only streams of the kind `wanted`, where that is given. */
  constructor(wanted?: TransportAudio) {
    this.#wanted = wanted;
  }

  /** The kind of the audio; undefined until the programme is known. */
  get kind(): TransportAudio | undefined {
    return this.#kind;
  }

  /** The programme is known, and none of its streams is audio that is read. */
  get unsupported(): boolean {
    return this.#unsupported;
  }

  /** The bytes of audio in these packets. */
  push(more: Uint8Array): Uint8Array {
    const bytes = new Uint8Array(Buffer.concat([this.#rest, more]));
    const audio: Uint8Array[] = [];
    let at = 0;
    while (at + PACKET_BYTES <= bytes.length) {
      if (bytes[at] !== SYNC) {
        at++;
        continue;
      }
      const payload = this.#packet(bytes.subarray(at, at + PACKET_BYTES));
      if (payload !== undefined) audio.push(payload);
      at += PACKET_BYTES;
    }
    this.#rest = bytes.slice(at);
    return new Uint8Array(Buffer.concat(audio));
  }

  #packet(packet: Uint8Array): Uint8Array | undefined {
    const [, second = 0, third = 0, fourth = 0, field = 0] = packet;
    const pid = ((second & 0x1f) << 8) | third;
    const starts = (second & 0x40) !== 0;
    if ((fourth & 0x10) === 0) return undefined;
    const payload = packet.subarray((fourth & 0x20) !== 0 ? 5 + field : 4);
    if (pid === 0 && starts) this.#pmtPid = programmeMap(payload) ?? this.#pmtPid;
    else if (pid === this.#pmtPid && starts) this.#streams(payload);
    else if (pid === this.#audioPid) return this.#audio(payload, starts);
    return undefined;
  }

  #streams(payload: Uint8Array): void {
    const types = streamTypes(payload);
    const isRead = (kind: TransportAudio | undefined) => kind !== undefined && (this.#wanted ?? kind) === kind;
    const audio = types.find(([type]) => isRead(AUDIO_TYPES.get(type)));
    this.#kind = audio === undefined ? undefined : AUDIO_TYPES.get(audio[0]);
    this.#audioPid = audio?.[1];
    this.#unsupported = types.length > 0 && audio === undefined;
  }

  #audio(payload: Uint8Array, starts: boolean): Uint8Array | undefined {
    if (!starts) return this.#begun ? payload : undefined;
    this.#begun = payload[0] === 0 && payload[1] === 0 && payload[2] === 1;
    return this.#begun ? payload.subarray(9 + (payload[8] ?? 0)) : undefined;
  }
}

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);

/** The section in a packet that begins one: after the pointer field, without its checksum. */
function section(payload: Uint8Array): Uint8Array {
  const from = 1 + (payload[0] ?? 0);
  const length = word(payload, from + 1) & 0x0fff;
  return payload.subarray(from, Math.max(from, Math.min(payload.length, from + 3 + length - 4)));
}

/** The PID of the first programme's map (§2.4.4.3). */
function programmeMap(payload: Uint8Array): number | undefined {
  const table = section(payload);
  for (let at = 8; at + 4 <= table.length; at += 4) {
    if (word(table, at) !== 0) return word(table, at + 2) & 0x1fff;
  }
  return undefined;
}

/** Type and PID of each stream of a programme (§2.4.4.8). */
function streamTypes(payload: Uint8Array): (readonly [number, number])[] {
  const table = section(payload);
  const found: (readonly [number, number])[] = [];
  let at = 12 + (((table[10] ?? 0) & 0x0f) << 8) + (table[11] ?? 0);
  while (at + 5 <= table.length) {
    const [type, pid, more] = [table[at] ?? 0, word(table, at + 1) & 0x1fff, word(table, at + 3) & 0x0fff];
    found.push([type, pid]);
    at += 5 + more;
  }
  return found;
}
