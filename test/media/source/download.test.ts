/** A download of one file, whatever becomes of its connections. */
import { expect, test } from 'bun:test';
import { SOURCE_RESUME_LEAST_BYTES } from '../../../src/limits.ts';
import { Download } from '../../../src/media/source/download.ts';
import { Refusal } from '../../../src/media/source/opening.ts';
import type { GetRequest, GetResponse } from '../../../src/outbound/http-get.ts';
import { OutboundError } from '../../../src/outbound/outbound.ts';
import fc from '../../support/fast-check.ts';

const fileOf = (size: number, version: number) =>
  Uint8Array.from({ length: size }, (_, at) => (at * 7 + (at >> 8) + version) & 0xff);

/** What a server is, and what it does to its connections, one after the other. */
const SERVER = fc.record({
  size: fc.constantFrom(1, 4_000, 30_000, 30_000),
  /** The bytes after which a connection breaks, with an error or as if that were all. */
  breaks: fc.array(fc.record({ after: fc.constantFrom(5_000, 5_000, 9_000, 100, 0), isSilent: fc.boolean() }), { maxLength: 6 }),
  /** The connection from which on it has another file. */
  changesAt: fc.constantFrom(99, 99, 99, 1, 2, 3),
  tag: fc.constantFrom('etag', 'etag', 'last-modified', 'weak', 'none'),
  givesParts: fc.constantFrom(true, true, true, false),
  knowsIfRange: fc.boolean(),
  tellsLength: fc.constantFrom(true, true, true, false),
  /** It answers with a part where all was asked for. */
  isCache: fc.boolean(),
  pieces: fc.integer({ min: 1, max: 9_000 }),
});
type Server = typeof SERVER extends fc.Arbitrary<infer T> ? T : never;

/** That server, and how many of its connections are open. */
function serving(server: Server) {
  const { size, breaks, tag, givesParts } = server;
  let connections = 0;
  let open = 0;
  const get = async ({ url, headers: asked }: GetRequest): Promise<GetResponse> => {
    const number = connections++;
    const version = number >= server.changesAt ? 2 : 1;
    const file = fileOf(size, version);
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(asked.range ?? '') ?? [];
    const name = tag === 'none' ? undefined : tag === 'weak' ? 'W/"like it"' : `"${version}"`;
    const isSame = !server.knowsIfRange || asked['if-range'] === undefined || asked['if-range'] === name;
    const isPart = first === undefined ? server.isCache : givesParts && isSame;
    const start = isPart ? Number(first ?? 0) : 0;
    const end = isPart && last ? Math.min(size, Number(last) + 1) : size;
    const isThere = start < size;
    const { after = size, isSilent = false } = breaks[number] ?? {};
    let at = start;
    let isOpen = true;
    open++;
    const close = () => {
      if (isOpen) open--;
      isOpen = false;
    };
    const read = async () => {
      if (!isOpen) throw new OutboundError('unreachable', 'closed');
      const until = Math.min(end, start + after);
      const piece = file.slice(at, Math.min(until, at + server.pieces));
      at += piece.length;
      if (piece.length > 0) return piece;
      close();
      if (at < end && !isSilent) throw new OutboundError('unreachable', 'broken');
      return undefined;
    };
    const headers = new Headers({
      ...(name === undefined ? {} : { [tag === 'last-modified' ? 'last-modified' : 'etag']: name }),
      ...(givesParts ? { 'accept-ranges': 'bytes' } : {}),
      ...(server.tellsLength ? { 'content-length': String(end - start) } : {}),
      ...(isPart && isThere ? { 'content-range': `bytes ${start}-${end - 1}/${size}` } : {}),
    });
    const status = isPart ? (isThere ? 206 : 416) : 200;
    return { status, headers, framing: server.tellsLength ? 'length' : 'close', url, body: { read, close } };
  };
  return { get, open: () => open };
}

test('A download gives the bytes of its file in order, and no others; all of them where they can be had', async () => {
  const law = fc.asyncProperty(
    SERVER,
    fc.oneof(fc.constant(undefined), fc.record({ from: fc.nat(15_000), bytes: fc.integer({ min: 1, max: 10_000 }) })),
    fc.array(fc.oneof(fc.constantFrom('next', 'next', 'next', 'stop'), fc.nat(8_000)), { maxLength: 4 }),
    async (server, part, steps) => {
      const { get, open } = serving(server);
      const { signal } = new AbortController();
      const file = fileOf(server.size, 1);
      const download = await Download.open({ outbound: { get }, url: 'http://a/', signal, part }, {}).catch((error: unknown) => {
        expect(error).toBeInstanceOf(Refusal);
      });
      // A part that is not there, or of a server that gives none, is refused.
      expect(download !== undefined).toBe(part === undefined || (server.givesParts ? part.from < server.size : part.from === 0));
      let at = part?.from ?? 0;
      let outcome: 'reads' | 'ended' | 'broken' = download === undefined ? 'broken' : 'reads';
      for (let step = 0; download !== undefined && outcome === 'reads'; step++) {
        const asked = steps[step];
        if (asked === 'stop') break;
        if (typeof asked === 'number') {
          if (await download.leaveOut(asked)) at += asked;
          continue;
        }
        const bytes = await download.next().catch(() => null);
        outcome = bytes === undefined ? 'ended' : bytes === null ? 'broken' : 'reads';
        if (!bytes) continue;
        if (Buffer.compare(bytes, file.subarray(at, at + bytes.length)) !== 0) throw new Error(`other bytes at ${at}`);
        at += bytes.length;
      }
      download?.close();
      expect(open()).toBe(0);
      const { breaks, size, tag } = server;
      if (part === undefined && server.tellsLength && outcome === 'ended') expect(at).toBe(size);
      const goesOn =
        server.givesParts && (tag === 'etag' || tag === 'last-modified') && server.changesAt === 99 && server.tellsLength;
      const isPatient = goesOn && breaks.every(({ after }) => after > SOURCE_RESUME_LEAST_BYTES);
      if (part === undefined && outcome !== 'reads' && (isPatient || breaks.length === 0))
        expect([outcome, at]).toEqual(['ended', size]);
    },
  );
  await fc.assert(law, { numRuns: 120 });
});
