/** The part of the composition root that makes the heart: Sessions, Rooms, recordings, charges and messages. */
import { TurnBudget } from '../bounds/turn-budget.ts';
import { ChargeDispatcher } from '../call/charge/charge-dispatcher.ts';
import { IncomingMessages } from '../call/message/incoming-messages.ts';
import { MessageDispatcher } from '../call/message/message-dispatcher.ts';
import type { RoomPeers } from '../call/ports/room-peers.ts';
import { TokenBuckets } from '../call/rate/token-buckets.ts';
import { type RecordingFiles, RecordingRegistry } from '../call/recording/recording-registry.ts';
import { RoomRegistry } from '../call/room/room-registry.ts';
import { SessionRegistry } from '../call/session/session-registry.ts';
import type { CallsElsewhere } from '../call/session/transfers.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Store } from '../database/store.ts';
import { type MayReach, mayReach } from '../destinations.ts';
import type { HistorySink } from '../history/call-history.ts';
import type { SipTrace } from '../history/sip-trace.ts';
import { ACTOR_TURN_INPUTS } from '../limits.ts';
import type { Log } from '../log.ts';
import type { SmsGateway } from '../machine/message/gateway.ts';
import type { ChargeGateway } from '../machine/payment/charge.ts';
import type { MediaEngine } from '../media/engine.ts';
import type { RecordingRings } from '../media/recording/recording-rings.ts';
import { createRecordingUrls } from '../recording-storage/signed-url.ts';
import type { RecordingStorage } from '../recording-storage/storage.ts';

type HeartSettings =
  | 'masterKey'
  | 'masterKeyBefore'
  | 'recordingUrlTtlSec'
  | 'recordingLivenessSec'
  | 'recordingRetentionDays'
  | 'appSessionsMax'
  | 'destinations'
  | 'appRecordingsMax'
  | 'appRecordingMaxGb'
  | 'orphanTimeoutSec'
  | 'paymentReferenceTtlSec'
  | 'node';

/** What the heart stands on. */
export interface HeartEngines {
  readonly settings: Pick<Config, HeartSettings>;
  readonly clock: Clock;
  readonly log: Log;
  readonly publicUrl: string;
  readonly nodeId: string;
  /** The DATA_DIR, which outlives the process. */
  readonly volumeId: string;
  readonly store: Store;
  readonly media: MediaEngine;
  /** The place where recordings are kept, or undefined when nothing is recorded. */
  readonly storage: RecordingStorage | undefined;
  readonly rings: RecordingRings | undefined;
  /** The files of recordings; without it those of the file system. */
  readonly recordingFiles?: RecordingFiles;
  /** The payment provider, or undefined when payments are off. */
  readonly chargeGateway: ChargeGateway | undefined;
  /** The carrier of short messages, or undefined when there is none. */
  readonly smsGateway: SmsGateway | undefined;
  /** The other nodes of a cluster, or undefined where this process owns its database alone. */
  readonly cluster:
    | (CallsElsewhere & { readonly rooms: RoomPeers; tellMessages(): void; readonly submitsMessages: boolean })
    | undefined;
  /** The timelines of calls. Undefined when none are kept. */
  readonly history: HistorySink | undefined;
  readonly sipTrace: Pick<SipTrace, 'bind'> | undefined;
  /** Calls back once the present turn of the event loop is over: by setImmediate, unless told. */
  readonly afterTurn?: (then: () => void) => void;
}

/** The engines, and the turns in which the inputs of Sessions and Rooms are taken. */
interface TurningEngines extends HeartEngines {
  readonly turns: TurnBudget;
}

/** Everything that decides about calls. */
export interface Heart {
  /** The levels of the rate limits, of HTTP and of bots. */
  readonly tokens: TokenBuckets;
  readonly sessions: SessionRegistry;
  readonly rooms: RoomRegistry;
  readonly recordings: RecordingRegistry;
  readonly charges: ChargeDispatcher;
  readonly messages: MessageDispatcher;
  readonly urls: ReturnType<typeof createRecordingUrls>;
}

const GB = 1e9;

/** Makes the heart on engines that are open. */
export function makeHeart(engines: HeartEngines): Heart {
  const { settings, store, clock, log, publicUrl, chargeGateway, smsGateway } = engines;
  const { masterKey, masterKeyBefore, recordingUrlTtlSec: ttlSec } = settings;
  const urls = createRecordingUrls({ masterKey, masterKeyBefore, publicUrl, ttlSec });
  const recordings: RecordingRegistry = new RecordingRegistry({
    storage: engines.storage,
    rings: engines.rings,
    files: engines.recordingFiles,
    rows: store.recordings,
    volumeId: engines.volumeId,
    isAlone: engines.cluster === undefined,
    sign: urls.sign,
    journal: store.journal,
    clock,
    log,
    livenessMs: settings.recordingLivenessSec * 1000,
    retentionMs: settings.recordingRetentionDays * 24 * 3600 * 1000,
    perAppMax: settings.appRecordingsMax,
    keptMaxBytes: settings.appRecordingMaxGb === 0 ? undefined : settings.appRecordingMaxGb * GB,
    session: (sessionUuid) => sessions.find(sessionUuid)?.state,
  });
  const tokens = new TokenBuckets();
  const turning = { ...engines, turns: new TurnBudget(ACTOR_TURN_INPUTS, engines.afterTurn) };
  const sessions = makeSessions(turning, recordings, tokens, chargeGateway !== undefined);
  const rooms = makeRooms(turning, recordings, sessions);
  sessions.connectRooms(rooms);
  const charges = new ChargeDispatcher({
    store: store.payments,
    gateway: chargeGateway,
    clock,
    log,
    connected(sessionUuid) {
      const state = sessions.find(sessionUuid)?.state;
      return state?.phase === 'answered' && state.hasLeg && state.ending === undefined ? state : undefined;
    },
    isHere: (sessionUuid) => sessions.isHere(sessionUuid),
    isLive: isLive(engines),
    mayUseTerminal: store.terminals.allowed,
  });
  const messages = new MessageDispatcher({
    store: store.messages,
    gateway: smsGateway,
    clock,
    log,
    incoming: new IncomingMessages({ store: store.received, clock, log, owner: store.numbers.owner }),
    mayCallFrom: store.callerIds.allowed,
    reachOf: reachOf(engines),
    onWaiting: () => engines.cluster?.tellMessages(),
    submits: () => engines.cluster?.submitsMessages ?? true,
  });
  return { tokens, sessions, rooms, recordings, charges, messages, urls };
}

function makeSessions(
  engines: TurningEngines,
  recordings: RecordingRegistry,
  tokens: TokenBuckets,
  hasPayments: boolean,
): SessionRegistry {
  const { settings, store, clock, log, nodeId, turns, media, publicUrl } = engines;
  return new SessionRegistry({
    journal: store.journal,
    records: { find: store.sessions.get, list: store.sessions.list, adopt: store.sessions.adopt, mine: store.sessions.mine },
    clock,
    log,
    nodeId,
    turns,
    media,
    publicUrl,
    elsewhere: engines.cluster,
    orphanTimeoutMs: settings.orphanTimeoutSec * 1000,
    perAppMax: settings.appSessionsMax,
    tokens,
    recordings,
    history: engines.history,
    keepsCalls: settings.node.takesOver,
    onSipCall: (callId, sessionUuid, side) => engines.sipTrace?.bind(callId, sessionUuid, side),
    payments: hasPayments
      ? {
          nodeId,
          vault: store.payments.vault,
          referenceTtlMs: settings.paymentReferenceTtlSec * 1000,
          cardBrand: (appUuid, sessionUuid, reference) => store.payments.cardBrand(appUuid, sessionUuid, reference, clock.now()),
        }
      : undefined,
    mayCallFrom: store.callerIds.allowed,
    reachOf: reachOf(engines),
  });
}

/** The numbers that an application may reach: the platform's lists and its own both have to permit them. */
const reachOf =
  ({ settings, store }: HeartEngines) =>
  async (appUuid: string): Promise<MayReach> => {
    const own = await store.apps.destinations(appUuid);
    return own === undefined ? () => false : mayReach(settings.destinations, own);
  };

/** Whether a Session of an application is live by its row, at whatever node. */
const isLive =
  ({ store }: HeartEngines) =>
  async (appUuid: string, sessionUuid: string): Promise<boolean> =>
    (await store.sessions.owner(appUuid, sessionUuid)) !== undefined;

function makeRooms(engines: TurningEngines, recordings: RecordingRegistry, sessions: SessionRegistry): RoomRegistry {
  const { store, clock, log, nodeId, turns, media, cluster } = engines;
  return new RoomRegistry({
    journal: store.journal,
    records: store.rooms,
    clock,
    log,
    nodeId,
    turns,
    media,
    recordings,
    homes: cluster === undefined ? undefined : store.rooms,
    peers: cluster?.rooms,
    tellBots: (sessionUuid, roomId, news) => sessions.tellBots(sessionUuid, roomId, news),
    limits: async (appUuid) => (await store.apps.settings(appUuid))?.roomLimits,
    session: (sessionUuid) => sessions.find(sessionUuid),
    isLive: isLive(engines),
  });
}

/**
 * Takes up what an earlier process left: charges, recordings, Rooms, then Sessions, so that their ends come in order.
 */
export async function recover(
  { log }: Pick<HeartEngines, 'log'>,
  { charges, recordings, rooms, sessions }: Pick<Heart, 'charges' | 'recordings' | 'rooms' | 'sessions'>,
): Promise<void> {
  await charges.start();
  const mended = await recordings.recover();
  if (mended > 0) log.warn({ recordings: mended }, 'finished recordings that an earlier process left growing');
  recordings.keepRetention();
  const left = await rooms.recover(() => sessions.recover());
  if (left > 0) log.warn({ sessions: left }, 'took over Sessions that an earlier process left without an end');
}
