import { describe, expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import { createRecordingUrls } from '../../src/recording-storage/signed-url.ts';
import fc from '../support/fast-check.ts';

const ORIGIN = 'https://voice.example.com';
const NOW = 1_800_000_000_400;
const urls = createRecordingUrls({ masterKey: new Uint8Array(32).fill(7), publicUrl: ORIGIN, ttlSec: 3600 });
const recordingUuid = `rec_${newUuid()}`;
const signed = urls.sign(recordingUuid, NOW);

/** Splits a URL as a door does, at the first question mark. */
function verify(target: string, now = NOW, by = urls) {
  const query = target.indexOf('?');
  return query < 0 ? by.verify(target, '', now) : by.verify(target.slice(0, query), target.slice(query), now);
}
const target = (url: string) => url.slice(ORIGIN.length);
const pull = target(signed.mediaUrl);
const live = target(signed.liveUrl);

describe('signed recording URLs', () => {
  test('lead to their recording, each as its kind, in the documented spelling', () => {
    expect(verify(pull)).toEqual({ recordingUuid, kind: 'pull' });
    expect(verify(live)).toEqual({ recordingUuid, kind: 'live' });
    expect(signed.mediaUrl).toMatch(
      /^https:\/\/voice\.example\.com\/v1\/media\/rec_[0-9a-f-]{36}\/pull\?expires=1800003600&signature=[0-9a-f]{64}$/,
    );
    expect(signed.liveUrl).toMatch(/\/live\?expires=1800003600&signature=[0-9a-f]{64}$/);
  });

  test('hold until the second they name, and no millisecond of it', () => {
    expect(signed.expiresAt).toBe(1_800_003_600_000);
    expect(verify(pull, signed.expiresAt - 1)).toBeDefined();
    expect(verify(pull, signed.expiresAt)).toBeUndefined();
    expect(verify(pull, signed.expiresAt + 86_400_000)).toBeUndefined();
  });

  test('any whole second of any moment of signing holds for the time to live', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1, max: 1e7 }), (now, ttlSec) => {
        const others = createRecordingUrls({ masterKey: new Uint8Array(32).fill(7), publicUrl: ORIGIN, ttlSec });
        const { mediaUrl, expiresAt } = others.sign(recordingUuid, now);
        expect(expiresAt % 1000).toBe(0);
        expect(expiresAt).toBeGreaterThan(now + (ttlSec - 1) * 1000);
        expect(expiresAt).toBeLessThanOrEqual(now + ttlSec * 1000);
        expect(verify(target(mediaUrl), expiresAt - 1)).toBeDefined();
        expect(verify(target(mediaUrl), expiresAt)).toBeUndefined();
      }),
    );
  });

  test('any other byte at any place is refused', () => {
    for (const url of [pull, live]) {
      for (let at = 0; at < url.length; at++) {
        for (let byte = 0; byte < 256; byte++) {
          const other = url.slice(0, at) + String.fromCharCode(byte) + url.slice(at + 1);
          if (other !== url) expect(verify(other)).toBeUndefined();
        }
      }
    }
  });

  test('anything put in, taken out or exchanged is refused', () => {
    const at = fc.nat({ max: pull.length });
    const text = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.constantFrom('%', '&', '?', '0', '\n', '/', '+', '%00', '/..', '&a=1', '-0'),
    );
    fc.assert(
      fc.property(at, fc.nat({ max: 4 }), text, (start, count, inserted) => {
        const other = pull.slice(0, start) + inserted + pull.slice(start + count);
        fc.pre(other !== pull);
        expect(verify(other)).toBeUndefined();
      }),
      { numRuns: 5_000 },
    );
    fc.assert(fc.property(fc.string(), fc.string(), (path, search) => urls.verify(path, search, NOW) === undefined));
  });

  test('what a parser would read as the same is refused', () => {
    const [, expires = '', signature = ''] = /expires=(\d+)&signature=(\w+)/.exec(pull) ?? [];
    const path = pull.slice(0, pull.indexOf('?'));
    const others = [
      `${path}?signature=${signature}&expires=${expires}`,
      `${path}?expires=0${expires}&signature=${signature}`,
      `${path}?expires=+${expires}&signature=${signature}`,
      `${path}?expires=${expires}.0&signature=${signature}`,
      `${path}?expires=${expires}&signature=${signature.toUpperCase()}`,
      `${path}?expires=${expires}&signature=${signature}&`,
      `${path}?expires=${expires}&signature=${signature}#`,
      `${path}?&expires=${expires}&signature=${signature}`,
      `${path}?expires=${expires}&expires=${expires}&signature=${signature}`,
      `${path}?expires=${expires}&signature=${signature}\n`,
      `${path}?Expires=${expires}&signature=${signature}`,
      `${path}?expires=${expires}&signature=%${signature.charCodeAt(0).toString(16)}${signature.slice(1)}`,
      `${path}/?expires=${expires}&signature=${signature}`,
      `${path.replace('pull', 'pul%6c')}?expires=${expires}&signature=${signature}`,
      `${path.toUpperCase()}?expires=${expires}&signature=${signature}`,
      `/${pull}`,
      `/api${pull}`,
      `${ORIGIN}${pull}`,
    ].filter((other) => other !== pull);
    expect(others.filter((other) => verify(other) !== undefined)).toEqual([]);
  });

  test('a signature is good for its recording, kind, expiry and key alone', () => {
    const query = (url: string) => url.slice(url.indexOf('?'));
    const other = urls.sign(`rec_${newUuid()}`, NOW);
    const later = urls.sign(recordingUuid, NOW + 1000);
    const path = `/v1/media/${recordingUuid}/pull`;
    for (const search of [other.mediaUrl, signed.liveUrl].map(query)) expect(urls.verify(path, search, NOW)).toBeUndefined();
    expect(urls.verify(path, query(later.mediaUrl).replace('1800003601', '1800003600'), NOW)).toBeUndefined();
    const elsewhere = createRecordingUrls({ masterKey: new Uint8Array(32).fill(8), publicUrl: ORIGIN, ttlSec: 3600 });
    expect(verify(pull, NOW, elsewhere)).toBeUndefined();
    const [masterKey, masterKeyBefore] = [new Uint8Array(32).fill(8), new Uint8Array(32).fill(7)];
    const changed = createRecordingUrls({ masterKey, masterKeyBefore, publicUrl: ORIGIN, ttlSec: 3600 });
    expect(verify(pull, NOW, changed)).toEqual({ recordingUuid, kind: 'pull' });
    expect(changed.sign(recordingUuid, NOW)).toEqual(elsewhere.sign(recordingUuid, NOW));
  });

  test('only a recording is signed for', () => {
    for (const name of ['', newUuid(), `rec_${newUuid().toUpperCase()}`, `rec_${newUuid()}/live`, 'rec_1']) {
      expect(() => urls.sign(name, NOW)).toThrow();
    }
    expect(() => createRecordingUrls({ masterKey: new Uint8Array(16), publicUrl: ORIGIN, ttlSec: 1 })).toThrow();
  });
});
