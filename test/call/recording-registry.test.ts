/**
 * Recordings whose Session or Room is gone: ended late, mended after a crash, removed past their retention. Real files,
 * a journal in memory.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RecordingRegistry, type RecordingRegistryOptions } from '../../src/call/recording/recording-registry.ts';
import { type Change, StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { RecordingRow } from '../../src/database/journal/recording-rows.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { beginRecording } from '../../src/machine/recording/recording.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { wavDurationMs } from '../../src/media/recording/mend-wav.ts';
import { problems } from '../../src/problem.ts';
import { createStorage } from '../../src/recording-storage/create.ts';
import { ObjectError } from '../../src/recording-storage/s3/object-error.ts';
import type { RecordingStorage } from '../../src/recording-storage/storage.ts';
import { beginWav, growWav } from '../recording-storage/wav.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietSession } from './quiet-session.ts';

const DAY_MS = 24 * 3600 * 1000;

/** A WAV of 8 kHz as a crash leaves it: sizes that say "still growing". */
async function leaveGrowing(path: string, samples: number): Promise<void> {
  await beginWav(path);
  await growWav(path, samples * 2, 1);
}

describe('the desk of recordings', () => {
  let dataDir: string;
  let storage: RecordingStorage;
  let clock: VirtualClock;
  let desk: RecordingRegistry;
  let rows: Map<string, RecordingRow>;
  let events: Record<string, unknown>[];
  /** What the rows tell of lengths, in milliseconds: null where a file was out of reach. */
  const lengths = new Map<string, number | null>();
  /** What the rows tell of bytes. */
  const sizes = new Map<string, number>();
  let away = 0;
  /** The answer to what is kept waits for it. */
  let answered: Promise<void> | undefined;
  /** Whether the clock is trusted with the removal of recordings. */
  let isTrusted = true;

  const commit = async (change: Change): Promise<boolean> => {
    if (away-- > 0) throw new StoreUnavailable('away');
    for (const each of change.recordings ?? []) {
      if ('begun' in each) rows.set(each.begun.recordingUuid, each.begun);
      else {
        const row = rows.get(each.ended.recordingUuid);
        if (row !== undefined) rows.set(row.recordingUuid, { ...row, endedAt: each.ended.endedAt });
        lengths.set(each.ended.recordingUuid, each.ended.durationMs ?? null);
        if (each.ended.bytes !== undefined) sizes.set(each.ended.recordingUuid, each.ended.bytes);
      }
    }
    events.push(...change.events.map(({ body }) => JSON.parse(body)));
    return true;
  };
  const row = (recordingUuid: string, of: Partial<RecordingRow> = {}) =>
    rows.set(recordingUuid, {
      recordingUuid,
      appUuid: 'app_1',
      sessionUuid: 's1',
      roomId: undefined,
      volumeId: 'volume',
      operationUuid: `op of ${recordingUuid}`,
      clientState: 'mine',
      traceparent: '',
      createdAt: 0,
      endedAt: undefined,
      removedAt: undefined,
      ...of,
    });

  const deskOf = (
    place: RecordingStorage | undefined,
    volumeId = 'volume',
    disk: Pick<RecordingRegistryOptions, 'files' | 'rings' | 'keptMaxBytes' | 'perAppMax' | 'isAlone'> = {},
  ) =>
    new RecordingRegistry({
      ...disk,
      storage: place,
      volumeId,
      rows: {
        get: async (recordingUuid) => {
          const found = rows.get(recordingUuid);
          return found && { ...found, durationMs: lengths.get(recordingUuid) ?? undefined };
        },
        list: async () => [],
        unfinished: async () => [...rows.values()].filter(({ endedAt }) => endedAt === undefined),
        unmended: async () =>
          [...rows.values()].filter(({ recordingUuid, endedAt }) => endedAt !== undefined && lengths.get(recordingUuid) === null),
        mended: async (recordingUuid, durationMs, bytes) => {
          lengths.set(recordingUuid, durationMs);
          sizes.set(recordingUuid, bytes);
        },
        kept: async (volume) => {
          if (away-- > 0) throw new StoreUnavailable('away');
          const kept = new Map<string, number>();
          for (const { recordingUuid, appUuid, endedAt, removedAt, volumeId: at } of rows.values())
            if (removedAt === undefined && !(endedAt === undefined && at === volume))
              kept.set(appUuid, (kept.get(appUuid) ?? 0) + (sizes.get(recordingUuid) ?? 0));
          await answered;
          return kept;
        },
        sized: async (some) => {
          for (const [recordingUuid, bytes] of some) sizes.set(recordingUuid, Math.max(bytes, sizes.get(recordingUuid) ?? 0));
        },
        expired: async (before) =>
          [...rows.values()]
            .filter(({ endedAt, removedAt }) => removedAt === undefined && endedAt !== undefined && endedAt < before)
            .map(({ recordingUuid }) => recordingUuid),
        removed: async (gone, at) => {
          for (const each of gone) {
            const found = rows.get(each);
            if (found !== undefined) rows.set(each, { ...found, removedAt: at });
          }
        },
        areRemoved: async (some) =>
          new Map(
            some.flatMap((each) => {
              const found = rows.get(each);
              return found === undefined ? [] : [[each, found.removedAt !== undefined] as const];
            }),
          ),
        mayRemove: async () => isTrusted,
      },
      sign: (recordingUuid, now) => ({ mediaUrl: `pull ${recordingUuid}`, liveUrl: 'live', expiresAt: now + 1_000 }),
      journal: { commit, wasStored: async () => false },
      clock,
      log: silentLog,
      livenessMs: 10_000,
      retentionMs: 30 * DAY_MS,
      session: () => undefined,
    });

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'recording-desk-'));
    clock = new VirtualClock();
    rows = new Map();
    events = [];
    sizes.clear();
    away = 0;
    answered = undefined;
    isTrusted = true;
    const made = await createStorage({ kind: 'file' }, { dataDir, clock, log: silentLog });
    if (made === undefined) throw new Error('no storage');
    storage = made;
    desk = deskOf(storage);
  });

  afterEach(async () => {
    desk.close();
    await storage.close();
    await rm(dataDir, { recursive: true });
  });

  test('mends what a crash left growing and tells of each as ended, once, also of a file that never was', async () => {
    row('rec_whole');
    row('rec_none', { sessionUuid: undefined, roomId: 'r1' });
    await leaveGrowing(storage.path('rec_whole'), 20_001);
    expect(await desk.recover()).toBe(2);
    expect(await desk.recover()).toBe(0);
    const about = { aud: 'app_1', event: 'recording.ended', client_state: 'mine', timestamp: expect.any(String) };
    expect(events).toHaveLength(2);
    expect(events).toContainEqual({
      ...about,
      session_uuid: 's1',
      recording_uuid: 'rec_whole',
      operation_uuid: 'op of rec_whole',
      duration: 2,
      pull_url: 'pull rec_whole',
      expires_at: expect.any(String),
    });
    expect(events).toContainEqual({
      ...about,
      room_id: 'r1',
      recording_uuid: 'rec_none',
      operation_uuid: 'op of rec_none',
      duration: 0,
      pull_url: 'pull rec_none',
      expires_at: expect.any(String),
    });
    expect((await readFile(storage.path('rec_whole'))).readUInt32LE(40)).toBe(40_002);
    const media = await desk.media('rec_whole');
    expect(media).toMatchObject({ state: 'finished', file: { bytes: 40_046 } });
    expect(await desk.media('rec_none')).toBeUndefined();
    expect(await desk.media('rec_never')).toBeUndefined();
  });

  test('An application that keeps as much as it may is refused, also after a crash, until its retention makes room', async () => {
    row('rec_crashed');
    await leaveGrowing(storage.path('rec_crashed'), 20_000);
    desk = deskOf(storage, 'volume', { keptMaxBytes: 40_044 });
    await desk.recover();
    expect(desk.use('app_1')).toEqual({ keptBytes: 40_044, maxBytes: 40_044 });
    const begin = async () => 'begun' as const;
    const full = { status: 503, retryAfterSec: 30 };
    expect(await desk.admitting('app_1', begin)).toMatchObject(full);
    expect(await desk.admitting('app_2', begin)).toBe('begun');
    expect([desk.refused, desk.fullApps]).toEqual([1, 1]);
    await clock.advance(30 * DAY_MS + 1);
    expect(await desk.sweep()).toBe(1);
    expect(await desk.admitting('app_1', begin)).toBe('begun');
    expect(desk.use('app_1')?.keptBytes).toBe(0);
  });

  test('An application that keeps as much as it may has room as soon as it has removed a recording', async () => {
    row('rec_1', { endedAt: 1 });
    sizes.set('rec_1', 100);
    desk = deskOf(storage, 'volume', { keptMaxBytes: 100 });
    await desk.recover();
    const begin = async () => 'begun' as const;
    expect(await desk.admitting('app_1', begin)).toMatchObject({ status: 503 });
    expect(await desk.remove('app_1', 'rec_1')).toBe('removed');
    expect(await desk.admitting('app_1', begin)).toBe('begun');
  });

  test('A recording whose file the disk does not let go stays, and is out of reach until it does', async () => {
    row('rec_1', { endedAt: 1 });
    await mkdir(storage.path('rec_1'));
    expect(await desk.remove('app_1', 'rec_1')).toBe('out_of_reach');
    expect(rows.get('rec_1')?.removedAt).toBeUndefined();
    await rm(storage.path('rec_1'), { recursive: true });
    expect(await desk.remove('app_1', 'rec_1')).toBe('removed');
  });

  test('An application has room as soon as its retention has made some, also while a look has read the rows of before.', async () => {
    row('rec_old', { endedAt: clock.now() });
    sizes.set('rec_old', 100);
    desk = deskOf({ ...storage, remove: async () => {}, async *names() {} }, 'volume', { keptMaxBytes: 100 });
    await desk.recover();
    await clock.advance(30 * DAY_MS + 1);
    const read = Promise.withResolvers<void>();
    answered = read.promise;
    void desk.recover();
    await settle();
    const swept = desk.sweep();
    for (let turn = 0; turn < 3; turn++) await settle();
    expect(rows.get('rec_old')?.removedAt).toBe(clock.now());
    read.resolve();
    expect(await swept).toBe(1);
    expect(await desk.admitting('app_1', async () => 'begun' as const)).toBe('begun');
  });

  test('An application has so many recordings under way and no more, however many it asks for at once', async () => {
    desk = deskOf(storage, 'volume', { perAppMax: 2 });
    const owner = { session_uuid: 's1' };
    const begun: string[] = [];
    const begin = () =>
      desk.admitting('app_1', async () => {
        const terms = desk.terms({ includeGaps: false, voiceActivity: undefined });
        await Promise.resolve();
        desk.committed('app_1', beginRecording(owner, terms, 'op', 0).records);
        begun.push(terms.recordingUuid);
        return 'begun' as const;
      });
    const answers = await Promise.all([begin(), begin(), begin(), begin()]);
    expect(begun.length).toBeLessThanOrEqual(2);
    expect(answers.filter((each) => each === 'begun')).toHaveLength(begun.length);
    while (begun.length < 2) await begin();
    expect(await begin()).toMatchObject({ status: 503, retryAfterSec: 30 });
    expect(await desk.admitting('app_2', async () => 'begun')).toBe('begun');
    expect(await desk.admitting('app_1', async () => problems.conflict('no'))).toMatchObject({ status: 503 });
    const ended = { record: 'ended', recordingUuid: begun[0] ?? '', durationMs: 1, bytes: 60 } as const;
    desk.committed('app_1', [ended]);
    // A command that is refused takes no place.
    expect(await desk.admitting('app_1', async () => problems.conflict('no'))).toMatchObject({ status: 409 });
    expect(await begin()).toBe('begun');
  });

  test('tells of an end that comes after the Session is over, once, however long the database is away', async () => {
    row('rec_late');
    away = 1;
    desk.late({ type: 'recording.ended', recordingUuid: 'rec_late', durationMs: 7_900, bytes: 1 });
    for (let turn = 0; events.length === 0 && turn < 1_000; turn++) {
      await clock.advance(10_000);
      await Promise.resolve();
    }
    expect(events).toMatchObject([{ event: 'recording.ended', recording_uuid: 'rec_late', duration: 7 }]);
    desk.late({ type: 'recording.ended', recordingUuid: 'rec_late', durationMs: 7_900, bytes: 1 });
    desk.late({ type: 'speech.ended', recordingUuid: 'rec_late' });
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    expect(events).toHaveLength(1);
  });

  test('ends one that was cut off before its Session or Room went to another node, and leaves the others to the media plane', async () => {
    for (const name of ['rec_cut', 'rec_lost', 'rec_live']) row(name);
    desk.abandoned([
      { recordingUuid: 'rec_cut', cutOffMs: 5_000 },
      { recordingUuid: 'rec_lost', cutOffMs: 'unknown' },
      { recordingUuid: 'rec_live', cutOffMs: undefined },
    ]);
    await clock.advance(1_000);
    expect(events.map((event) => [event.recording_uuid, event.duration])).toEqual([
      ['rec_cut', 5],
      ['rec_lost', 0],
    ]);
  });

  test('ends one that was begun as its Session or Room went to another node, as nothing of it was heard', async () => {
    row('rec_begun');
    const terms = { recordingUuid: 'rec_begun', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
    const { records } = beginRecording({ session_uuid: 's' }, terms, 'op', 0);
    desk.leftBehind('app_1', [...records, { record: 'ended', recordingUuid: 'rec_other', durationMs: 1, bytes: 1 }]);
    await clock.advance(1_000);
    expect(events.map((event) => [event.recording_uuid, event.duration])).toEqual([['rec_begun', 0]]);
  });

  test('one whose Session another node took as its end was stored is over here too: it is uploaded, and has no place', async () => {
    const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
    const { recording, records } = beginRecording({ session_uuid: 's1' }, terms, 'op', 0);
    desk.committed('app_1', records);
    const uploaded: string[] = [];
    storage.finished = (recordingUuid) => void uploaded.push(recordingUuid);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const slow = { commit: () => promise, wasStored: async () => true };
    const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const state = { ...inbound(about, clock.now()), phase: 'answered', recordings: [recording] } as const;
    const actor = quietSession(state, slow, clock, 'node', { recordings: desk, keepsCalls: true });
    actor.signal({ type: 'leg.media', notice: { type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 9, bytes: 60 } });
    actor.dropTaken();
    resolve(true);
    await actor.settled();
    expect([desk.growing, uploaded]).toEqual([0, ['rec_1']]);
  });

  test('one whose end another node has told of is over here once the media plane says so', async () => {
    const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
    desk.committed('app_1', beginRecording({ session_uuid: 's1' }, terms, 'op', 0).records);
    row('rec_1', { endedAt: 5 });
    desk.late({ type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 9, bytes: 60 });
    await clock.advance(1_000);
    expect([desk.growing, events]).toEqual([0, []]);
  });

  test('one whose lost worker left a file that could not be mended is mended at the next start, and is over until then', async () => {
    row('rec_cut');
    await leaveGrowing(storage.path('rec_cut'), 16_000);
    const owner = { session_uuid: 's1' };
    const terms = { recordingUuid: 'rec_cut', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
    const uploaded: string[] = [];
    storage.finished = (recordingUuid) => void uploaded.push(recordingUuid);
    desk.committed('app_1', beginRecording(owner, terms, 'op', 0).records);
    const ended = { record: 'ended', recordingUuid: 'rec_cut', durationMs: undefined } as const;
    const about = { appUuid: 'app_1', owner, clientState: '', traceparent: '', now: clock.now() };
    await commit({ events: [], recordings: desk.changes([ended], about) });
    desk.committed('app_1', [ended]);
    expect([desk.growing, lengths.get('rec_cut'), uploaded]).toEqual([0, null, []]);
    expect(await desk.recover()).toBe(0);
    expect([lengths.get('rec_cut'), uploaded]).toEqual([2_000, ['rec_cut']]);
  });

  test('removes a recording past its retention, and says so from then on', async () => {
    row('rec_old', { endedAt: clock.now() });
    row('rec_live');
    for (const each of ['rec_old', 'rec_live']) await leaveGrowing(storage.path(each), 8_000);
    await clock.advance(29 * DAY_MS);
    expect(await desk.sweep()).toBe(0);
    row('rec_young', { endedAt: clock.now() });
    await leaveGrowing(storage.path('rec_young'), 8_000);
    await clock.advance(2 * DAY_MS);
    expect(await desk.sweep()).toBe(1);
    expect(await desk.media('rec_old')).toEqual({ state: 'removed' });
    expect(['rec_old', 'rec_live', 'rec_young'].map((each) => existsSync(storage.path(each)))).toEqual([false, true, true]);
  });

  test('removes nothing while the clock is not trusted, and what is past its retention once it is', async () => {
    row('rec_old', { endedAt: clock.now() });
    await leaveGrowing(storage.path('rec_old'), 8_000);
    await clock.advance(31 * DAY_MS);
    isTrusted = false;
    expect(await desk.sweep()).toBe(0);
    expect(existsSync(storage.path('rec_old'))).toBe(true);
    isTrusted = true;
    expect(await desk.sweep()).toBe(1);
  });

  test('keeps a recording that a restored database does not know until its file is past the retention, and no file of others goes', async () => {
    const [old, young, others] = [`rec_${newUuid()}`, `rec_${newUuid()}`, 'greeting'];
    for (const each of [old, young, others]) await leaveGrowing(storage.path(each), 8_000);
    await clock.advance(31 * DAY_MS);
    const dated = async (name: string, days: number) => {
      const at = (clock.now() - days * DAY_MS) / 1000;
      await utimes(storage.path(name), at, at);
    };
    await dated(old, 31);
    await dated(young, 29);
    await dated(others, 31);
    await desk.sweep();
    expect([old, young, others].map((each) => existsSync(storage.path(each)))).toEqual([false, true, true]);
    await dated(young, 31);
    await desk.sweep();
    expect(existsSync(storage.path(young))).toBe(false);
  });

  test('removes the others where the store refuses to remove one, and notes what is removed where it goes away', async () => {
    const remove = storage.remove;
    let fault: ObjectError | undefined = new ObjectError('refused', 'AccessDenied', 403);
    storage.remove = async (recordingUuid) => {
      if (recordingUuid === 'rec_2' && fault !== undefined) throw fault;
      await remove.call(storage, recordingUuid);
    };
    for (const each of ['rec_1', 'rec_2', 'rec_3']) row(each, { endedAt: clock.now() });
    await clock.advance(31 * DAY_MS);
    expect(await desk.sweep()).toBe(2);
    const removed = () => [...rows.values()].filter(({ removedAt }) => removedAt !== undefined).map((each) => each.recordingUuid);
    expect(removed()).toEqual(['rec_1', 'rec_3']);
    fault = undefined;
    expect(await desk.sweep()).toBe(1);
    for (const each of ['rec_1', 'rec_2', 'rec_3']) row(each, { endedAt: 0 });
    fault = new ObjectError('away', 'ECONNREFUSED');
    await expect(desk.sweep()).rejects.toThrow('away');
    expect(removed()).toEqual(['rec_1']);
  });

  test('removes the file of a recording that another node removed while this one was away', async () => {
    row('rec_gone', { endedAt: 0, removedAt: clock.now() });
    row('rec_kept', { endedAt: clock.now() });
    for (const each of ['rec_gone', 'rec_kept', 'rec_unknown']) await leaveGrowing(storage.path(each), 8_000);
    expect(await desk.sweep()).toBe(0);
    expect(['rec_gone', 'rec_kept', 'rec_unknown'].map((each) => existsSync(storage.path(each)))).toEqual([false, true, true]);
  });

  test('mends what a crash left growing when recording is on again, where it was off at the next start', async () => {
    row('rec_cut');
    await leaveGrowing(storage.path('rec_cut'), 16_000);
    expect(await deskOf(undefined).recover()).toBe(1);
    expect(events).toMatchObject([{ event: 'recording.ended', recording_uuid: 'rec_cut', duration: 0, duration_unknown: true }]);
    expect(await desk.recover()).toBe(0);
    expect(events).toHaveLength(1);
    expect((await readFile(storage.path('rec_cut'))).readUInt32LE(40)).toBe(32_000);
    expect(lengths.get('rec_cut')).toBe(2_000);
  });

  test('mends at a later start, with what its ring holds, what the disk did not let be mended at the first', async () => {
    row('rec_cut');
    row('rec_none');
    await leaveGrowing(storage.path('rec_cut'), 16_000);
    const kept: (readonly string[])[] = [];
    const rings = {
      path: (wav: string) => `${wav}.ring`,
      sweep: async (unmended: readonly string[] = []) => kept.push(unmended),
      close: async () => {},
    };
    // Its owner is another, as after a start by root.
    const refused = (path: string) =>
      Promise.reject(Object.assign(new Error('refused'), { code: path.includes('rec_none') ? 'ENOENT' : 'EACCES' }));
    const refusing = deskOf(storage, 'volume', { rings, files: { mend: refused, durationMs: wavDurationMs } });
    expect(await refusing.recover()).toBe(2);
    expect([lengths.get('rec_cut'), lengths.get('rec_none')]).toEqual([null, 0]);
    expect(await deskOf(storage, 'volume', { rings }).recover()).toBe(0);
    expect(kept).toEqual([[storage.path('rec_cut')], []]);
    expect(lengths.get('rec_cut')).toBe(2_000);
    expect((await readFile(storage.path('rec_cut'))).readUInt32LE(40)).toBe(32_000);
    expect(events).toHaveLength(2);
  });

  test('asks the node that recorded it where the object store is away, and tells of its own that it is', async () => {
    row('rec_cut', { endedAt: 1 });
    storage.open = () => Promise.reject(new ObjectError('away', 'ECONNREFUSED'));
    expect(await deskOf(storage, 'another').media('rec_cut')).toEqual({
      state: 'elsewhere',
      appUuid: 'app_1',
      volumeId: 'volume',
    });
    await expect(desk.media('rec_cut')).rejects.toThrow('away');
    // A restore into another DATA_DIR leaves it so: it would be told as unknown.
    await expect(deskOf(storage, 'another', { isAlone: true }).media('rec_cut')).rejects.toThrow('away');
  });

  test('of a Room, or without a known length, is found by its name, and stays where the object store cannot be reached', async () => {
    row('rec_over', { endedAt: 1_000, sessionUuid: undefined, roomId: 'r1' });
    lengths.set('rec_over', null);
    expect(await desk.find('app_2', 'rec_over')).toBeUndefined();
    const found = await desk.find('app_1', 'rec_over');
    expect(found).toMatchObject({ room_id: 'r1', state: 'ended', media_url: 'pull rec_over' });
    expect(Object.keys(found ?? {})).not.toContain('duration');
    expect(Object.keys(found ?? {})).not.toContain('session_uuid');
    const { remove } = storage;
    storage.remove = () => Promise.reject(new ObjectError('away', 'ECONNREFUSED'));
    expect(await desk.remove('app_1', 'rec_over')).toBe('out_of_reach');
    expect(await desk.find('app_1', 'rec_over')).toMatchObject({ state: 'ended' });
    storage.remove = remove;
    expect(await desk.remove('app_2', 'rec_over')).toBeUndefined();
    expect(await desk.remove('app_1', 'rec_over')).toBe('removed');
    expect(await desk.find('app_1', 'rec_over')).toMatchObject({ state: 'removed', media_url: '', expires_at: '' });
  });

  test('is not said to be unknown where recording is off: it is found, and not removed', async () => {
    row('rec_over', { endedAt: 1_000 });
    row('rec_gone', { endedAt: 1_000, removedAt: 2_000 });
    const off = deskOf(undefined);
    expect(await off.remove('app_1', 'rec_over')).toBe('off');
    expect(await off.find('app_1', 'rec_over')).toMatchObject({ state: 'ended' });
    expect([await off.remove('app_1', 'rec_gone'), await off.remove('app_2', 'rec_over')]).toEqual(['removed', undefined]);
  });
});
