import { expect, test } from 'bun:test';
import { HoldMusic } from '../../src/call/room/hold-music.ts';
import type { Playlist, SourceRefused } from '../../src/media/engine.ts';

/** A Room whose source opens when the test says so. */
function stage() {
  const told: string[] = [];
  const openings: ((opened: Playlist | SourceRefused) => void)[] = [];
  let failed: (reason: string) => void = () => {};
  const music = new HoldMusic({
    url: 'https://music.example/a.mp3',
    roomId: 'r',
    appUuid: 'app',
    room: {
      playMusic: (_playlist, fails) => {
        told.push('play');
        failed = fails;
      },
      stopMusic: () => void told.push('stop'),
    },
    media: {
      openPlaylist: (urls) => {
        told.push(`open ${urls.join(' ')}`);
        return new Promise((resolve) => openings.push(resolve));
      },
    },
    log: { warn: (about) => void told.push(`warn ${JSON.stringify(about)}`) },
  });
  const turn = async () => {
    for (let at = 0; at < 10; at += 1) await Promise.resolve();
  };
  return {
    music,
    told,
    fail: (reason: string) => failed(reason),
    opens: async (refused?: SourceRefused) => {
      openings.shift()?.(refused ?? { urls: [], release: () => void told.push('release') });
      await turn();
    },
  };
}

const OPEN = 'open https://music.example/a.mp3';

test('Hold music is opened when a member is alone, at most once at a time, and stopped when it is not.', async () => {
  const { music, told, opens } = stage();
  for (const count of [1, 1, 2, 1, 0, 1]) music.members(count);
  expect(told).toEqual([OPEN, 'stop', 'stop']);
  await opens();
  music.members(2);
  expect(told.slice(3)).toEqual(['play', 'stop']);
});

test('What is opened too late is given back, and opened anew at the next need.', async () => {
  const { music, told, opens } = stage();
  music.members(1);
  music.members(0);
  await opens();
  music.members(1);
  expect(told).toEqual([OPEN, 'stop', 'release', OPEN]);
});

test('A source that is refused or breaks off is a line in the log, and tried again at the next need.', async () => {
  const { music, told, opens, fail } = stage();
  music.members(1);
  await opens({ refused: { reason: 'not_found', retryable: false } });
  music.members(2);
  music.members(1);
  await opens();
  fail('source_disconnected');
  const line = (reason: string) => `warn ${JSON.stringify({ room_id: 'r', reason })}`;
  expect(told).toEqual([OPEN, line('not_found'), 'stop', OPEN, 'play', line('source_disconnected')]);
});

test('A source that is refused is tried again where a member came to be alone anew meanwhile.', async () => {
  const { music, told, opens } = stage();
  for (const count of [1, 2, 1]) music.members(count);
  await opens({ refused: { reason: 'timeout', retryable: true } });
  await opens({ refused: { reason: 'timeout', retryable: true } });
  const line = `warn ${JSON.stringify({ room_id: 'r', reason: 'timeout' })}`;
  expect(told).toEqual([OPEN, 'stop', line, OPEN, line]);
});
