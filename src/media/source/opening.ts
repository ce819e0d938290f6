/** A URL up to its first audio, and why one that has none is refused (interface, 502 detail object; contract §3). */
import { SOURCE_CONNECT_MS, SOURCE_FIRST_BYTE_MS, SOURCE_REDIRECTS_MAX } from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import { OutboundError, type OutboundFailure } from '../../outbound/outbound.ts';
import type { ScreenedOutbound } from '../../outbound/safe-fetch.ts';
import type { SourceDetail, SourceReason } from '../../problem.ts';

export type AudioOutbound = Pick<ScreenedOutbound, 'get'>;

/** Connections for what an application plays. */
export const audioFor = (appUuid: string, outbound: AudioOutbound): AudioOutbound => ({
  get: (request) => outbound.get({ ...request, owner: `audio of ${appUuid}` }),
});

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

/**
 * The refusal that a failed connection stands for; anything else as it is. `status` is that of the answer whose body
 * failed, undefined where none came.
 */
export function refusalOf(error: unknown, status?: number): unknown {
  return error instanceof OutboundError ? new Refusal(...FAILURE[error.failure], error.status ?? status) : error;
}

/** Contract §3, `detail.reason`, for an answer that is not 200. */
function refusalOfStatus(status: number): Refusal {
  if (status === 404 || status === 410) return new Refusal('not_found', false, status);
  if (status === 401 || status === 403) return new Refusal('access_denied', false, status);
  if (status >= 500) return new Refusal('invalid_response', true, status);
  if (status >= 400) return new Refusal('rejected', false, status);
  return new Refusal('invalid_response', false, status);
}

/** Asks for the audio. `headers` may make the request conditional or partial. Rejects with `Refusal` or a bug. */
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
      throw refusalOf(error);
    });
  if (isAnswer(response, headers)) return response;
  response.body.close();
  throw refusalOfStatus(response.status);
}

/**
 * Whether it is what was asked for. A 206 that was not asked for is, where it begins at the first byte: some caches
 * make one of every file.
 */
function isAnswer({ status, headers }: GetResponse, asked: Readonly<Record<string, string>>): boolean {
  if (status === 200) return true;
  if (status === 304) return 'if-none-match' in asked || 'if-modified-since' in asked;
  if (status !== 206) return false;
  return 'range' in asked || /^bytes 0-/.test(headers.get('content-range') ?? 'bytes 0-');
}
