/** One delivery attempt. */
export interface Attempt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The receiver's HTTP status; null when none came. */
  readonly status: number | null;
  /** `""` on success, else what went wrong, in a word. */
  readonly error: string;
  readonly duration_ms: number;
  /** The beginning of the receiver's answer. Left out when it was empty or none came. */
  readonly response?: string;
  /** When the next attempt is due, ms since the epoch; null when this was the last. */
  readonly retry_at: number | null;
}
