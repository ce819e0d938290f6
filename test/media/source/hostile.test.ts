/** Sources that are made to cost much: each is given up, and what is only damaged is not. */
import { expect, test } from 'bun:test';
import { OggReader, OggWriter } from '../../../src/media/format/ogg.ts';
import { sniff } from '../../../src/media/format/sniff.ts';
import { HeldBytes, Source } from '../../../src/media/source/source.ts';
import type { GetResponse } from '../../../src/outbound/http-get.ts';
import { tone } from '../sound.ts';
import { wavFile } from './files.ts';

type Bytes = Uint8Array<ArrayBuffer>;
const latin1 = (text: string): Bytes => new Uint8Array(Buffer.from(text, 'latin1'));
const joined = (...parts: readonly Uint8Array[]): Bytes => new Uint8Array(Buffer.concat(parts));

test('A WAV may have a thousand parts before its sound, and no millions', () => {
  const plain = wavFile(tone(500, 0.1, 8_000), {});
  const having = (parts: number) => joined(plain.subarray(0, 12), latin1('junk\0\0\0\0'.repeat(parts)), plain.subarray(12));
  expect(sniff(having(1_000), false)).toEqual({ found: 'wav', from: 0 });
  expect(sniff(having(20_000).subarray(0, 150_000), false)).toEqual({ found: 'unsupported' });
});

/** The packets that a reader finds in all of these bytes, given in steps. */
function packetsOf(bytes: Uint8Array): number {
  const reader = new OggReader(() => true);
  let found = 0;
  for (let at = 0; at < bytes.length; at += 4_096)
    for (const { packets } of reader.push(bytes.subarray(at, at + 4_096))) found += packets.length;
  return found;
}

test('An Ogg of damaged pages is read on behind them, and one that claims a page every five bytes is given up', () => {
  const writer = new OggWriter();
  const page = (first: boolean) => writer.write({ first, last: false, granule: 1n, packets: [new Uint8Array(50_000).fill(7)] });
  const [begin, end] = [page(true), page(false)];
  const damaged = end.slice();
  damaged[1_000] = 8;
  // The pages after the first are of one number, so that each begins anew.
  expect(packetsOf(joined(begin, ...new Array<Uint8Array>(100).fill(damaged), end))).toBe(2);
  const claims = latin1('OggS\0'.repeat(200_000));
  expect(packetsOf(joined(begin, claims, end))).toBe(1);
});

test('A source that comes byte by byte is held like any other', async () => {
  const file = wavFile(tone(500, 6, 8_000), {});
  const whole = Promise.withResolvers<void>();
  let sent = 0;
  const body = {
    async read() {
      if (sent < file.length) return file.slice(sent, ++sent);
      whole.resolve();
      return undefined;
    },
    close() {},
  };
  const answer: GetResponse = { status: 200, headers: new Headers(), framing: 'close', url: 'http://source.test/', body };
  const source = new Source({ get: async () => answer }, answer.url, new HeldBytes());
  await source.admit(AbortSignal.timeout(5_000));
  const began = performance.now();
  source.hold(true);
  await whole.promise;
  expect(performance.now() - began).toBeLessThan(4_000); // A list that was copied for each byte took 12 s.
  const pieces: Uint8Array[] = [];
  for await (const piece of source.bytes()) pieces.push(piece);
  expect(Buffer.compare(Buffer.concat(pieces), file)).toBe(0);
  expect(pieces.length).toBeLessThan(40);
  source.release();
});
