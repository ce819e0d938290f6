/** Encrypted legs against ffmpeg's own SRTP, and what is done to packets between the two. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RtpParameters } from '../../src/media/engine.ts';
import type { SrtpKeys } from '../../src/sdp/sdes.ts';
import { type Call, Harness } from '../media/harness.ts';
import { tone, toneShare, wav } from '../media/sound.ts';
import { freePort } from '../support/sipp.ts';

const installed = spawnSync('ffmpeg', ['-version'], { stdio: 'ignore' }).error === undefined;

/** Passes datagrams on to a leg, each as often as `copies` says. */
class Wire {
  readonly #socket: Socket;
  passed = 0;

  private constructor(socket: Socket, to: number, copies: number) {
    this.#socket = socket;
    socket.on('message', (bytes, from) => {
      if (from.port === to) return; // what the leg says to it
      this.passed++;
      for (let i = 0; i < copies; i++) socket.send(bytes, to, '127.0.0.1');
    });
  }

  static async open(to: number, copies: number): Promise<Wire> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new Wire(socket, to, copies);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  close(): void {
    this.#socket.close();
  }
}

const samplesOf = (pcm: Buffer): number[] => Array.from({ length: Math.floor(pcm.length / 2) }, (_, i) => pcm.readInt16LE(2 * i));

describe.skipIf(!installed)('an encrypted leg and ffmpeg', () => {
  let harness: Harness;
  let folder: string;
  const running = new Set<ChildProcess>();
  beforeAll(async () => {
    harness = await Harness.open();
    folder = mkdtempSync(join(tmpdir(), 'srtp-ffmpeg-'));
  });
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await harness.close();
    rmSync(folder, { recursive: true });
  });

  function ffmpeg(...args: string[]): ChildProcess {
    const child = spawn('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    running.add(child);
    child.once('exit', () => running.delete(child));
    return child;
  }

  /** ffmpeg says 440 Hz to a port, encrypted. Resolves when it has ended. */
  async function say(port: number, suite: string, key: Uint8Array, seconds: number): Promise<void> {
    const source = `sine=frequency=440:sample_rate=8000:duration=${seconds},asetnsamples=n=160`;
    const child = ffmpeg(
      ...['-re', '-f', 'lavfi', '-i', source, '-c:a', 'pcm_mulaw', '-f', 'rtp'],
      ...['-srtp_out_suite', suite, '-srtp_out_params', Buffer.from(key).toString('base64')],
      `srtp://127.0.0.1:${port}?pkt_size=200`,
    );
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
  }

  const keys = (suite: SrtpKeys['suite']): SrtpKeys => ({ suite, sendKey: randomBytes(30), receiveKey: randomBytes(30) });

  /** The counters of a call once so many packets have come, taken or not; or as they are after five seconds. */
  async function countersAfter(call: Call, packets: number): ReturnType<Call['leg']['counters']> {
    for (let looks = 0; looks < 500; looks++) {
      const counters = await call.leg.counters();
      if (counters.packetsReceived + counters.srtpForged + counters.srtpReplayed >= packets) return counters;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return await call.leg.counters();
  }

  /** An encrypted call that sends to `port` and hears whoever has the key. */
  async function encrypted(srtp: SrtpKeys, port = 9): Promise<Call> {
    const call = await harness.call();
    const agreed: RtpParameters = {
      ...call.peer.parameters(),
      remotePort: port,
      remoteRtcpPort: 9,
      learnFrom: ['127.0.0.1'],
      srtp,
    };
    call.leg.negotiate(agreed);
    await call.leg.counters();
    return call;
  }

  // ffmpeg's AES_CM_128_HMAC_SHA1_32 shortens the tag of SRTCP too, which RFC 4568 §6.2.2 does not; the other one keeps
  // it.
  for (const [suite, name] of [
    ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_80'],
    ['AES_CM_128_HMAC_SHA1_32', 'SRTP_AES128_CM_HMAC_SHA1_32'],
  ] as const) {
    // The test is tried up to three times, as ffmpeg sends with gaps while other tests take the processors.
    test(
      `hear each other under ${suite}: what ffmpeg says`,
      async () => {
        const srtp = keys(suite);
        await using call = await encrypted(srtp);
        const path = join(folder, `${suite}.wav`);
        const recording = call.leg.record({ recordingUuid: 'r', path, includeGaps: true });
        await say(call.leg.port, name, srtp.receiveKey, 2);
        recording.stop();
        await call.notices.until(() => call.notices.of('recording.ended').length === 1);
        const heard = samplesOf(readFileSync(path).subarray(44));
        const begins = heard.findIndex((sample) => Math.abs(sample) > 1000);
        // ffmpeg sends unevenly at first, so the jitter buffer has to find its length: the second of the two seconds
        // counts.
        const shares = Array.from({ length: 10 }, (_, i) => {
          const from = begins + 800 * (i + 8);
          return toneShare(heard.slice(from, from + 800), 440);
        });
        expect(shares.filter((share) => share > 0.98).length).toBeGreaterThan(7);
        const { packetsReceived, srtpForged, srtpReplayed } = await countersAfter(call, 99);
        // The first packet of a source that is not in SDP makes it known, and is not heard itself.
        expect({ packetsReceived, srtpForged, srtpReplayed }).toEqual({ packetsReceived: 99, srtpForged: 0, srtpReplayed: 0 });
      },
      { timeout: 30_000, retry: 2 },
    );

    test(`hear each other under ${suite}: what we say`, async () => {
      const srtp = keys(suite);
      const port = (await freePort()) & ~1;
      await using call = await encrypted(srtp, port);
      harness.files.set('/high.wav', wav(tone(1000, 20, 8000, 0.3), 8000));
      call.leg.play({ operationUuid: 'p', playlist: await harness.admitted('/high.wav'), loop: 1, volume: 100 });
      const sdp = join(folder, `${suite}.sdp`);
      const key = Buffer.from(srtp.sendKey).toString('base64');
      const lines = ['v=0', 'o=- 0 0 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', `m=audio ${port} RTP/SAVP 0`];
      writeFileSync(sdp, [...lines, `a=crypto:1 ${name} inline:${key}`, ''].join('\r\n'));
      const out = join(folder, `${suite}.pcm`);
      const ear = ffmpeg('-protocol_whitelist', 'file,udp,rtp,srtp', '-i', sdp, '-t', '1', '-f', 's16le', out);
      await once(ear, 'exit');
      const samples = samplesOf(readFileSync(out));
      expect(samples.length).toBeGreaterThan(6000);
      expect(toneShare(samples.slice(-4000), 1000)).toBeGreaterThan(0.98);
    });
  }

  test('do not hear each other under another key: everything is dropped and counted', async () => {
    const srtp = keys('AES_CM_128_HMAC_SHA1_80');
    await using call = await encrypted(srtp);
    await say(call.leg.port, srtp.suite, randomBytes(30), 1);
    const { packetsReceived, srtpForged } = await countersAfter(call, 50);
    expect({ packetsReceived, types: call.notices.types() }).toEqual({ packetsReceived: 0, types: [] });
    expect(srtpForged).toBeGreaterThanOrEqual(50);
  });

  test('drop and count what a third party sends again', async () => {
    const srtp = keys('AES_CM_128_HMAC_SHA1_80');
    await using call = await encrypted(srtp);
    const wire = await Wire.open(call.leg.port, 3);
    await say(wire.port, srtp.suite, srtp.receiveKey, 1);
    wire.close();
    const { packetsReceived, packetsLost, srtpForged, srtpReplayed } = await countersAfter(call, 149);
    expect(wire.passed).toBe(50);
    // The first packet of a source that is not in SDP makes it known, and is not heard itself.
    expect({ packetsReceived, packetsLost, srtpForged, srtpReplayed }).toEqual({
      packetsReceived: 49,
      packetsLost: 0,
      srtpForged: 0,
      srtpReplayed: 100,
    });
  });
});
