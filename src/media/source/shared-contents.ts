/**
 * Files that are read by several playbacks at once, or were heard before, by URL, with the validators their server gave
 * (RFC 9111 §4.3). Each use asks the server whether they are still the same, unless it has said for how long they are.
 * The least recently used of those that nobody uses go first. Each application has a share of the memory: whose file
 * it was first pays for it, whoever else plays it.
 */
import {
  SOURCE_CACHE_MAX_BYTES,
  SOURCE_CACHE_MAX_ENTRIES,
  SOURCE_CACHE_OF_APP_MAX_BYTES,
  SOURCE_FRESH_MAX_SEC,
  SOURCE_IDENTITY_MAX_CHARS,
} from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import type { AudioKind } from '../format/sniff.ts';
import type { Download } from './download.ts';
import { HeldBytes } from './held-bytes.ts';
import { type FileTerms, type Identity, SharedContent } from './shared-content.ts';

type Bytes = Uint8Array<ArrayBufferLike>;

/** The beginning of a file that was recognised, from the first audio on. */
export interface Beginning {
  readonly kind: AudioKind;
  /** Bytes before the first audio. */
  readonly lead: number;
  readonly parts: readonly Bytes[];
  /** The parts are the whole. */
  readonly ended: boolean;
}

export class SharedContents {
  readonly #entries = new Map<string, SharedContent>();
  /** Files that were replaced and are read still. */
  readonly #replaced = new Set<SharedContent>();
  readonly #memory = new HeldBytes(SOURCE_CACHE_MAX_BYTES, SOURCE_CACHE_OF_APP_MAX_BYTES);

  /** The memory of all, those included that are still read after they were replaced. */
  get bytes(): number {
    return this.#memory.used;
  }

  get(url: string): SharedContent | undefined {
    const entry = this.#entries.get(url);
    if (entry === undefined) return undefined;
    this.#entries.delete(url);
    this.#entries.set(url, entry);
    return entry;
  }

  /**
   * Shares the file of that download with whoever asks for the same URL, and takes the download over; the caller has
   * joined what is returned. `owner` is the application that brings it. Undefined, and nothing has changed: its server
   * forbids to keep it or gives no validator, its length is unknown, nobody shares it yet and it is over `maxBytes`, or
   * there is no room.
   */
  share(url: string, owner: string, download: Download, beginning: Beginning, maxBytes: number): SharedContent | undefined {
    const identity = this.#keepable(url, download);
    if (identity === undefined) return undefined;
    const here = beginning.parts.reduce((sum, { length }) => sum + length, 0);
    const length = beginning.ended ? here : Number(download.response.headers.get('content-length') ?? 0) - beginning.lead;
    if (length < here) return undefined;
    const known = this.get(url);
    if (known !== undefined && isSame(known, identity, length)) {
      known.join();
      download.close();
      return known;
    }
    if (length > maxBytes) return undefined;
    const content = this.#add(url, download, { ...beginning, owner, identity, length }, beginning.parts);
    if (content === undefined) return undefined;
    content.join();
    if (content.isWhole) download.close();
    else void content.fill(download);
    return content;
  }

  /** Keeps a file that was read whole, for the next time it is asked for. */
  keep(url: string, owner: string, download: Download, { kind, lead, parts }: Omit<Beginning, 'ended'>): void {
    const identity = this.#keepable(url, download);
    if (identity === undefined) return;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    this.#add(url, download, { kind, owner, lead, identity, length }, parts);
  }

  /**
   * Whether a 304 is of that file as it is known (RFC 9111 §4.3.4). It then says for how long it is fresh, and whether
   * it may still be kept.
   */
  confirm(url: string, known: SharedContent, response: GetResponse): boolean {
    if (response.url !== known.identity.finalUrl || known.isBroken || !isVersion(known.identity, response.headers, true))
      return false;
    known.freshUntil = freshUntil(url, response);
    if (!mayBeKept(response.headers)) this.#drop(url);
    return true;
  }

  /** The identity of the content, where it may be kept (RFC 9111 §3). What was kept of a URL that forbids it goes. */
  #keepable(url: string, { response, isCoded }: Download): Identity | undefined {
    const { headers, status, framing } = response;
    const etag = headers.get('etag') ?? undefined;
    const lastModified = headers.get('last-modified') ?? undefined;
    const identity = { finalUrl: response.url, etag, lastModified };
    const isShort = Object.values(identity).join('').length <= SOURCE_IDENTITY_MAX_CHARS;
    const hasValidator = (etag ?? lastModified) !== undefined;
    // Nobody can tell whether a body that ends with its connection was cut short, nor whether a packed one was.
    const mayBeCut = framing === 'close' || isCoded;
    if (status === 200 && !mayBeCut && hasValidator && isShort && mayBeKept(headers)) return identity;
    this.#drop(url);
    return undefined;
  }

  #add(url: string, { response }: Download, file: FileTerms, parts: readonly Bytes[]): SharedContent | undefined {
    this.#drop(url);
    if (!this.#takes(file)) return undefined;
    const content = new SharedContent(file, parts, (changed) => this.#changed(url, changed));
    content.freshUntil = freshUntil(url, response);
    this.#entries.set(url, content);
    return content;
  }

  /** Takes memory for a file. Those that nobody uses go for it: first its owner's, where that has its share. */
  #takes({ owner, length }: FileTerms): boolean {
    const isOver = () => !this.#memory.mayHave(owner, length);
    const isFull = () => this.bytes + length > SOURCE_CACHE_MAX_BYTES || this.#entries.size >= SOURCE_CACHE_MAX_ENTRIES;
    const unused = [...this.#entries.values()].filter(({ users }) => users === 0);
    const bytesOf = (files: readonly SharedContent[]) => files.reduce((sum, each) => sum + each.length, 0);
    const own = bytesOf(unused.filter((each) => each.owner === owner));
    // Nothing goes in vain.
    if (!this.#memory.mayHave(owner, length - own) || this.bytes - bytesOf(unused) + length > SOURCE_CACHE_MAX_BYTES)
      return false;
    this.#dropUnused((each) => isOver() && each.owner === owner);
    this.#dropUnused(isFull);
    return !isFull() && this.#memory.of(owner).take(length);
  }

  /** Drops what nobody uses, the least recently used first, for as long as it is wanted. */
  #dropUnused(isWanted: (unused: SharedContent) => boolean): void {
    for (const [url, content] of this.#entries) if (content.users === 0 && isWanted(content)) this.#drop(url);
  }

  #give({ owner, length }: SharedContent): void {
    this.#memory.of(owner).give(length);
  }

  /** What is still used gives its memory back when nobody uses it any more. */
  #drop(url: string): void {
    const entry = this.#entries.get(url);
    if (entry === undefined) return;
    this.#entries.delete(url);
    if (entry.users === 0) this.#give(entry);
    else this.#replaced.add(entry);
  }

  #changed(url: string, content: SharedContent): void {
    if (content.isBroken && this.#entries.get(url) === content) this.#drop(url);
    if (content.users === 0 && this.#replaced.delete(content)) this.#give(content);
  }
}

function isSame(known: SharedContent, { finalUrl, etag, lastModified }: Identity, length: number): boolean {
  const { identity } = known;
  const isOne = identity.finalUrl === finalUrl && identity.etag === etag && identity.lastModified === lastModified;
  return isOne && known.length === length && !known.isBroken;
}

/** Whether an answer is of that version (RFC 9110 §8.8.3.2). `unnamed`: one that does not say is. */
export function isVersion({ etag, lastModified }: Identity, headers: Headers, unnamed: boolean): boolean {
  const [name, known] = etag === undefined ? ['last-modified', lastModified] : ['etag', etag];
  const named = headers.get(name);
  return named === null ? unnamed : weak(named) === weak(known ?? '');
}

const weak = (validator: string): string => validator.replace(/^W\//, '');

const mayBeKept = (headers: Headers): boolean =>
  !/\b(no-store|private)\b/i.test(headers.get('cache-control') ?? '') && !headers.has('vary');

/**
 * The time from which the server is to be asked again, on the clock of `performance`, by the answer that it gave now:
 * `max-age` or `s-maxage` less `Age` (RFC 9111 §4.2). A long one counts as `SOURCE_FRESH_MAX_SEC`. A redirect may lead
 * elsewhere each time, and what it leads to does not say for how long it does not.
 */
export function freshUntil(asked: string, { url, headers }: Pick<GetResponse, 'url' | 'headers'>): number {
  if (url !== URL.parse(asked)?.href) return 0;
  const control = headers.get('cache-control')?.toLowerCase() ?? '';
  const lifetime = /\bs-maxage="?(\d{1,9})/.exec(control) ?? /\bmax-age="?(\d{1,9})/.exec(control);
  const age = /^\d{1,9}$/.exec(headers.get('age') ?? '')?.[0] ?? 0;
  const seconds = lifetime === null || /\bno-cache\b/.test(control) ? 0 : Number(lifetime[1]) - Number(age);
  return performance.now() + 1000 * Math.min(Math.max(seconds, 0), SOURCE_FRESH_MAX_SEC);
}

/** The fields that make a request for it conditional. */
export const conditions = ({ identity: { etag, lastModified } }: SharedContent): Record<string, string> => ({
  ...(etag === undefined ? {} : { 'if-none-match': etag }),
  ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
});
