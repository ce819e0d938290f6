/** The application's own settings (contract §8). */

import type { Recordings } from '../../call/ports/recordings.ts';
import { timestamp } from '../../clock.ts';
import type { AppDetail, AppStore } from '../../database/app/apps.ts';
import { isEventPattern } from '../../event/names.ts';
import { BLOCKED_EVENTS_MAX, WEBHOOK_URL_MAX_CHARS } from '../../limits.ts';
import type { Route } from '../request-context.ts';
import { noContent, ok } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { hasUserInfo, isWholeUrl } from '../whole-url.ts';

const WEBHOOK_URL = `"" or an http or https URL of at most ${WEBHOOK_URL_MAX_CHARS} characters without user and password`;

/** http or https, no user and password; `""` for none. */
export const webhookUrl = () =>
  type(/^$|^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#]/)
    .and(`string <= ${WEBHOOK_URL_MAX_CHARS}`)
    .narrow((url, context) => url === '' || (isWholeUrl(url) && !hasUserInfo(url)) || context.mustBe(WEBHOOK_URL))
    .describe(WEBHOOK_URL);

const EVENT_PATTERN = 'the name of an event, or a prefix of one with a trailing .*';

/** `session.ended`, `playback.*`. */
export const blockedEvents = () =>
  type(/^[a-z_]+(\.[a-z_]+)*(\.\*)?$/)
    .and('string <= 100')
    .narrow((pattern, context) => isEventPattern(pattern) || context.mustBe(EVENT_PATTERN))
    .describe(EVENT_PATTERN)
    .array()
    .atMostLength(BLOCKED_EVENTS_MAX);

const patch = shape(() => type({ '+': 'reject', 'webhook_url?': webhookUrl(), 'blocked_webhook_events?': blockedEvents() }));

const facts = { auth: 'application', tag: 'Application', path: '/api/v1/app', resource: 'Application' } as const;

export const applicationRoutes = (apps: AppStore, recordings: Recordings): readonly Route[] => [
  route(
    {
      ...facts,
      method: 'GET',
      summary: 'Read the application’s settings',
      success: [200, 'The settings.'],
      buckets: ['app_get'],
    },
    async (context) => {
      const app = await apps.get(context.appUuid);
      return app === undefined ? undefined : () => ok({ ...appBody(app), ...storeUse(recordings, app.appUuid) });
    },
  ),
  bodyRoute(
    {
      ...facts,
      method: 'PATCH',
      summary: 'Change the webhook settings',
      success: [204, 'Changed.'],
      command: true,
      buckets: ['app_patch'],
    },
    patch,
    (context, body) => async () => {
      await apps.patch(context.appUuid, {
        ...(body.webhook_url === undefined ? {} : { webhookUrl: body.webhook_url }),
        ...(body.blocked_webhook_events === undefined ? {} : { blockedWebhookEvents: body.blocked_webhook_events }),
      });
      return noContent;
    },
  ),
];

/**
 * The state of the webhook, since when it is so, and why events are not delivered (an extension): the answer that
 * disabled it, or what the last attempt for the event that has waited longest met.
 */
const webhookStatus = ({ webhookUrl: url, webhookDisabled, webhookSince, webhookError }: AppDetail) => ({
  state: url === '' ? 'unset' : webhookDisabled ? 'disabled' : 'enabled',
  since: timestamp(webhookSince),
  last_error: url === '' ? '' : webhookDisabled ? 'http_410' : webhookError,
});

/** What the application keeps in recordings, where that has a bound (an extension). */
export function storeUse(recordings: Recordings, appUuid: string): Readonly<Record<string, unknown>> {
  const use = recordings.use(appUuid);
  return use === undefined ? {} : { recording_store: { kept_bytes: use.keptBytes, max_bytes: use.maxBytes } };
}

/** The application as its owner sees it. */
export const appBody = (app: AppDetail): Readonly<Record<string, unknown>> => ({
  app_uuid: app.appUuid,
  inbound_phone_numbers: app.inboundPhoneNumbers,
  outbound_caller_ids: app.outboundCallerIds,
  webhook_url: app.webhookUrl,
  webhook_status: webhookStatus(app),
  blocked_webhook_events: app.blockedWebhookEvents,
  room_limits: { max_rooms: app.roomLimits.maxRooms, max_members_per_room: app.roomLimits.maxMembersPerRoom },
});
