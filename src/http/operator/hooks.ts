/** The hooks by which the operator API tells the rest of the platform, and reads it. */
import type { CarrierReadings } from '../../call/ports/trunks.ts';
import type { CallHistory } from '../../history/call-history.ts';

/** Called after a change is durable, and awaited before it is answered. */
export interface OperatorHooks {
  readonly onTrunksChanged: () => void | Promise<void>;
  readonly carrier: CarrierReadings;
  /** The timelines of calls. Undefined when none are kept. */
  readonly history?: CallHistory | undefined;
}
