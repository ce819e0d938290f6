/** The hooks by which the operator API tells the rest of the platform, and reads it. */
import type { CarrierReadings } from '../../call/ports/trunks.ts';

/** Called after a change is durable, and awaited before it is answered. */
export interface OperatorHooks {
  readonly onTrunksChanged: () => void | Promise<void>;
  readonly carrier: CarrierReadings;
}
