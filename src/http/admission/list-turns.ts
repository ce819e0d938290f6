/**
 * Lists of up to 50,000 items. One takes a connection to the database for a second and up to 200 MB of memory, and who
 * asks for some of them at once would leave neither to others. So an application has one list at a time, from its look
 * into the database until the last byte is sent, and a few applications look at once. The others wait for their turn.
 */
import { Semaphore } from '../../bounds/semaphore.ts';
import {
  LIST_PIECE_BYTES,
  LIST_SEND_MAX_MS,
  LISTS_AT_ONCE,
  LISTS_OF_APP_WAITING_MAX,
  UNAVAILABLE_RETRY_SEC,
} from '../../limits.ts';
import { isProblem, problems } from '../../problem.ts';
import type { Outcome, RequestContext } from '../request-context.ts';
import { bodyResponse, partsOf } from '../response.ts';

export class ListTurns {
  /** The turns of the applications that have lists under way, which are counted with those that wait. */
  readonly #apps = new Map<string, { readonly turn: Semaphore; lists: number }>();
  readonly #looks = new Semaphore(LISTS_AT_ONCE, Number.POSITIVE_INFINITY);

  /** Answers a request for a list when it is its turn. 503 where too many of the application wait. */
  serve(context: RequestContext): Promise<Outcome> {
    const { request, appUuid } = context;
    const busy = problems.unavailable('Too many lists at once. See Retry-After header.', UNAVAILABLE_RETRY_SEC);
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const job = async () => {
      const outcome = (await this.#looks.run(request.signal, async () => await context.work?.())) ?? busy;
      if (isProblem(outcome) || outcome instanceof Response) return resolve(outcome);
      const parts = await partsOf(outcome.body);
      const bytes = parts.reduce((sum, { length }) => sum + length, 0);
      const whole = () => bodyResponse(outcome.status, Buffer.concat(parts, bytes), context.traceparent);
      if (request.method === 'HEAD' || bytes <= LIST_PIECE_BYTES) return resolve(whole());
      const { body, sent } = inPieces(parts, request.signal);
      resolve(bodyResponse(outcome.status, body, context.traceparent));
      await sent;
    };
    this.#inTurn(appUuid, request.signal, job).then(() => resolve(busy), reject);
    return promise;
  }

  async #inTurn(appUuid: string, signal: AbortSignal, job: () => Promise<void>): Promise<void> {
    const app = this.#apps.get(appUuid) ?? { turn: new Semaphore(1, LISTS_OF_APP_WAITING_MAX), lists: 0 };
    this.#apps.set(appUuid, app);
    app.lists++;
    try {
      await app.turn.run(signal, job);
    } finally {
      app.lists--;
      if (app.lists === 0) this.#apps.delete(appUuid);
    }
  }
}

/** A body that leaves as its reader takes it. `sent` resolves when nothing of it is left to be sent. */
function inPieces(
  parts: readonly Uint8Array<ArrayBuffer>[],
  signal: AbortSignal,
): { readonly body: ReadableStream<Uint8Array<ArrayBuffer>>; readonly sent: Promise<void> } {
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  let left = parts.flatMap((part) => slices(part));
  const over = () => {
    clearTimeout(late);
    left = [];
    resolve();
  };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull(controller) {
        const piece = left.shift();
        if (piece === undefined) return controller.error(new Error('not taken in time'));
        controller.enqueue(piece);
        if (left.length > 0) return;
        controller.close();
        over();
      },
      cancel: over,
    },
    { highWaterMark: 0 },
  );
  const late = setTimeout(over, LIST_SEND_MAX_MS);
  signal.addEventListener('abort', over, { once: true });
  if (signal.aborted) over();
  return { body, sent };
}

/** Views of bytes, none of which is longer than LIST_PIECE_BYTES. */
const slices = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] =>
  Array.from({ length: Math.ceil(bytes.length / LIST_PIECE_BYTES) }, (_, at) =>
    bytes.subarray(at * LIST_PIECE_BYTES, (at + 1) * LIST_PIECE_BYTES),
  );
