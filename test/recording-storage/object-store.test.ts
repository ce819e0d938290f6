import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { getServers, setServers } from 'node:dns';
import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:http';
import { systemClock } from '../../src/clock.ts';
import { OBJECT_READ_MAX_BYTES, OBJECT_READ_MIN_BYTES, OBJECT_TRIES_MAX } from '../../src/limits.ts';
import { lookUpTrusted } from '../../src/outbound/system-names.ts';
import { connectionFault, faultOf, ObjectError } from '../../src/recording-storage/s3/object-error.ts';
import { objectSlices } from '../../src/recording-storage/s3/object-slices.ts';
import { hashed, ObjectStore } from '../../src/recording-storage/s3/object-store.ts';
import fc from '../support/fast-check.ts';
import { addressRecord, NameServerPeer, reply } from '../support/name-server-peer.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { Bucket } from './bucket.ts';

let bucket: Bucket;
let store: ObjectStore;
beforeAll(async () => {
  bucket = await Bucket.start();
  store = new ObjectStore(bucket.settings('x'), systemClock());
});
afterEach(() => bucket.clear());
afterAll(() => bucket.stop());

const body = hashed(new TextEncoder().encode('hello'));
const error = (code: string) => `<Error><Code>${code}</Code></Error>`;

describe('what an object store says', () => {
  for (const [status, xml, fault, code] of [
    [500, '', 'away', 'HTTP 500'],
    [500, error('InternalError'), 'away', 'InternalError'],
    [503, error('SlowDown'), 'away', 'SlowDown'],
    [429, '', 'away', 'HTTP 429'],
    [408, '', 'away', 'HTTP 408'],
    [400, error('RequestTimeout'), 'away', 'RequestTimeout'],
    [501, error('NotImplemented'), 'refused', 'NotImplemented'],
    [403, error('AccessDenied'), 'refused', 'AccessDenied'],
    [403, '', 'refused', 'HTTP 403'],
    [403, error('RequestTimeTooSkewed'), 'refused', 'RequestTimeTooSkewed'],
    [404, error('NoSuchBucket'), 'refused', 'NoSuchBucket'],
    [301, error('PermanentRedirect'), 'refused', 'PermanentRedirect'],
    [307, '', 'refused', 'HTTP 307'],
    [404, error('NoSuchUpload'), 'upload unknown', 'NoSuchUpload'],
    [404, error('NoSuchKey'), 'missing', 'NoSuchKey'],
    [404, '', 'missing', 'HTTP 404'],
    [400, error('InvalidPart'), 'rejected', 'InvalidPart'],
    [400, error('BadDigest'), 'rejected', 'BadDigest'],
    [403, error('a line\nthat forges another {"level":50}'), 'refused', 'HTTP 403'],
  ] as const)
    test(`${status} ${xml === '' ? 'and nothing else' : xml.replace(/\s+/g, ' ')} means ${fault}`, () => {
      expect(faultOf(status, xml)).toMatchObject({ fault, code, status });
    });

  test('a broken connection means away, and its reason is a word', () => {
    expect(connectionFault(Object.assign(new Error('at http://user:secret@host'), { code: 'ECONNRESET' }))).toMatchObject({
      fault: 'away',
      code: 'ECONNRESET',
    });
    expect(connectionFault(Object.assign(new Error('x'), { code: 'two words' })).code).toBe('Error');
    expect(connectionFault('what').code).toBe('Error');
  });
});

describe('a request', () => {
  test('is not sent elsewhere because the answer says so', async () => {
    bucket.misbehave = () => ({ status: 307, body: error('TemporaryRedirect'), location: `${bucket.endpoint}/calls/elsewhere` });
    await expect(store.put('a', body)).rejects.toMatchObject({ fault: 'refused', code: 'TemporaryRedirect' });
    expect(bucket.seen).toHaveLength(1);
  });

  test('whose answer never ends is given up at a limit', async () => {
    bucket.misbehave = () => ({ status: 200, body: `<UploadId>${'x'.repeat(100_000)}</UploadId>` });
    await expect(store.createUpload('a')).rejects.toMatchObject({ fault: 'away', code: 'answer too long' });
    bucket.misbehave = () => ({ status: 500, body: 'x'.repeat(100_000) });
    await expect(store.put('a', body)).rejects.toMatchObject({ fault: 'away', code: 'HTTP 500' });
  });

  test('that is not answered ends at its time, or when its caller stops', async () => {
    bucket.misbehave = () => 'hang';
    await expect(store.put('a', body, { timeoutMs: 20 })).rejects.toMatchObject({ fault: 'away', code: 'timeout' });
    const abort = new AbortController();
    const put = store.put('b', body, { signal: abort.signal });
    // The first one may have been over before it came there.
    await bucket.until(() => bucket.seen.some(({ target }) => target.endsWith('b')));
    abort.abort();
    await expect(put).rejects.toMatchObject({ fault: 'away', code: 'stopped' });
    await expect(store.put('a', body, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'stopped' });
  });

  test('asks for bytes as they are, and an answer that says nothing is one of a store that is away', async () => {
    const encodings: unknown[] = [];
    const silent = createServer(({ headers }, answer) => {
      encodings.push(headers['accept-encoding']);
      answer.writeHead(200, { 'transfer-encoding': 'chunked' }).end();
    });
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const endpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    const away = (code: string) => ({ fault: 'away', code });
    const asked = new ObjectStore({ ...bucket.settings('x'), endpoint }, systemClock());
    try {
      await expect(asked.head('a')).rejects.toMatchObject(away('no Content-Length'));
      await expect(asked.createUpload('a')).rejects.toMatchObject(away('no UploadId'));
      await expect(asked.uploadPart('a', 'b', 1, body)).rejects.toMatchObject(away('no ETag'));
      expect(encodings).toEqual(new Array(3).fill('identity'));
    } finally {
      silent.close();
    }
  });

  test('is reached over IPv6 where its name has addresses of both versions and nobody is there over IPv4', async () => {
    const server = Bun.serve({ port: 0, hostname: '::1', fetch: () => new Response('here') });
    const peer = await NameServerPeer.open();
    const addresses = new Map([
      [1, '127.8.9.10'],
      [28, '0:0:0:0:0:0:0:1'],
    ]);
    peer.answers = (asked) => reply(asked, { records: [addressRecord(addresses.get(asked.type) ?? '')] });
    const servers = getServers();
    await lookUpTrusted('localhost');
    setServers([`${peer.host}:${peer.port}`]);
    try {
      const endpoint = `http://store.test:${server.port}`;
      expect(await new ObjectStore({ ...bucket.settings('x'), endpoint }, systemClock()).head('a')).toBe(4);
    } finally {
      setServers(servers);
      peer.close();
      server.stop(true);
    }
  });

  test('leaves no timer behind when it is over, and nothing at the signal of its caller', async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const asked = new ObjectStore(bucket.settings('x'), clock);
    await asked.put('a', body, { signal });
    bucket.misbehave = () => 'reset';
    await expect(asked.put('a', body, { signal })).rejects.toThrow('away');
    expect([clock.armed, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  test('for an object that is not there asks for its bucket, and believes in it where that is forbidden', async () => {
    const of = (status: number) => {
      bucket.misbehave = ({ what }) => ({ status: what === 'bucket' ? status : 404 });
      return store.head('a');
    };
    for (const status of [200, 403]) expect(await of(status)).toBeUndefined();
    await expect(of(404)).rejects.toMatchObject({ fault: 'refused', code: 'NoSuchBucket' });
    await expect(of(503)).rejects.toMatchObject({ fault: 'away' });
  });

  test('an upload’s id and tags travel as the store gave them', async () => {
    let joined = '';
    const uploadId = 'a&b"c <d>/+=%';
    bucket.misbehave = (seen) => {
      if (seen.what === 'create') return { status: 200, body: '<R><UploadId>a&amp;b&quot;c &lt;d&gt;/+=%</UploadId></R>' };
      joined = new URL(seen.target, 'http://x').searchParams.get('uploadId') ?? '';
      return { status: 200, body: '<CompleteMultipartUploadResult/>' };
    };
    expect(await store.createUpload('a')).toBe(uploadId);
    await store.completeUpload('a', uploadId, [{ number: 1, etag: '"x"' }]);
    expect(joined).toBe(uploadId);
  });

  test('goes below the path of an endpoint that has one', async () => {
    const place = (endpoint: string) => new ObjectStore({ ...bucket.settings('p'), endpoint }, systemClock()).place;
    expect(place('http://store/s3/v1/')).toBe('http://store/s3/v1/calls/p/');
    expect(place('http://store')).toBe('http://store/calls/p/');
  });
});

describe('an object in slices', () => {
  /** Reads `start` to `end` to the end, or until it fails; a request fails as often as `faults` says, in turn. */
  async function read(start: number, end: number, faults: readonly number[], fault: Error = new ObjectError('away', 'x')) {
    const clock = new VirtualClock();
    const asked: (readonly [from: number, to: number])[] = [];
    const tries = new Map<number, number>();
    const get = async (_: string, from: number, to: number) => {
      if (!tries.has(from)) asked.push([from, to]);
      const made = tries.get(from) ?? 0;
      tries.set(from, made + 1);
      if (made < (faults[asked.length - 1] ?? 0)) throw fault;
      return new Uint8Array(to - from).fill(asked.length);
    };
    const slices = objectSlices({ get }, clock, 'a', start, end);
    const lengths: number[] = [];
    let failure: unknown;
    for (let isOver = false; !isOver; ) {
      let isSettled = false;
      const next = slices
        .next()
        .then((slice) => {
          isOver = slice === undefined;
          if (slice !== undefined) lengths.push(slice.length);
        })
        .catch((error: unknown) => {
          [isOver, failure] = [true, error];
        })
        .finally(() => {
          isSettled = true;
        });
      await settle();
      while (!isSettled) await clock.advance(1_000);
      await next;
      // One is under way while the last is taken.
      expect(asked.length).toBeLessThanOrEqual(lengths.length + 1);
      if (!isOver && asked.at(-1)?.[1] !== end) expect(asked.length).toBe(lengths.length + 1);
    }
    await slices.close();
    expect(clock.armed).toBe(0);
    return { asked, lengths, tries: [...tries.values()], failure };
  }

  test('is asked for once in each byte, in slices that grow, and again where the store is away for a moment', async () => {
    const law = fc.asyncProperty(
      fc.nat(10_000),
      fc.nat(20 * OBJECT_READ_MIN_BYTES),
      fc.array(fc.nat(OBJECT_TRIES_MAX - 1), { maxLength: 4 }),
      async (start, bytes, faults) => {
        const { asked, lengths, failure } = await read(start, start + bytes, faults);
        expect(failure).toBeUndefined();
        let at = start;
        let most = OBJECT_READ_MIN_BYTES;
        for (const [from, to] of asked) {
          expect([from, to]).toEqual([at, Math.min(start + bytes, at + most)]);
          [at, most] = [to, Math.min(OBJECT_READ_MAX_BYTES, 2 * most)];
        }
        expect(at).toBe(start + bytes);
        expect(lengths).toEqual(asked.map(([from, to]) => to - from));
      },
    );
    await fc.assert(law, { numRuns: 30 });
  });

  test('fails where the store stays away, or will not have it: that is asked for once', async () => {
    const end = OBJECT_READ_MIN_BYTES;
    expect(await read(0, end, [99])).toMatchObject({ tries: [OBJECT_TRIES_MAX], failure: { fault: 'away' } });
    for (const fault of [new ObjectError('away', 'timeout'), new ObjectError('missing', 'x'), new Error('a bug')])
      expect(await read(0, end, [99], fault)).toMatchObject({ tries: [1], failure: fault });
  });

  test('is asked for no more once it is closed, and what was asked ahead is given up, unheard', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const get: ObjectStore['get'] = async (_, from, to, options) => {
      signals.push(options?.signal);
      if (from > 0) throw new ObjectError('missing', 'x');
      return new Uint8Array(to - from);
    };
    const slices = objectSlices({ get }, new VirtualClock(), 'a', 0, 10 * OBJECT_READ_MIN_BYTES);
    expect((await slices.next())?.length).toBe(OBJECT_READ_MIN_BYTES);
    await slices.close();
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true]);
    // Nobody hears of it, until somebody asks.
    await new Promise(setImmediate);
    for (let again = 0; again < 2; again++) await expect(slices.next()).rejects.toThrow('missing');
    expect(signals).toHaveLength(2);
  });

  test('that is closed while it is asked for is not asked for again', async () => {
    const clock = new VirtualClock();
    const asked = Promise.withResolvers<Uint8Array>();
    let tries = 0;
    const get = () => {
      tries++;
      return asked.promise;
    };
    const slices = objectSlices({ get }, clock, 'a', 0, 1);
    const next = slices.next();
    await slices.close();
    asked.reject(new ObjectError('away', 'stopped'));
    await settle();
    expect([tries, clock.armed]).toEqual([1, 0]);
    await expect(next).rejects.toMatchObject({ code: 'stopped' });
  });
});
