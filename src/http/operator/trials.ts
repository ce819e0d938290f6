/** Calls that the operator tries for an application: dial, play a file, hang up. The application's own checks hold. */

import type { CommandContext, SessionCommand, Sessions } from '../../call/ports/sessions.ts';
import type { Store } from '../../database/store.ts';
import { isUuid, newUuid } from '../../id.ts';
import { COMMAND_BODY_MAX_BYTES } from '../../limits.ts';
import { commandContext, type RequestContext, type Route, type Work } from '../request-context.ts';
import { sourceUrl } from '../route/playback.ts';
import { e164, target } from '../route/sessions.ts';
import { makeToken, tokenShape } from '../route/webrtc-tokens.ts';
import { bareRoute, bodyRoute } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { pathApp } from './apps.ts';

const RING_TIMEOUT_SEC = 60;

const dial = shape(() =>
  type({
    '+': 'reject',
    from: e164(),
    to: target(),
    'trunk?': type(/^[^\x00-\x1f\x7f]{1,64}$/u).describe('1 to 64 printable characters'),
  }),
);
const play = shape(() => type({ '+': 'reject', url: sourceUrl() }));

const facts = {
  auth: 'operator',
  tag: 'Operator: calls',
  method: 'POST',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  resource: 'Session',
  success: [202, 'Admitted; the outcome is an event of the application.'],
} as const;
const CALL = '/operator/v1/apps/:app_uuid/sessions/:uuid';

export const trialRoutes = (sessions: Sessions, store: Store, publicUrl: string): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      resource: 'Application',
      path: '/operator/v1/apps/:app_uuid/webrtc-tokens',
      summary: 'Make a token with which a browser calls an application',
      success: [201, 'The token, shown once.'],
      starts: true,
      optional: true,
    },
    tokenShape,
    async (context, terms) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined || (await store.apps.settings(appUuid)) === undefined) return undefined;
      return () => makeToken(store, publicUrl, appUuid, terms);
    },
  ),
  bodyRoute(
    {
      ...facts,
      resource: 'Application',
      path: '/operator/v1/apps/:app_uuid/dial',
      summary: 'Place a call for an application, from one of its numbers, to a number or a device',
      starts: true,
    },
    dial,
    async (context, request) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined || (await store.apps.settings(appUuid)) === undefined) return undefined;
      return () => sessions.dial({ ...request, ring_timeout_sec: RING_TIMEOUT_SEC }, onBehalf(appUuid, context));
    },
  ),
  bodyRoute(
    { ...facts, path: `${CALL}/play`, summary: 'Play a file to a call of an application', opensSources: true },
    play,
    (context, { url }) => ordered(sessions, context, { type: 'play', urls: [url], loop: 1, volume: 100 }),
  ),
  bareRoute({ ...facts, path: `${CALL}/hangup`, summary: 'Hang a call of an application up' }, (context) =>
    ordered(sessions, context, { type: 'hangup' }),
  ),
];

/** The work of a command, where the Session is that application's. */
async function ordered(sessions: Sessions, context: RequestContext, command: SessionCommand): Promise<Work | undefined> {
  const appUuid = pathApp(context);
  const { uuid = '' } = context.params;
  if (appUuid === undefined || !isUuid(uuid) || !(await sessions.owns(appUuid, uuid, command.type))) return undefined;
  return () => sessions.command(uuid, command, onBehalf(appUuid, context));
}

/** Makes a command an operation of its own, which the timeline of its call then tells. */
function onBehalf(appUuid: string, context: RequestContext): CommandContext {
  context.operationUuid = newUuid();
  return { ...commandContext(context), appUuid };
}
