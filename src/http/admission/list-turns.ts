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
import { answerResponse } from '../response.ts';

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
      const whole = answerResponse(outcome, context.traceparent);
      if (request.method === 'HEAD' || Number(whole.headers.get('content-length')) <= LIST_PIECE_BYTES) return resolve(whole);
      const { response, sent } = inPieces(whole, await whole.bytes(), request.signal);
      resolve(response);
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

/** A response whose body leaves as its reader takes it. `sent` resolves when nothing of it is left to be sent. */
function inPieces(
  whole: Response,
  bytes: Uint8Array,
  signal: AbortSignal,
): { readonly response: Response; readonly sent: Promise<void> } {
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  let left = bytes;
  const over = () => {
    clearTimeout(late);
    left = new Uint8Array(0);
    resolve();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (left.length === 0) return controller.error(new Error('not taken in time'));
        controller.enqueue(left.subarray(0, LIST_PIECE_BYTES));
        left = left.subarray(LIST_PIECE_BYTES);
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
  const headers = new Headers(whole.headers);
  headers.delete('content-length');
  return { response: new Response(body, { status: whole.status, headers }), sent };
}
