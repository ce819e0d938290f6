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
  isReleased = false;
  release(): void {
    this.isReleased = true;
  }
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
  const playlist = new Broken();
  const playbacks = new Playbacks({
    id: 1,
    command: (each) => orders.push(each.type === 'pause' ? `pause ${each.paused}` : each.type),
    decoders: new DecoderThread(silentLog),
    notify: (notice) => told.push(notice.type),
    nextPlayback: () => 7,
  });
  const notice = (kind: number) => playbacks.notice({ kind, leg: 1, a: 7, b: 0, c: 0, d: 0 });
  playbacks.play({ operationUuid: 'op', playlist, loop: 1, volume: 100 }, 8_000);
  await settle();
  notice(NOTICE.playbackStarted);
  expect(orders.splice(0)).toEqual(['play', 'feed', 'finish']);
  playbacks.control('op', { type: 'seek', place: { positionMs: 1_000 } });
  expect(orders.splice(0)).toEqual(['seek']);
  return { told, notice, orders, playbacks, playlist };
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

test('A playback that is restarted goes on, also where it was paused', async () => {
  const { orders, playbacks, notice } = await played();
  notice(NOTICE.playbackMoved);
  await settle();
  orders.length = 0;
  playbacks.control('op', { type: 'pause' });
  playbacks.control('op', { type: 'restart' });
  expect(orders).toEqual(['pause true', 'seek', 'pause false']);
});

test('A playback that has ended, or is stopped, gives its source back, and is controlled no more', async () => {
  for (const end of ['ended', 'stopped'] as const) {
    const { orders, playbacks, playlist, notice, told } = await played();
    expect(playlist.isReleased).toBe(false);
    if (end === 'stopped') playbacks.stop('op');
    // What is stopped reads nothing more from then on, also before the plane has said so.
    expect(playlist.isReleased).toBe(end === 'stopped');
    notice(end === 'ended' ? NOTICE.playbackEnded : NOTICE.playbackStopped);
    expect([playlist.isReleased, told.at(-1)]).toEqual([true, end === 'ended' ? 'playback.failed' : 'playback.stopped']);
    orders.length = 0;
    playbacks.stop('op');
    playbacks.control('op', { type: 'pause' });
    expect(orders).toEqual([]);
  }
});
