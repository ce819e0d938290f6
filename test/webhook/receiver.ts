/** A webhook receiver over real HTTP that misbehaves as told, and remembers what came and what it answered. */

export interface Received {
  readonly id: string;
  readonly session: string;
  readonly step: number;
  readonly event: string;
  readonly headers: Headers;
  readonly body: string;
  readonly status: number;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Ids of the events that were accepted. */
  readonly accepted: ReadonlySet<string>;
  /** Resolves when `met` is true of all that was received. */
  until(met: (received: readonly Received[]) => boolean, withinMs?: number): Promise<void>;
  stop(): void;
}

type Answer = (event: {
  session: string;
  step: number;
  path: string;
  nth: number;
  signal: AbortSignal;
}) => Response | Promise<Response>;

export function startReceiver(answer: Answer = () => new Response(null, { status: 204 })): Receiver {
  const received: Received[] = [];
  const accepted = new Set<string>();
  const waiting = new Set<() => void>();
  const tries = new Map<string, number>();
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const body = await request.text();
      const { session_uuid: session = '', step = 0, event = '' } = JSON.parse(body);
      const id = request.headers.get('webhook-id') ?? '';
      const nth = (tries.get(id) ?? 0) + 1;
      tries.set(id, nth);
      const response = await answer({ session, step, path: new URL(request.url).pathname, nth, signal: request.signal });
      received.push({ id, session, step, event, headers: request.headers, body, status: response.status });
      if (response.ok) accepted.add(id);
      for (const check of waiting) check();
      return response;
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    accepted,
    until: (met, withinMs = 15_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`not met after ${withinMs} ms; received ${received.length}`));
        }, withinMs);
        const check = () => {
          if (!met(received)) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    stop: () => void server.stop(true),
  };
}

/** The steps of each Session in the order in which they were first accepted. */
export function firstAccepted(received: readonly Received[]): Map<string, number[]> {
  const seen = new Set<string>();
  const order = new Map<string, number[]>();
  for (const each of received) {
    if (each.status >= 300 || seen.has(each.id)) continue;
    seen.add(each.id);
    order.set(each.session, [...(order.get(each.session) ?? []), each.step]);
  }
  return order;
}
