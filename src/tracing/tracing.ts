/**
 * What the platform tells of its work as traces (W3C Trace Context): an HTTP command is the root of a trace, and the
 * SIP, media and webhooks that it causes are its children. The doors tell of spans when they are over.
 */
import { randomBytes } from 'node:crypto';

/** A piece of work that is over. */
export interface SpanRecord {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  /** The `traceparent` that the work itself has: its trace and its own span. */
  readonly traceparent: string;
  /** The `traceparent` of the work that caused it; empty for the root of a trace. */
  readonly parent: string;
  /** The `traceparent` of a caller, which is linked; empty for none. */
  readonly link: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Identifiers, counts and names only: no number, no digit, no secret. */
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly isFailed: boolean;
}

/** Takes spans, and never holds anybody up. What it cannot send in time is lost. */
export interface Tracing {
  record(span: SpanRecord): void;
  /** Sends what is left, for a few seconds at most. */
  close(): Promise<void>;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The two identifiers of a `traceparent`, or undefined when it is none. */
export function identifiersOf(traceparent: string): { readonly traceId: string; readonly spanId: string } | undefined {
  const [, traceId, spanId] = TRACEPARENT.exec(traceparent) ?? [];
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId };
}

const POOL_BYTES = 24 * 256;
let pool = '';
let used = 0;

/**
 * Gives so many random hexadecimal digits. They are fetched for some hundred traces at once: one by one they cost four
 * times as much.
 */
function randomHex(digits: number): string {
  if (used + digits > pool.length) {
    pool = randomBytes(POOL_BYTES).toString('hex');
    used = 0;
  }
  used += digits;
  return pool.slice(used - digits, used);
}

/** A new `traceparent` (W3C Trace Context), sampled. */
export const newTraceparent = (): string => `00-${randomHex(32)}-${randomHex(16)}-01`;

/** The same trace with a span of its own; a new trace where none is known. */
export function childOf(traceparent: string): string {
  const [, trace, , flags] = TRACEPARENT.exec(traceparent) ?? [];
  return `00-${trace ?? randomHex(32)}-${randomHex(16)}-${flags ?? '01'}`;
}
