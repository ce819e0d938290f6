/**
 * One URL of a playlist. It is opened at admission, up to its first audio. Where its server gives a validator, it is
 * shared with whoever else plays it. Otherwise a small one is held in memory whole; of a large one the first keeps its
 * connection (read only as fast as it is heard), and a later one is let go and fetched again at its turn, because no
 * server holds an idle connection for the minutes that the sources before it play.
 */
import { SOURCE_BLOCK_BYTES, SOURCE_FILL_MAX_MS, SOURCE_HELD_MAX_BYTES, SOURCE_SHARED_MAX_BYTES } from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import type { AudioKind } from '../format/sniff.ts';
import { type AudioSource, type Jump, SourceLost } from './audio-source.ts';
import { Download } from './download.ts';
import type { MemoryShare } from './held-bytes.ts';
import type { AudioOutbound } from './opening.ts';
import { readText } from './playlist-body.ts';
import { recognise } from './recognise.ts';
import { ContentBroken, type Identity, type SharedContent } from './shared-content.ts';
import { conditions, isVersion, SharedContents } from './shared-contents.ts';

type Bytes = Uint8Array<ArrayBufferLike>;

/** The URL is a playlist: its text, and the address at which it was found. */
export interface PlaylistFound {
  readonly text: string;
  readonly url: string;
}

export class Source implements AudioSource {
  readonly #outbound: AudioOutbound;
  readonly #url: string;
  readonly #held: MemoryShare;
  readonly #contents: SharedContents;
  readonly #sharedMaxBytes: number;
  /** Ends the requests of this source. A download that others use as well has another one. */
  #abort = new AbortController();
  /** The file, where it is shared. Nothing else is held then. */
  #content: SharedContent | undefined;
  #kind: AudioKind = 'wav';
  #chunks: readonly Bytes[] = [];
  #heldBytes = 0;
  /** Bytes before the first audio, which are never told. */
  #lead = 0;
  /** The rest of the content, while its connection is kept. */
  #download: Download | undefined;
  #complete = false;
  #filling: Promise<void> | undefined;
  /** Somebody reads `bytes`: filling is no longer ahead of need, and a break is heard. */
  #wanted = false;
  #broken = false;
  #reading = 0;

  /** A file of up to `sharedMaxBytes` is read on at once to be shared. */
  constructor(
    outbound: AudioOutbound,
    url: string,
    held: MemoryShare,
    contents = new SharedContents(),
    sharedMaxBytes = SOURCE_HELD_MAX_BYTES,
  ) {
    this.#outbound = outbound;
    this.#url = url;
    this.#held = held;
    this.#contents = contents;
    this.#sharedMaxBytes = sharedMaxBytes;
  }

  get content(): SharedContent | undefined {
    return this.#content;
  }

  get kind(): AudioKind {
    return this.#kind;
  }

  /**
   * Opens the source up to its first audio. Resolves to the text where it is a playlist. Rejects with `Refusal`, the
   * reason of the signal, or a bug.
   */
  async admit(signal: AbortSignal): Promise<PlaylistFound | undefined> {
    const cancel = () => this.#abort.abort();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      signal.throwIfAborted(); // Its time may have passed while it waited for its turn.
      return await this.#admitted(this.#sharedMaxBytes);
    } catch (error) {
      this.release();
      throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  async hold(first: boolean): Promise<void> {
    const [content, download] = [this.#content, this.#download];
    if (content !== undefined && content.users > 1) return; // It comes, or is here, for others.
    // A server that drips would keep its connection for as long as it likes. What is heard may take as long as it does.
    const giveUp = () => {
      const isHeard = this.#wanted || content?.isRead === true;
      if (isHeard || this.#content !== content || this.#download !== download) return;
      this.#leave();
      download?.close();
    };
    const late = first ? undefined : setTimeout(giveUp, SOURCE_FILL_MAX_MS);
    if (content === undefined) this.#filling = this.#filled(first, download);
    await (content?.settled() ?? this.#filling);
    clearTimeout(late);
  }

  async prepare(): Promise<void> {
    const isHeld = this.#content !== undefined || this.#chunks.length > 0;
    if (isHeld || this.#abort.signal.aborted) return;
    const reading = ++this.#reading;
    this.#wanted = true; // A reading that begins meanwhile ends this.
    try {
      await this.#admitted(SOURCE_SHARED_MAX_BYTES);
    } catch {
      // The reading asks for it once more, and tells what comes of it.
      if (reading === this.#reading) this.#dropConnection();
    }
    if (reading === this.#reading) this.#wanted = false;
  }

  async *bytes(jump?: Jump): AsyncGenerator<Bytes> {
    this.interrupt();
    const reading = ++this.#reading;
    this.#wanted = true; // what is being filled is heard as it comes
    const still = () => {
      if (reading !== this.#reading) throw new SourceLost('read from elsewhere');
    };
    try {
      for await (const chunk of this.#told(still, jump)) {
        still();
        yield chunk;
        still();
      }
    } finally {
      if (reading === this.#reading) this.#dropConnection(); // Whoever has had enough waits for no more.
    }
  }

  interrupt(): void {
    if (!this.#wanted) return;
    this.#reading++;
    this.#wanted = false;
    this.#broken = false;
    this.#filling = undefined;
    this.#dropConnection();
    if (!this.#complete) this.#forget();
  }

  release(): void {
    this.#reading++;
    this.#abort.abort();
    this.#leave();
    this.#dropConnection();
    this.#forget();
    this.#complete = false;
  }

  /** Whether `jump` leads behind what has come of the shared file by now: a request of its own is sooner there. */
  #isFarAhead(jump: Jump | undefined): boolean {
    const content = this.#content;
    return content?.kind === 'wav' && !content.isWhole && jump?.find(content.here) !== undefined;
  }

  /** Tells the bytes of a reading. `still` throws once another one has begun: it is asked after each wait. */
  async *#told(still: () => void, jump: Jump | undefined): AsyncGenerator<Bytes> {
    const identity = this.#content?.identity;
    const shared = this.#isFarAhead(jump) ? 0 : yield* this.#sharedBytes(still);
    if (shared === undefined || (yield* this.#toldFromMemory(still))) return;
    const download = this.#download;
    if (download !== undefined) return yield* rest(download, 0, undefined);
    const again = await this.#fetchAgain(still, shared === 0 ? undefined : identity);
    yield* rest(again, this.#lead + shared, shared === 0 && this.#kind === 'wav' ? jump : undefined);
  }

  /** Reads the file that is shared. Returns how many bytes were told, where the rest has to be fetched. */
  async *#sharedBytes(still: () => void): AsyncGenerator<Bytes, number | undefined> {
    const content = this.#content;
    if (content === undefined) return 0;
    let told = 0;
    try {
      for await (const chunk of content.bytes()) {
        told += chunk.length;
        yield chunk;
      }
      return undefined;
    } catch (error) {
      if (!(error instanceof ContentBroken)) throw error;
      still();
      if (this.#content === content) this.#leave();
      if (error.isLate) throw new SourceLost('the connection stalled');
      return told;
    }
  }

  /** Tells the bytes in memory, and those that come into it. Returns whether they are all. */
  async *#toldFromMemory(still: () => void): AsyncGenerator<Bytes, boolean> {
    for (let told = 0; told < this.#chunks.length || this.#filling !== undefined; ) {
      const chunk = this.#chunks[told];
      if (chunk === undefined) {
        await this.#filling;
        still();
        this.#filling = undefined;
      } else {
        told++;
        yield chunk;
      }
    }
    if (this.#complete) return true;
    if (this.#broken) throw new SourceLost('the connection broke or stalled');
    this.#forget();
    return false;
  }

  /** Asks for the file from its start. It must be the version, of which a reader has heard the beginning. */
  async #fetchAgain(still: () => void, version: Identity | undefined): Promise<Download> {
    const again = await this.#open({}).catch(() => {
      throw new SourceLost('gone when it was fetched again');
    });
    try {
      still(); // A later reading, which may have its own by now, is not given this one.
      if (version !== undefined && !isVersion(version, again.response.headers, false))
        throw new SourceLost('another file when it was fetched again');
    } catch (error) {
      again.close();
      throw error;
    }
    this.#download = again;
    return again;
  }

  /** Opens the file, or joins those who share it. It is shared from now on where it has `sharedMaxBytes` at most. */
  async #admitted(sharedMaxBytes: number): Promise<PlaylistFound | undefined> {
    const known = this.#contents.get(this.#url);
    if (known !== undefined && (await this.#unchanged(known))) return undefined;
    if (known === undefined) await this.#connect({});
    return await this.#recognise(sharedMaxBytes);
  }

  /** Takes what is known where it is still so, by its age or its server. Else the connection is that of the new one. */
  async #unchanged(known: SharedContent): Promise<boolean> {
    known.join(); // It is not let go while its server is asked.
    if (performance.now() < known.freshUntil) {
      this.#take(known);
      return true;
    }
    const isKnown = await this.#isStill(known).catch((error: unknown) => {
      known.leave();
      throw error;
    });
    if (isKnown) this.#take(known);
    else known.leave();
    return isKnown;
  }

  async #isStill(known: SharedContent): Promise<boolean> {
    const response = await this.#connect(conditions(known));
    if (response.status !== 304) return false;
    this.#dropConnection();
    if (this.#contents.confirm(this.#url, known, response)) return true;
    await this.#connect({});
    return false;
  }

  /** Takes a shared file that was joined for it. */
  #take(content: SharedContent): void {
    this.#content = content;
    this.#kind = content.kind;
    this.#lead = content.lead;
    if (this.#abort.signal.aborted) this.#leave(); // It was released meanwhile.
  }

  #leave(): void {
    const content = this.#content;
    this.#content = undefined;
    content?.leave();
  }

  async #connect(headers: Readonly<Record<string, string>>): Promise<GetResponse> {
    const reading = this.#reading;
    const download = await this.#open(headers);
    if (reading !== this.#reading) {
      download.close(); // A later reading may have its own by now.
      throw new SourceLost('read from elsewhere');
    }
    this.#download = download;
    return download.response;
  }

  #open(headers: Readonly<Record<string, string>>): Promise<Download> {
    this.#broken = false;
    return Download.open({ outbound: this.#outbound, url: this.#url, signal: this.#abort.signal }, headers);
  }

  async #recognise(sharedMaxBytes: number): Promise<PlaylistFound | undefined> {
    const download = this.#download;
    if (download === undefined) throw new SourceLost('released');
    const found = await recognise(() => download.next(), this.#held, download.response.status);
    if (this.#download !== download) throw new SourceLost('read from elsewhere');
    const { kind, lead, head, ended } = found;
    if (kind === 'playlist') {
      const text = await readText(ended ? { next: async () => undefined, close: () => download.close() } : download, head);
      return { text, url: download.response.url };
    }
    this.#kind = kind;
    this.#lead = lead;
    const beginning = { kind, lead, parts: [head], ended };
    const content = this.#contents.share(this.#url, this.#held.owner, download, beginning, sharedMaxBytes);
    if (content !== undefined) {
      this.#download = undefined;
      this.#take(content);
      if (!this.#abort.signal.aborted) this.#abort = new AbortController();
      return undefined;
    }
    if (!this.#keep(head.length)) {
      // It is known for what it is, and fetched again at its turn.
      this.#dropConnection();
      return undefined;
    }
    this.#chunks = [head];
    if (ended) this.#completed();
    return undefined;
  }

  async #filled(first: boolean, download: Download | undefined): Promise<void> {
    try {
      await this.#fill(first);
    } catch {
      if (this.#download !== download) return; // The source is read from its start again by now.
      this.#dropConnection();
      if (this.#wanted) this.#broken = true;
      else this.#forget(); // fetched again at its turn; what it then says decides
    }
  }

  async #fill(first: boolean): Promise<void> {
    const chunks = [...this.#chunks];
    this.#chunks = chunks;
    while (!this.#complete && !this.#wanted && this.#heldBytes <= SOURCE_HELD_MAX_BYTES) {
      const download = this.#download;
      if (download === undefined) return;
      const chunk = await download.next();
      if (this.#abort.signal.aborted || this.#download !== download) return;
      if (chunk === undefined) {
        this.#completed();
        return;
      }
      const last = chunks.at(-1);
      // What is being read is not joined any more: its reader may be behind it.
      if (last === undefined || this.#wanted || last.length + chunk.length > SOURCE_BLOCK_BYTES) chunks.push(chunk);
      else chunks[chunks.length - 1] = new Uint8Array(Buffer.concat([last, chunk]));
      if (!this.#keep(chunk.length)) break;
    }
    if (this.#complete || this.#wanted || first) return;
    this.#dropConnection();
    this.#forget();
  }

  #completed(): void {
    const download = this.#download;
    this.#complete = true;
    this.#dropConnection();
    if (download !== undefined) {
      this.#contents.keep(this.#url, this.#held.owner, download, { kind: this.#kind, lead: this.#lead, parts: this.#chunks });
    }
  }

  #keep(bytes: number): boolean {
    if (!this.#held.take(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  #dropConnection(): void {
    this.#download?.close();
    this.#download = undefined;
  }

  #forget(): void {
    this.#chunks = [];
    this.#held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }
}

/** Tells what comes of a download after its first `skip` bytes, without what is left out on the way to a place. */
async function* rest(download: Download, skip: number, jump: Jump | undefined): AsyncGenerator<Bytes> {
  let [left, place] = [skip, jump];
  for (;;) {
    const chunk = await download.next().catch(() => {
      throw new SourceLost('the connection broke, stalled or went past its limit');
    });
    if (chunk === undefined) return;
    const skipped = Math.min(left, chunk.length);
    left -= skipped;
    if (skipped === chunk.length) continue;
    const bytes = chunk.subarray(skipped);
    const leftOut = place?.find(bytes);
    const isLeftOut = leftOut !== undefined && (await download.leaveOut(leftOut.bytes));
    if (isLeftOut) place?.taken(leftOut);
    yield isLeftOut ? leftOut.head : bytes;
    place = undefined;
  }
}
