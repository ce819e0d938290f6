/** 413: the body is read here, up to the route's limit, whether its length was declared or not. */
import { Pieces } from '../../bounds/pieces.ts';
import { BODY_DISCARDED_MAX_BYTES, BODY_MAX_BYTES, BODY_PIECE_LEAST_BYTES } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

export function size(context: RequestContext): Problem | undefined | Promise<Problem | undefined> {
  const { request, route } = context;
  const limit = route.maxBytes ?? BODY_MAX_BYTES;
  const declared = request.headers.get('content-length');
  if (Number(declared ?? 0) > limit) return discarded(Number(declared), request, problems.tooLarge(limit, route.sizeHint));
  if (!route.takesBody) return undefined;
  if (declared !== null) return readDeclared(limit, context);
  if (request.body === null) {
    context.raw = new Uint8Array(0);
    return undefined;
  }
  return readBody(request.body, limit, context);
}

/** Reads a body that is not much too large to its end and keeps nothing of it, so that its sender hears the refusal. */
async function discarded(bytes: number, { body }: Request, refusal: Problem): Promise<Problem> {
  if (body === null || bytes > BODY_DISCARDED_MAX_BYTES) return refusal;
  const reader = body.getReader();
  try {
    while (!(await reader.read()).done);
  } catch {
    return cutOff();
  }
  return refusal;
}

const cutOff = (): Problem => problems.invalid('body: ended before it was complete');

/** Reads a body whose length was told, in one piece. The length is told again by what came. */
async function readDeclared(limit: number, context: RequestContext): Promise<Problem | undefined> {
  try {
    context.raw = new Uint8Array(await context.request.arrayBuffer());
  } catch {
    return cutOff();
  }
  return context.raw.length > limit ? problems.tooLarge(limit, context.route.sizeHint) : undefined;
}

/** Reads a body whose length was not told, piece by piece. */
async function readBody(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  context: RequestContext,
): Promise<Problem | undefined> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  const pieces = new Pieces(BODY_PIECE_LEAST_BYTES);
  let bytes = 0;
  const refuse = (problem: Problem): Problem => {
    // This is not awaited, as a peer that goes on sending must not hold up the answer.
    reader.cancel().catch(() => {});
    return problem;
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (bytes > limit) return refuse(problems.tooLarge(limit, context.route.sizeHint));
      if (!pieces.take(value)) return refuse(problems.tooManyPieces());
      chunks.push(value);
    }
  } catch {
    return cutOff();
  }
  const only = chunks.length === 1 ? chunks[0] : undefined;
  context.raw = only ?? new Uint8Array(Buffer.concat(chunks, bytes));
  return undefined;
}
