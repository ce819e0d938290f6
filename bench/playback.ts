/**
 * Sessions that each play an MP3 of their own at once, or all the same one: is the audio intact, and what does one
 * cost? The engine runs as it does in the platform, in a process of its own; this one serves the files and listens.
 *
 *   npm run bench -- playback [SESSIONS] [SECONDS] [one]        needs lame and sox to make the files
 *
 * With `one` all play one file, which is shared by its validator, as a queue does with its music.
 */
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RtpLeg } from '../src/media/engine.ts';
import { farEnd } from './far-end.ts';
import { engineFor } from './support/engine.ts';
import { cpuNs, rssKb } from './support/usage.ts';

const FIRST_PORT = 40_000;
const PEER_PORT = 39_990;
const FILES = 50;

/** The engine: `SESSIONS ORIGIN FILES`. Reports on SIGTERM. */
async function serve([sessions, origin, files]: string[]): Promise<void> {
  const count = Number(sessions);
  const engine = await engineFor(count, FIRST_PORT, ['127.0.0.0/8']);
  const legs: RtpLeg[] = [];
  const ended: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const leg = await engine.openRtpLeg((notice) => {
      const name = notice.type === 'playback.failed' ? `${notice.type} ${notice.reason}` : notice.type;
      ended[name] = (ended[name] ?? 0) + 1;
    });
    leg?.negotiate(farEnd(PEER_PORT));
    if (leg !== undefined) legs.push(leg);
  }
  console.log(`idle ${legs.map((leg) => leg.port).join(' ')}`);
  for await (const _ of console) break;
  let refused = 0;
  await Promise.all(
    legs.map(async (leg, i) => {
      await Bun.sleep((i * 2_000) / count); // nobody dials 500 calls in one instant
      const playlist = await engine.openPlaylist([`${origin}/${i % Number(files)}.mp3`], 'app');
      if ('refused' in playlist) refused++;
      else leg.play({ operationUuid: `${i}`, playlist, loop: 0, volume: 100 });
    }),
  );
  console.log(`playing refused=${refused}`);
  let latenessMaxUs = 0;
  setInterval(() => {
    latenessMaxUs = Math.max(latenessMaxUs, engine.ticks()[0]?.latenessMaxUs ?? 0);
  }, 1_000);
  process.on('SIGTERM', () => {
    console.error(`lateness_max_us=${latenessMaxUs} notices=${JSON.stringify(ended)}`);
    process.exit(0);
  });
}

/** Frequency of file `i`, Hz: apart enough to be told from its neighbours in a packet or two. */
function pitch(i: number): number {
  return 300 + i * 40;
}

function makeFiles(count: number): Map<number, Uint8Array<ArrayBuffer>> {
  const directory = mkdtempSync(join(tmpdir(), 'playback-'));
  const files = new Map<number, Uint8Array<ArrayBuffer>>();
  for (let i = 0; i < count; i++) {
    const wav = join(directory, 'x.wav');
    const mp3 = join(directory, 'x.mp3');
    const made =
      spawnSync('sox', ['-n', '-r', '24000', '-c', '1', wav, 'synth', '60', 'sine', String(pitch(i)), 'gain', '-6']).status ===
        0 && spawnSync('lame', ['--quiet', '-m', 'm', ...(i % 2 === 0 ? ['-b', '64'] : ['-V', '5']), wav, mp3]).status === 0;
    if (!made) throw new Error('lame and sox are needed to make the files');
    files.set(i, new Uint8Array(readFileSync(mp3)));
  }
  rmSync(directory, { recursive: true });
  return files;
}

/** What is heard of one Session. */
interface Ear {
  packets: number;
  sequence: number;
  gaps: number;
  quiet: number;
  heard: number[];
}

/** The far end of all legs. It hears packets while `counting` is true, by the port that they come from. */
class Listener {
  readonly ears = new Map<number, Ear>();
  counting = false;
  readonly #socket = createSocket({ type: 'udp4', recvBufferSize: 8 * 1024 * 1024 });

  async bind(): Promise<void> {
    this.#socket.on('message', (packet, { port }) => {
      if (this.counting) this.#hear(packet, port);
    });
    await new Promise<void>((resolve, reject) => {
      this.#socket.once('error', reject);
      this.#socket.bind(PEER_PORT, '127.0.0.1', resolve);
    });
  }

  close(): void {
    this.#socket.close();
  }

  #hear(packet: Buffer, port: number): void {
    const sequence = packet.readUInt16BE(2);
    const ear = this.ears.get(port) ?? { packets: 0, sequence: (sequence - 1) & 0xffff, gaps: 0, quiet: 0, heard: [] };
    this.ears.set(port, ear);
    ear.packets++;
    if (((sequence - ear.sequence) & 0xffff) !== 1) ear.gaps++;
    ear.sequence = sequence;
    if (packet.subarray(12).every((octet) => (octet | 0x80) === 0xff)) ear.quiet++;
    if (ear.heard.length < 1_600) for (const octet of packet.subarray(12)) ear.heard.push(octet);
  }
}

/** Starts the engine in a process of its own. `until` resolves with what it has printed once a line has that word. */
function spawnEngine(sessions: number, origin: string, files: number) {
  const subject = Bun.spawn([process.execPath, import.meta.path, 'serve', `${sessions}`, origin, `${files}`], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const lines = subject.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const until = async (word: string) => {
    for (let text = ''; ; ) {
      const { value, done } = await lines.read();
      if (done) throw new Error(`the engine ended: ${await new Response(subject.stderr).text()}`);
      text += value;
      if (text.includes(word) && text.endsWith('\n')) return text.trim();
    }
  };
  return { subject, until };
}

async function measure(sessions: number, seconds: number, isOne: boolean): Promise<void> {
  if (spawnSync('make', ['-s', '-C', join(import.meta.dir, '../native'), 'addon'], { stdio: 'inherit' }).status !== 0)
    process.exit(1);
  // Each Session asks for a file of its own; none is kept for the next, and none is small enough to be held whole.
  const count = isOne ? 1 : sessions;
  const files = makeFiles(Math.min(FILES, count));
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 255, // a held-back download moves nothing for longer than the default
    fetch: (request) => {
      if (isOne && request.headers.get('if-none-match') === '"1"') return new Response(null, { status: 304 });
      const file = files.get(Number(/\d+/.exec(new URL(request.url).pathname)?.[0]) % FILES);
      return new Response(file, isOne ? { headers: { etag: '"1"' } } : {});
    },
  });
  const listener = new Listener();
  await listener.bind();
  const { subject, until } = spawnEngine(sessions, `http://127.0.0.1:${server.port}`, count);
  // Ports are drawn at random, so the engine tells which Session has which.
  const ports = (await until('idle')).split(' ').slice(1).map(Number);
  await Bun.sleep(1_000);
  const idleRss = rssKb(subject.pid);
  const cpu0 = cpuNs(subject.pid);
  await Bun.sleep(4_000);
  const idleUs = (cpuNs(subject.pid) - cpu0) / 1000 / sessions / 4;
  subject.stdin.write('go\n');
  subject.stdin.flush();
  console.log(await until('playing'));
  await Bun.sleep(10_000); // past the start: 500 decoders are made meanwhile
  listener.counting = true;
  const before = cpuNs(subject.pid);
  const start = performance.now();
  let rss = 0;
  while (performance.now() - start < seconds * 1000) {
    await Bun.sleep(1_000);
    rss = Math.max(rss, rssKb(subject.pid));
  }
  const elapsed = (performance.now() - start) / 1000;
  const us = (cpuNs(subject.pid) - before) / 1000 / sessions / elapsed;
  listener.counting = false;
  subject.kill('SIGTERM');
  const note = (await new Response(subject.stderr).text()).trim();
  await subject.exited;
  listener.close();
  await server.stop(true);

  tellHeard(listener.ears, ports, { sessions, elapsed, files: files.size });
  console.log(
    `CPU ${us.toFixed(0)} us a Session and second (silent leg ${idleUs.toFixed(0)}), ${((us * sessions) / 1e6).toFixed(2)} cores in all`,
  );
  console.log(
    `memory ${(rss / 1024).toFixed(0)} MB, ${((rss - idleRss) / sessions).toFixed(0)} kB a playing Session over ${(idleRss / 1024).toFixed(0)} MB with silent legs`,
  );
  console.log(note);
}

/** Says how intact the audio was. `ports` has the port of each leg, `elapsed` is in seconds. */
function tellHeard(
  ears: ReadonlyMap<number, Ear>,
  ports: readonly number[],
  { sessions, elapsed, files }: { readonly sessions: number; readonly elapsed: number; readonly files: number },
): void {
  const all = [...ears.entries()];
  const sum = (of: (ear: Ear) => number) => all.reduce((total, [, ear]) => total + of(ear), 0);
  const pure = all.filter(([port, ear]) => purity(ear.heard, pitch(ports.indexOf(port) % files)) > 0.98).length;
  console.log(`${sessions} Sessions, ${files} MP3s at 24 kHz mono (64 kbit/s CBR, VBR), ${elapsed.toFixed(0)} s`);
  console.log(`heard ${all.length}, their own tone and nothing else ${pure}`);
  console.log(
    `packets ${sum((ear) => ear.packets)} of ${Math.round(sessions * 50 * elapsed)}, breaks in sequence ${sum((ear) => ear.gaps)}, silent packets ${sum((ear) => ear.quiet)}`,
  );
}

/** Share of the energy that is at `hz`, of mu-law octets. */
function purity(octets: readonly number[], hz: number): number {
  let [real, imaginary, energy] = [0, 0, 0];
  octets.forEach((octet, i) => {
    const code = ~octet & 0xff;
    const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84;
    const sample = (code & 0x80) !== 0 ? -magnitude : magnitude;
    real += sample * Math.cos((2 * Math.PI * hz * i) / 8000);
    imaginary += sample * Math.sin((2 * Math.PI * hz * i) / 8000);
    energy += sample * sample;
  });
  return energy === 0 ? 0 : (2 * (real * real + imaginary * imaginary)) / (octets.length * energy);
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === 'serve') await serve(rest);
else await measure(Number(mode ?? 500), Number(rest[0] ?? 20), rest[1] === 'one');
