import { OutboundError, type OutboundFailure } from '../../src/outbound/outbound.ts';

/** The failure with which a request ends, or `none` when it is answered. */
export async function failureOf(promise: Promise<unknown>): Promise<OutboundFailure | 'none'> {
  try {
    await promise;
    return 'none';
  } catch (error) {
    if (error instanceof OutboundError) return error.failure;
    throw error;
  }
}
