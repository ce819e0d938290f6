import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Bucket } from './bucket.ts';
import { exists, nextUuid, Place, spooled, until, uploaded } from './harness.ts';
import { beginWav, finishWav, growWav, samples, writeWav } from './wav.ts';

const PART = 64 * 1024;
let bucket: Bucket;
const place = new Place();
beforeAll(async () => {
  bucket = await Bucket.start();
});
afterEach(async () => {
  bucket.misbehave = () => 'reset';
  await place.clear();
  bucket.clear();
});
afterAll(() => bucket.stop());

describe('a finished recording', () => {
  test('that is small goes at once in one piece, byte for byte, and its file goes once the store has it', async () => {
    const storage = await place.storage(bucket.settings('a'), await place.folder(), { sweepMs: 60_000 });
    const uuid = nextUuid();
    storage.begun(uuid, 'app');
    const whole = await writeWav(storage.path(uuid), 20_000);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect(await bucket.object(`a/${uuid}.wav`)).toEqual(whole);
    expect(bucket.asked(/./)).toEqual(['put', 'head']);
    expect(await exists(storage.path(uuid))).toBe(false);
  });

  test('that is large goes in parts, the first one last, and leaves nothing behind', async () => {
    const dataDir = await place.folder();
    const storage = await place.storage(bucket.settings('deep/er/'), dataDir);
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 4 * PART);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`deep/er/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/./)).toEqual(['create', 'part 2', 'part 3', 'part 4', 'part 5', 'part 1', 'complete', 'head']);
    expect(bucket.seen.find(({ what }) => what === 'part 5')?.bytes).toBe(44);
    expect(await spooled(dataDir)).toEqual([]);
  });

  test('of a whole number of parts has no empty one', async () => {
    const storage = await place.storage(bucket.settings(''), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 2 * PART - 44);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/part/)).toEqual(['part 2', 'part 1']);
  });

  test('under a prefix with letters that must be escaped arrives there', async () => {
    const storage = await place.storage(bucket.settings("/it's (all) a+b=c/é!*/"), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 100_000);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`it's (all) a+b=c/é!*/${uuid}.wav`))?.equals(whole)).toBe(true);
  });

  test('is told finished twice, or has no file, and nothing comes of it', async () => {
    const storage = await place.storage(bucket.settings('a'), await place.folder());
    storage.finished(nextUuid(), 'app');
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    storage.finished(uuid, 'app');
    storage.finished(uuid, 'app');
    await uploaded(storage);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect(bucket.asked(/put/)).toEqual(['put']);
    expect(place.lines).toEqual([]);
  });

  test('beside many others waits for its turn: only so many go at once', async () => {
    let most = 0;
    let now = 0;
    const storage = await place.storage(bucket.settings('many'), await place.folder(), { uploads: 3 });
    bucket.misbehave = ({ what }) => {
      if (what === 'put') most = Math.max(most, ++now);
      if (what === 'head') now--;
      return undefined;
    };
    const uuids = Array.from({ length: 40 }, nextUuid);
    const wholes = await Promise.all(uuids.map((uuid, at) => writeWav(storage.path(uuid), 2_000, at)));
    for (const uuid of uuids) storage.finished(uuid, 'app');
    expect(storage.load().waiting).toBe(40);
    await uploaded(storage);
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
    for (const [at, uuid] of uuids.entries()) expect(await bucket.object(`many/${uuid}.wav`)).toEqual(wholes[at]);
  });
});

describe('recordings of several applications', () => {
  /** The recordings in the order in which the store was sent them. */
  const sent = () => bucket.seen.filter(({ what }) => what === 'put').map(({ target }) => target);

  test('have their turns: a hundred of one, after an outage, hold up nobody else’s', async () => {
    bucket.misbehave = () => 'reset';
    const storage = await place.storage(bucket.settings('t'), await place.folder(), { uploads: 1 });
    const record = async (appUuid: string) => {
      const uuid = nextUuid();
      await writeWav(storage.path(uuid), 1_000);
      storage.finished(uuid, appUuid);
      return uuid;
    };
    for (let file = 0; file < 100; file++) await record('a');
    const others = [await record('b'), await record('c'), await record('b')];
    bucket.clear();
    await uploaded(storage);
    // One step may have been under way; then each has its turn.
    const turns = others.map((uuid) => sent().findIndex((target) => target.includes(uuid)));
    expect(Math.max(...turns)).toBeLessThanOrEqual(8);
    expect(new Set(sent()).size).toBe(103);
  });

  test('have their turns at the next start too, where somebody knows whose they are', async () => {
    const dataDir = await place.folder();
    const recordings = join(dataDir, 'recordings');
    await mkdir(recordings);
    const owners = new Map<string, string>();
    for (let file = 0; file < 150; file++) {
      const uuid = nextUuid();
      owners.set(uuid, file % 50 === 25 ? 'b' : 'a');
      await writeWav(join(recordings, `${uuid}.wav`), 1_000);
    }
    bucket.misbehave = () => 'reset';
    const storage = await place.storage(bucket.settings('t'), dataDir, { uploads: 1 }, async (uuid) => owners.get(uuid));
    await until(() => storage.load().waiting === 150);
    bucket.clear();
    await uploaded(storage);
    const ofOther = sent().flatMap((target, turn) => (owners.get(target.replace(/^t.|.wav$/g, '')) === 'b' ? [turn] : []));
    expect(ofOther).toHaveLength(3);
    expect(Math.max(...ofOther)).toBeLessThanOrEqual(8);
  });

  test('are uploaded where nobody can tell whose they are', async () => {
    const dataDir = await place.folder();
    await mkdir(join(dataDir, 'recordings'));
    const uuid = nextUuid();
    const path = join(dataDir, 'recordings', `${uuid}.wav`);
    const whole = await writeWav(path, 1_000);
    await place.storage(bucket.settings('t'), dataDir, {}, () => Promise.reject(new Error('away')));
    await until(async () => !(await exists(path)));
    expect(await bucket.object(`t/${uuid}.wav`)).toEqual(whole);
  });
});

describe('a growing recording', () => {
  test('goes part by part while it is written, all but its first part, and is whole in the end', async () => {
    const storage = await place.storage(bucket.settings('g'), await place.folder());
    const uuid = nextUuid();
    storage.begun(uuid, 'app');
    await beginWav(storage.path(uuid));
    await growWav(storage.path(uuid), 2 * PART, 1);
    await bucket.until(() => bucket.asked(/part 2/).length === 1);
    await growWav(storage.path(uuid), PART + 500, 2);
    await bucket.until(() => bucket.asked(/part 3/).length === 1);
    expect(bucket.asked(/put|part|complete/)).toEqual(['part 2', 'part 3']);
    await growWav(storage.path(uuid), 700, 3);
    await finishWav(storage.path(uuid));
    const whole = await readFile(storage.path(uuid));
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`g/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/create|part|complete/)).toEqual(['create', 'part 2', 'part 3', 'part 4', 'part 1', 'complete']);
  });

  test('that stays short is not uploaded before it is finished', async () => {
    const storage = await place.storage(bucket.settings('g'), await place.folder());
    const uuid = nextUuid();
    storage.begun(uuid, 'app');
    await beginWav(storage.path(uuid));
    await growWav(storage.path(uuid), PART, 1);
    const other = nextUuid();
    storage.begun(other, 'app');
    await beginWav(storage.path(other));
    await growWav(storage.path(other), 2 * PART, 1);
    await bucket.until(() => bucket.asked(/part 2/).length === 1);
    expect(bucket.seen.some(({ target }) => target.includes(uuid))).toBe(false);
  });
});

describe('after a crash', () => {
  test('a killed process’s upload is taken up: no part that was confirmed is sent again', async () => {
    const dataDir = await place.folder();
    const recordings = join(dataDir, 'recordings');
    await mkdir(recordings);
    const uuid = nextUuid();
    const whole = await writeWav(join(recordings, `${uuid}.wav`), 5 * PART);
    // The store does not answer at part 5: what came before is confirmed, and noted.
    bucket.misbehave = ({ what }) => (what === 'part 5' ? 'hang' : undefined);
    const args = [join(import.meta.dir, 'uploader.ts'), bucket.endpoint, 'k', dataDir, String(PART)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] });
    await bucket.until(() => bucket.asked(/part 5/).length === 1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(bucket.asked(/part/)).toEqual(['part 2', 'part 3', 'part 4', 'part 5']);

    bucket.clear();
    const storage = await place.storage(bucket.settings('k'), dataDir);
    await until(async () => !(await exists(storage.path(uuid))));
    expect(bucket.asked(/create|part|complete/)).toEqual(['part 5', 'part 6', 'part 1', 'complete']);
    expect((await bucket.object(`k/${uuid}.wav`))?.equals(whole)).toBe(true);
  });

  test('a storage that was closed in the middle of a part leaves the rest to the next', async () => {
    const dataDir = await place.folder();
    const first = await place.storage(bucket.settings('c'), dataDir);
    const uuid = nextUuid();
    const whole = await writeWav(first.path(uuid), 3 * PART);
    bucket.misbehave = ({ what }) => (what === 'part 3' ? 'hang' : undefined);
    first.finished(uuid, 'app');
    await bucket.until(() => bucket.asked(/part 3/).length === 1);
    await first.close();
    bucket.clear();
    const second = await place.storage(bucket.settings('c'), dataDir);
    await until(async () => !(await exists(second.path(uuid))));
    expect(bucket.asked(/part/)).toEqual(['part 3', 'part 4', 'part 1']);
    expect((await bucket.object(`c/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(place.lines).toEqual([]);
  });

  test('a recording that says it still grows waits until it has been mended', async () => {
    const dataDir = await place.folder();
    const first = await place.storage(bucket.settings('m'), dataDir);
    const [grows, whole] = [nextUuid(), nextUuid()];
    await beginWav(first.path(grows));
    await growWav(first.path(grows), 3 * PART, 1);
    await writeWav(first.path(whole), 1_000);
    await first.close();
    const second = await place.storage(bucket.settings('m'), dataDir);
    await until(async () => !(await exists(second.path(whole))));
    expect(bucket.seen.some(({ target }) => target.includes(grows))).toBe(false);
    await finishWav(second.path(grows));
    second.finished(grows, 'app');
    await uploaded(second);
    expect(await bucket.object(`m/${grows}.wav`)).toBeDefined();
  });

  test('an upload the store has forgotten starts over', async () => {
    const storage = await place.storage(bucket.settings('f'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 3 * PART);
    bucket.misbehave = ({ what }) => {
      if (what === 'part 3' && bucket.asked(/part 3/).length === 1) bucket.forgetUploads();
      return undefined;
    };
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`f/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/create/)).toHaveLength(2);
    expect(place.lines.map(({ code }) => code)).toContain('NoSuchUpload');
  });

  test('an upload that was joined before anyone noted it is not done again', async () => {
    const storage = await place.storage(bucket.settings('j'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 2 * PART);
    bucket.misbehave = ({ what }) => (what === 'complete' && bucket.asked(/complete/).length === 1 ? 'lose' : undefined);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`j/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/create/)).toHaveLength(1);
    expect(bucket.asked(/complete/)).toHaveLength(2);
  });

  test('what a ledger says that nobody can read, or of another bucket, is not believed', async () => {
    for (const ledger of ['{"place":', '[]', JSON.stringify({ place: 'elsewhere', uploadId: 'x', partBytes: PART, parts: [] })]) {
      const dataDir = await place.folder();
      const first = await place.storage(bucket.settings('l'), dataDir);
      const uuid = nextUuid();
      const whole = await writeWav(first.path(uuid), 2 * PART);
      await writeFile(join(dataDir, 'recordings', `${uuid}.upload`), ledger);
      first.finished(uuid, 'app');
      await uploaded(first);
      expect((await bucket.object(`l/${uuid}.wav`))?.equals(whole)).toBe(true);
      expect(bucket.asked(/./)).toEqual(['create', 'part 2', 'part 3', 'part 1', 'complete', 'head']);
      bucket.clear();
      expect(await spooled(dataDir)).toEqual([]);
    }
  });

  test('a file whose end a power cut took back starts over, and the object is what is left', async () => {
    const dataDir = await place.folder();
    const first = await place.storage(bucket.settings('p'), dataDir);
    const uuid = nextUuid();
    first.begun(uuid, 'app');
    await beginWav(first.path(uuid));
    await growWav(first.path(uuid), 4 * PART, 1);
    await bucket.until(() => bucket.asked(/part 4/).length === 1);
    await until(async () => (await readFile(join(dataDir, 'recordings', `${uuid}.upload`), 'utf8')).includes('"number":4'));
    await first.close();
    await truncate(first.path(uuid), 2 * PART);
    await finishWav(first.path(uuid));
    const whole = await readFile(first.path(uuid));
    const second = await place.storage(bucket.settings('p'), dataDir);
    await until(async () => !(await exists(second.path(uuid))));
    expect((await bucket.object(`p/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/abort/)).toEqual(['abort']);
  });

  test('a file or a ledger that cannot be read is told by its name, and holds up no other recording', async () => {
    const dataDir = await place.folder();
    const path = (name: string) => join(dataDir, 'recordings', name);
    await mkdir(path(''));
    const [unreadable, unknown, ...left] = [nextUuid(), nextUuid(), nextUuid(), nextUuid()];
    // A folder can be opened as a file can, and not be read.
    await symlink(dataDir, path(`${unreadable}.wav`));
    await mkdir(path(`${unknown}.upload`));
    for (const uuid of [unknown, ...left]) await writeWav(path(`${uuid}.wav`), 1_000);
    const storage = await place.storage(bucket.settings('u'), dataDir);
    for (const uuid of left) await until(async () => !(await exists(storage.path(uuid))));
    for (const uuid of [unreadable, unknown])
      await until(() => place.lines.some(({ recording_uuid }) => recording_uuid === uuid));
    await writeWav(path('whole'), 1_000);
    await rename(path('whole'), path(`${unreadable}.wav`));
    await until(async () => !(await exists(storage.path(unreadable))));
    expect(bucket.asked(/put/)).toHaveLength(3);
    expect(await exists(storage.path(unknown))).toBe(true);
  });

  test('an upload whose file is gone is given up, also one of which the store has no part yet', async () => {
    const dataDir = await place.folder();
    const first = await place.storage(bucket.settings('q'), dataDir);
    const uuid = nextUuid();
    await writeFile(first.path(uuid), samples(4 * PART));
    bucket.misbehave = ({ what }) => (what === 'part 2' ? 'hang' : undefined);
    first.finished(uuid, 'app');
    await bucket.until(() => bucket.asked(/part 2/).length === 1);
    await first.close();
    await rm(first.path(uuid));
    const before = bucket.uploads;
    const second = await place.storage(bucket.settings('q'), dataDir);
    await until(async () => (await spooled(dataDir)).length === 0);
    expect(bucket.uploads).toBe(before - 1);
    await uploaded(second);
  });
});
