import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import { connectionFault, faultOf } from '../../src/recording-storage/s3/object-error.ts';
import { hashed, ObjectStore } from '../../src/recording-storage/s3/object-store.ts';
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
    const put = store.put('a', body, { signal: abort.signal });
    await bucket.until(() => bucket.seen.length === 2);
    abort.abort();
    await expect(put).rejects.toMatchObject({ fault: 'away', code: 'stopped' });
    await expect(store.put('a', body, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'stopped' });
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

  test('for an address that cannot be, none is made', () => {
    const settings = bucket.settings('a/../b');
    expect(() => new ObjectStore(settings, systemClock())).toThrow('RECORDINGS');
    const endpoint = 'http://user:secret@127.0.0.1';
    expect(() => new ObjectStore({ ...bucket.settings('a'), endpoint }, systemClock())).toThrow('S3_ENDPOINT');
    expect(() => new ObjectStore({ ...bucket.settings('a'), endpoint }, systemClock())).not.toThrow('secret');
  });

  test('goes below the path of an endpoint that has one', async () => {
    const place = (endpoint: string) => new ObjectStore({ ...bucket.settings('p'), endpoint }, systemClock()).place;
    expect(place('http://store/s3/v1/')).toBe('http://store/s3/v1/calls/p/');
    expect(place('http://store')).toBe('http://store/calls/p/');
  });
});
