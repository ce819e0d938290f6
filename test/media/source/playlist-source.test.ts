/** URLs that are playlists: M3U, PLS and HLS, as files and as streams. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { HLS_SEGMENTS_MAX, PLAYLIST_DEPTH_MAX, PLAYLIST_ENTRIES_MAX, PLAYLIST_LINES_MAX } from '../../../src/limits.ts';
import { silentLog } from '../../../src/log.ts';
import { decodesAac } from '../../../src/media/decode/aac-decoder.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { parsePlaylist } from '../../../src/media/format/playlist-text.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { HlsSource } from '../../../src/media/source/hls-source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import { cpuMs } from '../../support/cpu-time.ts';
import fc from '../../support/fast-check.ts';
import { type Call, Harness } from '../harness.ts';
import { tone, wav } from '../sound.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());
beforeEach(() => {
  harness.files.clear();
  harness.requests.length = 0;
});

const text = (...lines: readonly string[]) => new TextEncoder().encode(lines.join('\r\n'));
const short = wav(tone(1_000, 0.2, 8_000), 8_000);
const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());

async function refusal(path: string): Promise<string | undefined> {
  const opened = await harness.engine.openPlaylist([harness.url(path)], 'app');
  if ('refused' in opened) return opened.refused.reason;
  opened.release();
  return undefined;
}

/** Packets of 20 ms that were not silent. */
const loud = (call: Call) => call.peer.heard.filter(({ payload }) => payload.some((octet) => (octet & 0x7f) < 0x60)).length;

/** Plays files to their end: how much of them was heard, in packets, and how it ended. */
async function played(paths: readonly string[], loop = 1): Promise<readonly [number, string]> {
  await using call = await harness.call();
  call.leg.negotiate(call.peer.parameters());
  call.leg.play({ operationUuid: 'op', playlist: await harness.admitted(...paths), loop, volume: 100 });
  const over = () => call.notices.types().find((type) => type === 'playback.completed' || type === 'playback.failed');
  await call.notices.until(() => over() !== undefined);
  return [loud(call), over() ?? ''];
}

const near = ([packets, end]: readonly [number, string], expected: number) => [Math.abs(packets - expected) <= 2, end];

describe('a playlist among files', () => {
  test('is heard entry by entry: M3U with relative and absolute names, and PLS', async () => {
    harness.files.set('/music/a.wav', short);
    harness.files.set('/b.wav', short);
    harness.files.set('/music/list.m3u', text('#EXTM3U', '#EXTINF:1,First', 'a.wav', '', '/b.wav', harness.url('/b.wav')));
    expect(near(await played(['/music/list.m3u']), 30)).toEqual([true, 'playback.completed']);
    const pls = text(
      '[playlist]',
      'NumberOfEntries=2',
      `File1=${harness.url('/b.wav')}`,
      'Title1=B',
      'File2=/b.wav',
      'Version=2',
    );
    harness.files.set('/list.pls', pls);
    expect(near(await played(['/list.pls', '/b.wav'], 2), 60)).toEqual([true, 'playback.completed']);
  });

  test('leaves out what cannot be opened, and file paths; it fails only where nothing of it is heard', async () => {
    harness.files.set('/a.wav', short);
    const m3u = text(
      '#EXTM3U',
      'file:///etc/passwd',
      'C:\\music\\a.wav',
      '/gone.wav',
      '/a.wav',
      'http://10.0.0.1/x.wav',
      '/a.wav',
    );
    harness.files.set('/mixed.m3u', m3u);
    expect(near(await played(['/mixed.m3u']), 20)).toEqual([true, 'playback.completed']);
    harness.files.set('/bad.m3u', text('#EXTM3U', '/gone.wav', 'http://10.0.0.1/x.wav'));
    expect(await refusal('/bad.m3u')).toBe('not_found');
    harness.files.set('/private.m3u', text('#EXTM3U', 'http://169.254.169.254/latest'));
    expect(await refusal('/private.m3u')).toBe('rejected');
    harness.files.set('/paths.m3u', text('#EXTM3U', 'file:///etc/passwd'));
    expect(await refusal('/paths.m3u')).toBe('unsupported');
  });

  test('opens only its first source before the 202, however many it names', async () => {
    harness.files.set('/a.wav', short);
    harness.files.set('/long.m3u', text('#EXTM3U', ...Array.from({ length: PLAYLIST_ENTRIES_MAX }, () => '/a.wav')));
    expect(await refusal('/long.m3u')).toBeUndefined();
    expect(harness.requests).toEqual(['/long.m3u', '/a.wav']);
    harness.files.set('/longer.m3u', text('#EXTM3U', ...Array.from({ length: PLAYLIST_ENTRIES_MAX + 1 }, () => '/a.wav')));
    expect(await refusal('/longer.m3u')).toBe('rejected');
  });

  test('may name playlists to a depth of 3, and none that leads to itself', async () => {
    harness.files.set('/a.wav', short);
    for (let depth = 1; depth <= PLAYLIST_DEPTH_MAX + 1; depth++)
      harness.files.set(`/${depth}.m3u`, text('#EXTM3U', depth === 1 ? '/a.wav' : `/${depth - 1}.m3u`));
    expect(near(await played([`/${PLAYLIST_DEPTH_MAX}.m3u`]), 10)).toEqual([true, 'playback.completed']);
    expect(await refusal(`/${PLAYLIST_DEPTH_MAX + 1}.m3u`)).toBe('rejected');
    harness.files.set('/self.m3u', text('#EXTM3U', '/self.m3u'));
    expect(await refusal('/self.m3u')).toBe('rejected');
    harness.files.set('/ping.m3u', text('#EXTM3U', '/pong.m3u'));
    harness.files.set('/pong.m3u', text('#EXTM3U', '/ping.m3u'));
    expect(await refusal('/ping.m3u')).toBe('rejected');
  });

  test('of more than 1 MiB is rejected', async () => {
    harness.files.set('/huge.m3u', text('#EXTM3U', ...Array.from({ length: 20_000 }, () => `#${'x'.repeat(80)}`)));
    expect(await refusal('/huge.m3u')).toBe('rejected');
  });
});

describe('HLS', () => {
  const media = (lines: readonly string[], ended: boolean) =>
    text('#EXTM3U', '#EXT-X-TARGETDURATION:1', '#EXT-X-MEDIA-SEQUENCE:0', ...lines, ...(ended ? ['#EXT-X-ENDLIST'] : []));

  test('with an end is a file: its segments are heard one after the other, of the cheapest variant', async () => {
    for (const [name, file] of [
      ['ts', 'tone-mp3.mpegts'],
      ['mp3', 'tone-24k-joint-cbr.mp3'],
    ] as const) {
      harness.files.set(`/seg.${name}`, await fixture(file));
      harness.files.set(`/${name}.m3u8`, media(['#EXTINF:1,', `seg.${name}`, '#EXTINF:1,', `seg.${name}`], true));
    }
    const master = [
      '#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360',
      'video.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=64000',
      'ts.m3u8',
    ];
    harness.files.set('/master.m3u8', text('#EXTM3U', ...master));
    expect((await played(['/master.m3u8']))[1]).toBe('playback.completed');
    expect(harness.requests).not.toContain('/video.m3u8');
    const [packets, end] = await played(['/mp3.m3u8']);
    expect([packets > 45, end]).toEqual([true, 'playback.completed']);
  });

  test.skipIf(!decodesAac())('is heard of AAC, in a transport stream and by itself', async () => {
    for (const [name, file] of [
      ['ts', 'tone-aac.mpegts'],
      ['aac', 'tone-aac.aac'],
    ] as const) {
      harness.files.set(`/seg.${name}`, await fixture(file));
      harness.files.set(`/${name}.m3u8`, media(['#EXTINF:1,', `seg.${name}`, '#EXTINF:1,', `seg.${name}`], true));
      const [packets, end] = await played([`/${name}.m3u8`]);
      expect([name, packets >= 96 && packets <= 108, end]).toEqual([name, true, 'playback.completed']);
    }
  });

  /** Segments of three kinds, with a discontinuity before each that is of another. */
  const changing = async (): Promise<readonly string[]> => {
    harness.files.set('/seg.ts', await fixture('tone-mp3.mpegts'));
    harness.files.set('/seg.mp3', await fixture('tone-24k-joint-cbr.mp3'));
    harness.files.set('/seg.wav', short);
    return ['seg.ts', '#EXT-X-DISCONTINUITY', 'seg.mp3', 'seg.mp3', '#EXT-X-DISCONTINUITY', 'seg.wav'];
  };

  test('goes on at a discontinuity that brings another format, as an advertisement does, as a file and as a stream', async () => {
    harness.files.set('/changing.m3u8', media(await changing(), true));
    let expected = 0;
    for (const part of [['seg.ts'], ['seg.mp3', 'seg.mp3'], ['seg.wav']]) {
      harness.files.set('/part.m3u8', media(part, true));
      expected += (await played(['/part.m3u8']))[0];
    }
    const [packets, end] = await played(['/changing.m3u8']);
    expect([Math.abs(packets - expected) <= 4, end]).toEqual([true, 'playback.completed']);
    const stream = await harness.engine.openStream(harness.url('/changing.m3u8'), 'app');
    if ('refused' in stream) throw new Error(stream.refused.reason);
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: stream, loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    expect(Math.abs(loud(call) - expected)).toBeLessThanOrEqual(4);
  }, 30_000);

  test('has a place in each of its formats: a seek counts those before', async () => {
    const url = harness.url('/changing.m3u8');
    const list = parsePlaylist(new TextDecoder().decode(media(await changing(), true)), url);
    if (list.type !== 'media') throw new Error(list.type);
    const signal = new AbortController().signal;
    const source = await HlsSource.open({ outbound: createOutbound(['127.0.0.0/8']), url, signal }, list, new HeldBytes());
    const decoders = new DecoderThread(silentLog);
    const heard = async (from: number) => {
      const samples: number[] = [];
      for await (const pcm of new FilesSource([source], { loop: 1, rateHz: 8_000, decoders }).pcm(from)) samples.push(...pcm);
      return samples;
    };
    const whole = await heard(0);
    for (const from of [4_000, whole.length - 12_000, whole.length - 1_000]) {
      const part = await heard(from);
      expect(part).toHaveLength(whole.length - from);
      // A decoder that begins within MPEG audio takes a moment; a place that is off by one sample makes 2,000 and more.
      expect(Math.max(...part.map((sample, at) => Math.abs(sample - (whole[from + at] ?? 0))))).toBeLessThanOrEqual(50);
    }
    source.release();
    await decoders.close();
  });

  test('has failed where a discontinuity brings what is no sound, after what comes before it', async () => {
    const lines = await changing();
    harness.files.set('/page', text('<!DOCTYPE html><html><body>gone</body></html>'));
    harness.files.set('/broken.m3u8', media([...lines.slice(0, 2), 'page', 'seg.mp3'], true));
    harness.files.set('/part.m3u8', media(['seg.ts'], true));
    const [expected] = await played(['/part.m3u8']);
    expect(near(await played(['/broken.m3u8']), expected)).toEqual([true, 'playback.failed']);
  });

  test('leaves out a segment that is gone', async () => {
    harness.files.set('/seg.mp3', await fixture('tone-24k-joint-cbr.mp3'));
    harness.files.set('/holed.m3u8', media(['seg.mp3', 'gone.mp3', 'seg.mp3'], true));
    const [packets, end] = await played(['/holed.m3u8']);
    expect([packets > 45, end]).toEqual([true, 'playback.completed']);
  });

  test('of parts of one file is heard once, each part by the bytes that it names', async () => {
    const file = await fixture('tone-24k-joint-cbr.mp3');
    const third = Math.floor(file.length / 3);
    const parts = [`${third}@0`, `${third}`, `${file.length - 2 * third}`];
    const ranges: (string | null)[] = [];
    harness.files.set('/all.mp3', (request) => {
      const range = request.headers.get('range');
      ranges.push(range);
      const [, from = 0, until = 0] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '')?.map(Number) ?? [];
      const headers = { 'content-range': `bytes ${from}-${until}/${file.length}` };
      return new Response(file.slice(from, until + 1), { status: 206, headers });
    });
    const lines = parts.flatMap((part) => ['#EXTINF:1,', `#EXT-X-BYTERANGE:${part}`, 'all.mp3']);
    harness.files.set('/parts.m3u8', media(lines, true));
    harness.files.set('/whole.mp3', file);
    const [whole] = await played(['/whole.mp3']);
    expect(near(await played(['/parts.m3u8']), whole)).toEqual([true, 'playback.completed']);
    const asked = [`bytes=0-${third - 1}`, `bytes=${third}-${2 * third - 1}`, `bytes=${2 * third}-${file.length - 1}`];
    expect(ranges).toEqual([asked[0] ?? '', ...asked]);

    // A server that knows no ranges sends the whole: right for what begins there, and wrong for all else.
    harness.files.set('/all.mp3', file);
    harness.files.set('/first.m3u8', media([`#EXT-X-BYTERANGE:${third}@0`, 'all.mp3'], true));
    expect(near(await played(['/first.m3u8']), Math.round(whole / 3))).toEqual([true, 'playback.completed']);
    harness.files.set('/second.m3u8', media([`#EXT-X-BYTERANGE:${third}@${third}`, 'all.mp3'], true));
    expect(await refusal('/second.m3u8')).toBe('unsupported');
    harness.files.set('/nowhere.m3u8', media([`#EXT-X-BYTERANGE:${third}`, 'all.mp3'], true));
    expect(await refusal('/nowhere.m3u8')).toBe('unsupported');
  });

  test('is heard to its end where its segments are numbered by nanoseconds, which no double holds', async () => {
    harness.files.set('/seg.mp3', await fixture('tone-24k-joint-cbr.mp3'));
    const lines = ['#EXTM3U', '#EXT-X-TARGETDURATION:1', '#EXT-X-MEDIA-SEQUENCE:1789000000000000123'];
    harness.files.set('/numbered.m3u8', text(...lines, 'seg.mp3', 'seg.mp3', '#EXT-X-ENDLIST'));
    harness.files.set('/plain.m3u8', media(['seg.mp3', 'seg.mp3'], true));
    const [packets] = await played(['/plain.m3u8']);
    expect(near(await played(['/numbered.m3u8']), packets)).toEqual([true, 'playback.completed']);
  });

  test('leaves out a gap, for which nothing is asked, and names of other schemes', async () => {
    harness.files.set('/seg.mp3', await fixture('tone-24k-joint-cbr.mp3'));
    const gaps = Array.from({ length: 6 }, (_, n) => ['#EXT-X-GAP', `gap-${n}.mp3`]).flat();
    harness.files.set('/gaps.m3u8', media(['seg.mp3', ...gaps, 'ftp://radio.test/seg.mp3', 'seg.mp3'], true));
    harness.files.set('/plain.m3u8', media(['seg.mp3', 'seg.mp3'], true));
    const [packets] = await played(['/plain.m3u8']);
    expect(near(await played(['/gaps.m3u8']), packets)).toEqual([true, 'playback.completed']);
    expect(harness.requests.filter((path) => path.includes('gap-'))).toEqual([]);
  });

  test('is refused where it is encrypted, fragmented, or without an end among files', async () => {
    harness.files.set('/seg.mp3', await fixture('tone-24k-joint-cbr.mp3'));
    harness.files.set('/key.m3u8', media(['#EXT-X-KEY:METHOD=AES-128,URI="k"', 'seg.mp3'], true));
    harness.files.set('/map.m3u8', media(['#EXT-X-MAP:URI="init.mp4"', 'seg.mp4'], true));
    harness.files.set('/live.m3u8', media(['seg.mp3'], false));
    for (const path of ['/key.m3u8', '/map.m3u8', '/live.m3u8'])
      expect([path, await refusal(path)]).toEqual([path, 'unsupported']);
  });

  test('without an end is a stream: it begins three segments before the last, and goes on with those that come', async () => {
    const segment = await fixture('tone-24k-joint-cbr.mp3');
    const began = Date.now();
    harness.files.set('/live.m3u8', () => {
      const last = 8 + Math.floor((Date.now() - began) / 500);
      const lines = ['#EXTM3U', '#EXT-X-TARGETDURATION:1', '#EXT-X-MEDIA-SEQUENCE:4'];
      for (let n = 4; n <= Math.min(last, 11); n++) lines.push('#EXTINF:0.5,', `live-${n}.mp3`);
      return new Response(text(...lines, ...(last > 11 ? ['#EXT-X-ENDLIST'] : [])));
    });
    for (let n = 4; n <= 11; n++) harness.files.set(`/live-${n}.mp3`, segment);
    const stream = await harness.engine.openStream(harness.url('/live.m3u8'), 'app');
    if ('refused' in stream) throw new Error(stream.refused.reason);
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: stream, loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    const asked = harness.requests.filter((path) => path.endsWith('.mp3'));
    expect([...new Set(asked)]).toEqual([6, 7, 8, 9, 10, 11].map((n) => `/live-${n}.mp3`));
  });
});

describe('a stream that is a playlist', () => {
  test('is the first of its entries that can be heard, as servers of streams hand them out', async () => {
    harness.files.set('/mount', await fixture('tone-24k-joint-cbr.mp3'));
    harness.files.set('/listen.pls', text('[playlist]', 'File1=/gone', 'File2=/mount'));
    harness.files.set('/listen.m3u', new TextEncoder().encode(harness.url('/listen.pls')));
    const stream = await harness.engine.openStream(harness.url('/listen.m3u'), 'app');
    if ('refused' in stream) throw new Error(stream.refused.reason);
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: stream, loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    expect(loud(call)).toBeGreaterThan(20);
  });
});

test('the text of a playlist names http(s) sources only, whatever its line ends', () => {
  const base = 'https://radio.test/dir/list.m3u';
  expect(parsePlaylist('\uFEFF#EXTM3U\rone.mp3\rftp://x/y\r../two.mp3', base)).toEqual({
    type: 'entries',
    urls: ['https://radio.test/dir/one.mp3', 'https://radio.test/two.mp3'],
  });
  expect(parsePlaylist('[Playlist]\nfile1 = http://a.test/1\nFILE2=javascript:alert(1)\n', base)).toEqual({
    type: 'entries',
    urls: ['http://a.test/1'],
  });
});

test('the variants of a playlist are told the cheapest first, each with the name that follows it', () => {
  const master = [
    '#EXTM3U',
    '#EXT-X-STREAM-INF:BANDWIDTH=900',
    'dear.m3u8',
    '#EXT-X-MEDIA:TYPE=AUDIO,URI="sound.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=100',
    '#EXT-X-STREAM-INF:BANDWIDTH=500',
    '# a comment',
    'fair.m3u8',
    '#EXT-X-STREAM-INF:BANDWIDTH=1',
  ];
  expect(parsePlaylist(master.join('\n'), 'https://radio.test/')).toEqual({
    type: 'variants',
    urls: ['sound', 'fair', 'fair', 'dear'].map((name) => `https://radio.test/${name}.m3u8`),
  });
});

test('an HLS stream of hours is read: with an end all of it, without one its last segments by their numbers', () => {
  const text = (count: number, ended: boolean) =>
    ['#EXTM3U', '#EXT-X-TARGETDURATION:6', '#EXT-X-MEDIA-SEQUENCE:7']
      .concat(Array.from({ length: count }, (_, n) => `#EXTINF:6,\n#EXT-X-BYTERANGE:10${n === 0 ? '@0' : ''}\nall.ts`))
      .concat(ended ? '#EXT-X-ENDLIST' : [])
      .join('\n');
  const whole = parsePlaylist(text(HLS_SEGMENTS_MAX, true), 'https://radio.test/');
  expect(whole.type === 'media' && [whole.segments.length, whole.sequence]).toEqual([HLS_SEGMENTS_MAX, 7n]);
  expect(parsePlaylist(text(HLS_SEGMENTS_MAX + 1, true), 'https://radio.test/').type).toBe('too many entries');
  const live = parsePlaylist(text(2 * PLAYLIST_ENTRIES_MAX, false), 'https://radio.test/');
  expect(live).toMatchObject({ type: 'media', sequence: BigInt(7 + PLAYLIST_ENTRIES_MAX), ended: false });
  const [first] = live.type === 'media' ? live.segments : [];
  const part = { from: 10 * PLAYLIST_ENTRIES_MAX, bytes: 10 };
  expect(first).toEqual({ url: 'https://radio.test/all.ts', part, discontinuity: false });
});

test('a blank after the colon of a number or of a part changes nothing, as some servers write one', () => {
  const lines = ['#EXTM3U', '#EXT-X-TARGETDURATION: 6', '#EXT-X-MEDIA-SEQUENCE: 12', '#EXT-X-BYTERANGE: 100@50', 'all.ts'];
  expect(parsePlaylist(lines.join('\n'), 'https://radio.test/')).toEqual({
    ...{ type: 'media', sequence: 12n, targetSec: 6, ended: false },
    segments: [{ url: 'https://radio.test/all.ts', part: { from: 50, bytes: 100 }, discontinuity: false }],
  });
});

test('of several languages the one that its author made the default is told first', () => {
  const audio = (name: string, rest: string) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",URI="${name}.m3u8"${rest}`;
  const master = [
    '#EXTM3U',
    audio('fr', ',DEFAULT=NO,AUTOSELECT=YES'),
    audio('described', ''),
    audio('en', ',LANGUAGE="en",DEFAULT=YES'),
    '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"',
    'video.m3u8',
  ];
  expect(parsePlaylist(master.join('\n'), 'https://tv.test/')).toEqual({
    type: 'variants',
    urls: ['en', 'fr', 'described', 'video'].map((name) => `https://tv.test/${name}.m3u8`),
  });
});

test('a playlist of nothing but variants, or of a million lines, is read at once', () => {
  const variants = (count: number) => parsePlaylist(`#EXTM3U\n${'#EXT-X-STREAM-INF:\n'.repeat(count)}`, 'https://radio.test/');
  const began = cpuMs();
  expect(variants(PLAYLIST_LINES_MAX - 2)).toEqual({ type: 'variants', urls: [] });
  expect(variants(55_000)).toEqual({ type: 'too many entries' });
  expect(parsePlaylist('\r'.repeat(1_000_000), 'https://radio.test/')).toEqual({ type: 'too many entries' });
  expect(cpuMs() - began).toBeLessThan(1_000); // A search from each variant took 3 s for the first alone.
});

test('a name after 50,000 blanks is read at once, also where a separator of lines is within', () => {
  const named = (name: string) => parsePlaylist(`[playlist]\nFile1=${' '.repeat(50_000)}${name}`, 'https://radio.test/');
  const began = cpuMs();
  expect(named('a.mp3')).toEqual({ type: 'entries', urls: ['https://radio.test/a.mp3'] });
  expect(named('a\u2028b')).toEqual({ type: 'entries', urls: [] });
  expect(cpuMs() - began).toBeLessThan(500); // A name that began anew at each blank took 4 s.
});

test('a name of a megabyte is left out at once, and one of 4,096 characters is taken', () => {
  const began = cpuMs();
  expect(parsePlaylist(`#EXTM3U\nhttp://${'é.'.repeat(500_000)}`, 'https://radio.test/')).toEqual({ type: 'entries', urls: [] });
  expect(cpuMs() - began).toBeLessThan(1_000); // The labels of its host took 6 s.
  const name = 'a'.repeat(4_096);
  expect(parsePlaylist(`#EXTM3U\n${name}`, 'https://radio.test/')).toMatchObject({ urls: [`https://radio.test/${name}`] });
  expect(parsePlaylist(`#EXTM3U\n${name}a`, 'https://radio.test/')).toMatchObject({ urls: [] });
});

test('a text of any kind is read without an error, and names nothing but http(s)', () => {
  const line = fc.oneof(
    fc.string(),
    fc.webUrl(),
    fc.constantFrom(
      '#EXTM3U',
      '[playlist]',
      '#EXT-X-TARGETDURATION:x',
      '#EXT-X-STREAM-INF:BANDWIDTH=',
      '#EXT-X-KEY:METHOD=',
      'File1=',
      'http://[',
    ),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (lines) => {
      const read = parsePlaylist(lines.join('\n'), 'https://radio.test/list');
      const urls = read.type === 'media' ? read.segments.flatMap(({ url }) => url ?? []) : 'urls' in read ? read.urls : [];
      for (const url of urls) expect(url).toMatch(/^https?:\/\//);
    }),
  );
});
