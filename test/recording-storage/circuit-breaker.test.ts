import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { ThrottledLog } from '../../src/bounds/throttled-log.ts';
import { silentLog } from '../../src/log.ts';
import { CircuitBreaker } from '../../src/recording-storage/s3/circuit-breaker.ts';
import type { RecordingStorage } from '../../src/recording-storage/storage.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Bucket, CREDENTIALS } from './bucket.ts';
import { exists, nextUuid, Place, until, uploaded } from './harness.ts';
import { writeWav } from './wav.ts';

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

const error = (code: string) => `<?xml version="1.0"?>\n<Error><Code>${code}</Code><Message>no</Message></Error>`;

describe('a store in trouble', () => {
  for (const [name, mischief] of [
    ['answers 500', { status: 500, body: error('InternalError') }],
    ['answers 503', { status: 503, body: error('SlowDown') }],
    ['breaks connections', 'reset'],
    ['loses its answers', 'lose'],
    ['answers what is no S3', { status: 200, body: '<html>Welcome</html>' }],
  ] as const)
    test(`that ${name} gets everything once it is well, and the files stay until then`, async () => {
      const storage = await place.storage(bucket.settings('t'), await place.folder());
      const [small, large] = [nextUuid(), nextUuid()];
      const wholes = [await writeWav(storage.path(small), 1_000), await writeWav(storage.path(large), 2 * PART)] as const;
      bucket.misbehave = () => mischief;
      storage.finished(small, 'app');
      storage.finished(large, 'app');
      await bucket.until(() => bucket.seen.length >= 8);
      expect(storage.load()).toEqual({ waiting: 2, waitingBytes: wholes[0].length + wholes[1].length });
      expect(await exists(storage.path(small))).toBe(true);
      expect(await exists(storage.path(large))).toBe(true);
      expect(place.lines.length).toBeGreaterThan(0);
      bucket.misbehave = () => undefined;
      await uploaded(storage);
      expect((await bucket.object(`t/${small}.wav`))?.equals(wholes[0])).toBe(true);
      expect((await bucket.object(`t/${large}.wav`))?.equals(wholes[1])).toBe(true);
      expect(place.lines.at(-1)?.message).toBe('recordings are uploaded again');
    });

  test('that fails every third request gets everything, byte for byte', async () => {
    const storage = await place.storage(bucket.settings('third'), await place.folder());
    const uuids = Array.from({ length: 6 }, nextUuid);
    const wholes = await Promise.all(uuids.map((uuid, at) => writeWav(storage.path(uuid), at * 40_000, at)));
    let count = 0;
    bucket.misbehave = () =>
      ++count % 3 === 0 ? (['reset', 'lose', { status: 500 }] as const)[count % 9 === 0 ? 0 : count % 2 ? 1 : 2] : undefined;
    for (const uuid of uuids) storage.finished(uuid, 'app');
    await uploaded(storage);
    for (const [at, uuid] of uuids.entries()) {
      const whole = wholes[at];
      expect(whole !== undefined && (await bucket.object(`third/${uuid}.wav`))?.equals(whole)).toBe(true);
    }
  });

  test('whose failures come to an end in between sets no recording back', async () => {
    // A recording that is set back waits for the sweep, which does not come.
    const limits = { sweepMs: 3_600_000, retryMaxMs: 10 };
    const storage = await place.storage(bucket.settings('between'), await place.folder(), limits);
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 2 * PART);
    const left = new Map<string, number>();
    bucket.misbehave = ({ what }) => {
      // Nothing else is taken while the first request fails five times; every other one fails twice.
      const failures = left.get(what) ?? (what === 'create' ? 5 : 2);
      left.set(what, failures - 1);
      return failures > 0 ? { status: 503 } : undefined;
    };
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`between/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/part/)).toEqual([2, 3, 1].flatMap((part) => new Array(3).fill(`part ${part}`)));
  });

  test('that is slow to answer a part is asked again, with more patience each time', async () => {
    const storage = await place.storage(bucket.settings('slow'), await place.folder(), { partMinMs: 30 });
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 1_000);
    bucket.misbehave = ({ what }) =>
      what === 'put' ? new Promise((resolve) => setTimeout(() => resolve(undefined), 150)) : undefined;
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect(await bucket.object(`slow/${uuid}.wav`)).toEqual(whole);
    expect(place.lines.map(({ code }) => code)).toContain('timeout');
  });

  test('that is not there at all is waited for', async () => {
    const gone = await Bucket.start();
    const settings = gone.settings('x');
    await gone.stop();
    const storage = await place.storage(settings, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    storage.finished(uuid, 'app');
    await until(() => place.lines.length > 0);
    expect(place.lines[0]).toMatchObject({ level: 'warn', message: 'recordings wait: the object store is away' });
    expect(await exists(storage.path(uuid))).toBe(true);
    // One that has no file asks nothing of the store, and says nothing about it.
    storage.finished(nextUuid(), 'other');
    await until(() => storage.load().waiting === 1);
    expect(place.lines.map(({ message }) => message)).not.toContain('recordings are uploaded again');
  });

  test.each([
    ['is away is left alone', 'reset', 60_000, false],
    ['is away is asked again soon', 'reset', 2, true],
    ['refuses is left alone for the longest time', { status: 403, body: error('AccessDenied') }, 2, false],
  ] as const)('that %s', async (_, mischief, retryMinMs, isAskedAgain) => {
    const limits = { uploads: 2, retryMinMs, retryMaxMs: 60_000 };
    const [alone, other] = [
      await place.storage(bucket.settings('alone'), await place.folder(), limits),
      await place.storage(bucket.settings('other'), await place.folder(), { uploads: 1 }),
    ];
    bucket.misbehave = ({ target }) => (target.startsWith('alone/') ? mischief : undefined);
    const record = async (storage: RecordingStorage) => {
      const uuid = nextUuid();
      await writeWav(storage.path(uuid), 1_000);
      storage.finished(uuid, 'app');
    };
    for (let file = 0; file < 3; file++) await record(alone);
    const asked = () => bucket.seen.filter(({ target }) => target.startsWith('alone/')).length;
    // Two attempts may be under way at once, and each may be made again over a connection that was not idle before.
    if (isAskedAgain) await bucket.until(() => asked() > 4);
    for (let file = 0; file < 20; file++) await record(other);
    await uploaded(other);
    if (!isAskedAgain) expect([1, 2, 3, 4]).toContain(asked());
  });

  test('that has lost the bucket is complained of in one line, and gets everything when it is back', async () => {
    const storage = await place.storage(bucket.settings('lost'), await place.folder());
    await bucket.loseBucket();
    const uuids = Array.from({ length: 5 }, nextUuid);
    for (const [at, uuid] of uuids.entries()) await writeWav(storage.path(uuid), at * PART, at);
    for (const uuid of uuids) storage.finished(uuid, 'app');
    await bucket.until(() => bucket.seen.length >= 8);
    expect(place.lines).toEqual([
      {
        level: 'error',
        message: 'recordings wait: the object store refuses them; see RECORDINGS and S3_* settings',
        code: 'NoSuchBucket',
        status: 404,
        waiting: 5,
      },
    ]);
    await bucket.bringBucketBack();
    await uploaded(storage);
    for (const uuid of uuids) expect(await bucket.object(`lost/${uuid}.wav`)).toBeDefined();
  });

  test('that refuses the credentials is told of without them', async () => {
    const secret = 'hush-hush-hush';
    const settings = { ...bucket.settings('refused'), secretAccessKey: secret };
    const storage = await place.storage(settings, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    storage.finished(uuid, 'app');
    await bucket.until(() => bucket.seen.length >= 3);
    expect(place.lines[0]).toMatchObject({ level: 'error', code: 'SignatureDoesNotMatch', status: 403 });
    expect(JSON.stringify(place.lines)).not.toContain(secret);
    expect(JSON.stringify(place.lines)).not.toContain(CREDENTIALS.accessKeyId);
    expect(await exists(storage.path(uuid))).toBe(true);
    await expect(storage.open(nextUuid(), 'app')).rejects.toThrow('object store: refused');
  });

  test('that says 200 to a join and means an error has not joined', async () => {
    const storage = await place.storage(bucket.settings('two'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 2 * PART);
    bucket.misbehave = ({ what }) =>
      what === 'complete' && bucket.asked(/complete/).length <= 2
        ? { status: 200, body: `  \n ${error('InternalError')}` }
        : undefined;
    storage.finished(uuid, 'app');
    await bucket.until(() => bucket.asked(/complete/).length === 2);
    expect(await exists(storage.path(uuid))).toBe(true);
    await uploaded(storage);
    expect((await bucket.object(`two/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/part/)).toHaveLength(3);
  });

  test('that does not like the parts any more gets them again', async () => {
    const storage = await place.storage(bucket.settings('parts'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 2 * PART);
    bucket.misbehave = ({ what }) =>
      what === 'complete' && bucket.asked(/complete/).length === 1 ? { status: 400, body: error('InvalidPart') } : undefined;
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bucket.object(`parts/${uuid}.wav`))?.equals(whole)).toBe(true);
    expect(bucket.asked(/abort/)).toHaveLength(1);
    expect(bucket.asked(/create/)).toHaveLength(2);
  });

  test('that has another size in the end than was sent has not got it', async () => {
    const storage = await place.storage(bucket.settings('size'), await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    bucket.misbehave = ({ what }) =>
      what === 'head' && bucket.asked(/head/).length === 1 ? { status: 200, body: 'x' } : undefined;
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect(bucket.asked(/put/)).toHaveLength(2);
    expect(place.lines[0]).toMatchObject({ level: 'error', recording_uuid: uuid });
  });

  test('with one recording it does not take, takes the others, and is not asked about the one at every turn', async () => {
    const limits = { uploads: 1, retryMinMs: 20, setBackMaxMs: 60_000 };
    const storage = await place.storage(bucket.settings('one'), await place.folder(), limits);
    const [bad, ...good] = [nextUuid(), nextUuid(), nextUuid()] as const;
    bucket.misbehave = ({ target }) => (target.includes(bad) ? { status: 500 } : undefined);
    await writeWav(storage.path(bad), 1_000);
    for (const uuid of good) await writeWav(storage.path(uuid), 25 * PART);
    for (const uuid of [bad, ...good]) storage.finished(uuid, 'app');
    await until(() => storage.load().waiting === 1);
    for (const uuid of good) expect(await bucket.object(`one/${uuid}.wav`)).toBeDefined();
    expect(await exists(storage.path(bad))).toBe(true);
    // Each of the others took 28 turns.
    expect(bucket.asked(/put/).length).toBeLessThan(14);
  });
});

describe('how long the store is left alone', () => {
  test('twice as long after each failure up to a limit, one attempt at a time, and not at all after a success', async () => {
    const clock = new VirtualClock();
    const tries: number[] = [];
    const breaker: CircuitBreaker = new CircuitBreaker(clock, { retryMinMs: 1_000, retryMaxMs: 60_000 }, () => {
      tries.push(clock.now());
      expect(breaker.atOnce(4)).toBe(1);
      breaker.failed(breaker.failures, false);
    });
    expect(breaker.atOnce(4)).toBe(4);
    let last = clock.now();
    breaker.failed(breaker.failures, false);
    expect(breaker.atOnce(4)).toBe(0);
    await clock.advance(600_000);
    for (const [at, time] of tries.entries()) {
      const full = Math.min(60_000, 1_000 * 2 ** at);
      expect(time - last).toBeGreaterThanOrEqual(full * 0.75);
      expect(time - last).toBeLessThanOrEqual(full);
      last = time;
    }
    expect(tries.length).toBeGreaterThan(12);
    breaker.succeeded();
    expect(breaker.atOnce(4)).toBe(4);
    expect(clock.armed).toBe(0);
  });

  test('what fails together counts once', async () => {
    const clock = new VirtualClock();
    let tries = 0;
    const breaker = new CircuitBreaker(clock, { retryMinMs: 1_000, retryMaxMs: 60_000 }, () => tries++);
    const { failures } = breaker;
    for (let at = 0; at < 4; at++) breaker.failed(failures, false);
    await clock.advance(1_000);
    expect(tries).toBe(1);
    breaker.failed(failures, false); // a straggler that began before the first failure
    expect(breaker.atOnce(4)).toBe(1);
  });

  test('one that will not change by itself is left alone for the longest time at once', async () => {
    const clock = new VirtualClock();
    let tries = 0;
    const breaker = new CircuitBreaker(clock, { retryMinMs: 1_000, retryMaxMs: 60_000 }, () => tries++);
    breaker.failed(breaker.failures, true);
    await clock.advance(44_000);
    expect(tries).toBe(0);
    await clock.advance(16_000);
    expect(tries).toBe(1);
  });

  test('the same complaint comes once in a while', async () => {
    const clock = new VirtualClock();
    const said: string[] = [];
    const say = (_: unknown, message: string) => void said.push(message);
    const troubles = new ThrottledLog({ ...silentLog, warn: say, info: say }, clock, 600_000);
    troubles.settled({}, 'never');
    for (let at = 0; at < 100; at++) {
      troubles.say('warn', 'a', {}, 'a');
      troubles.say('warn', 'b', {}, 'b');
    }
    expect(said).toEqual(['a', 'b']);
    await clock.advance(600_000);
    troubles.say('warn', 'a', {}, 'a');
    troubles.settled({}, 'well');
    troubles.settled({}, 'well');
    expect(said).toEqual(['a', 'b', 'a', 'well']);
    for (let at = 0; at < 1_000; at++) troubles.say('warn', `reason ${at}`, {}, 'x');
    expect(said).toHaveLength(1_004);
  });
});
