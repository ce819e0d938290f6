/** The operator API (contract §1): who may use the platform, and through which trunks. */
import type { Recordings } from '../../call/ports/recordings.ts';
import type { Rooms } from '../../call/ports/rooms.ts';
import type { Sessions } from '../../call/ports/sessions.ts';
import type { Clock } from '../../clock.ts';
import type { Store } from '../../database/store.ts';
import { signatureHeaders, signingKey } from '../../outbound/webhook-signature.ts';
import type { Route } from '../request-context.ts';
import { appRoutes } from './apps.ts';
import { assignmentRoutes } from './assignments.ts';
import { callRoutes, callRoutesOptions } from './calls.ts';
import { deviceRoutes } from './devices.ts';
import { EventStreams, type SignEvent } from './event-stream.ts';
import { eventRoutes } from './events.ts';
import type { OperatorHooks } from './hooks.ts';
import { liveRoomRoutes } from './live-rooms.ts';
import { messageLogRoutes } from './message-log.ts';
import { nodeRoutes } from './nodes.ts';
import { refusalRoutes } from './refusals.ts';
import { trialRoutes } from './trials.ts';
import { trunkRoutes } from './trunks.ts';

/** Signs an event with its application's own secrets, as its delivery would be signed now. */
const signer =
  ({ credentials }: Store, clock: Clock): SignEvent =>
  async (appUuid, webhookId, body) =>
    signatureHeaders(
      (await credentials.signingSecrets(appUuid)).map(signingKey),
      webhookId,
      Math.floor(clock.wall() / 1000),
      body,
    );

/** What the operator's routes see of the calls that are up. */
interface LiveCalls {
  readonly sessions: Sessions;
  readonly rooms: Pick<Rooms, 'live'>;
  readonly recordings: Recordings;
  readonly publicUrl: string;
}

export const operatorRoutes = (store: Store, clock: Clock, hooks: OperatorHooks & LiveCalls): readonly Route[] => [
  ...appRoutes(store, hooks.recordings),
  ...assignmentRoutes(store),
  ...trunkRoutes(store, hooks),
  ...deviceRoutes(store, hooks),
  ...refusalRoutes(hooks.carrier),
  ...(hooks.nodes === undefined ? [] : nodeRoutes(hooks.nodes)),
  ...eventRoutes(store, clock, new EventStreams({ events: store.events, tail: store.tail, clock, sign: signer(store, clock) })),
  ...liveRoomRoutes(hooks.rooms),
  ...messageLogRoutes(store.messages),
  ...trialRoutes(hooks.sessions, store, hooks.publicUrl),
  ...callRoutes(callRoutesOptions(store, clock, hooks)),
];
