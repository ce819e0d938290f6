/** What a far server may do to the files that playbacks share: lies, changes, breaks. */
import { afterEach, expect, test } from 'bun:test';
import { SOURCE_SHARED_MAX_BYTES } from '../../../src/limits.ts';
import { SourceLost } from '../../../src/media/source/audio-source.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { Refusal } from '../../../src/media/source/opening.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import { SourceList } from '../../../src/media/source/source-list.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import { tone, wav } from '../sound.ts';
import { OddServer } from './odd-server.ts';

const outbound = createOutbound(['127.0.0.0/8']);
const sound = wav(tone(300, 20, 8_000), 8_000);
const other = wav(tone(500, 20, 8_000), 8_000);

const servers: OddServer[] = [];
const serving = (...terms: ConstructorParameters<typeof OddServer>) => {
  const server = new OddServer(...terms);
  servers.push(server);
  return server;
};
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

const turn = () => new Promise(setImmediate);
const signal = () => AbortSignal.timeout(5_000);

async function opened(url: string, contents = new SharedContents()): Promise<Source> {
  const source = new Source(outbound, url, new HeldBytes(), contents, SOURCE_SHARED_MAX_BYTES);
  expect(await source.admit(signal())).toBeUndefined();
  return source;
}

async function collect(source: Source): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of source.bytes()) parts.push(chunk);
  return new Uint8Array(Buffer.concat(parts));
}

/** Plays a file once. */
async function heard(url: string, contents: SharedContents): Promise<Uint8Array> {
  const source = await opened(url, contents);
  await source.hold(true);
  const bytes = await collect(source);
  source.release();
  return bytes;
}

/** The name of the file that was read, or how many bytes of none came. */
const named = (bytes: Uint8Array): string | number => {
  if (Buffer.compare(bytes, sound) === 0) return 'sound';
  return Buffer.compare(bytes, other) === 0 ? 'other' : bytes.length;
};

const whole = (file: Uint8Array, ...fields: string[]) => ({
  head: ['200 OK', `Content-Length: ${file.length}`, ...fields],
  body: file,
});

test('A length that is told twice is that length, and takes no file of others out of the memory', async () => {
  const server = serving(({ path }) =>
    path === '/twice'
      ? { head: ['200 OK', `Content-Length: ${sound.length}`, `Content-Length: ${sound.length}`, 'ETag: "1"'], body: sound }
      : whole(sound, 'ETag: "1"'),
  );
  const contents = new SharedContents();
  await heard(server.url('/others'), contents);
  expect(named(await heard(server.url('/twice'), contents))).toBe('sound');
  expect([contents.get(server.url('/others'))?.length, contents.get(server.url('/twice'))?.length]).toEqual([
    sound.length,
    sound.length,
  ]);
});

test('The length beside a chunked body is not believed', async () => {
  const chunked = Buffer.concat([Buffer.from(`${sound.length.toString(16)}\r\n`), sound, Buffer.from('\r\n0\r\n\r\n')]);
  for (const length of [100, 10_000_000]) {
    const server = serving(() => ({
      head: ['200 OK', `Content-Length: ${length}`, 'Transfer-Encoding: chunked', 'ETag: "1"'],
      body: chunked,
    }));
    const contents = new SharedContents();
    const source = await opened(server.url(), contents);
    expect([source.content, contents.bytes]).toEqual([undefined, 0]);
    expect(named(await collect(source))).toBe('sound');
    expect(server.asked).toEqual(['/x.wav']);
    source.release();
  }
});

test('A URL that redirects is asked each time where it leads, however long the file behind it is fresh', async () => {
  let leadsTo = '/one.wav';
  const server = serving(({ path }) =>
    path === '/x.wav'
      ? { head: ['302 Found', `Location: ${leadsTo}`, 'Content-Length: 0'] }
      : whole(path === '/one.wav' ? sound : other, `ETag: "${path}"`, 'Cache-Control: max-age=31536000, immutable'),
  );
  const contents = new SharedContents();
  expect(named(await heard(server.url(), contents))).toBe('sound');
  leadsTo = '/two.wav';
  expect(named(await heard(server.url(), contents))).toBe('other');
});

test('The rest of a file that changed while it was heard is not played behind its beginning', async () => {
  for (const named of ['ETag: "2"', 'X: no validator any more']) {
    const server = serving(({ before }) =>
      before === 0
        ? { ...whole(sound, 'ETag: "1"'), body: sound.subarray(0, 100_000), after: 'reset' }
        : { ...whole(other, named), body: other.subarray(0, 200_000), after: 'open' },
    );
    const source = await opened(server.url());
    const parts: Uint8Array[] = [];
    const failure = await (async () => {
      for await (const chunk of source.bytes()) parts.push(chunk);
    })().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SourceLost);
    expect(Buffer.concat(parts).equals(sound.subarray(0, 100_000))).toBe(true);
    while (server.open > 0) await turn(); // Neither connection waits for the source to be released.
    expect(server.asked.length).toBe(2);
    source.release();
  }
});

test('A reading that another one has ended asks for nothing when the file breaks off', async () => {
  const server = serving(({ before }) =>
    before === 0 ? { ...whole(sound, 'ETag: "1"'), body: sound.subarray(0, 100_000), after: 'open' } : whole(sound, 'ETag: "1"'),
  );
  const contents = new SharedContents();
  const source = await opened(server.url(), contents);
  const former = source.bytes();
  await former.next();
  const ended = former.next().catch((error: unknown) => error);
  const heardNow = collect(source);
  await turn();
  server.reset();
  expect(named(await heardNow)).toBe('sound');
  expect([await ended, server.asked.length]).toEqual([new SourceLost('read from elsewhere'), 2]);
  source.release();
});

test('A file whose server cannot be asked any more, or has another one, is let go of by who asked', async () => {
  let answer: ReturnType<typeof whole> = whole(sound, 'ETag: "1"');
  const server = serving(() => answer);
  const contents = new SharedContents();
  await heard(server.url(), contents);
  answer = { head: ['503 Later'], body: new Uint8Array(0) };
  const refused = new Source(outbound, server.url(), new HeldBytes(), contents);
  expect(await refused.admit(signal()).catch((error: unknown) => error)).toBeInstanceOf(Refusal);
  const kept = contents.get(server.url());
  expect([kept?.users, server.asked.length]).toEqual([0, 2]);
  answer = whole(other, 'ETag: "2"');
  expect(named(await heard(server.url(), contents))).toBe('other');
  expect([kept?.users, server.asked.length, contents.bytes]).toEqual([0, 3, other.length]);
});

test('A part of another version, of another length or packed is no rest of what broke off', async () => {
  const size = sound.length;
  const rows: readonly (readonly string[])[] = [
    ['ETag: "2"', `Content-Range: bytes 100000-${size - 1}/${size}`],
    ['ETag: "1"', `Content-Range: bytes 100000-${size}/${size + 1}`],
    ['ETag: "1"', `Content-Range: bytes 100000-${size - 1}/${size}`, 'Content-Encoding: gzip'],
  ];
  for (const row of rows) {
    const server = serving(({ head }) =>
      head.includes('range: bytes=100000-')
        ? { head: ['206 Partial Content', `Content-Length: ${size - 100_000}`, ...row], body: other.subarray(100_000) }
        : { ...whole(sound, 'ETag: "1"', 'Accept-Ranges: bytes'), body: sound.subarray(0, 100_000), after: 'reset' },
    );
    const source = await opened(server.url());
    expect(await collect(source).catch((error: unknown) => error)).toBeInstanceOf(SourceLost);
    source.release();
  }
});

test('A rest that comes in crumbs, one for each request, is given up like one that drips', async () => {
  const server = serving(({ head }) => {
    const from = Number(/range: bytes=(\d+)-/.exec(head)?.[1] ?? 0);
    return from === 0
      ? { ...whole(sound, 'ETag: "1"', 'Accept-Ranges: bytes'), body: sound.subarray(0, 100_000) }
      : {
          head: ['206 Partial Content', 'Content-Length: 1', `Content-Range: bytes ${from}-${from}/${sound.length}`],
          body: sound.subarray(from, from + 1),
        };
  });
  const source = await opened(server.url());
  expect(await collect(source).catch((error: unknown) => error)).toBeInstanceOf(SourceLost);
  expect(server.asked.length).toBeLessThan(1_000);
  source.release();
});

test('A body that ends with its connection may be cut short, and is not kept for others', async () => {
  const server = serving(({ before }) => ({
    head: ['200 OK', 'ETag: "1"'],
    body: before === 0 ? sound.subarray(0, 50_000) : sound,
  }));
  const contents = new SharedContents();
  expect((await heard(server.url(), contents)).length).toBe(50_000);
  expect(contents.bytes).toBe(0);
  expect(named(await heard(server.url(), contents))).toBe('sound');
});

test('A small file is kept by its length, be that told before or known at its end', async () => {
  const small = wav(tone(300, 0.2, 8_000), 8_000);
  const chunked = Buffer.concat([Buffer.from(`${small.length.toString(16)}\r\n`), small, Buffer.from('\r\n0\r\n\r\n')]);
  for (const answer of [
    whole(small, 'ETag: "1"'),
    { head: ['200 OK', 'Transfer-Encoding: chunked', 'ETag: "1"'], body: chunked },
  ]) {
    const server = serving(({ head }) => (head.includes('if-none-match: "1"') ? { head: ['304 Not Modified'] } : answer));
    const contents = new SharedContents();
    const source = await opened(server.url(), contents);
    // A file whose length is told is shared from its first audio on.
    expect(source.content?.length).toBe(answer.body === small ? small.length : undefined);
    await source.hold(true);
    source.release();
    expect([contents.get(server.url())?.isWhole, contents.bytes]).toEqual([true, small.length]);
    expect(await heard(server.url(), contents)).toEqual(small);
    expect(server.asked.length).toBe(2);
  }
});

test('A packed body that was cut short before it was sent is not kept for others', async () => {
  const packed = Bun.gzipSync(sound);
  const server = serving(({ before }) =>
    whole(before === 0 ? packed.subarray(0, 500) : packed, 'ETag: "1"', 'Content-Encoding: gzip'),
  );
  const contents = new SharedContents();
  expect(typeof named(await heard(server.url(), contents))).toBe('number');
  expect(contents.bytes).toBe(0);
  expect(named(await heard(server.url(), contents))).toBe('sound');
});

test('A first part of a file, the rest of which cannot be asked for, is no whole file', async () => {
  const server = serving(() => ({
    head: ['206 Partial Content', 'Content-Length: 100000', `Content-Range: bytes 0-99999/${sound.length}`],
    body: sound.subarray(0, 100_000),
  }));
  const source = await opened(server.url());
  expect(await collect(source).catch((error: unknown) => error)).toBeInstanceOf(SourceLost);
  source.release();
});

test('A reader that has had enough in the middle of a file lets go of its connection', async () => {
  const server = serving(() => ({ head: ['200 OK', `Content-Length: ${2 * sound.length}`], body: sound, after: 'open' }));
  const source = await opened(server.url());
  for await (const _ of source.bytes()) break;
  while (server.open > 0) await turn();
  source.release();
});

test('An entry of a list that two readings open at the same time is released with the list', async () => {
  const opening: PromiseWithResolvers<Source>[] = [];
  const open = () => {
    const one = Promise.withResolvers<Source>();
    opening.push(one);
    return one.promise;
  };
  const server = serving(() => whole(sound, 'ETag: "1"'));
  const contents = new SharedContents();
  const list = SourceList.open(['http://x/1', 'http://x/2'], open, signal());
  opening[0]?.resolve(await opened(server.url('/1'), contents));
  const both = [(await list).at(1), (await list).at(1)];
  for (const one of opening.slice(1)) one.resolve(await opened(server.url('/2'), contents));
  const [first, second] = await Promise.all(both);
  expect(first).toBe(second);
  (await list).release();
  expect(contents.get(server.url('/2'))?.users).toBe(0);
});

test('A file whose validators or last URL are endless is heard, and not kept', async () => {
  const server = serving(({ path }) => {
    if (path === '/far') return { head: ['302 Found', `Location: /x.wav?${'y'.repeat(20_000)}`] };
    return whole(sound, `ETag: "${path === '/tag' ? 'z'.repeat(20_000) : '1'}"`);
  });
  for (const path of ['/far', '/tag']) {
    const contents = new SharedContents();
    expect(named(await heard(server.url(path), contents))).toBe('sound');
    expect([path, contents.bytes]).toEqual([path, 0]);
  }
});

test('A 304 from where the URL leads now is not of the file that it led to before', async () => {
  let leadsTo = '/one.wav';
  const server = serving(({ path, head }) => {
    if (path === '/x.wav') return { head: ['302 Found', `Location: ${leadsTo}`, 'Content-Length: 0'] };
    if (head.includes('if-none-match: "1"')) return { head: ['304 Not Modified'] };
    return whole(path === '/one.wav' ? sound : other, 'ETag: "1"');
  });
  const contents = new SharedContents();
  for (let n = 0; n < 2; n++) expect(named(await heard(server.url(), contents))).toBe('sound');
  expect(server.asked).toEqual(['/x.wav', '/one.wav', '/x.wav', '/one.wav']);
  leadsTo = '/two.wav';
  expect(named(await heard(server.url(), contents))).toBe('other');
});

test('A file is asked for by its date where it has no tag, and forgotten once its server forbids to keep it', async () => {
  let control = 'X: y';
  const date = 'Sat, 28 Nov 2026 00:00:00 GMT';
  const server = serving(({ head }) => {
    if (head.includes(`if-modified-since: ${date.toLowerCase()}`) && control === 'X: y') return { head: ['304 Not Modified'] };
    return whole(sound, `Last-Modified: ${date}`, control);
  });
  const contents = new SharedContents();
  const first = await opened(server.url(), contents);
  const second = await opened(server.url(), contents);
  expect([first.content === second.content, contents.bytes]).toEqual([true, sound.length]);
  for (const source of [first, second]) source.release();
  await heard(server.url(), contents);
  expect(contents.bytes).toBe(sound.length);
  control = 'Cache-Control: no-store';
  expect(named(await heard(server.url(), contents))).toBe('sound');
  expect(contents.bytes).toBe(0);
});

test('A 304 counts for the version that it names, and one that forbids to keep the file is obeyed', async () => {
  for (const [field, expected] of [
    ['ETag: "1"', 1],
    ['ETag: W/"1"', 1],
    ['X: y', 1],
    ['ETag: "2"', 2],
    ['Cache-Control: no-store', 1],
  ] as const) {
    const server = serving(({ head }) =>
      head.includes('if-none-match') ? { head: ['304 Not Modified', field] } : whole(sound, 'ETag: "1"'),
    );
    const contents = new SharedContents();
    for (let n = 0; n < 2; n++) expect(named(await heard(server.url(), contents))).toBe('sound');
    const isKept = contents.get(server.url()) !== undefined;
    expect([field, isKept]).toEqual([field, field !== 'Cache-Control: no-store']);
    expect([field, server.asked.length]).toEqual([field, expected + 1]);
  }
});

test('A refusal of an endless or a broken answer names its status', async () => {
  const rows = [
    [
      { head: ['200 OK', 'Content-Length: 5, 6'], body: 'RIFFx' },
      { reason: 'invalid_response', retryable: false },
    ],
    [
      { head: ['206 Partial Content', 'Content-Range: bytes 5-9/100'], body: 'RIFFx' },
      { reason: 'invalid_response', retryable: false, upstream_status: 206 },
    ],
    [{ head: ['304 Not Modified', 'ETag: "1"'] }, { reason: 'invalid_response', retryable: false, upstream_status: 304 }],
    [{ head: ['302 Found', 'Location: http://10.0.0.1/x.wav'] }, { reason: 'rejected', retryable: false, upstream_status: 302 }],
    [
      { head: ['302 Found', 'Location: http://user:word@127.0.0.1/x.wav'] },
      { reason: 'rejected', retryable: false, upstream_status: 302 },
    ],
  ] as const;
  for (const [answer, expected] of rows) {
    const server = serving(() => answer);
    const source = new Source(outbound, server.url(), new HeldBytes());
    const failure = await source.admit(signal()).catch((error: unknown) => error);
    expect(failure instanceof Refusal && failure.detail).toEqual(expected);
  }
});
