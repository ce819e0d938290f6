/** The operator API (contract §1): who may use the platform, and through which trunks. */
import type { CarrierReadings } from '../../call/ports/trunks.ts';
import type { Store } from '../../database/store.ts';
import type { Route } from '../route.ts';
import { appRoutes } from './apps.ts';
import { assignmentRoutes } from './assignments.ts';
import { eventRoutes } from './events.ts';
import { refusalRoutes } from './refusals.ts';
import { trunkRoutes } from './trunks.ts';

/** Told after a change is durable, and awaited before it is answered. */
export interface OperatorHooks {
  readonly onTrunksChanged: () => void | Promise<void>;
  /** A number was assigned or unassigned. */
  readonly onNumbersChanged: () => void | Promise<void>;
  readonly carrier: CarrierReadings;
}

export const operatorRoutes = (store: Store, hooks: OperatorHooks): readonly Route[] => [
  ...appRoutes(store),
  ...assignmentRoutes(store, hooks),
  ...trunkRoutes(store, hooks),
  ...refusalRoutes(hooks.carrier),
  ...eventRoutes(store),
];
