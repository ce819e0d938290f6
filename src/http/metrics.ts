/** The metrics of the HTTP door. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { METRICS_AT_ONCE, METRICS_PER_SEC } from '../limits.ts';

export interface HttpMetrics {
  request(method: string, route: string, status: number, seconds: number): void;
  exposition(): Promise<{ readonly text: string; readonly contentType: string }>;
}

/**
 * Makes what anybody may ask for, METRICS_AT_ONCE times at once and METRICS_PER_SEC times a second. Beyond that the one
 * before is told again. `now` is in milliseconds, of a clock that does not step.
 */
export function sparing<T>(make: () => Promise<T>, now: () => number = () => performance.now()): () => Promise<T> {
  let last: Promise<T> | undefined;
  let allowed = METRICS_AT_ONCE;
  let lookedAt = now();
  return () => {
    const at = now();
    allowed = Math.min(METRICS_AT_ONCE, allowed + ((at - lookedAt) * METRICS_PER_SEC) / 1000);
    lookedAt = at;
    if (last !== undefined && allowed < 1) return last;
    allowed -= 1;
    const made = make();
    last = made;
    made.catch(() => {
      if (last === made) last = undefined;
    });
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
