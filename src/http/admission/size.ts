/** 413: the body is read here, up to the route's limit, whether its length was declared or not. */
import { BODY_MAX_BYTES } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

export function size(context: RequestContext): Problem | undefined | Promise<Problem | undefined> {
  const { request, route } = context;
  const limit = route.maxBytes ?? BODY_MAX_BYTES;
  if (Number(request.headers.get('content-length') ?? 0) > limit) return problems.tooLarge(limit, route.sizeHint);
  if (!route.takesBody) return undefined;
  if (request.body === null) {
    context.raw = new Uint8Array(0);
    return undefined;
  }
  return readBody(request.body, limit, context);
}

async function readBody(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  context: RequestContext,
): Promise<Problem | undefined> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (bytes > limit) {
        // Not awaited: a peer that goes on sending must not hold up the answer.
        reader.cancel().catch(() => {});
        return problems.tooLarge(limit, context.route.sizeHint);
      }
      chunks.push(value);
    }
  } catch {
    return problems.invalid('body: ended before it was complete');
  }
  const only = chunks.length === 1 ? chunks[0] : undefined;
  context.raw = only ?? new Uint8Array(Buffer.concat(chunks, bytes));
  return undefined;
}
