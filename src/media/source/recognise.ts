/** The first bytes of a source, up to the first audio: what it is, and where its sound begins. */
import { nextTurn } from '../../bounds/in-turns.ts';
import { SOURCE_HEAD_FREE_BYTES, SOURCE_HEAD_MAX_BYTES, SOURCE_TAGS_MAX_BYTES } from '../../limits.ts';
import { decodesAac } from '../decode/aac-decoder.ts';
import { type SourceKind, sniff } from '../format/sniff.ts';
import type { MemoryShare } from './held-bytes.ts';
import { Refusal } from './opening.ts';

interface Recognised {
  readonly kind: SourceKind;
  /** Bytes before the sound that are of no use: tags and rubbish. They were not kept. */
  readonly lead: number;
  /** The bytes that were read after them. */
  readonly head: Uint8Array<ArrayBuffer>;
  /** The head is all there is. */
  readonly ended: boolean;
}

/** Bytes while the end of the head is not known: kept in one piece, dropped from its beginning. */
class Head {
  lead = 0;
  readonly #held: MemoryShare;
  #reserved = 0;
  #bytes = new Uint8Array(4_096);
  #length = 0;
  /** Bytes to drop that have not come yet. */
  #skip = 0;

  constructor(held: MemoryShare) {
    this.#held = held;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The bytes with what comes after them, copied. */
  and(rest: Uint8Array): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#length + rest.length);
    all.set(this.bytes);
    all.set(rest, this.#length);
    return all;
  }

  add(chunk: Uint8Array): void {
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    const rest = chunk.subarray(skipped);
    if (this.#length + rest.length > this.#bytes.length) {
      const room = 2 * (this.#length + rest.length);
      if (room > SOURCE_HEAD_FREE_BYTES) this.#reserve(room - this.#bytes.length);
      const longer = new Uint8Array(room);
      longer.set(this.bytes);
      this.#bytes = longer;
    }
    this.#bytes.set(rest, this.#length);
    this.#length += rest.length;
  }

  drop(bytes: number): void {
    if (bytes === 0) return;
    const here = Math.min(bytes, this.#length);
    this.#bytes.copyWithin(0, here, this.#length);
    this.#length -= here;
    this.#skip += bytes - here;
    this.lead += bytes;
  }

  /** Gives the memory back that was reserved. */
  release(): void {
    this.#held.give(this.#reserved);
  }

  #reserve(bytes: number): void {
    if (!this.#held.take(bytes)) throw new Refusal('preparation_failed', true);
    this.#reserved += bytes;
  }
}

/** Bytes looked through at once: those of a server at hand come by the half megabyte, of which the first few tell. */
const STEP_BYTES = SOURCE_HEAD_FREE_BYTES / 4;
const NONE = new Uint8Array(0);

/** Whether the decoders of this build read it. */
const isDecoded = (kind: SourceKind | 'more'): boolean => (kind !== 'aac' && kind !== 'mpegts-aac') || decodesAac();

/**
 * Reads until the content tells what it is. Rejects with `Refusal` where it is nothing we play, or where a head that
 * grows large finds no memory in `held`, which gives it meanwhile. `status` is that of the answer that is read.
 */
export async function recognise(
  next: () => Promise<Uint8Array | undefined>,
  held: MemoryShare,
  status = 200,
): Promise<Recognised> {
  const head = new Head(held);
  try {
    return await found(head, next, status);
  } finally {
    head.release();
  }
}

async function found(head: Head, next: () => Promise<Uint8Array | undefined>, status: number): Promise<Recognised> {
  let rest: Uint8Array = NONE;
  let lookAt = 0;
  for (;;) {
    const chunk = rest.length > 0 ? rest : await nextOf(next, status);
    if (chunk !== undefined) {
      head.add(chunk.subarray(0, STEP_BYTES));
      rest = chunk.subarray(STEP_BYTES);
      if (head.bytes.length < lookAt) continue;
    }
    const sniffed = sniff(head.bytes, chunk === undefined);
    if (sniffed.found === 'unsupported' || !isDecoded(sniffed.found)) throw new Refusal('unsupported', false, status);
    head.drop(sniffed.from);
    if (sniffed.found !== 'more')
      return { kind: sniffed.found, lead: head.lead, head: head.and(rest), ended: chunk === undefined };
    if (head.bytes.length > SOURCE_HEAD_MAX_BYTES || head.lead > SOURCE_TAGS_MAX_BYTES)
      throw new Refusal('unsupported', false, status);
    lookAt = head.bytes.length * 1.25; // A head that comes in crumbs is not looked through for each of them.
    // Half a megabyte of tags that came at once is looked through in many turns of the event loop.
    if (rest.length > 0) await nextTurn();
  }
}

function nextOf(next: () => Promise<Uint8Array | undefined>, status: number): Promise<Uint8Array | undefined> {
  return next().catch((error: unknown) => {
    throw error instanceof Refusal ? error : new Refusal('unreachable', true, status);
  });
}
