/**
 * The container of a WAV, read as it arrives, and where the sound lies in it:
 *
 *   "RIFF" size "WAVE"   { id size body pad }…     RIFX: the same with the high byte first
 *   "RF64" -1 "WAVE"     ds64 { … }…               sizes of 64 bits (EBU Tech 3306)
 *   riff-GUID size       { GUID size body pad }…   W64 (Sony): sizes count their own header, parts are padded to 8
 *
 * The format comes before the data; other parts are skipped, whatever their size. Pure.
 */
import { parseWavFormat, type WavFormat } from './wav-format.ts';

/**
 * Writers that do not know the length in advance leave one of these: 0xFFFFFFFF (FFmpeg), 0x7FFFF000 (SoX, eSpeak),
 * 0x7FFFFFFF less a header, and 0x7FFFFFFFFFFFFFFF (FFmpeg in W64). Data of such a size runs to the end of the file.
 */
const ENDLESS_FROM_BYTES = 0x7fff_0000;
const FORMAT_MAX_BYTES = 4_096;
/** Parts before the sound. Files have some ten; 2,000,000 empty ones took 4 s to be looked through. */
const PARTS_MAX = 10_000;
/**
 * Parts that follow an empty data part. Anything else after a size of 0 is the sound of a writer that never came back
 * to name the size.
 */
const AFTER_DATA = new Set([
  'LIST',
  'fact',
  'id3 ',
  'ID3 ',
  'cue ',
  'smpl',
  'bext',
  'PEAK',
  'JUNK',
  'junk',
  'iXML',
  'afsp',
  'PAD ',
]);
/** The last 12 bytes of every GUID of W64 but `riff`, whose own are others. */
const W64_RIFF = 'riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00';
const W64_TAIL = '\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a';

type Flavour = 'riff' | 'rifx' | 'w64';

export class WavContainer {
  #state: 'head' | 'data' | 'ended' | 'unsupported' = 'head';
  #flavour: Flavour | undefined;
  #parts = 0;
  #rest: Uint8Array = new Uint8Array(0);
  #skip = 0;
  /** The part that was skipped is of odd size: a byte of padding may follow, which some writers forget. */
  #padding = false;
  #format: WavFormat | undefined;
  #dataBytes: number | undefined;
  #left = 0;
  /** The data part has size 0: what follows tells whether there is sound. */
  #doubtful = false;

  /** The state is `data` from the first byte of sound on, and `ended` when no byte that follows is sound. */
  get state(): 'head' | 'data' | 'ended' | 'unsupported' {
    return this.#state;
  }

  /** The bytes of sound that are still to come, Infinity where the head names none. */
  get left(): number {
    return this.#left;
  }

  /** Known from the state `data` on. */
  get format(): WavFormat | undefined {
    return this.#format;
  }

  /** The bytes of sound among `more`. */
  push(more: Uint8Array): Uint8Array {
    let bytes = this.#rest.length === 0 ? more : new Uint8Array(Buffer.concat([this.#rest, more]));
    this.#rest = new Uint8Array(0);
    while (this.#state === 'head') {
      const used = this.#head(bytes);
      if (used === 0) {
        this.#rest = bytes.slice();
        return new Uint8Array(0);
      }
      bytes = bytes.subarray(used);
    }
    if (this.#state !== 'data') return new Uint8Array(0);
    if (this.#doubtful && !this.#settleDoubt(bytes)) return new Uint8Array(0);
    const sound = bytes.subarray(0, this.#left);
    this.#left -= sound.length;
    if (this.#left === 0) this.#state = 'ended';
    return sound;
  }

  /** The bytes that `#head` took; 0 where it needs more. */
  #head(bytes: Uint8Array): number {
    if (this.#skip > 0) {
      const skipped = Math.min(this.#skip, bytes.length);
      this.#skip -= skipped;
      return skipped;
    }
    if (this.#padding && bytes.length > 0) {
      this.#padding = false;
      if ((bytes[0] ?? 0) < 0x20) return 1;
    }
    if (this.#flavour === undefined) return this.#begin(bytes);
    const used = this.#flavour === 'w64' ? this.#w64Part(bytes) : this.#part(bytes, this.#flavour === 'rifx');
    if (used > 0 && ++this.#parts > PARTS_MAX) return this.#refuse(bytes);
    return used;
  }

  #begin(bytes: Uint8Array): number {
    if (bytes.length < 12) return 0;
    const id = text(bytes, 0, 4);
    if (id === 'riff') {
      if (bytes.length < 40) return 0;
      if (text(bytes, 0, 16) !== W64_RIFF || text(bytes, 24, 16) !== `wave${W64_TAIL}`) return this.#refuse(bytes);
      this.#flavour = 'w64';
      return 40;
    }
    const known = id === 'RIFF' || id === 'RIFX' || id === 'RF64' || id === 'BW64';
    if (!known || text(bytes, 8, 4) !== 'WAVE') return this.#refuse(bytes);
    this.#flavour = id === 'RIFX' ? 'rifx' : 'riff';
    return 12;
  }

  #part(bytes: Uint8Array, highFirst: boolean): number {
    if (bytes.length < 8) return 0;
    const view = viewOf(bytes);
    const id = text(bytes, 0, 4);
    const size = view.getUint32(4, !highFirst);
    if (id === 'fmt ') return this.#formatPart(bytes, 8, size, size + (size & 1), highFirst);
    if (id === 'ds64') {
      if (bytes.length < 8 + 16) return 0;
      this.#dataBytes = Number(view.getBigUint64(16, true));
    }
    if (id === 'data') return this.#data(bytes, 8, size === 0xffff_ffff ? (this.#dataBytes ?? size) : size);
    this.#skip = size;
    this.#padding = (size & 1) === 1;
    return 8;
  }

  #w64Part(bytes: Uint8Array): number {
    if (bytes.length < 24) return 0;
    const size = Number(viewOf(bytes).getBigUint64(16, true)) - 24;
    if (size < 0) return this.#refuse(bytes);
    const id = text(bytes, 4, 12) === W64_TAIL ? text(bytes, 0, 4) : '';
    if (id === 'data') return this.#data(bytes, 24, size);
    if (!Number.isSafeInteger(size)) return this.#refuse(bytes);
    if (id === 'fmt ') return this.#formatPart(bytes, 24, size, Math.ceil(size / 8) * 8, false);
    this.#skip = Math.ceil(size / 8) * 8;
    return 24;
  }

  #formatPart(bytes: Uint8Array, header: number, size: number, padded: number, highFirst: boolean): number {
    if (size < 14 || size > FORMAT_MAX_BYTES) return this.#refuse(bytes);
    if (bytes.length < header + size) return 0;
    this.#format = parseWavFormat(bytes.subarray(header, header + size), highFirst);
    if (this.#format === undefined) return this.#refuse(bytes);
    this.#skip = padded - size;
    return header + size;
  }

  #data(bytes: Uint8Array, header: number, size: number): number {
    if (this.#format === undefined) return this.#refuse(bytes);
    this.#state = 'data';
    this.#doubtful = size === 0;
    this.#left = size === 0 || size >= ENDLESS_FROM_BYTES ? Infinity : size;
    return header;
  }

  /** Whether it is settled that sound follows a data part of size 0. */
  #settleDoubt(bytes: Uint8Array): boolean {
    if (bytes.length < 8) {
      this.#rest = bytes.slice();
      return false;
    }
    this.#doubtful = false;
    if (!AFTER_DATA.has(text(bytes, 0, 4))) return true;
    this.#state = 'ended';
    return false;
  }

  #refuse(bytes: Uint8Array): number {
    this.#state = 'unsupported';
    return Math.max(1, bytes.length);
  }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const text = (bytes: Uint8Array, at: number, length: number): string => String.fromCharCode(...bytes.subarray(at, at + length));
