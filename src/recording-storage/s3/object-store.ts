/**
 * An S3 bucket as far as recordings need it, over signed HTTP requests (AWS Signature 4, path-style addresses, which
 * every implementation of S3 knows):
 *
 *   PUT one object · GET a range · HEAD · DELETE
 *   POST ?uploads → PUT ?partNumber&uploadId (each part) → POST ?uploadId (join them) · DELETE ?uploadId
 *
 * Bodies are hashed by the caller, and the hash is signed: the store itself refuses what was damaged on the way. One
 * attempt a call; who calls decides what is worth another. The endpoint is the operator's setting, so its address is
 * not screened. Left out: listing, copies, versions, ACLs.
 */
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { AwsV4Signer } from 'aws4fetch';
import { unlessAborted } from '../../bounds/unless-aborted.ts';
import type { Clock } from '../../clock.ts';
import { OBJECT_ANSWER_MAX_BYTES, OBJECT_COMPLETE_MAX_MS, OBJECT_REQUEST_MAX_MS } from '../../limits.ts';
import { atFirstThatConnects, firstOfEachVersion, isUnconnected } from '../../outbound/either-version.ts';
import { pinnedTo } from '../../outbound/pinned.ts';
import { lookUpTrusted } from '../../outbound/system-names.ts';
import { connectionFault, faultOf, ObjectError } from './object-error.ts';

interface ObjectStoreSettings {
  readonly bucket: string;
  /** The prefix of every key, with or without a `/` at its ends; without `.` and `..` in it. */
  readonly prefix: string;
  /** Origin of the store, and a path where it has one; no user, query or fragment. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Bytes that are in memory, with their SHA-256 in hex. */
export interface HashedBytes {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly sha256: string;
}

interface PartTag {
  readonly number: number;
  /** The tag as the store gave it, with its quotes. */
  readonly etag: string;
}

export interface CallOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Call extends CallOptions {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** The name of the object; undefined means the bucket itself. */
  readonly name?: string | undefined;
  readonly query?: string;
  readonly body?: HashedBytes;
  readonly headers?: Readonly<Record<string, string>>;
}

const NOTHING = createHash('sha256').digest('hex');

export class ObjectStore {
  readonly #settings: ObjectStoreSettings;
  readonly #clock: Clock;
  readonly #bucketUrl: string;
  readonly #path: string;
  /** Signing keys of the day. */
  readonly #keys = new Map<string, ArrayBuffer>();

  constructor(settings: ObjectStoreSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    const endpoint = new URL(settings.endpoint);
    const segments = settings.prefix.split('/').filter((segment) => segment !== '');
    this.#bucketUrl = `${endpoint.origin}${endpoint.pathname.replace(/\/+$/, '')}/${encoded(settings.bucket)}`;
    this.#path = segments.map((segment) => `${encoded(segment)}/`).join('');
  }

  /** Which store and place this is: what was begun in another is none of ours. */
  get place(): string {
    return `${this.#bucketUrl}/${this.#path}`;
  }

  /** Size in bytes. Undefined: there is no such object. */
  async head(name: string, options: CallOptions = {}): Promise<number | undefined> {
    try {
      return await this.#call({ ...options, method: 'HEAD', name }, async (response) => {
        const length = Number(response.headers.get('content-length') ?? Number.NaN);
        if (!Number.isSafeInteger(length)) throw new ObjectError('away', 'no Content-Length', response.status);
        return length;
      });
    } catch (error) {
      if (!(error instanceof ObjectError && error.fault === 'missing')) throw error;
    }
    await this.#bucketIsThere(options);
    return undefined;
  }

  /** Bytes `start` to `end` (exclusive), whole. */
  get(name: string, start: number, end: number, options: CallOptions = {}): Promise<Uint8Array> {
    const headers = { range: `bytes=${start}-${end - 1}` };
    return this.#call({ ...options, method: 'GET', name, headers }, async (response) => {
      // A store that does not know ranges would send everything.
      if (response.status !== 206) throw new ObjectError('refused', 'no ranges', response.status);
      if (response.headers.get('content-length') !== String(end - start))
        throw new ObjectError('rejected', 'other length', response.status);
      if (response.headers.get('content-range')?.startsWith(`bytes ${start}-${end - 1}/`) === false)
        throw new ObjectError('rejected', 'other range', response.status);
      if ((response.headers.get('content-encoding') ?? 'identity') !== 'identity')
        throw new ObjectError('rejected', 'other coding', response.status);
      const bytes = new Uint8Array(await response.arrayBuffer()); // no longer than its Content-Length
      if (bytes.byteLength !== end - start) throw new ObjectError('away', 'cut off', response.status);
      return bytes;
    });
  }

  put(name: string, body: HashedBytes, options: CallOptions = {}): Promise<void> {
    return this.#call({ ...options, method: 'PUT', name, body, headers: WAV }, drained);
  }

  /** No error where there is none. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.#call({ ...options, method: 'DELETE', name }, drained).catch(but('missing'));
  }

  /** Begins a multipart upload. */
  createUpload(name: string, options: CallOptions = {}): Promise<string> {
    return this.#call({ ...options, method: 'POST', name, query: 'uploads=', headers: WAV }, async (response) => {
      const uploadId = /<UploadId>([^<]{1,2048})<\/UploadId>/.exec(await xml(response))?.[1];
      if (uploadId === undefined) throw new ObjectError('away', 'no UploadId', response.status);
      return unescaped(uploadId);
    });
  }

  uploadPart(name: string, uploadId: string, number: number, body: HashedBytes, options: CallOptions = {}): Promise<PartTag> {
    const query = `partNumber=${number}&uploadId=${encoded(uploadId)}`;
    return this.#call({ ...options, method: 'PUT', name, query, body }, async (response) => {
      await drained(response);
      const etag = response.headers.get('etag');
      if (etag === null || etag.length > 256) throw new ObjectError('away', 'no ETag', response.status);
      return { number, etag };
    });
  }

  /** Joins the parts. The store may say 200 at once and tell only in the body, minutes later, that it failed. */
  async completeUpload(name: string, uploadId: string, parts: readonly PartTag[], options: CallOptions = {}): Promise<void> {
    const list = parts.map(({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`);
    const body = hashed(
      new TextEncoder().encode(
        `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${list.join('')}</CompleteMultipartUpload>`,
      ),
    );
    const query = `uploadId=${encoded(uploadId)}`;
    const headers = { 'content-type': 'application/xml' };
    const call = { timeoutMs: OBJECT_COMPLETE_MAX_MS, ...options, method: 'POST', name, query, body, headers } as const;
    await this.#call(call, async (response) => {
      const answer = await xml(response);
      if (!answer.includes('<CompleteMultipartUploadResult')) throw faultOf(500, answer);
    });
  }

  /** Gives up a multipart upload; no error where there is none. */
  async abortUpload(name: string, uploadId: string, options: CallOptions = {}): Promise<void> {
    const query = `uploadId=${encoded(uploadId)}`;
    await this.#call({ ...options, method: 'DELETE', name, query }, drained).catch(but('missing', 'upload unknown'));
  }

  /**
   * A HEAD cannot say whether the object is missing or its bucket. Who may not ask for buckets is believed that there
   * is one.
   */
  async #bucketIsThere(options: CallOptions): Promise<void> {
    await this.#call({ ...options, method: 'HEAD' }, drained).catch((error: unknown) => {
      if (error instanceof ObjectError && error.fault === 'missing') throw new ObjectError('refused', 'NoSuchBucket', 404);
      if (!(error instanceof ObjectError && error.status === 403)) throw error;
    });
  }

  /** Makes one signed request. Time and `signal` hold for the answer's body too. Rejects with `ObjectError` only. */
  async #call<T>(call: Call, take: (response: Response) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const stop = () => abort.abort();
    const disarm = this.#clock.at(this.#clock.now() + (call.timeoutMs ?? OBJECT_REQUEST_MAX_MS), stop);
    call.signal?.addEventListener('abort', stop);
    if (call.signal?.aborted) stop();
    let response: Response | undefined;
    try {
      response = await this.#fetch(call, abort.signal);
      if (!response.ok) throw faultOf(response.status, await xml(response).catch(() => ''));
      return await take(response);
    } catch (error) {
      // What is left of an answer would hold its connection.
      await response?.body?.cancel().catch(() => {});
      throw abort.signal.aborted ? new ObjectError('away', call.signal?.aborted ? 'stopped' : 'timeout') : connectionFault(error);
    } finally {
      disarm();
      call.signal?.removeEventListener('abort', stop);
    }
  }

  /** Sends a signed request to an address of the endpoint: of IPv4, or of IPv6 where that cannot be connected to. */
  async #fetch(call: Call, signal: AbortSignal): Promise<Response> {
    const [url, request] = await this.#signed(call, signal);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const found = isIP(host) === 0 ? await unlessAborted(lookUpTrusted(host), signal) : [{ address: host }];
    const addresses = firstOfEachVersion(found.map(({ address }) => address));
    if (addresses.length === 0) throw new ObjectError('away', 'no address');
    return await atFirstThatConnects(addresses, (address) => fetch(...pinnedTo(address, url, request)), isUnconnected);
  }

  async #signed(call: Call, signal: AbortSignal): Promise<[URL, Parameters<typeof pinnedTo>[2]]> {
    const { accessKeyId, secretAccessKey, region } = this.#settings;
    const path = call.name === undefined ? '' : `/${this.#path}${encoded(call.name)}`;
    const url = `${this.#bucketUrl}${path}${call.query === undefined ? '' : `?${call.query}`}`;
    // One key a day and region is kept; yesterday's are of no more use.
    if (this.#keys.size > 1) this.#keys.clear();
    // The time of day is the machine's, not the clock's: that one never steps, and the store compares with its own.
    const signer = new AwsV4Signer({
      method: call.method,
      url,
      headers: { ...call.headers, 'x-amz-content-sha256': call.body?.sha256 ?? NOTHING },
      accessKeyId,
      secretAccessKey,
      service: 's3',
      region,
      cache: this.#keys,
    });
    const { headers } = await signer.sign();
    const request = { method: call.method, body: call.body?.bytes ?? null, redirect: 'manual', signal } as const;
    return [new URL(url), { ...request, headers: Object.fromEntries(headers) }];
  }
}

const WAV = { 'content-type': 'audio/wav' };

export const hashed = (bytes: Uint8Array<ArrayBuffer>): HashedBytes => ({
  bytes,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});

/** Encodes as RFC 3986 §2.3 has it, which the signature asks for. `encodeURIComponent` leaves five characters. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&#39;': "'",
};
const unescaped = (text: string): string => text.replace(/&(?:amp|lt|gt|quot|apos|#39);/g, (each) => ENTITIES[each] ?? each);
const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (each) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[each] ?? each);

const xml = async (response: Response): Promise<string> =>
  new TextDecoder().decode(await upTo(response, OBJECT_ANSWER_MAX_BYTES));
const drained = async (response: Response): Promise<void> => {
  await upTo(response, OBJECT_ANSWER_MAX_BYTES);
};

/** The body, which is no longer than this; a longer one is no answer of ours. */
async function upTo(response: Response, mostBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > mostBytes) throw new ObjectError('away', 'answer too long', response.status);
    chunks.push(chunk);
  }
  const only = chunks[0];
  if (chunks.length === 1 && only !== undefined) return only;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/** Passes over these faults. */
const but =
  (...faults: readonly ObjectError['fault'][]) =>
  (error: unknown): void => {
    if (!(error instanceof ObjectError && faults.includes(error.fault))) throw error;
  };
