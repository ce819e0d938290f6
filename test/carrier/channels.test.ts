/** The counts of a trunk's calls, which other nodes may share. */
import { expect, test } from 'bun:test';
import { Channels, type SharedChannels } from '../../src/carrier/trunk/channels.ts';
import { trunkTo } from './harness.ts';

test('of a trunk that was used and deleted nothing is kept, here or where the nodes share its channels', async () => {
  const kept: string[][] = [];
  const shared: SharedChannels = {
    hold: async (_trunk, max, channels) => Math.min(max, channels),
    keep: (names) => void kept.push([...names]),
  };
  const channels = new Channels(() => 0, shared);
  const trunk = { ...trunkTo('sip:127.0.0.1'), name: 'gone', maxChannels: 2 };
  const taken = await channels.expect(trunk);
  const give = channels.take(trunk);
  taken();
  expect(channels.allHeld()).toEqual({ gone: 1 });
  give?.();
  expect([give === undefined, channels.allHeld(), channels.counts('gone').calls24h]).toEqual([false, {}, 1]);
  channels.keep(new Set(['other']));
  expect([kept, channels.counts('gone').calls24h]).toEqual([[['other']], 0]);
});

test('calls and failures of a trunk count for a day', () => {
  const hour = 3_600_000;
  let now = 0;
  const channels = new Channels(() => now);
  const trunk = trunkTo('sip:127.0.0.1');
  channels.take(trunk)?.();
  channels.failed(trunk.name);
  const counts = (at: number) => {
    now = at;
    return channels.counts(trunk.name);
  };
  expect(counts(24 * hour - 1)).toEqual({ channelsInUse: 0, calls24h: 1, failures24h: 1 });
  expect(counts(24 * hour)).toEqual({ channelsInUse: 0, calls24h: 0, failures24h: 0 });
});
