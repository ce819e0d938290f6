/** The pace of a source that is waited for, on a virtual clock. */
import { describe, expect, test } from 'bun:test';
import { SOURCE_LEAST_BYTES } from '../../../src/limits.ts';
import { Download } from '../../../src/media/source/download.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** Reads a download of which `bytes` come each `everyMs`, with pauses of the reader, until it fails. */
async function read(bytes: number, everyMs: number, pauseMs = 0) {
  const clock = new VirtualClock();
  let asked = 0;
  let closed = 0;
  const body = {
    read: () =>
      new Promise<Uint8Array>((resolve) => {
        clock.at(clock.now() + everyMs, () => resolve(new Uint8Array(bytes)));
      }),
    close: () => void closed++,
  };
  const outbound = {
    get: async () => {
      asked++;
      // The server could resume: it is not asked to.
      const headers = new Headers({ etag: '"one"', 'accept-ranges': 'bytes' });
      return { status: 200, headers, framing: 'close' as const, url: 'http://a/', body };
    },
  };
  const target = { outbound, url: 'http://a/', signal: new AbortController().signal, clock };
  const download = await Download.open(target, {});
  const began = clock.now();
  let failure: unknown;
  let waited = 0;
  while (failure === undefined && clock.now() - began < 600_000) {
    const from = clock.now();
    const next = download.next().catch((error: unknown) => {
      failure = error;
    });
    await clock.advance(everyMs);
    await next;
    waited += clock.now() - from;
    await clock.advance(pauseMs);
  }
  return { failure, waited, asked, closed };
}

describe('a source that is waited for', () => {
  test('fails where it drips a byte each nine seconds, and is not asked for the rest', async () => {
    const { failure, waited, asked, closed } = await read(1, 9_000);
    expect(failure).toMatchObject({ detail: { reason: 'timeout', retryable: true } });
    expect(waited).toBe(36_000);
    expect([asked, closed]).toEqual([1, 1]);
  });

  test('goes on where it sends little, but as much as the leanest audio has', async () => {
    expect((await read(SOURCE_LEAST_BYTES / 3, 9_000)).failure).toBeUndefined();
  });

  test('is not blamed for the time in which nobody read it', async () => {
    expect((await read(SOURCE_LEAST_BYTES / 30, 500, 20_000)).failure).toBeUndefined();
  });
});
