import { describe, expect, spyOn, test } from 'bun:test';
import type { Leg, LegListener } from '../../src/call/ports/leg.ts';
import type { CommandContext } from '../../src/call/ports/sessions.ts';
import { TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { SessionRegistry } from '../../src/call/session/session-registry.ts';
import { type Change, type Journal, type SessionRow, StoreUnavailable } from '../../src/database/journal/journal.ts';
import { mayReach } from '../../src/destinations.ts';
import { newUuid } from '../../src/id.ts';
import { ENDED_SESSION_KEPT_SEC, MAILBOX_MAX_INPUTS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { beginRecording } from '../../src/machine/recording/recording.ts';
import { inbound, type SessionState } from '../../src/machine/session/session.ts';
import type { LegAudio, MediaNotice, MediaRecording, PlaybackControl, Playlist, PlayOptions } from '../../src/media/engine.ts';
import { OpenPush } from '../../src/media/playback/push.ts';
import { isProblem } from '../../src/problem.ts';
import { sessionRow } from '../database/rows.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietRoom } from './quiet-room.ts';
import { quietSession } from './quiet-session.ts';

/** Keeps what is committed, in order, and can be away. */
class MemoryJournal implements Journal {
  changes: Change[] = [];
  rows = new Map<string, SessionRow>();
  away = false;
  /** The answer to the next commit is lost, and not the commit; then the database may be away. */
  losesAnswer: 'no' | 'once' | 'and goes away' = 'no';

  async commit(change: Change): Promise<boolean> {
    if (this.away) throw new StoreUnavailable('away');
    const { session } = change;
    if (session !== undefined) {
      if (this.rows.get(session.sessionUuid)?.endedAt !== undefined) return false;
      this.rows.set(session.sessionUuid, session);
    }
    this.changes.push(change);
    if (this.losesAnswer !== 'no') {
      this.away = this.losesAnswer === 'and goes away';
      this.losesAnswer = 'no';
      throw new StoreUnavailable('no answer');
    }
    return true;
  }

  async wasStored(change: Change): Promise<boolean> {
    if (this.away) throw new StoreUnavailable('away');
    return this.changes.includes(change);
  }

  get events(): { event: string; [field: string]: unknown }[] {
    return this.changes.flatMap((change) => change.events.map((event) => JSON.parse(event.body)));
  }

  get names(): string[] {
    return this.events.map((event) => event.event);
  }
}

/** A leg that writes down its orders. */
class PaperLeg implements Leg, LegAudio {
  readonly audio = this;
  readonly pipeCodec = 'PCMU';
  orders: string[] = [];
  played: PlayOptions[] = [];
  listener: LegListener = () => {};
  start = () => this.orders.push('start');
  ring = () => this.orders.push('ring');
  startEarlyMedia = () => this.orders.push('early_media');
  answer = () => this.orders.push('answer');
  reject = () => this.orders.push('reject');
  cancel = () => this.orders.push('cancel');
  hangup = () => this.orders.push('hangup');
  join = () => this.orders.push('join');
  leave = () => this.orders.push('leave');
  setMuted = () => this.orders.push('muted');
  coach = () => this.orders.push('coach');
  setVolume = (direction: string) => {
    this.orders.push(`volume ${direction}`);
    return true;
  };
  stopPlayback = () => this.orders.push('stop');
  record = (): MediaRecording => ({ mask() {}, unmask() {}, stop() {} });
  controlPlayback = (_operation: string, control: PlaybackControl) => this.orders.push(control.type);
  play = (order: PlayOptions) => {
    this.orders.push('play');
    this.played.push(order);
  };
}

function world(perAppMax?: number, journal = new MemoryJournal(), clock = new VirtualClock()) {
  const leg = new PaperLeg();
  const released: string[] = [];
  const registry = new SessionRegistry({
    journal,
    clock,
    log: silentLog,
    nodeId: 'node',
    tokens: new TokenBuckets(),
    orphanTimeoutMs: 120_000,
    perAppMax,
    records: {
      find: async (appUuid, sessionUuid) => {
        const row = journal.rows.get(sessionUuid);
        return row?.appUuid === appUuid ? row : undefined;
      },
      list: async () => [...journal.rows.values()],
      mine: async () => [],
      adopt: async () => [...journal.rows.values()].filter((row) => row.endedAt === undefined),
    },
    media: {
      openPlaylist: async (urls) =>
        urls[0] === 'http://bad/'
          ? { refused: { reason: 'not_found', retryable: false, source_index: 0, upstream_status: 404 } }
          : ({ urls, release: () => released.push(urls[0] ?? '') } satisfies Playlist),
      openStream: async (url) =>
        url === 'http://bad/'
          ? { refused: { reason: 'timeout', retryable: true } }
          : { urls: [], release: () => released.push(url) },
      openPush: (format) => {
        const ingest = new OpenPush(format);
        return { playlist: { urls: [], release: () => released.push('push') }, ingest };
      },
    },
    publicUrl: 'https://voice.test',
    recordings: noRecordings,
    reachOf: async () => mayReach(),
    mayCallFrom: async (_app, from) => from === '+15550001',
  });
  registry.connect({
    dial: async (options) => {
      leg.listener = options.listener;
      return { leg };
    },
  });
  const context = (more: Partial<CommandContext> = {}): CommandContext => ({
    appUuid: 'app_1',
    operationUuid: newUuid(),
    idempotencyKey: undefined,
    traceparent: '',
    ...more,
  });
  const incoming = async () => {
    await registry.incoming({
      callerId: '+15550009',
      did: '+15550002',
      appUuid: 'app_1',
      leg,
      refuse: () => leg.hangup(),
      listen: (listener) => {
        leg.listener = listener;
      },
    });
    await settle();
    return [...journal.rows.keys()][0] ?? '';
  };
  return { journal, clock, leg, registry, context, incoming, released };
}

const dialRequest = { from: '+15550001', to: '+15550002', ring_timeout_sec: 30, client_state: 'mine' };
const bye = { type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: 'hung up' } } as const;

describe('dial', () => {
  test('is durable, with its answer under the key, before the far end hears of it', async () => {
    const { registry, journal, leg, context } = world();
    const dialContext = context({ idempotencyKey: 'key' });
    const answer = await registry.dial(dialRequest, dialContext);
    expect(answer).toMatchObject({ status: 202, body: { operation_uuid: dialContext.operationUuid, status: 'in_progress' } });
    expect(journal.changes[0]?.answer).toMatchObject({ key: 'key', status: 202 });
    expect(leg.orders).toEqual(['start']);
  });

  test('echoes client_state in every event', async () => {
    const { registry, journal, leg, context } = world();
    await registry.dial(dialRequest, context());
    leg.listener({ type: 'leg.ringing' });
    leg.listener({ type: 'leg.answered' });
    leg.listener(bye);
    await settle();
    expect(journal.names).toEqual(['session.ringing_started', 'session.answered', 'session.ended']);
    expect(journal.events.every((event) => event.client_state === 'mine' && event.aud === 'app_1')).toBe(true);
  });

  test('with recordings switched off, one is refused with 503 that waiting does not help, and nothing is written', async () => {
    const { registry, journal, leg, context } = world();
    const dialled = await registry.dial(dialRequest, context());
    leg.listener({ type: 'leg.answered' });
    await settle();
    const changes = journal.changes.length;
    const sessionUuid = 'body' in dialled ? String(dialled.body.session_uuid) : '';
    const terms = noRecordings.terms({ includeGaps: false, voiceActivity: undefined });
    const refused = await registry.command(sessionUuid, { type: 'record', terms }, context());
    expect(refused).toEqual({ problem: 'unavailable', status: 503, message: 'Recording is not configured' });
    expect(journal.changes).toHaveLength(changes);
  });

  test('whose time is over before it begins leaves nothing behind, and nobody is called', async () => {
    const { registry, journal, clock, leg, context } = world();
    expect(await registry.dial(dialRequest, context({ until: clock.now() }))).toMatchObject({ status: 503 });
    leg.listener(bye);
    await settle();
    expect([registry.size, journal.names, leg.orders]).toEqual([0, [], ['hangup']]);
  });

  test('of an application with as many live Sessions as it may have is 529, as is its next inbound call; others go on', async () => {
    const { registry, leg, context, incoming } = world(1);
    const first = await registry.dial(dialRequest, context());
    expect(first).toMatchObject({ status: 202 });
    const { listener } = leg;
    expect(await registry.dial(dialRequest, context())).toMatchObject({ status: 529, retryAfterSec: 5 });
    leg.orders.length = 0;
    await incoming();
    expect(leg.orders).toEqual(['hangup']);
    // Two that come at once are looked at before either has begun.
    const other = context({ appUuid: 'app_2' });
    const both = await Promise.all([registry.dial(dialRequest, other), registry.dial(dialRequest, other)]);
    expect(both).toMatchObject([{ status: 202 }, { status: 529, retryAfterSec: 5 }]);
    listener(bye);
    await settle();
    expect(await registry.dial(dialRequest, context())).toMatchObject({ status: 202 });
  });

  test('to a WebSocket server counts alike: of two that come at once one is 529, and is not connected', async () => {
    const { registry, leg, context } = world(1);
    let connections = 0;
    registry.connectWebSockets(() => {
      connections += 1;
      return leg;
    });
    const format = { encoding: 'mulaw', sample_rate: 8_000 } as const;
    const request = { websocket: { url: 'wss://bot.test' }, media_format: { from_session: format, to_session: format } };
    const both = [registry.connectWebsocket(request, context()), registry.connectWebsocket(request, context())];
    expect(await Promise.all(both)).toMatchObject([{ status: 202 }, { status: 529, retryAfterSec: 5 }]);
    expect(connections).toBe(1);
  });

  test('from a number that is not permitted is 403 and reserves nothing', async () => {
    const { registry, leg, context } = world();
    expect(await registry.dial({ ...dialRequest, from: '+15550003' }, context())).toMatchObject({ status: 403 });
    expect(leg.orders).toEqual([]);
  });

  test('while the database is away is 503; the reserved leg is given back and nothing was sent', async () => {
    const { registry, journal, leg, context, clock } = world();
    journal.away = true;
    expect(await registry.dial(dialRequest, context())).toMatchObject({ status: 503 });
    expect(leg.orders).toEqual(['hangup']);
    leg.listener(bye);
    await settle();
    journal.away = false;
    await clock.advance(2_000);
    expect(registry.size).toBe(0);
    expect(journal.names).toEqual([]);
  });
});

describe('a live Session', () => {
  test('ends once, however many ends come at the same instant', async () => {
    const { registry, journal, leg, context, incoming } = world();
    const sessionUuid = await incoming();
    await registry.command(sessionUuid, { type: 'answer' }, context());
    leg.listener({ type: 'leg.answered' });
    await settle();
    const deletes = [1, 2, 3].map(() => registry.command(sessionUuid, { type: 'hangup' }, context()));
    leg.listener(bye);
    leg.listener(bye);
    const answers = await Promise.all(deletes);
    await settle();
    expect(answers.every((answer) => !isProblem(answer) && answer.status === 202)).toBe(true);
    expect(journal.names.filter((name) => name === 'session.ended')).toHaveLength(1);
    expect(registry.size).toBe(0);
  });

  test('that has ended answers DELETE with already_ended, cancel with 409 once answered, and anything else as unknown', async () => {
    const { registry, journal, clock, leg, context, incoming } = world();
    const sessionUuid = await incoming();
    leg.listener({ type: 'leg.answered' });
    leg.listener(bye);
    await settle();
    const over = { status: 202, body: { status: 'completed', already_ended: true } };
    expect(await registry.command(sessionUuid, { type: 'hangup' }, context())).toMatchObject(over);
    // The answer is kept under its key, or is none.
    const keyed = context({ idempotencyKey: 'key' });
    expect(await registry.command(sessionUuid, { type: 'hangup' }, keyed)).toMatchObject(over);
    expect(journal.changes.at(-1)?.answer).toMatchObject({ key: 'key', ...over });
    journal.away = true;
    expect(await registry.command(sessionUuid, { type: 'hangup' }, keyed)).toMatchObject({ status: 503, retryAfterSec: 2 });
    journal.away = false;
    expect(await registry.command(sessionUuid, { type: 'reject', reason: 'busy' }, context())).toMatchObject({ status: 409 });
    expect(await registry.owns('app_1', sessionUuid, 'answer')).toBe(false);
    expect(await registry.owns('app_1', sessionUuid, 'hangup')).toBe(true);
    expect(await registry.owns('app_2', sessionUuid, 'hangup')).toBe(false);
    expect(await registry.get('app_1', sessionUuid)).toBeUndefined();
    // It is told of for a day.
    await clock.advance(ENDED_SESSION_KEPT_SEC * 1000 - 1);
    expect(await registry.command(sessionUuid, { type: 'hangup' }, context())).toMatchObject(over);
    await clock.advance(1);
    expect(await registry.command(sessionUuid, { type: 'hangup' }, context())).toMatchObject({ status: 404 });
    expect(await registry.owns('app_1', sessionUuid, 'hangup')).toBe(false);
  });

  test('of a node that was declared dead is hung up on, and nothing more is written or told of it', async () => {
    const { registry, journal, leg, incoming } = world();
    await incoming();
    leg.listener({ type: 'leg.answered' });
    await settle();
    const before = journal.changes.length;
    registry.abandon();
    leg.listener(bye);
    await settle();
    expect(leg.orders.at(-1)).toBe('hangup');
    expect(journal.changes).toHaveLength(before);
  });

  test('that is just coming from another node, or has just gone there, is to be commanded again, and is not unknown', async () => {
    const { registry, journal, context } = world();
    const row = sessionRow({ appUuid: 'app_1' });
    journal.rows.set(row.sessionUuid, row);
    for (const type of ['answer', 'hangup'] as const) {
      expect(await registry.owns('app_1', row.sessionUuid, type)).toBe(true);
      expect(await registry.command(row.sessionUuid, { type }, context())).toMatchObject({ status: 503, retryAfterSec: 1 });
      expect(await registry.owns('app_2', row.sessionUuid, type)).toBe(false);
    }
  });

  test('keeps a fact it could not store and stores it when the database is back; commands meanwhile are 503', async () => {
    const { registry, journal, clock, leg, context, incoming } = world();
    const sessionUuid = await incoming();
    leg.listener({ type: 'leg.answered' });
    await settle();
    journal.away = true;
    leg.listener({ type: 'leg.held' });
    leg.listener({ type: 'leg.resumed' });
    leg.listener(bye);
    await settle();
    expect(await registry.command(sessionUuid, { type: 'hangup' }, context())).toMatchObject({ status: 503, retryAfterSec: 2 });
    await clock.advance(30_000);
    expect(journal.names).toEqual(['session.created', 'session.answered']);
    journal.away = false;
    await clock.advance(2_000);
    expect(journal.names).toEqual(['session.created', 'session.answered', 'session.held', 'session.resumed', 'session.ended']);
  });

  test("leaves the end of a recording that waited behind the Session's own to be told of without it", async () => {
    const late = spyOn(noRecordings, 'late').mockImplementation(() => {});
    try {
      const { journal, clock, leg, incoming } = world();
      await incoming();
      journal.away = true;
      leg.listener(bye);
      const notice = { type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 10, bytes: 20 } as const;
      leg.listener({ type: 'leg.media', notice });
      await settle();
      expect(late).not.toHaveBeenCalled();
      journal.away = false;
      await clock.advance(2_000);
      expect(journal.names.at(-1)).toBe('session.ended');
      expect(late.mock.calls).toEqual([[notice]]);
    } finally {
      late.mockRestore();
    }
  });

  test('that goes on at another node leaves the ends of its recordings to be told of without it', async () => {
    const [late, abandoned] = [spyOn(noRecordings, 'late'), spyOn(noRecordings, 'abandoned')];
    try {
      const { clock, leg } = world();
      const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
      const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
      const { recording } = beginRecording({ session_uuid: about.sessionUuid }, terms, 'op', 0);
      const recordings = [recording, { ...recording, recordingUuid: 'rec_2', cutOffMs: 5 }];
      const membership = {
        roomId: 'r',
        room: 1,
        phase: 'joined',
        muted: false,
        voiceActivityEvents: false,
        talking: false,
      } as const;
      const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, recordings, membership } as const;
      const elsewhere: Journal = { commit: async () => false, wasStored: async () => false };
      const seats: unknown[] = [];
      const handedOver = ({ membership: of }: Pick<SessionState, 'membership'>, to: string) => seats.push([of?.roomId, to]);
      const away = () => ({ join: () => false, seat: () => undefined, handedOver });
      const actor = quietSession(state, elsewhere, clock, 'node', { keepsCalls: true, away }, leg);
      const notice = { type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 10, bytes: 20 } as const;
      actor.signal({ type: 'leg.media', notice });
      await settle();
      expect([late.mock.calls, abandoned.mock.calls]).toEqual([[[notice]], [[recordings]]]);
      // Its seat is that node's.
      expect(seats).toEqual([['r', '']]);
    } finally {
      late.mockRestore();
      abandoned.mockRestore();
    }
  });

  test.each(['voice', 'speech'])(
    'whose far end talks on and on while the database is away is not ended for it (%s)',
    async (how) => {
      const { journal, clock, leg } = world();
      const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
      const joined = { phase: 'joined', muted: false, voiceActivityEvents: true, talking: false } as const;
      const voiceActivity = { sensitivity: 0.5, speechDurationMs: 100, silenceDurationMs: 500 };
      const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity, livenessMs: 10_000 };
      const { recording } = beginRecording({ session_uuid: about.sessionUuid }, terms, 'op', 0);
      const recordings = [{ ...recording, confirmBy: undefined }];
      const up = {
        phase: 'answered',
        hasLeg: true,
        deadlines: {},
        recordings,
        membership: { roomId: 'r', room: 1, ...joined },
      } as const;
      const actor = quietSession({ ...inbound(about, clock.now()), ...up }, journal, clock, 'node', {}, leg);
      const speech = (talking: boolean): MediaNotice =>
        talking
          ? { type: 'speech.started', recordingUuid: 'rec_1', precedingSilenceMs: undefined }
          : { type: 'speech.ended', recordingUuid: 'rec_1' };
      const talk = (talking: boolean): void =>
        actor.signal({ type: 'leg.media', notice: how === 'voice' ? { type: 'voice', talking } : speech(talking) });
      journal.away = true;
      for (let words = 0; words < MAILBOX_MAX_INPUTS; words++) for (const talking of [true, false]) talk(talking);
      actor.signal({ type: 'leg.digit', digit: '1', durationMs: 100 });
      talk(true);
      await settle();
      journal.away = false;
      for (let tries = 0; tries < 100 && !journal.names.includes('dtmf.received'); tries++) await clock.advance(100);
      await settle();
      const told = journal.names.filter((name) => name !== 'dtmf.received');
      const changed = 'room.member.voice_activity_changed';
      const [began, ended] = how === 'voice' ? [changed, changed] : ['recording.speech.started', 'recording.speech.ended'];
      expect([told.length % 2, told[0], told[1], told.at(-1), leg.orders]).toEqual([1, began, ended, began, []]);
    },
  );

  test('whose far end holds and resumes again and again, faster than it can be stored, is not ended for it', async () => {
    const { journal, clock, leg } = world();
    const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const up = { phase: 'answered', hasLeg: true, deadlines: {} } as const;
    const actor = quietSession({ ...inbound(about, clock.now()), ...up }, journal, clock, 'node', {}, leg);
    journal.away = true;
    for (let holds = 0; holds < MAILBOX_MAX_INPUTS; holds++)
      for (const type of ['leg.held', 'leg.resumed'] as const) actor.signal({ type });
    actor.signal({ type: 'leg.digit', digit: '1', durationMs: 100 });
    actor.signal({ type: 'leg.held' });
    await settle();
    journal.away = false;
    for (let tries = 0; tries < 100 && !journal.names.includes('dtmf.received'); tries++) await clock.advance(100);
    await settle();
    const told = journal.names.filter((name) => name !== 'dtmf.received');
    const pairs = told.map((_, at) => (at % 2 === 0 ? 'session.held' : 'session.resumed'));
    expect([told, actor.state.held, leg.orders]).toEqual([pairs, true, []]);
  });

  test('that is let go gives its seat away once: what it finds late of another node may be of a later call here', async () => {
    const { clock, leg } = world();
    const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const joined = { phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
    const membership = { roomId: 'r', room: 1, ...joined };
    const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, membership } as const;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const seats: string[] = [];
    const handedOver = (_of: unknown, to: string) => seats.push(to);
    const away = () => ({ join: () => false, seat: () => undefined, handedOver });
    const journal: Journal = { commit: () => promise, wasStored: async () => false };
    const actor = quietSession(state, journal, clock, 'node', { keepsCalls: true, away }, leg);
    actor.signal({ type: 'leg.digit', digit: '1', durationMs: 100 });
    actor.dropTaken('other');
    resolve(false);
    await settle();
    expect(seats).toEqual(['other']);
  });

  const play = { type: 'play', urls: ['http://good/'], loop: 1, volume: 100 } as const;

  test('that another node took while a command was stored does nothing of it here', async () => {
    const leftBehind = spyOn(noRecordings, 'leftBehind');
    try {
      const { clock, leg, context } = world();
      const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
      const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true } as const;
      const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
      const orders = [play, { type: 'record', terms } as const];
      const released: string[] = [];
      for (const order of orders) {
        const { promise, resolve } = Promise.withResolvers<boolean>();
        const slow: Journal = { commit: () => promise, wasStored: async () => true };
        const actor = quietSession(state, slow, clock, 'node', { keepsCalls: true }, leg);
        const answer = actor.command(order, context(), { urls: [], release: () => released.push(order.type) });
        actor.dropTaken();
        resolve(true);
        expect(await answer).toMatchObject({ status: 202 });
      }
      expect([leg.orders, leg.played, released]).toEqual([['hangup', 'hangup'], [], ['play', 'record']]);
      expect(leftBehind.mock.calls).toMatchObject([
        ['app_1', []],
        ['app_1', [{ record: 'begun', recording: { recordingUuid: 'rec_1' } }]],
      ]);
    } finally {
      leftBehind.mockRestore();
    }
  });

  test('takes a command that was stored although the answer of the database was lost', async () => {
    const { registry, journal, leg, context, incoming } = world();
    const sessionUuid = await incoming();
    leg.listener({ type: 'leg.answered' });
    await settle();
    journal.losesAnswer = 'once';
    expect(await registry.command(sessionUuid, play, context({ idempotencyKey: 'key' }))).toMatchObject({ status: 202 });
    expect(leg.played).toHaveLength(1);
  });

  test('refuses a command of which the database tells nothing, and obeys it once it tells that it was stored', async () => {
    const { registry, journal, leg, context, incoming, clock, released } = world();
    const sessionUuid = await incoming();
    leg.listener({ type: 'leg.answered' });
    await settle();
    journal.losesAnswer = 'and goes away';
    const answer = await registry.command(sessionUuid, play, context({ idempotencyKey: 'key' }));
    // The key stays marked: a retry neither plays a second time nor hears that nothing was played.
    expect(answer).toMatchObject({ status: 503, isInDoubt: true });
    expect(await registry.command(sessionUuid, play, context())).toMatchObject({ status: 503 });
    expect([leg.played.length, released.length]).toEqual([0, 1]);
    journal.away = false;
    await clock.advance(2_000);
    expect([leg.played.length, released.length]).toEqual([1, 1]);
  });

  test('whose beginning was in doubt, and is stored, ends: the call is not placed', async () => {
    const { registry, journal, leg, context, clock } = world();
    journal.losesAnswer = 'and goes away';
    const answer = await registry.dial(dialRequest, context({ idempotencyKey: 'key' }));
    expect(answer).toMatchObject({ status: 503, isInDoubt: true });
    await settle();
    journal.away = false;
    await clock.advance(500);
    await clock.advance(6_000);
    expect(leg.orders).not.toContain('start');
    expect(journal.names).toEqual(['session.ended']);
    expect(registry.size).toBe(0);
  });

  test('that cannot be stored at its beginning is refused to the carrier', async () => {
    const { registry, journal, leg, clock, incoming } = world();
    journal.away = true;
    await incoming();
    expect(leg.orders).toEqual(['hangup']);
    // What was never announced does not end either.
    leg.listener(bye);
    journal.away = false;
    await clock.advance(2_000);
    expect(registry.size).toBe(0);
    expect(journal.names).toEqual([]);
  });

  test('whose sources cannot be opened answers 502 without source_index for a single URL', async () => {
    const { registry, journal, leg, context, incoming } = world();
    const sessionUuid = await incoming();
    const play = { type: 'play', urls: ['http://bad/'], loop: 1, volume: 100 } as const;
    expect(await registry.command(sessionUuid, play, context())).toMatchObject({
      status: 502,
      detail: { reason: 'not_found', retryable: false, upstream_status: 404 },
    });
    expect(leg.orders).toEqual(['ring']);
    expect(journal.names).toEqual(['session.created']);
  });

  test('releases the sources of a play that came too late', async () => {
    const { registry, leg, context, incoming, released } = world();
    const sessionUuid = await incoming();
    const playing = registry.command(sessionUuid, { type: 'play', urls: ['http://a/'], loop: 1, volume: 100 }, context());
    leg.listener(bye);
    expect(await playing).toMatchObject({ status: 404 });
    expect(released).toEqual(['http://a/']);
  });

  test('releases the sources of a play that finds the Session at another node', async () => {
    const { registry, journal, context, incoming, released } = world();
    const sessionUuid = await incoming();
    const row = journal.rows.get(sessionUuid);
    if (row === undefined) throw new Error('not stored');
    journal.rows.set(sessionUuid, { ...row, endedAt: 1 });
    const playing = registry.command(sessionUuid, { type: 'play', urls: ['http://a/'], loop: 1, volume: 100 }, context());
    expect(await playing).toMatchObject({ status: 404 });
    expect([released, registry.size]).toEqual([['http://a/'], 0]);
  });
});

test('what a process left behind is ended once after the orphan timeout, and can be ended before by DELETE', async () => {
  const { registry, journal, clock, context } = world();
  for (const sessionUuid of ['one', 'two']) {
    const about = { nodeId: 'before', epoch: 1, state: 'answered', answered: true, createdAt: clock.now() - 1000 } as const;
    journal.rows.set(sessionUuid, sessionRow({ sessionUuid, appUuid: 'app_1', ...about }));
  }
  expect(await registry.recover()).toBe(2);
  await registry.command('one', { type: 'hangup' }, context());
  expect(journal.events).toMatchObject([{ event: 'session.ended', session_uuid: 'one', answered: true, duration_seconds: 0 }]);
  await clock.advance(120_000);
  expect(journal.events).toMatchObject([
    { session_uuid: 'one' },
    { event: 'session.ended', session_uuid: 'two', answered: false, duration_seconds: 0, hangup_by: 'system' },
  ]);
  expect(clock.armed).toBe(0);
});

test('what a process left behind keeps the name of its trunk', async () => {
  const { registry, journal, clock, context } = world();
  const about = { nodeId: 'before', epoch: 1, state: 'answered', answered: true, trunk: 'acme' } as const;
  for (const sessionUuid of ['deleted', 'lost'])
    journal.rows.set(sessionUuid, sessionRow({ sessionUuid, appUuid: 'app_1', ...about }));
  await registry.recover();
  await registry.command('deleted', { type: 'hangup' }, context());
  await clock.advance(120_000);
  expect(journal.names).toEqual(['session.ended', 'session.ended']);
  expect([...journal.rows.values()].map(({ state, trunk }) => [state, trunk])).toEqual([
    ['ended', 'acme'],
    ['ended', 'acme'],
  ]);
});

test('what a process left behind is ended at the time that the first loss set, though its successor is lost too', async () => {
  const { registry, journal, clock } = world();
  const about = { nodeId: 'before', epoch: 1, state: 'answered', answered: true, createdAt: clock.now() - 1000 } as const;
  journal.rows.set('one', sessionRow({ sessionUuid: 'one', appUuid: 'app_1', ...about }));
  await registry.recover();
  await clock.advance(90_000);
  // The first successor leaves nothing but what it has stored.
  for (const actor of registry.all()) actor.dropTaken();
  const second = world(undefined, journal, clock);
  expect(await second.registry.recover()).toBe(1);
  await clock.advance(29_999);
  expect(journal.names).toEqual([]);
  await clock.advance(1);
  expect(journal.events).toMatchObject([{ event: 'session.ended', session_uuid: 'one', answered: false }]);
  expect(clock.armed).toBe(0);
});

test('a call that comes back before the node has let it go is one call, whatever the actor before finds late', async () => {
  const { registry, journal, clock, context } = world();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered' } as const;
  const goOn = async (epoch: number) => {
    const handOver = { snapshot: () => undefined, kept: () => undefined, release() {}, reclaim() {} };
    const leg = Object.assign(new PaperLeg(), { handOver });
    await registry.goOn(state, { leg, listen: (to) => (leg.listener = to) }, epoch, '');
    return leg;
  };
  const before = await goOn(1);
  const elsewhere = Promise.withResolvers<boolean>();
  const commit = spyOn(journal, 'commit').mockImplementationOnce(() => elsewhere.promise);
  const late = registry.command(state.sessionUuid, { type: 'hangup' }, context());
  const after = await goOn(3);
  elsewhere.resolve(false);
  expect(await late).toMatchObject({ status: 404 });
  commit.mockRestore();
  expect([...registry.all()].map(({ epoch }) => epoch)).toEqual([3]);
  expect(await registry.command(state.sessionUuid, { type: 'hangup' }, context())).toMatchObject({ status: 202 });
  expect([before.orders, after.orders]).toEqual([['hangup'], ['hangup']]);
  after.listener(bye);
  await settle();
  expect(journal.names.filter((name) => name === 'session.ended')).toHaveLength(1);
});

test.each(['cannot be gone on with', 'is of a node that is dead'])(
  'a call that another node had meanwhile, and that %s, is ended once, and the node lets go of what it had of it',
  async (how) => {
    const { registry, journal, clock, context } = world();
    const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const { sessionUuid } = about;
    const leg = new PaperLeg();
    const handOver = { snapshot: () => undefined, kept: () => undefined, release() {}, reclaim() {} };
    const before = Object.assign(leg, { handOver });
    await registry.goOn({ ...inbound(about, clock.now()), phase: 'answered' }, { leg: before, listen: () => {} }, 1, '');
    const row = sessionRow({ sessionUuid, appUuid: 'app_1', nodeId: 'node', epoch: 3, state: 'answered', answered: true });
    journal.rows.set(sessionUuid, row);
    if (how === 'is of a node that is dead') expect(await registry.recover()).toBe(1);
    else registry.orphan(row);
    await settle();
    expect([registry.size, registry.find(sessionUuid)?.epoch, leg.orders]).toEqual([1, 3, ['hangup']]);
    // It is one that the node has by now.
    expect(await registry.recover()).toBe(0);
    expect(await registry.command(sessionUuid, { type: 'hangup' }, context())).toMatchObject({ status: 202 });
    expect([journal.names, registry.size, clock.armed]).toEqual([['session.ended'], 0, 0]);
  },
);

test('A member whose Room has come to this node before its join was stored takes its seat in the mix that is here.', async () => {
  const { journal, clock, leg } = world();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true } as const;
  const actor = quietSession(state, journal, clock, 'node', { mediaRoom: () => quietRoom }, leg);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  // The number of its seat at another node.
  const room = 0x1_0000_0001;
  await actor.command({ type: 'member_join', roomId: 'room', room, muted: false, voiceActivityEvents: false }, context);
  await settle();
  actor.signal({ type: 'leg.media', notice: { type: 'room.joined', room: quietRoom.number } });
  await settle();
  expect([leg.orders, journal.names]).toEqual([['join'], ['room.member.joined']]);
});

test.each(['handed over', 'taken'])('a call that is %s while commands wait: each is told that it has moved', async (how) => {
  const { registry, journal, clock, context } = world();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const { sessionUuid } = about;
  const handOver = { snapshot: () => undefined, kept: () => undefined, release() {}, reclaim() {} };
  const leg = Object.assign(new PaperLeg(), { handOver });
  await registry.goOn({ ...inbound(about, clock.now()), phase: 'answered' }, { leg, listen: () => {} }, 1, '');
  const given = Promise.withResolvers<'given' | number>();
  const actor = registry.find(sessionUuid);
  void actor?.handOver(() => given.promise);
  const target = { number: '+15550100' };
  const commands = [
    registry.command(sessionUuid, { type: 'hangup' }, context()),
    registry.command(sessionUuid, { type: 'play', urls: ['http://a/'], loop: 1, volume: 100 }, context()),
    registry.command(sessionUuid, { type: 'transfer', target, timeoutMs: 30_000 }, context()),
  ];
  await settle();
  journal.rows.set(sessionUuid, sessionRow({ sessionUuid, appUuid: 'app_1', nodeId: 'other', state: 'answered' }));
  if (how === 'taken') actor?.dropTaken();
  given.resolve(how === 'taken' ? 1 : 'given');
  for (const each of await Promise.all(commands)) expect(each).toMatchObject({ status: 503 });
});

test('draining refuses new calls, waits for live ones, then ends them by the system', async () => {
  const { registry, journal, clock, leg, context, incoming } = world();
  await incoming();
  leg.listener({ type: 'leg.answered' });
  await settle();
  let drained = false;
  const draining = registry.drain(30_000, 6_000).then(() => {
    drained = true;
  });
  expect(await registry.dial(dialRequest, context())).toMatchObject({ status: 503 });
  await clock.advance(29_000);
  expect(leg.orders).toEqual(['ring']);
  await clock.advance(1_000);
  expect(leg.orders).toEqual(['ring', 'hangup']);
  expect(drained).toBe(false);
  leg.listener(bye);
  await settle();
  await draining;
  expect(journal.events.at(-1)).toMatchObject({ event: 'session.ended', hangup_by: 'system' });
});
