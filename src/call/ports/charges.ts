/** Charges as the doors see them. */
import type { ChargeTerms } from '../../machine/payment/charge.ts';
import type { Problem } from '../../problem.ts';
import type { Answer, CommandContext } from './sessions.ts';

export interface ChargeRequest extends ChargeTerms {
  readonly cardUuid: string;
  readonly cvvUuid: string;
}

export interface Charges {
  /** The value that a request's `provider` must have, or undefined when payments are off. */
  readonly provider: string | undefined;
  charge(sessionUuid: string, request: ChargeRequest, context: CommandContext): Promise<Answer | Problem>;
}
