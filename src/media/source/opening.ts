/** A URL up to its first audio, and why one that has none is refused (interface, 502 detail object; contract §3). */
import { SOURCE_CONNECT_MS, SOURCE_FIRST_BYTE_MS, SOURCE_HEAD_MAX_BYTES, SOURCE_REDIRECTS_MAX } from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import { OutboundError, type OutboundFailure } from '../../outbound/outbound.ts';
import type { ScreenedOutbound } from '../../outbound/safe-fetch.ts';
import type { SourceDetail, SourceReason } from '../../problem.ts';
import type { SourceKind } from '../decode/decode-worker.ts';
import { native } from '../native.ts';
import { sniff } from './sniff.ts';

export type AudioOutbound = Pick<ScreenedOutbound, 'get'>;

/** Why a source was not admitted. */
export class Refusal extends Error {
  readonly detail: SourceDetail;
  constructor(reason: SourceReason, retryable: boolean, upstreamStatus?: number) {
    super(reason);
    this.detail = { reason, retryable, ...(upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }) };
  }
}

const FAILURE: Readonly<Record<OutboundFailure, readonly [SourceReason, boolean]>> = {
  rejected: ['rejected', false],
  timeout: ['timeout', true],
  unreachable: ['unreachable', true],
  dns: ['unreachable', true],
  tls: ['unreachable', true],
  invalid_response: ['invalid_response', false],
};

/** Contract §3, `detail.reason`, for an answer that is not 200. */
function refusalOfStatus(status: number): Refusal {
  if (status === 404 || status === 410) return new Refusal('not_found', false, status);
  if (status === 401 || status === 403) return new Refusal('access_denied', false, status);
  if (status >= 500) return new Refusal('invalid_response', true, status);
  if (status >= 400) return new Refusal('rejected', false, status);
  return new Refusal('invalid_response', false, status);
}

/** Asks for the audio. `headers` may make the request conditional or partial, and only then is 304 or 206 an answer. Rejects with `Refusal` or a bug. */
export async function requestAudio(
  outbound: AudioOutbound,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<GetResponse> {
  const response = await outbound
    .get({
      url,
      headers: { accept: 'audio/wav, audio/mpeg, audio/*;q=0.9, */*;q=0.1', ...headers },
      connectTimeoutMs: SOURCE_CONNECT_MS,
      responseTimeoutMs: SOURCE_FIRST_BYTE_MS,
      redirects: SOURCE_REDIRECTS_MAX,
      signal,
    })
    .catch((error: unknown) => {
      if (error instanceof OutboundError) throw new Refusal(...FAILURE[error.failure]);
      throw error;
    });
  const conditional = 'if-none-match' in headers || 'if-modified-since' in headers;
  if (response.status === 200 || (response.status === 304 && conditional) || (response.status === 206 && 'range' in headers)) {
    // A coded body would have no bound of its own; it was not asked for.
    const coding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
    if (coding === 'identity' || coding === '') return response;
    response.body.close();
    throw new Refusal('unsupported', false, response.status);
  }
  response.body.close();
  throw refusalOfStatus(response.status);
}

/** Reads until the content tells what it is. `ended`: the head is all there is. Rejects with `Refusal` where it is nothing we play. */
export async function recognise(
  next: () => Promise<Uint8Array | undefined>,
): Promise<{ readonly kind: SourceKind; readonly head: Uint8Array<ArrayBuffer>; readonly ended: boolean }> {
  let head = new Uint8Array(4_096);
  let length = 0;
  let lookAt = 0;
  for (;;) {
    let chunk: Uint8Array | undefined;
    try {
      chunk = await next();
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal('unreachable', true, 200);
    }
    if (chunk !== undefined) {
      if (length + chunk.length > head.length) {
        const longer = new Uint8Array(2 * (length + chunk.length));
        longer.set(head.subarray(0, length));
        head = longer;
      }
      head.set(chunk, length);
      length += chunk.length;
      if (length < lookAt) continue;
    }
    const kind = sniff(head.subarray(0, length), chunk === undefined, native.wavProbe);
    if (kind === 'unsupported' || (kind === 'more' && length > SOURCE_HEAD_MAX_BYTES))
      throw new Refusal('unsupported', false, 200);
    lookAt = length * 1.25; // so that a head in crumbs is not looked through for each
    if (kind !== 'more') return { kind, head: head.slice(0, length), ended: chunk === undefined };
  }
}

/** Waits for `pending`, but no longer than `ms`; then `late` is thrown and `giveUp` done. */
export async function within<T>(pending: Promise<T>, ms: number, giveUp: () => void, late: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(late());
      giveUp();
    }, ms);
  });
  try {
    return await Promise.race([pending, stalled]);
  } finally {
    clearTimeout(timer);
  }
}
