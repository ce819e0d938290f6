/** Applications and their settings, as the operator made them (contract §1, §8). */
import { and, asc, eq, sql } from 'drizzle-orm';
import { BriefCache } from '../../bounds/brief-cache.ts';
import type { Destinations } from '../../destinations.ts';
import { newAppUuid } from '../../id.ts';
import { APP_CACHE_MAX_ITEMS, APP_CACHE_MS, OPERATOR_LIST_MAX_ITEMS } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import type { Attempt } from '../event/attempt.ts';
import { apiKeys, apps, webhookSecrets } from '../schema.ts';
import type { Seal } from '../vault/seal.ts';
import { newApiKey, newWebhookSecret, webhookSecretRow } from './credentials.ts';

export interface RoomLimits {
  readonly maxRooms: number;
  readonly maxMembersPerRoom: number;
}

export interface App {
  readonly appUuid: string;
  readonly name: string;
  readonly webhookUrl: string;
  /** The endpoint answered 410; nothing is sent until the next PATCH. */
  readonly webhookDisabled: boolean;
  /** Since when the webhook is set, unset or disabled; milliseconds since the epoch. */
  readonly webhookSince: number;
  readonly blockedWebhookEvents: readonly string[];
  readonly roomLimits: RoomLimits;
  readonly destinations: Destinations;
  readonly createdAt: number;
}

/** An application with what is assigned to it, as `GET /api/v1/app` shows it. */
export interface AppDetail extends App {
  readonly inboundPhoneNumbers: readonly string[];
  readonly outboundCallerIds: readonly string[];
  readonly paymentTerminals: readonly string[];
  /** Why the event that has waited longest was not delivered, in a word; `""` where none waits or was tried yet. */
  readonly webhookError: string;
}

interface NewApp {
  readonly name: string;
  readonly webhookUrl?: string;
  readonly blockedWebhookEvents?: readonly string[];
  readonly roomLimits?: Partial<RoomLimits>;
  readonly destinations?: Partial<Destinations>;
}

type AppChange = Partial<Pick<App, 'name' | 'webhookUrl' | 'blockedWebhookEvents'>> & {
  readonly roomLimits?: Partial<RoomLimits>;
  readonly destinations?: Partial<Destinations>;
};

/** Shown once, at creation. */
export interface AppSecrets {
  readonly appUuid: string;
  readonly apiKey: string;
  readonly webhookSecret: string;
}

export interface AppStore {
  create(app: NewApp): Promise<AppSecrets>;
  list(): Promise<readonly App[]>;
  /** The application with what is assigned to it, of which there may be much. */
  get(appUuid: string): Promise<AppDetail | undefined>;
  /** The application alone. */
  settings(appUuid: string): Promise<App | undefined>;
  /** What the application may call; kept for `APP_CACHE_MS`. Undefined where there is no such application. */
  destinations(appUuid: string): Promise<Destinations | undefined>;
  /** Also opens an endpoint that a 410 had closed. False: no such application. */
  patch(appUuid: string, change: AppChange): Promise<boolean>;
  /**
   * Switches the endpoint at that URL off, as it answered 410; `since` is its `webhookSince` when it was asked. False:
   * the application has another URL by now, or the endpoint is off already, or on again, since what was in flight with
   * the first 410 may be answered so too. None counts as a change: each change hurries all that waits.
   */
  disableWebhook(appUuid: string, url: string, since: number): Promise<boolean>;
  /**
   * Makes the application `default` where there is no application at all; undefined where there is. One node of several
   * makes it.
   */
  ensureDefault(): Promise<AppSecrets | undefined>;
  /** Calls back with the application's uuid after each change that this node made or was told of. */
  onChange(changed: (appUuid: string) => void): void;
  /** Calls back with the application's uuid after each change that was made on this node, to tell the others. */
  onChangeHere(tell: (appUuid: string) => void): void;
}

interface AppChanges {
  /** The application was changed here. */
  changed(appUuid: string): void;
  /** Another node told that it changed the application. */
  changedElsewhere(appUuid: string): void;
}

type Transaction = Pick<Database['drizzle'], 'execute' | '$count'>;

/** Makes the application at `at` (ms since the epoch) in one transaction, unless `only` says no; then undefined. */
async function createApp(
  database: Database,
  seal: Seal,
  app: NewApp,
  at: number,
  only: (tx: Transaction) => Promise<boolean> = async () => true,
): Promise<AppSecrets | undefined> {
  const appUuid = newAppUuid();
  const key = newApiKey(appUuid, at);
  const secret = newWebhookSecret();
  const made = await database.run((on) =>
    on.transaction(async (tx) => {
      if (!(await only(tx))) return false;
      await tx.insert(apps).values({
        appUuid,
        name: app.name,
        webhookUrl: app.webhookUrl ?? '',
        webhookSince: Math.floor(at),
        blockedWebhookEvents: [...(app.blockedWebhookEvents ?? [])],
        ...roomColumns(app.roomLimits),
        ...destinationColumns(app.destinations),
        createdAt: Math.floor(at),
      });
      await tx.insert(apiKeys).values(key.row);
      await tx.insert(webhookSecrets).values(webhookSecretRow(seal, appUuid, secret, at));
      return true;
    }),
  );
  return made ? { appUuid, apiKey: key.apiKey, webhookSecret: secret } : undefined;
}

/** Tells who listens that an application was changed, here or on another node. */
function appChanges(): AppChanges & Pick<AppStore, 'onChange' | 'onChangeHere'> {
  const listeners: ((appUuid: string) => void)[] = [];
  const tellers: ((appUuid: string) => void)[] = [];
  const changedElsewhere = (appUuid: string): void => {
    for (const listener of listeners) listener(appUuid);
  };
  return {
    changedElsewhere,
    changed(appUuid) {
      changedElsewhere(appUuid);
      for (const tell of tellers) tell(appUuid);
    },
    onChange: (listener) => void listeners.push(listener),
    onChangeHere: (tell) => void tellers.push(tell),
  };
}

/** Makes the store. `now` tells milliseconds since the epoch. */
export function appStore(database: Database, seal: Seal, now: () => number): AppStore & AppChanges {
  const { drizzle } = database;
  const changes = appChanges();
  const { changed } = changes;
  const settings = async (appUuid: string): Promise<App | undefined> => {
    const [row] = await database.query<typeof SETTINGS_ROW>(SETTINGS, [appUuid]);
    return row === undefined ? undefined : settingsOf(appUuid, row);
  };
  const destinations = new BriefCache({
    load: async (appUuid) => (await settings(appUuid))?.destinations,
    ...{ keptMs: APP_CACHE_MS, most: APP_CACHE_MAX_ITEMS, now },
  });
  changes.onChange((appUuid) => destinations.forget(appUuid));
  return {
    ...changes,
    settings,
    destinations: (appUuid) => destinations.get(appUuid),

    async create(app) {
      const made = await createApp(database, seal, app, now());
      if (made === undefined) throw new Error('the application was not made');
      changed(made.appUuid);
      return made;
    },

    list: async () =>
      (await database.run(() => drizzle.select().from(apps).orderBy(asc(apps.createdAt)).limit(OPERATOR_LIST_MAX_ITEMS))).map(
        appOf,
      ),

    async get(appUuid) {
      const [row] = await database.query<typeof DETAIL_ROW>(DETAIL, [appUuid]);
      return row === undefined ? undefined : detailOf(appUuid, row);
    },

    async patch(appUuid, change) {
      const found = await database.run(() =>
        drizzle
          .update(apps)
          .set(patchColumns(change, now()))
          .where(eq(apps.appUuid, appUuid))
          .returning({ appUuid: apps.appUuid }),
      );
      changed(appUuid);
      return found.length > 0;
    },

    async disableWebhook(appUuid, url, since) {
      const found = await database.run(() =>
        drizzle
          .update(apps)
          .set({ webhookDisabled: true, webhookSince: Math.floor(now()) })
          .where(and(eq(apps.appUuid, appUuid), isOn(url, since)))
          .returning({ appUuid: apps.appUuid }),
      );
      if (found.length > 0) changed(appUuid);
      return found.length > 0;
    },

    async ensureDefault() {
      const made = await createApp(database, seal, { name: 'default' }, now(), async (tx) => {
        // The second of two nodes that start on an empty database waits here, then sees the first one's application.
        await tx.execute(sql`SELECT pg_advisory_xact_lock(${DEFAULT_APP_LOCK})`);
        return (await tx.$count(apps)) === 0;
      });
      if (made !== undefined) changed(made.appUuid);
      return made;
    },
  };
}

/** The condition that an application has the endpoint at that URL on, as it has been `since`. */
const isOn = (url: string, since: number) =>
  and(eq(apps.webhookUrl, url), eq(apps.webhookSince, since), eq(apps.webhookDisabled, false));

const DEFAULT_APP_LOCK = 7_414_093_302;

const SETTINGS_ROW = {
  name: '',
  webhook_url: '',
  webhook_disabled: false,
  webhook_since: '',
  blocked: '',
  max_rooms: 0,
  max_members_per_room: 0,
  allowed: '',
  refused: '',
  created_at: '',
};

const DETAIL_ROW = { ...SETTINGS_ROW, numbers: '', caller_ids: '', terminals: '', tried: '' };

const settingsOf = (appUuid: string, row: typeof SETTINGS_ROW): App =>
  appOf({
    appUuid,
    name: row.name,
    webhookUrl: row.webhook_url,
    webhookDisabled: row.webhook_disabled,
    webhookSince: Number(row.webhook_since),
    blockedWebhookEvents: JSON.parse(row.blocked),
    maxRooms: row.max_rooms,
    maxMembersPerRoom: row.max_members_per_room,
    allowedDestinations: JSON.parse(row.allowed),
    blockedDestinations: JSON.parse(row.refused),
    createdAt: Number(row.created_at),
  });

const detailOf = (appUuid: string, row: typeof DETAIL_ROW): AppDetail => ({
  ...settingsOf(appUuid, row),
  inboundPhoneNumbers: JSON.parse(row.numbers),
  outboundCallerIds: JSON.parse(row.caller_ids),
  paymentTerminals: JSON.parse(row.terminals),
  webhookError: errorOf(JSON.parse(row.tried)),
});

/** `dns`, `timeout`; `http_500` where the receiver answered. */
const errorOf = (tried: Pick<Attempt, 'status' | 'error'> | null): string =>
  tried === null || tried.error === '' || tried.status === null ? (tried?.error ?? '') : `http_${tried.status}`;

const listOf = (column: string, table: string): string =>
  `(SELECT coalesce(json_agg(${column} ORDER BY ${column}), '[]')::text FROM ${table} AS t WHERE t.app_uuid = a.app_uuid)`;
const SETTINGS_COLUMNS = `name, webhook_url, webhook_disabled, webhook_since, array_to_json(blocked_webhook_events)::text AS blocked, max_rooms,
  max_members_per_room, array_to_json(allowed_destinations)::text AS allowed, array_to_json(blocked_destinations)::text AS refused,
  created_at`;
const SETTINGS = `SELECT ${SETTINGS_COLUMNS} FROM apps WHERE app_uuid = $1`;
const DETAIL = `SELECT ${SETTINGS_COLUMNS}, ${listOf('e164', 'numbers')} AS numbers, ${listOf('e164', 'caller_ids')} AS caller_ids,
  ${listOf('terminal_number', 'payment_terminals')} AS terminals,
  coalesce((SELECT e.attempts -> -1 FROM outbox AS o JOIN events AS e USING (event_id) WHERE o.app_uuid = a.app_uuid
    ORDER BY o.xid, o.event_id LIMIT 1)::text, 'null') AS tried
  FROM apps AS a WHERE app_uuid = $1`;

/** The columns that a PATCH at `now` (ms since the epoch) sets. */
const patchColumns = (change: AppChange, now: number) => ({
  webhookDisabled: false,
  // The time of a change from one state to another, not of each PATCH.
  webhookSince: sql<number>`CASE WHEN webhook_disabled OR (webhook_url = '') <> (${change.webhookUrl ?? null}::text = '')
    THEN ${Math.floor(now)}::bigint ELSE webhook_since END`,
  ...(change.name === undefined ? {} : { name: change.name }),
  ...(change.webhookUrl === undefined ? {} : { webhookUrl: change.webhookUrl }),
  ...(change.blockedWebhookEvents === undefined ? {} : { blockedWebhookEvents: [...change.blockedWebhookEvents] }),
  ...roomColumns(change.roomLimits),
  ...destinationColumns(change.destinations),
});

const roomColumns = (limits: Partial<RoomLimits> | undefined) => ({
  ...(limits?.maxRooms === undefined ? {} : { maxRooms: limits.maxRooms }),
  ...(limits?.maxMembersPerRoom === undefined ? {} : { maxMembersPerRoom: limits.maxMembersPerRoom }),
});

const destinationColumns = (given: Partial<Destinations> | undefined) => ({
  ...(given?.allowed === undefined ? {} : { allowedDestinations: [...given.allowed] }),
  ...(given?.blocked === undefined ? {} : { blockedDestinations: [...given.blocked] }),
});

const appOf = (row: typeof apps.$inferSelect): App => ({
  appUuid: row.appUuid,
  name: row.name,
  webhookUrl: row.webhookUrl,
  webhookDisabled: row.webhookDisabled,
  webhookSince: row.webhookSince,
  blockedWebhookEvents: row.blockedWebhookEvents,
  roomLimits: { maxRooms: row.maxRooms, maxMembersPerRoom: row.maxMembersPerRoom },
  destinations: { allowed: row.allowedDestinations, blocked: row.blockedDestinations },
  createdAt: row.createdAt,
});
