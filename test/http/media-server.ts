/** The real app on a real server, with recordings in files of the test's own. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecordingMedia } from '../../src/call/ports/recordings.ts';
import type { HttpDeps } from '../../src/http/app.ts';
import { MEDIA_ROUTE, sentMediaPath } from '../../src/http/route/recording-media.ts';
import { newUuid } from '../../src/id.ts';
import { HTTP_IDLE_TIMEOUT_SEC } from '../../src/limits.ts';
import { localFile } from '../../src/recording-storage/file/local-file.ts';
import { createRecordingUrls, type RecordingUrls } from '../../src/recording-storage/signed-url.ts';
import type { StoredFile } from '../../src/recording-storage/storage.ts';
import { GrowingWav } from '../support/growing-wav.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { openPlatform } from './platform.ts';

export interface MediaServer {
  readonly port: number;
  /** What `media` answers; an error is thrown. */
  readonly media: Map<string, RecordingMedia | Error>;
  /** What the clock of the signatures is ahead. */
  skewMs: number;
  readonly urls: RecordingUrls;
  /** Path and query of both URLs of a recording. */
  targets(recordingUuid: string): { readonly pull: string; readonly live: string; readonly expiresAt: number };
  /** A recording that is not there yet: `begin` it. */
  growing(): { readonly uuid: string; readonly wav: GrowingWav };
  /** A finished recording of those bytes, in a local file. */
  finished(bytes: Uint8Array): Promise<{ readonly uuid: string; readonly file: StoredFile; readonly path: string }>;
  path(recordingUuid: string): string;
  /** Descriptors of this process on that file. */
  descriptors(path: string): number;
  close(): Promise<void>;
}

export const newRecordingUuid = (): string => `rec_${newUuid()}`;

export async function openMediaServer(more: Partial<HttpDeps> = {}): Promise<MediaServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-media-'));
  const media: MediaServer['media'] = new Map();
  const urls = createRecordingUrls({ masterKey: new Uint8Array(32).fill(3), publicUrl: '', ttlSec: 3600 });
  const platform = await openPlatform({
    recordings: Object.assign(Object.create(noRecordings), {
      async media(uuid: string) {
        const found = media.get(uuid);
        if (found instanceof Error) throw found;
        return found;
      },
    }),
    recordingUrls: { sign: urls.sign, verify: (path, search, now) => urls.verify(path, search, now + opened.skewMs) },
    disableIdleTimeout: (request) => server.timeout(request, 0),
    setIdleTimeout: (request, seconds) => server.timeout(request, seconds),
    sentPath: sentMediaPath,
    peer: (request) => server.requestIP(request) ?? undefined,
    ...more,
  });
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: HTTP_IDLE_TIMEOUT_SEC,
    fetch: (request) => platform.app.fetch(request),
    routes: { [MEDIA_ROUTE]: (request) => platform.app.fetch(request) },
  });
  const path = (recordingUuid: string) => join(folder, `${recordingUuid}.wav`);
  const opened: MediaServer = {
    port: server.port ?? 0,
    media,
    skewMs: 0,
    urls,
    targets(recordingUuid) {
      const { mediaUrl, liveUrl, expiresAt } = urls.sign(recordingUuid, Date.now());
      return { pull: mediaUrl, live: liveUrl, expiresAt };
    },
    growing() {
      const uuid = newRecordingUuid();
      const wav = new GrowingWav(path(uuid));
      media.set(uuid, wav);
      return { uuid, wav };
    },
    async finished(bytes) {
      const uuid = newRecordingUuid();
      writeFileSync(path(uuid), bytes);
      const file = await localFile(uuid, path(uuid));
      if (file === undefined) throw new Error('no file');
      media.set(uuid, { state: 'finished', appUuid: 'app', file });
      return { uuid, file, path: path(uuid) };
    },
    path,
    descriptors: (of) =>
      readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`) === of;
        } catch {
          return false;
        }
      }).length,
    async close() {
      await server.stop(true);
      await platform.close();
      rmSync(folder, { recursive: true });
    },
  };
  return opened;
}

/** Waits for a condition that the outside world fulfils. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 5));
  }
}

/** Resolves once the number has stayed what it is for so long. */
export async function untilSteady(read: () => number, ms: number): Promise<number> {
  let last = read();
  let since = performance.now();
  while (performance.now() - since < ms) {
    await new Promise<void>((resolve) => setTimeout(resolve, 5));
    if (read() !== last) {
      last = read();
      since = performance.now();
    }
  }
  return last;
}
