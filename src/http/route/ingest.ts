/**
 * The body of a push (interface, Session playback): raw audio, read only as fast as it is heard, so that the sender's
 * socket is held back. Outside the body limit and the media-type rule, inside everything else.
 */

import { Pieces } from '../../bounds/pieces.ts';
import type { PeerStreams } from '../../call/ports/peer-streams.ts';
import type { Answer, Sessions } from '../../call/ports/sessions.ts';
import type { OpenIngest } from '../../call/session/ingests.ts';
import type { Clock } from '../../clock.ts';
import { isUuid } from '../../id.ts';
import { HTTP_IDLE_TIMEOUT_SEC, INGEST_PIECE_LEAST_BYTES } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { ok } from '../request-context.ts';
import { route } from '../route.ts';

/**
 * The server's idle timeout of a request is lifted for its body, since a sender that is held back is silent for longer,
 * and then set again, in seconds.
 */
export interface IdleTimeout {
  readonly disableIdleTimeout?: (request: Request) => void;
  readonly setIdleTimeout?: (request: Request, seconds: number) => void;
}

export const ingestRoutes = (
  sessions: Pick<Sessions, 'ingest'>,
  clock: Clock,
  idle: IdleTimeout,
  streams?: PeerStreams,
): readonly Route[] => [
  route(
    {
      method: 'POST',
      path: '/v1/ingest/:ingest_uuid',
      auth: 'application',
      tag: 'Playback',
      resource: 'Ingest',
      summary: 'Send the audio of a push, once, as one body of raw samples',
      success: [200, '`{operation_uuid, bytes_received}`: the body was taken; its last two seconds are still to be heard.'],
      maxBytes: Number.POSITIVE_INFINITY,
      buckets: ['ingest'],
    },
    ({ params, appUuid, request }) => {
      const name = params.ingest_uuid ?? '';
      const here = ingestWork(sessions, clock, idle, { appUuid, name, request });
      const nodeId = here === undefined && isUuid(name) ? streams?.nodeOfIngest(name) : undefined;
      if (streams === undefined || nodeId === undefined) return here;
      return async () => {
        // A sender that is held back is silent for longer than the server waits.
        idle.disableIdleTimeout?.(request);
        const answer = await streams.send(nodeId, { kind: 'ingest', appUuid, ingestUuid: name }, request);
        idle.setIdleTimeout?.(request, HTTP_IDLE_TIMEOUT_SEC);
        return answer;
      };
    },
  ),
];

/** The work of taking a body for a push of this node. Undefined: it has no such push. */
export function ingestWork(
  sessions: Pick<Sessions, 'ingest'>,
  clock: Clock,
  idle: IdleTimeout,
  { appUuid, name, request }: { readonly appUuid: string; readonly name: string; readonly request: Request },
): (() => Promise<Answer | Problem> | Problem) | Problem | undefined {
  const found = isUuid(name) ? sessions.ingest(appUuid, name) : undefined;
  if (found === undefined) return undefined;
  if (!found.used && clock.now() >= found.expiresAt) return problems.forbidden('The ingest URL has expired');
  return async () => {
    if (!found.ingest.accept()) {
      return problems.conflict(found.used ? 'The ingest URL was already used' : 'The playback is over');
    }
    found.used = true;
    idle.disableIdleTimeout?.(request);
    const bytes = await receive(request.body, found);
    // The connection would otherwise be kept for ever if nothing more came on it.
    idle.setIdleTimeout?.(request, HTTP_IDLE_TIMEOUT_SEC);
    return typeof bytes === 'number' ? ok({ operation_uuid: found.operationUuid, bytes_received: bytes }) : bytes;
  };
}

async function receive(body: ReadableStream<Uint8Array> | null, { ingest }: OpenIngest): Promise<number | Problem> {
  const over = problems.conflict('The playback takes no more audio');
  let received = 0;
  let isOver = false;
  const pieces = new Pieces(INGEST_PIECE_LEAST_BYTES);
  const reader = body?.getReader();
  void ingest.over.then(() => {
    isOver = true;
    reader?.cancel().catch(() => {});
  });
  try {
    for (;;) {
      const next = await reader?.read();
      if (isOver) return over;
      if (next === undefined || next.done) break;
      received += next.value.length;
      if (!pieces.take(next.value)) {
        ingest.fail();
        return problems.tooManyPieces();
      }
      if (!(await ingest.write(next.value))) return over;
    }
  } catch {
    ingest.fail();
    return problems.invalid('body: ended before it was complete');
  }
  ingest.end();
  return received;
}
