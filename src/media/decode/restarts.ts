/** Counts how often one decoder stumbled over damage and was begun anew. */
import { DECODER_RESTARTS_MAX } from '../../limits.ts';

export class Restarts {
  #count = 0;

  /** Counts one; rethrows the error past `DECODER_RESTARTS_MAX`: what is damaged so often is no sound. */
  count(error: unknown): void {
    if (++this.#count > DECODER_RESTARTS_MAX) throw error;
  }
}
