/** The operator API (contract §1): who may use the platform, and through which trunks. */
import type { Store } from '../../database/store.ts';
import type { Route } from '../request-context.ts';
import { appRoutes } from './apps.ts';
import { assignmentRoutes } from './assignments.ts';
import { callRoutes } from './calls.ts';
import { eventRoutes } from './events.ts';
import type { OperatorHooks } from './hooks.ts';
import { refusalRoutes } from './refusals.ts';
import { trunkRoutes } from './trunks.ts';

export const operatorRoutes = (store: Store, hooks: OperatorHooks): readonly Route[] => [
  ...appRoutes(store),
  ...assignmentRoutes(store),
  ...trunkRoutes(store, hooks),
  ...refusalRoutes(hooks.carrier),
  ...eventRoutes(store),
  ...callRoutes({ calls: store.calls, events: store.events, unsaved: (uuid) => hooks.history?.unsaved(uuid) ?? [] }),
];
