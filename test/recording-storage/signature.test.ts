import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import { hashed, ObjectStore } from '../../src/recording-storage/s3/object-store.ts';
import { Bucket, CREDENTIALS } from './bucket.ts';
import { signatureOf } from './signature.ts';

let bucket: Bucket;
beforeAll(async () => {
  bucket = await Bucket.start();
});
afterAll(() => bucket.stop());

describe('signatures', () => {
  test('the check agrees with the example of the specification', () => {
    // "Authenticating Requests: Using the Authorization Header", example GET Object.
    const request = {
      method: 'GET',
      url: '/test.txt',
      headers: {
        host: 'examplebucket.s3.amazonaws.com',
        range: 'bytes=0-9',
        'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        'x-amz-date': '20130524T000000Z',
        authorization:
          'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=',
      },
    };
    expect(signatureOf(request, 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')).toBe(
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    );
  });

  test('the check agrees with another client', async () => {
    const client = new Bun.S3Client({ ...CREDENTIALS, bucket: 'calls', endpoint: bucket.endpoint });
    await client.write("other (client)/it's.txt", 'hello');
    expect(await client.file("other (client)/it's.txt").text()).toBe('hello');
  });

  test('ours hold, and one with another secret or a changed body does not', async () => {
    const store = new ObjectStore(bucket.settings("what's (this)+that"), systemClock());
    const body = hashed(new TextEncoder().encode('hello'));
    await store.put('a b', body);
    expect(await store.head('a b')).toBe(5);
    const other = new ObjectStore({ ...bucket.settings('x'), secretAccessKey: 'another' }, systemClock());
    await expect(other.put('a', body)).rejects.toMatchObject({ fault: 'refused', code: 'SignatureDoesNotMatch' });
    await expect(store.put('a', { ...body, sha256: hashed(new Uint8Array(3)).sha256 })).rejects.toMatchObject({
      fault: 'rejected',
      code: 'XAmzContentSHA256Mismatch',
    });
  });
});
