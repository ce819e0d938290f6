/** The outcome of a playback, by what its source and the plane tell of it. */
import { expect, test } from 'bun:test';
import { silentLog } from '../../src/log.ts';
import { DecoderThread } from '../../src/media/decode/decoder.ts';
import { PcmFailed, type PcmSource, Playable } from '../../src/media/playback/pcm-source.ts';
import { Playbacks } from '../../src/media/playback/playbacks.ts';
import { NOTICE } from '../../src/media/worker/notice.ts';
import { settle } from '../support/virtual-clock.ts';

/** A file that breaks off behind its first samples, unless it is read from a place behind them. */
class Broken extends Playable {
  readonly urls = [];
  release(): void {}
  source(): PcmSource {
    return {
      ...{ aheadMs: 4_000, pieceMs: 0, live: false, interrupt: () => {} },
      async *pcm(from: number) {
        yield new Int16Array(800);
        if (from === 0) throw new PcmFailed('source_disconnected', 0);
      },
    };
  }
}

async function played() {
  const told: string[] = [];
  const orders: string[] = [];
  const playbacks = new Playbacks({
    id: 1,
    command: ({ type }) => orders.push(type),
    decoders: new DecoderThread(silentLog),
    notify: (notice) => told.push(notice.type),
    nextPlayback: () => 7,
  });
  const notice = (kind: number) => playbacks.notice({ kind, leg: 1, a: 7, b: 0, c: 0, d: 0 });
  playbacks.play({ operationUuid: 'op', playlist: new Broken(), loop: 1, volume: 100 }, 8_000);
  await settle();
  notice(NOTICE.playbackStarted);
  expect(orders.splice(0)).toEqual(['play', 'feed', 'finish']);
  playbacks.control('op', { type: 'seek', place: { positionMs: 1_000 } });
  expect(orders.splice(0)).toEqual(['seek']);
  return { told, notice };
}

test('A source that broke has failed although a seek was ordered as the last of it was heard', async () => {
  const { told, notice } = await played();
  notice(NOTICE.playbackEnded);
  expect(told).toEqual(['playback.started', 'playback.failed']);
});

test('A source that broke has not failed where what is heard after a seek is whole', async () => {
  const { told, notice } = await played();
  notice(NOTICE.playbackMoved);
  await settle();
  notice(NOTICE.playbackEnded);
  expect(told).toEqual(['playback.started', 'playback.completed']);
});
