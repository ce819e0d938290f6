/** Everything durable, opened once. */
import { ThrottledLog } from '../bounds/throttled-log.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import { newUuid } from '../id.ts';
import { LOST_SECRETS_SAID_EVERY_MS, NOTIFY_SPACING_MS, RETENTION_EVERY_SEC, RETENTION_FIRST_SEC } from '../limits.ts';
import type { Log } from '../log.ts';
import { type AppStore, appStore } from './app/apps.ts';
import { type CredentialStore, credentialStore } from './app/credentials.ts';
import { callerIdStore, type NumberStore, numberStore, type Permitted, terminalStore } from './app/numbers.ts';
import { type WebrtcTokenStore, webrtcTokenStore } from './app/webrtc-tokens.ts';
import { type CallStore, callStore } from './call/calls.ts';
import { type PaymentStore, paymentStore } from './call/payments.ts';
import { type RecordingStore, recordingStore } from './call/recordings.ts';
import { type RoomStore, roomStore } from './call/rooms.ts';
import { type SessionStore, sessionStore } from './call/sessions.ts';
import { type ConsoleCookieStore, consoleCookieStore } from './console-cookies.ts';
import { type DeviceStore, deviceStore } from './device/devices.ts';
import type { Database } from './driver/database.ts';
import { type DatabaseLock, openDatabase } from './driver/open.ts';
import { type EventTail, eventTail } from './event/event-tail.ts';
import { type EventLog, eventLog } from './event/events.ts';
import { type OutboxEvent, type OutboxFeed, type OutboxStore, outboxStore } from './event/outbox.ts';
import { type IdempotencyStore, idempotencyStore } from './idempotency/idempotency.ts';
import { KeyMarks } from './idempotency/key-marks.ts';
import { groupCommit, type JournalLoad } from './journal/group-commit.ts';
import type { Journal } from './journal/journal.ts';
import { keptAnswers } from './journal/kept-answers.ts';
import { type MessageStore, messageStore } from './messages.ts';
import { type LeaseStore, leaseStore } from './node/leases.ts';
import { type NodeAbout, type NodeStore, nodeStore } from './node/nodes.ts';
import { timeWitness } from './node/time-witness.ts';
import { type ReceivedStore, receivedStore } from './received-messages.ts';
import { type Forgotten, forget } from './retention.ts';
import { type TrunkStore, trunkStore } from './trunk/trunks.ts';
import { type Resealed, reseal } from './vault/reseal.ts';
import { createSeal, type TellLost } from './vault/seal.ts';

export interface Store {
  readonly journal: Journal;
  readonly sessions: SessionStore;
  readonly calls: CallStore;
  readonly rooms: RoomStore;
  readonly apps: AppStore;
  readonly credentials: CredentialStore;
  readonly numbers: NumberStore;
  readonly callerIds: Permitted;
  readonly terminals: Permitted;
  readonly trunks: TrunkStore;
  readonly devices: DeviceStore;
  readonly events: EventLog;
  readonly tail: EventTail;
  readonly messages: MessageStore;
  readonly received: ReceivedStore;
  readonly payments: PaymentStore;
  readonly recordings: RecordingStore;
  readonly outbox: OutboxStore;
  readonly idempotency: IdempotencyStore;
  readonly webrtcTokens: WebrtcTokenStore;
  readonly consoleCookies: ConsoleCookieStore;
  readonly nodes: NodeStore;
  readonly leases: LeaseStore;
  /** The application was changed on another node: what is kept of it is forgotten. */
  appChanged(appUuid: string): void;
  /** Tells whether the database answers, and takes writes. Never rejects. */
  ready(): Promise<boolean>;
  load(): JournalLoad;
  /** How long the database has been away, in milliseconds. 0 while it answers. */
  awayMs(): number;
  /** Deletes what is past its retention; also done by itself soon after a start and every hour. */
  forget(): Promise<Forgotten>;
  /** Seals under MASTER_KEY what is sealed under the key `before`. Only where no other process uses the database. */
  reseal(before: Uint8Array): Promise<Resealed>;
  /** Waits for the commits under way, then closes; the embedded server is stopped. */
  close(): Promise<void>;
}

export type StoreSettings = Pick<Config, 'dataDir' | 'databaseUrl' | 'databaseDriver' | 'masterKey'> &
  Partial<Pick<Config, 'callHistoryDays'>>;

const CHANNEL = 'sidetone_events';

/** What a process is entered as that nobody else needs to find: in a test or a bench. */
const NOBODY: NodeAbout = {
  volumeId: '',
  host: '',
  httpPort: 0,
  rtpHost: '',
  sipContact: '',
  labels: [],
  version: '',
  protocol: 0,
};

/**
 * Opens the database, starting the embedded one where none is configured, and migrates it. `nodeId` names this process
 * in what it writes; with a `lock` the caller enters it into `nodes` before the first flush. Throws with one line when
 * it cannot.
 */
export async function openStore(
  settings: StoreSettings,
  log: Log,
  clock: Clock,
  nodeId = newUuid(),
  lock?: DatabaseLock,
): Promise<Store> {
  return await storeOn(await openDatabase(settings, log, lock), settings, { log, clock, nodeId, lock });
}

/** A row, unless the server takes no writes. */
const WRITABLE = "SELECT 1 WHERE current_setting('transaction_read_only') = 'off'";

/** The process that uses a store. */
export interface StoreUser {
  readonly log: Log;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly lock: DatabaseLock | undefined;
  /** Resolves one turn of the event loop later: by setImmediate, unless told. */
  readonly turn?: (() => Promise<void>) | undefined;
}

/** Makes the store on a database that is open and migrated. */
export async function storeOn(
  database: Database,
  settings: Pick<StoreSettings, 'masterKey' | 'callHistoryDays'>,
  { log, clock, nodeId, lock, turn }: StoreUser,
): Promise<Store> {
  const nodes = nodeStore(database, nodeId);
  if (lock === undefined) await nodes.join(NOBODY);
  const seal = createSeal(settings.masterKey);
  const tellLost = lostSecretsLog(log, clock);
  const now = () => clock.now();
  const outbox = outboxStore(database);
  // A database of our own: whoever held the relay's lease was this platform before a kill -9, and is gone.
  if (!database.shared || lock === 'one') await outbox.vacate();
  const isShared = database.shared && lock !== 'one';
  const tail = eventTail(database, clock);
  const onEvents = await eventSignal(database, { outbox, tail }, { isShared, clock, log });
  const marks = isShared ? undefined : new KeyMarks(now);
  const kept = keptAnswers(marks);
  const onDead = () => nodes.tell('');
  const journal = groupCommit({ database, log, nodeId, keptAnswers: kept, readTo: outbox.readTo, onEvents, onDead, turn });
  const leases = leaseStore(database, nodeId);
  const apps = appStore(database, seal, now);
  const sweep = () => forget(database, now(), settings.callHistoryDays ?? 0);
  const mayRemove = timeWitness(database, clock, log);
  const stopSweeping = keepSweeping(sweep, { leases, mayRemove, clock, log });

  return {
    journal,
    sessions: sessionStore(database, nodeId, now),
    calls: callStore(database, settings.callHistoryDays !== 0),
    rooms: roomStore(database, nodeId),
    apps,
    credentials: credentialStore(database, seal, now, apps.changed),
    numbers: numberStore(database, apps, now),
    callerIds: callerIdStore(database, apps, now),
    terminals: terminalStore(database, apps, now),
    trunks: trunkStore(database, seal, tellLost),
    devices: deviceStore(database, seal, nodeId, now, tellLost),
    events: eventLog(database, onEvents),
    tail,
    messages: messageStore(database, isShared, kept, onEvents),
    received: receivedStore(database, onEvents),
    payments: paymentStore({ database, masterKey: settings.masterKey, kept, nodeId, shared: isShared, onEvents }),
    recordings: recordingStore(database, nodeId, mayRemove),
    outbox,
    idempotency: idempotencyStore(database, nodeId, now, marks),
    webrtcTokens: webrtcTokenStore(database, now),
    consoleCookies: consoleCookieStore(database),
    nodes,
    leases,
    appChanged: apps.changedElsewhere,
    ready: () =>
      database.query(WRITABLE).then(
        (rows) => rows.length > 0,
        () => false,
      ),
    load: () => journal.load(),
    awayMs: () => database.awayMs?.() ?? 0,
    forget: sweep,
    reseal: (before) => reseal(database, before, settings.masterKey),
    async close() {
      stopSweeping();
      await journal.close();
      await database.close();
    },
  };
}

/** Tells of devices and trunks whose secrets do not open: once, and again while they are set up no better. */
function lostSecretsLog(log: Log, clock: Clock): TellLost {
  const lines = new ThrottledLog(log, clock, LOST_SECRETS_SAID_EVERY_MS);
  return (what, names) => {
    const fields = { [what]: names.length, first: names[0] };
    lines.say('error', what, fields, `MASTER_KEY does not open the secrets of ${what}: give each its password again`);
  };
}

/**
 * Wakes the relay and the event streams of this node at each NOTIFY of another one. Returns what is called after each
 * commit that wrote events: it wakes them here, and those of the other nodes.
 */
async function eventSignal(
  database: Database,
  { outbox, tail }: { readonly outbox: OutboxFeed; readonly tail: EventTail },
  { isShared, clock, log }: { readonly isShared: boolean; readonly clock: Clock; readonly log: Log },
): Promise<(next?: readonly OutboxEvent[]) => void> {
  const notify = isShared ? notifier(database, clock) : () => {};
  const heard = () => {
    outbox.wake();
    tail.wake();
  };
  // A lost LISTEN costs promptness between nodes only: the relay reads on its own every second as well.
  if (isShared)
    await database.listen(CHANNEL, heard).catch((error: unknown) => log.warn({ error: String(error) }, 'LISTEN failed'));
  return (next = []) => {
    outbox.written(next);
    tail.wake();
    notify();
  };
}

/**
 * Sweeps `RETENTION_FIRST_SEC` after a start and every `RETENTION_EVERY_SEC` from then on, on the one node of a cluster
 * that has the lease. Returns what stops it.
 */
function keepSweeping(
  sweep: () => Promise<Forgotten>,
  {
    leases,
    mayRemove,
    clock,
    log,
  }: Pick<StoreUser, 'clock' | 'log'> & { readonly leases: LeaseStore; mayRemove(): Promise<boolean> },
): () => void {
  const sweepInTurn = async () => {
    const isMine = (await leases.take('retention', RETENTION_EVERY_SEC * 1000)) !== undefined;
    if (isMine && (await mayRemove())) await sweep();
  };
  let cancel = () => {};
  const schedule = (afterSec: number): void => {
    cancel = clock.at(clock.now() + afterSec * 1000, () => {
      schedule(RETENTION_EVERY_SEC);
      sweepInTurn().catch((error: unknown) => log.warn({ error: String(error) }, 'retention was put off'));
    });
  };
  schedule(RETENTION_FIRST_SEC);
  return () => cancel();
}

/** Tells the relay of another node; a burst of commits is told once. */
function notifier(database: Database, clock: Clock): () => void {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    clock.at(clock.now() + NOTIFY_SPACING_MS, () => {
      pending = false;
      database.query(`NOTIFY ${CHANNEL}`).catch(() => {});
    });
  };
}
