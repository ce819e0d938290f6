/**
 * The sources that a playlist names, in command. The first that can be heard is opened with the playlist, the others at
 * their turn: a playlist of a thousand files costs one connection.
 */
import { SOURCE_ADMISSION_MS } from '../../limits.ts';
import type { AudioSource } from './audio-source.ts';

export type OpenedSource = AudioSource | SourceList;
type OpenEntry = (url: string, signal: AbortSignal) => Promise<OpenedSource>;

export class SourceList {
  readonly #urls: readonly string[];
  readonly #open: OpenEntry;
  readonly #opened = new Map<number, OpenedSource>();
  readonly #abort = new AbortController();

  private constructor(urls: readonly string[], open: OpenEntry) {
    this.#urls = urls;
    this.#open = open;
  }

  /** Opens the first entry that can be opened. Rejects as the first that was tried did where none can. */
  static async open(urls: readonly string[], open: OpenEntry, signal: AbortSignal): Promise<SourceList> {
    const list = new SourceList(urls, open);
    let refusal: unknown;
    for (const [index, url] of urls.entries()) {
      try {
        list.#opened.set(index, await open(url, signal));
        return list;
      } catch (error) {
        refusal ??= error;
        if (signal.aborted) break;
      }
    }
    throw refusal;
  }

  get length(): number {
    return this.#urls.length;
  }

  /** The source at a place of the list, opened if it is not yet. Rejects where it cannot be opened now. */
  async at(index: number): Promise<OpenedSource> {
    const known = this.#opened.get(index);
    if (known !== undefined) return known;
    const opened = await this.#open(
      this.#urls[index] ?? '',
      AbortSignal.any([this.#abort.signal, AbortSignal.timeout(SOURCE_ADMISSION_MS)]),
    );
    // A seek while it was opened has opened it once more.
    const first = this.#opened.get(index);
    if (first !== undefined || this.#abort.signal.aborted) opened.release();
    else this.#opened.set(index, opened);
    return first ?? opened;
  }

  async hold(first: boolean): Promise<void> {
    await Promise.all([...this.#opened.values()].map((source) => source.hold(first)));
  }

  interrupt(): void {
    for (const source of this.#opened.values()) source.interrupt();
  }

  release(): void {
    this.#abort.abort();
    for (const source of this.#opened.values()) source.release();
  }
}
