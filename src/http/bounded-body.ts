/** Bodies of the doors outside admission, which reads those of the routes itself. */
import { Pieces } from '../bounds/pieces.ts';
import { BODY_PIECE_LEAST_BYTES } from '../limits.ts';
import { type Problem, problems } from '../problem.ts';

/** Reads the body of a request, up to `maxBytes`, whether its length was declared or not. */
export async function boundedBody(request: Request, maxBytes: number): Promise<Uint8Array | Problem> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return problems.tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  const pieces = new Pieces(BODY_PIECE_LEAST_BYTES);
  let bytes = 0;
  const reader = request.body?.getReader();
  const refuse = (problem: Problem): Problem => {
    reader?.cancel().catch(() => {});
    return problem;
  };
  try {
    for (;;) {
      const next = await reader?.read();
      if (next === undefined || next.done) break;
      bytes += next.value.length;
      if (bytes > maxBytes) return refuse(problems.tooLarge(maxBytes));
      if (!pieces.take(next.value)) return refuse(problems.tooManyPieces());
      chunks.push(next.value);
    }
  } catch {
    return problems.invalid('body: ended before it was complete');
  }
  return new Uint8Array(Buffer.concat(chunks, bytes));
}
