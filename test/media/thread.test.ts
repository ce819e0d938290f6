import { describe, expect, test } from 'bun:test';
import { silentLog } from '../../src/log.ts';
import { DecoderThread } from '../../src/media/decode/decoder.ts';
import { UdpLeg } from '../../src/media/leg/udp-leg.ts';
import { MediaWorker, type PlaneListener } from '../../src/media/worker/media-worker.ts';
import { NOTICE } from '../../src/media/worker/notice.ts';
import { Notices } from './peer.ts';

const fixture = (name: string) => new URL(`./fixture/${name}`, import.meta.url);

test('A media worker that has no calls is alive, however often it is given an order before it has ticked', async () => {
  const worker = await MediaWorker.start({ mediaTimeoutMs: 1000, log: silentLog });
  const { load } = worker;
  while (worker.alive && worker.load === load) await worker.counters(1);
  expect(worker.alive).toBe(true);
  await worker.close();
});

describe('a media worker that is stuck', () => {
  test('is ended; its legs are lost, and everything that waited for it is answered', async () => {
    const worker = await MediaWorker.start({
      mediaTimeoutMs: 1000,
      log: silentLog,
      script: fixture('stuck-worker.ts'),
      pulseMaxMs: 200,
    });
    const decoders = new DecoderThread(silentLog);
    const notices = new Notices();
    let freed = 0;
    let bound: number | undefined;
    const leg = new UdpLeg({
      id: 1,
      host: '127.0.0.1',
      port: 2,
      worker,
      decoders,
      notify: notices.hear,
      nextPlayback: () => 1,
      nextNumber: () => 2,
      recordings: new Map(),
      opened: (errno) => {
        bound ??= errno;
      },
      freed: () => {
        freed++;
      },
    });
    const asked = worker.counters(1);
    const closing = leg.close();
    expect((await asked).packetsSent).toBe(0);
    expect((await closing).packetsSent).toBe(0);
    expect(freed).toBe(1);
    expect(bound).toBe(-1);
    expect(worker.alive).toBe(false);
    await decoders.close();
  });

  test('does not hold up a pool that closes', async () => {
    const worker = await MediaWorker.start({ mediaTimeoutMs: 1000, log: silentLog, script: fixture('stuck-worker.ts') });
    let lost = 0;
    const listener: PlaneListener = { opened() {}, notice() {}, closed() {}, stayed() {}, lost: () => void lost++ };
    worker.attach(1, listener);
    await worker.close();
    expect(lost).toBe(1);
  });
});

test('an order that the plane refuses to take is answered all the same', async () => {
  const said: string[] = [];
  const recordings = new Map([[7, (record: { kind: number }) => said.push(`recording ${record.kind}`)]]);
  const worker = await MediaWorker.start({ mediaTimeoutMs: 1000, log: silentLog, recordings });
  const listener: PlaneListener = {
    opened: (errno) => said.push(`opened ${errno}`),
    notice: () => {},
    closed: () => said.push('closed'),
    stayed: () => said.push('stayed'),
    lost: () => said.push('lost'),
  };
  worker.attach(1, listener);
  const voices = { sensitivityPercent: 1, onsetMs: 1, releaseMs: 1 };
  worker.command({ type: 'open', leg: 1, host: 'fe80::1%lo', port: 2 });
  const path = `/${'x'.repeat(2000)}`;
  worker.command({ type: 'record', leg: 1, recording: 7, path, ring: '', rateHz: 0, includeGaps: false, voices });
  worker.command({ type: 'move', leg: 1, plane: -1 });
  worker.command({ type: 'close room', leg: -1 });
  expect((await worker.counters(-1)).packetsSent).toBe(0);
  expect(said).toEqual(['opened 22', `recording ${NOTICE.recordingFailed}`, 'stayed']);
  await worker.close();
});

describe('a decoding thread that is stuck', () => {
  test('that has much to do is not taken for stuck: only the step under way counts, not those that wait', async () => {
    const decoders = new DecoderThread(silentLog, { script: fixture('slow-decoder.ts'), stepMaxMs: 300 });
    const streams = await Promise.all(Array.from({ length: 30 }, () => decoders.open('wav', 8_000)));
    const steps = await Promise.allSettled(streams.map((stream) => stream.push(new Uint8Array(1))));
    expect(steps.filter(({ status }) => status === 'rejected')).toEqual([]);
    await decoders.close();
  });

  test('is replaced: the stream it hung in fails, the next one gets a new thread', async () => {
    const decoders = new DecoderThread(silentLog, { script: fixture('stuck-decoder.ts'), stepMaxMs: 1_000 });
    const stream = await decoders.open('mpeg', 8000);
    await expect(stream.push(new Uint8Array(1))).rejects.toThrow('gone');
    await expect(stream.end()).rejects.toThrow('gone');
    const next = await decoders.open('wav', 8000);
    expect((await next.end()).pcm.length).toBe(0);
    await decoders.close();
  });
});
