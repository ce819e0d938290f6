/**
 * Recordings under their signed URLs (interface, Recording media URLs; contract §5). Outside admission: whoever has the
 * URL may fetch.
 *
 *   signature (403) → recording (404) → retention (410) → growing: as it is written · finished: with length and ranges
 *
 * A caller that is sent a body needs a place (503): a listener's where this process feeds it, a file reader's where the
 * server sends a file by itself. Applications share both.
 */
import type { PeerResponse, PeerStreams } from '../../call/ports/peer-streams.ts';
import type { RecordingMedia, Recordings } from '../../call/ports/recordings.ts';
import type { Clock } from '../../clock.ts';
import { HTTP_IDLE_TIMEOUT_SEC, MEDIA_RETRY_AFTER_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Problem, problems } from '../../problem.ts';
import { GrowingFiles } from '../../recording-storage/growing/growing-file.ts';
import type { RecordingUrlKind, RecordingUrls } from '../../recording-storage/signed-url.ts';
import { newTraceparent } from '../../tracing/tracing.ts';
import { failureResponse } from '../failure.ts';
import { FileReaders } from '../file-readers.ts';
import { type ByteSource, type Connection, type Listener, Listeners } from '../listeners.ts';
import type { HttpMetrics } from '../metrics.ts';
import type { HttpPeer } from '../pipelining.ts';
import { ifMatch, noneMatch, rangeHolds, rangeOf } from '../range.ts';
import { problemResponse } from '../response.ts';

export interface RecordingMediaDeps {
  readonly recordings: Pick<Recordings, 'media'>;
  /** The recordings, or undefined when nothing is recorded: every URL is refused. */
  readonly recordingUrls?: Pick<RecordingUrls, 'verify'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<HttpMetrics, 'request'>;
  /** Lifts the server's idle timeout of a request. */
  readonly disableIdleTimeout?: (request: Request) => void;
  /** Sets it, in seconds. */
  readonly setIdleTimeout?: (request: Request, seconds: number) => void;
  /** A growing file has a first reader, or none any more. */
  readonly followed?: (path: string, followed: boolean) => void;
  /** The other nodes of a cluster, for recordings that are on their disks. */
  readonly streams?: PeerStreams | undefined;
  /**
   * The far end of a request that is still being answered, undefined once it has been. Without it, who reads a finished
   * recording from a file is not counted.
   */
  readonly peer?: ((request: Request) => HttpPeer | undefined) | undefined;
  /**
   * The path as it was sent, where a server that tidies URLs (a backslash to a slash, `..` away) knows it. It has to
   * equal the URL's.
   */
  readonly sentPath?: (request: Request) => string | undefined;
}

/** The route for Bun's router, which matches paths as they were sent, and tells their decoded parts as `params`. */
export const MEDIA_ROUTE = '/v1/media/:recording_uuid/:kind';
export function sentMediaPath(request: Request & { readonly params?: Readonly<Record<string, string>> }): string | undefined {
  const { params } = request;
  return params && `/v1/media/${params.recording_uuid}/${params.kind}`;
}

/** Everything below this is a recording's, or refused. */
export const MEDIA_PATH = '/v1/media/*';

// The URL is the capability, and carries no credentials: a page of any origin may play what it was given.
const OPEN = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
};
/** The fields of another node's response that are its own to say. */
const FROM_PEER = [
  ...['content-type', 'content-disposition', 'content-length', 'content-range'],
  ...['accept-ranges', 'etag', 'cache-control', 'retry-after'],
];
const SIGNATURE_LAST = /[?&]signature=[0-9a-f]{64}$/;

/**
 * A URL of another path that ends as a signed one does: a signed URL with its path altered is 403 like any other
 * (contract §5).
 */
export const wasSigned = (url: string): boolean => SIGNATURE_LAST.test(url);

/** The door to recordings under their signed URLs. */
export class RecordingMediaDoor {
  readonly #deps: RecordingMediaDeps;
  readonly #growing: GrowingFiles;
  readonly #listeners: Listeners;
  readonly #fileReaders: FileReaders;

  constructor(deps: RecordingMediaDeps) {
    this.#deps = deps;
    this.#growing = new GrowingFiles(deps.clock, deps.followed);
    this.#listeners = new Listeners(deps.clock);
    this.#fileReaders = new FileReaders(deps.clock);
  }

  /** Responses that are fed by this process. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Answers any request below `MEDIA_PATH`. Never rejects. */
  async answer(request: Request): Promise<Response> {
    const { clock, log, metrics } = this.#deps;
    const started = clock.now();
    const traceparent = newTraceparent();
    let response: Response;
    try {
      const outcome = await this.#decide(request);
      response = outcome instanceof Response ? outcome : problemResponse(outcome, traceparent);
    } catch (error) {
      response = failureResponse(error, MEDIA_PATH, log, traceparent);
    }
    for (const [name, value] of Object.entries(OPEN)) response.headers.set(name, value);
    metrics.request(request.method, MEDIA_PATH, response.status, (clock.now() - started) / 1000);
    return response;
  }

  async #decide(request: Request): Promise<Response | Problem> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return problems.methodNotAllowed('GET, HEAD');
    const signed = this.#verified(request);
    if (signed === undefined) return problems.forbidden('Forbidden');
    return await this.#sent(request, signed.recordingUuid, signed.kind);
  }

  /** Sends a recording of this node to another one, which has verified the URL. Never rejects. */
  async answerPeer(request: Request, recordingUuid: string, kind: RecordingUrlKind): Promise<Response> {
    const outcome = await this.#sent(request, recordingUuid, kind).catch((error: unknown) =>
      this.#unreachable(recordingUuid, error),
    );
    return outcome instanceof Response ? outcome : problemResponse(outcome, newTraceparent());
  }

  async #sent(request: Request, recordingUuid: string, kind: RecordingUrlKind): Promise<Response | Problem> {
    const { recordings } = this.#deps;
    let media: RecordingMedia | undefined;
    try {
      media = await recordings.media(recordingUuid);
    } catch (error) {
      return this.#unreachable(recordingUuid, error);
    }
    if (media === undefined) return problems.notFound('Recording');
    if (media.state === 'removed') return problems.removed('Recording');
    if (media.state === 'elsewhere') return await this.#fromPeer(request, media, recordingUuid, kind);
    if (media.state === 'growing') return await this.#whileWritten(request, media, recordingUuid, kind);
    return kind === 'live' ? problems.notLive() : await this.#finished(request, media, recordingUuid);
  }

  /** Passes on what the node with the file sends, as it comes. */
  async #fromPeer(
    request: Request,
    { volumeId, appUuid }: Extract<RecordingMedia, { readonly state: 'elsewhere' }>,
    recordingUuid: string,
    kind: RecordingUrlKind,
  ): Promise<Response | Problem> {
    const { streams } = this.#deps;
    if (streams === undefined) return problems.notFound('Recording');
    const nodeId = streams.nodeOfVolume(volumeId);
    const object = { kind: 'media', recordingUuid, as: kind } as const;
    const isHead = request.method === 'HEAD';
    const listener = isHead ? undefined : this.#listeners.admit(recordingUuid, appUuid, this.#connectionOf(request));
    if (!isHead && listener === undefined) return busy();
    let response: PeerResponse | undefined;
    try {
      response =
        nodeId === undefined ? undefined : await streams.get(nodeId, object, isHead ? wholeOf(request) : request.headers);
    } finally {
      if (response === undefined) listener?.close();
    }
    if (response === undefined) return this.#unreachable(recordingUuid, 'its node is away');
    const headers = new Headers({ traceparent: newTraceparent() });
    for (const name of FROM_PEER) {
      const value = response.headers.get(name);
      if (value !== null) headers.set(name, value);
    }
    const init = { status: response.status, headers };
    if (listener !== undefined && response.status !== 304) return new Response(listener.listen(response), init);
    listener?.close();
    response.close();
    return new Response(null, init);
  }

  #verified(request: Request): ReturnType<RecordingUrls['verify']> {
    const { sentPath, recordingUrls, clock } = this.#deps;
    // The URL is read as it was sent: a parser would accept more than one spelling.
    const [, path = '', search = ''] = /^[^:]+:\/\/[^/?#]*([^?]*)(.*)$/s.exec(request.url) ?? [];
    if (sentPath !== undefined && sentPath(request) !== path) return undefined;
    return recordingUrls?.verify(path, search, clock.now());
  }

  #unreachable(recordingUuid: string, error: unknown): Problem {
    this.#deps.log.warn({ recording_uuid: recordingUuid, reason: String(error) }, 'a recording could not be read');
    return problems.unavailable('Recording cannot be read now. See Retry-After header.', MEDIA_RETRY_AFTER_SEC);
  }

  async #whileWritten(
    request: Request,
    source: Growing,
    recordingUuid: string,
    kind: RecordingUrlKind,
  ): Promise<Response | Problem> {
    if (kind === 'live' && source.over()) return problems.notLive();
    const headers = { ...headersOf(recordingUuid), 'accept-ranges': 'none', 'cache-control': 'no-store' };
    // RFC 9110 §8.6: without it the server would tell a length of 0.
    if (request.method === 'HEAD') return new Response(null, { headers: { ...headers, 'transfer-encoding': 'chunked' } });
    const listener = this.#listeners.admit(recordingUuid, source.appUuid, this.#connectionOf(request));
    if (listener === undefined) return busy();
    try {
      const reader = await this.#growing.follow(source, kind);
      if (reader !== undefined) return new Response(listener.listen(reader, reader.header), { headers });
      listener.close();
      return problems.notFound('Recording');
    } catch (error) {
      listener.close();
      return this.#unreachable(recordingUuid, error);
    }
  }

  async #finished(
    request: Request,
    { file, appUuid }: Extract<RecordingMedia, { readonly state: 'finished' }>,
    recordingUuid: string,
  ): Promise<Response | Problem> {
    const etag = `"${file.etag}"`;
    const headers = { ...headersOf(recordingUuid), 'accept-ranges': 'bytes', 'cache-control': 'private, no-cache', etag };
    const asked = request.headers;
    if (!ifMatch(asked.get('if-match'), file.etag)) return problems.preconditionFailed();
    if (noneMatch(asked.get('if-none-match'), file.etag)) return new Response(null, { status: 304, headers });
    // RFC 9110 §14.2: a range is asked by GET only.
    const isRanged = request.method === 'GET' && rangeHolds(asked.get('if-range'), file.etag);
    const range = isRanged ? rangeOf(asked.get('range'), file.bytes) : undefined;
    if (range === 'unsatisfiable') {
      const refused = problemResponse(problems.unsatisfiable(), headers.traceparent);
      refused.headers.set('content-range', `bytes */${file.bytes}`);
      return refused;
    }
    const { start, end } = range ?? { start: 0, end: file.bytes };
    const init = {
      status: range === undefined ? 200 : 206,
      headers: {
        ...headers,
        'content-length': String(end - start),
        ...(range === undefined ? {} : { 'content-range': `bytes ${start}-${end - 1}/${file.bytes}` }),
      },
    };
    if (request.method === 'HEAD') return new Response(null, init);
    // The place comes first: a file that has to be fetched from an object store is waited for.
    const leave = this.#fileReader(request, appUuid);
    if (leave === undefined) return busy();
    const local = await file.local?.().catch(() => undefined);
    if (local !== undefined) return new Response(local(start, end), init);
    leave();
    const source = exactly(file.read(start, end), end - start);
    // Such a body never has to wait for anything, so the idle timeout stays.
    const listener = this.#listeners.admit(recordingUuid, appUuid, { ...this.#connectionOf(request), wait: () => {} });
    if (listener !== undefined) return await this.#streamed(listener, recordingUuid, source, end - start, init);
    source.close();
    return busy();
  }

  #fileReader(request: Request, appUuid: string): (() => void) | undefined {
    const { peer } = this.#deps;
    return peer === undefined ? () => {} : this.#fileReaders.admit({ appUuid, isOpen: () => peer(request) !== undefined });
  }

  /** Sends the bytes of a store. A store that refuses is told by a status, not by a body that breaks off. */
  async #streamed(
    listener: Listener,
    recordingUuid: string,
    source: ByteSource,
    bytes: number,
    init: ResponseInit,
  ): Promise<Response | Problem> {
    try {
      const first = await source.next();
      if (first?.length !== bytes) return new Response(listener.listen(source, first), init);
      listener.close();
      source.close();
      return new Response(new Uint8Array(first), init);
    } catch (error) {
      listener.close();
      source.close();
      return this.#unreachable(recordingUuid, error);
    }
  }

  #connectionOf(request: Request): Connection {
    const { disableIdleTimeout, setIdleTimeout } = this.#deps;
    return {
      wait: () => disableIdleTimeout?.(request),
      resume: () => setIdleTimeout?.(request, HTTP_IDLE_TIMEOUT_SEC),
      drop: () => setIdleTimeout?.(request, 1),
    };
  }
}

const busy = () => problems.unavailable('Too many listeners. See Retry-After header.', MEDIA_RETRY_AFTER_SEC);

/** The fields of a HEAD for another node, which is sent a GET. RFC 9110 §14.2: a range is asked by GET only. */
function wholeOf(request: Request): Headers {
  const headers = new Headers(request.headers);
  headers.delete('range');
  return headers;
}

type Growing = Extract<RecordingMedia, { readonly state: 'growing' }>;

const headersOf = (recordingUuid: string) => ({
  'content-type': 'audio/wav',
  'content-disposition': `inline; filename="${recordingUuid}.wav"`,
  traceparent: newTraceparent(),
});

/** The stream as a source that breaks off where it is not as long as was told. */
function exactly(stream: ReadableStream<Uint8Array>, bytes: number): ByteSource {
  const reader = stream.getReader();
  let left = bytes;
  return {
    async next() {
      const { done, value } = await reader.read();
      if (done && left === 0) return undefined;
      left -= value?.length ?? 0;
      if (done || left < 0) throw new Error('a recording is not as long as it was');
      return value;
    },
    close() {
      // A stream that is over or has failed has nothing to cancel.
      reader.cancel().catch(() => {});
    },
  };
}
