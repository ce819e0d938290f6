/**
 * One file that several playbacks read at once, from its first audio on, also while it still comes. It is downloaded as
 * fast as its server sends it for as long as somebody uses it, and told to each reader at its own pace.
 */
import type { AudioKind } from '../format/sniff.ts';
import type { Download } from './download.ts';
import { Refusal } from './opening.ts';

type Bytes = Uint8Array<ArrayBufferLike>;

/** The rest of the file will not come. */
export class ContentBroken extends Error {
  override readonly name = 'ContentBroken';
  /** It was waited for in vain. Whoever asks anew would wait as long again. */
  readonly isLate: boolean;
  constructor(isLate: boolean) {
    super('the rest does not come');
    this.isLate = isLate;
  }
}

/** What tells whether a later answer is the same content (RFC 9110 §8.8): the URL that answered, and its validators. */
export interface Identity {
  readonly finalUrl: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

export interface FileTerms {
  readonly kind: AudioKind;
  /** The application that brought it, in whose share of memory it is. */
  readonly owner: string;
  readonly identity: Identity;
  /** The bytes before the first audio, which are not kept, and those from there to the end. */
  readonly lead: number;
  readonly length: number;
}

export class SharedContent {
  readonly kind: AudioKind;
  readonly owner: string;
  readonly identity: Identity;
  readonly lead: number;
  readonly length: number;
  /** The time from which its server is to be asked whether it is the same, on the clock of `performance`. */
  freshUntil = 0;
  readonly #buffer: Uint8Array<ArrayBuffer>;
  #filled = 0;
  #state: 'coming' | 'whole' | 'broken' = 'coming';
  #isLate = false;
  #change = Promise.withResolvers<void>();
  #download: Download | undefined;
  #users = 0;
  #readings = 0;
  readonly #changed: (content: SharedContent) => void;

  /** `changed` is called when the content breaks, and when nobody uses it any more. `parts` are its first bytes. */
  constructor(
    { kind, owner, identity, lead, length }: FileTerms,
    parts: readonly Bytes[],
    changed: (content: SharedContent) => void,
  ) {
    this.kind = kind;
    this.owner = owner;
    this.identity = identity;
    this.lead = lead;
    this.length = length;
    this.#changed = changed;
    this.#buffer = new Uint8Array(length);
    for (const part of parts) this.#append(part);
    if (this.#filled === length) this.#state = 'whole';
  }

  /** How many use it now. */
  get users(): number {
    return this.#users;
  }

  /** Whether somebody reads its bytes now. */
  get isRead(): boolean {
    return this.#readings > 0;
  }

  get isWhole(): boolean {
    return this.#state === 'whole';
  }

  get isBroken(): boolean {
    return this.#state === 'broken';
  }

  /** The bytes that have come. */
  get here(): Uint8Array {
    return this.#buffer.subarray(0, this.#filled);
  }

  join(): void {
    this.#users++;
  }

  /** A user that has joined goes. With the last one a download under way ends. */
  leave(): void {
    this.#users--;
    if (this.#users > 0) return;
    if (this.#state === 'coming') this.#settle('broken');
    else this.#changed(this);
  }

  /** Reads the rest from that download, and closes it. Somebody has joined before. */
  async fill(download: Download): Promise<void> {
    this.#download = download;
    try {
      while (this.#state === 'coming') {
        const chunk = await download.next();
        if (chunk === undefined) break;
        this.#append(chunk);
        if (this.#filled === this.length) this.#settle('whole');
        else this.#turn();
      }
    } catch (error) {
      this.#isLate = error instanceof Refusal && error.detail.reason === 'timeout';
    }
    if (this.#state === 'coming') this.#settle('broken');
  }

  /** Resolves once nothing more comes. */
  async settled(): Promise<void> {
    while (this.#state === 'coming') await this.#change.promise;
  }

  /** The bytes from the first audio on, as they come. Throws `ContentBroken` after the last one of those that came. */
  async *bytes(): AsyncGenerator<Bytes> {
    this.#readings++;
    try {
      for (let told = 0; ; ) {
        if (told < this.#filled) {
          const piece = this.#buffer.subarray(told, this.#filled);
          told = this.#filled;
          yield piece;
        } else if (this.#state === 'coming') await this.#change.promise;
        else if (this.#state === 'whole') return;
        else throw new ContentBroken(this.#isLate);
      }
    } finally {
      this.#readings--;
    }
  }

  /** Throws where there is more than its length says. */
  #append(chunk: Bytes): void {
    this.#buffer.set(chunk, this.#filled);
    this.#filled += chunk.length;
  }

  #settle(state: 'whole' | 'broken'): void {
    this.#state = state;
    this.#download?.close();
    this.#download = undefined;
    this.#turn();
    if (state === 'broken') this.#changed(this);
  }

  #turn(): void {
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers();
    resolve();
  }
}
