/** The metrics of the HTTP door. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { METRICS_KEPT_TIMES } from '../limits.ts';

export interface HttpMetrics {
  request(method: string, route: string, status: number, seconds: number): void;
  exposition(): Promise<{ readonly text: string; readonly contentType: string }>;
}

/**
 * Makes what anybody may ask for, at the cost of at most an eleventh of the time: what is being made is shared, and it
 * is kept for ten times as long as making it took. `now` is in milliseconds, of a clock that does not step.
 */
export function sparing<T>(make: () => Promise<T>, now: () => number = () => performance.now()): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let until = Infinity;
  return () => {
    if (kept !== undefined && now() < until) return kept;
    const began = now();
    const made = make();
    kept = made;
    until = Infinity;
    made.then(
      () => {
        until = now() + METRICS_KEPT_TIMES * (now() - began);
      },
      () => {
        kept = undefined;
      },
    );
    return made;
  };
}

/** Counts into the registry. Labels are route patterns and statuses: a closed set, whatever is asked for. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const requests = new Counter({
    name: 'sidetone_http_requests_total',
    help: 'Requests answered.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'sidetone_http_request_duration_seconds',
    help: 'From the request line to the response header.',
    labelNames: ['route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  return {
    request(method, route, status, seconds) {
      requests.inc({ method, route, status });
      duration.observe({ route }, seconds);
    },
    exposition: sparing(async () => ({ text: await registry.metrics(), contentType: registry.contentType })),
  };
}
