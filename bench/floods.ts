/**
 * What one peer that floods a socket costs everybody else: the p99 of the API and of SIP, quiet and under each flood in
 * turn, and media ticks that began late. The flooder is a process of its own, pinned to the second processor; the
 * probes are paced and run beside a control timer.
 *
 *   npm run bench -- floods [ROUNDS] [SECONDS] [FLOOD]     five rounds of three seconds for each flood, or for one
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { type Credentials, Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';

const FLOODS = ['http-pipelined', 'http-connections', 'sip-udp', 'sip-tcp', 'websocket-frames', 'websocket-pings'] as const;
type Flood = (typeof FLOODS)[number];
/** A probe of each kind every so many milliseconds. */
const PROBE_EVERY_MS = 10;

async function measure(rounds: number, seconds: number, only: string | undefined): Promise<void> {
  const receiver = new Receiver();
  const platform = await Platform.start({ MEDIA_WORKERS: '1' });
  const app = await platform.application(receiver.url, '+15550071');
  // Probes come from a trunk's address; the flood over UDP from a stranger's.
  await platform.operator('PUT', '/trunks/carrier', { uri: 'sip:127.0.0.1:9', inbound_cidrs: ['127.0.0.1/32'] });
  console.log(
    `p99 in ms, median of ${rounds} interleaved rounds of ${seconds} s: API, SIP (OPTIONS), control timer; late ticks in all`,
  );
  for (const kind of FLOODS.filter((each) => only === undefined || each === only)) {
    const quiet: Figures[] = [];
    const flooded: Figures[] = [];
    for (let round = 0; round < rounds; round += 1) {
      quiet.push(await probe(platform, app, seconds));
      const stop = await startFlood(platform, app, kind);
      flooded.push(await probe(platform, app, seconds));
      await stop();
    }
    const row = (all: readonly Figures[]) =>
      `${median(all.map(({ api }) => api)).toFixed(1)} ${median(all.map(({ sip }) => sip)).toFixed(1)} ` +
      `${median(all.map(({ timer }) => timer)).toFixed(1)} late ${all.reduce((sum, { late }) => sum + late, 0)}`;
    console.log(`${kind}: quiet ${row(quiet)} | flooded ${row(flooded)}`);
  }
  await platform.stop();
  await receiver.stop();
}

interface Figures {
  readonly api: number;
  readonly sip: number;
  readonly timer: number;
  readonly late: number;
}

const lateTicks = async (url: string): Promise<number> =>
  Number(/sidetone_media_ticks_late_2ms_total (\d+)/.exec(await (await fetch(`${url}/metrics`)).text())?.[1] ?? 0);

async function probe(platform: Platform, app: Credentials, seconds: number): Promise<Figures> {
  const before = await lateTicks(platform.url);
  const api: number[] = [];
  const sip: number[] = [];
  const timer: number[] = [];
  const [host = '', port = ''] = platform.sipUdp.split(':');
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const asked = new Map<string, number>();
  socket.on('message', (bytes) => {
    const id = /Call-ID: (\S+)/i.exec(bytes.toString('latin1'))?.[1] ?? '';
    const at = asked.get(id);
    if (at !== undefined) sip.push(performance.now() - at);
    asked.delete(id);
  });
  const pending: Promise<void>[] = [];
  const begun = performance.now();
  for (let n = 0; performance.now() - begun < seconds * 1000; n += 1) {
    const due = begun + n * PROBE_EVERY_MS;
    await new Promise((wake) => setTimeout(wake, Math.max(0, due - performance.now())));
    timer.push(performance.now() - due);
    const id = `probe-${n}-${Math.random()}`;
    asked.set(id, performance.now());
    socket.send(options(id, host, port, socket.address().port), Number(port), host);
    const at = performance.now();
    pending.push(platform.api(app, 'GET', '/healthz').then(() => void api.push(performance.now() - at)));
  }
  await Promise.race([Promise.all(pending), new Promise((wake) => setTimeout(wake, 5_000))]);
  // A probe without an answer counts as long as it was waited for.
  for (const at of asked.values()) sip.push(performance.now() - at);
  socket.close();
  return { api: p99(api), sip: p99(sip), timer: p99(timer), late: (await lateTicks(platform.url)) - before };
}

const options = (id: string, host: string, port: string, own: number): string =>
  [
    `OPTIONS sip:${host}:${port} SIP/2.0`,
    `Via: SIP/2.0/UDP 127.0.0.1:${own};branch=z9hG4bK${id}`,
    'Max-Forwards: 70',
    `From: <sip:probe@127.0.0.1:${own}>;tag=${id}`,
    `To: <sip:${host}:${port}>`,
    `Call-ID: ${id}`,
    'CSeq: 1 OPTIONS',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n');

const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b);
const p99 = (values: readonly number[]): number => sorted(values)[Math.floor(values.length * 0.99)] ?? Number.NaN;
const median = (values: readonly number[]): number => sorted(values)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Starts the flooder and resolves when it floods. Returns how to stop it. */
async function startFlood(platform: Platform, app: Credentials, kind: Flood): Promise<() => Promise<void>> {
  const child = spawn('taskset', ['-c', '1', process.execPath, import.meta.path, 'flood', kind, target(platform, kind)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await firstLine(child);
  let session: string | undefined;
  if (kind.startsWith('websocket')) {
    const format = { encoding: 'pcm_s16le', sample_rate: 8000 };
    const made = await platform.api(app, 'POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: `ws://127.0.0.1:${line}/` },
      media_format: { from_session: format, to_session: format },
    });
    session = String(made.body.session_uuid);
  }
  return async () => {
    if (session !== undefined) await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  };
}

const target = (platform: Platform, kind: Flood): string =>
  kind === 'sip-udp' ? platform.sipUdp : kind === 'sip-tcp' ? platform.sipTcp : new URL(platform.url).host;

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => child.stdout?.once('data', (bytes: Buffer) => resolve(bytes.toString().trim())));

/** The flooder's process. Its first line is its port, or `ready`. */
async function flood(kind: string, where: string): Promise<void> {
  const [host = '', port = ''] = where.split(':');
  if (kind.startsWith('websocket')) {
    serveFrames(kind === 'websocket-pings' ? Buffer.of(0x89, 0) : Buffer.of(0x8a, 0, 0x82, 0, 0x81, 0));
    return;
  }
  console.log('ready');
  if (kind === 'sip-udp') {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.2', resolve));
    // 50,000 a second. The runtime reads some 140,000 a second from a socket; beyond that the system drops datagrams of
    // everybody.
    setInterval(() => {
      for (let n = 0; n < 50; n += 1) socket.send(options(`${Math.random()}`, host, port, 1), Number(port), host);
    }, 1);
    return;
  }
  const bytes =
    kind === 'sip-tcp'
      ? Buffer.from(options('tcp', host, port, 1).repeat(500))
      : Buffer.from(`GET /healthz HTTP/1.1\r\nHost: ${where}\r\n\r\n`.repeat(kind === 'http-pipelined' ? 1_000 : 1));
  for (let n = 0; n < (kind === 'http-connections' ? 64 : 4); n += 1) pour(host, Number(port), bytes);
}

/** Writes for as long as it is taken, and connects again when it is cut off. */
function pour(host: string, port: number, bytes: Buffer): void {
  const socket = connect(port, host);
  const more = () => {
    while (socket.write(bytes));
  };
  socket.on('connect', more);
  socket.on('drain', more);
  socket.on('data', () => {});
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(() => pour(host, port, bytes), 1));
}

function serveFrames(frame: Buffer): void {
  const frames = Buffer.concat(new Array<Buffer>(10_000).fill(frame));
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        const key = /Sec-WebSocket-Key: (\S+)/i.exec(bytes.toString())?.[1];
        if (key === undefined) return;
        const accept = new Bun.CryptoHasher('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
        );
        setInterval(() => {
          while (socket.write(frames) === frames.length);
        }, 1);
      },
    },
  });
  console.log(server.port);
}

if (process.argv[2] === 'flood') await flood(process.argv[3] ?? '', process.argv[4] ?? '');
else await measure(Number(process.argv[2] ?? 5), Number(process.argv[3] ?? 3), process.argv[4]);
