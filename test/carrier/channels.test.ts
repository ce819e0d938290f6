/** The counts of a trunk's calls, which other nodes may share. */
import { expect, test } from 'bun:test';
import { Channels, type SharedChannels } from '../../src/carrier/trunk/channels.ts';
import { settle } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

test('of a trunk that was used and deleted nothing is kept, here or where the nodes share its channels', async () => {
  const kept: string[][] = [];
  const shared: SharedChannels = {
    hold: async (_trunk, max, channels) => Math.min(max, channels),
    keep: (names) => void kept.push([...names]),
  };
  const channels = new Channels(() => 0, shared);
  const trunk = { ...trunkTo('sip:127.0.0.1'), name: 'gone', maxChannels: 2 };
  const taken = await channels.expect(trunk);
  channels.keep(new Set());
  expect(channels.hasFree(trunk)).toBe(true);
  const give = channels.take(trunk);
  taken();
  channels.keep(new Set());
  expect([channels.counts('gone').channelsInUse, channels.allHeld()]).toEqual([1, { gone: 1 }]);
  kept.length = 0;
  give?.();
  expect([give === undefined, channels.allHeld(), channels.counts('gone').calls24h]).toEqual([false, {}, 1]);
  channels.keep(new Set(['other']));
  expect([kept, channels.counts('gone').calls24h]).toEqual([[['other']], 0]);
});

test('calls that began before their trunk had max_channels hold channels, and give them back as they end', async () => {
  const told: number[] = [];
  const shared: SharedChannels = {
    hold: async (_trunk, max, channels, current) => {
      told.push(channels);
      return Math.max(current, Math.min(max, channels));
    },
    keep() {},
  };
  const channels = new Channels(() => 0, shared);
  const wide = { ...trunkTo('sip:127.0.0.1'), name: 'wide' };
  const narrow = { ...wide, maxChannels: 3 };
  const early = [channels.take(wide), channels.take(wide)];
  (await channels.expect(wide))();
  expect([channels.allHeld(), told]).toEqual([{}, []]);
  // Another node opens the ledger of the trunk, which is narrow now.
  expect(channels.held('wide')).toBe(2);
  const taken = await channels.expect(narrow);
  const late = channels.take(narrow);
  taken();
  expect([late === undefined, channels.hasFree(narrow), told]).toEqual([false, false, [3]]);
  for (const give of early) give?.();
  expect([channels.held('wide'), told]).toEqual([1, [3, 2, 1]]);
  late?.();
  expect([channels.allHeld(), told]).toEqual([{}, [3, 2, 1, 0]]);
});

test('a call that comes from another node is told beside all that are up, also those from before max_channels', async () => {
  const told: (readonly [string, number, number, number])[] = [];
  const shared: SharedChannels = {
    hold: async (name, max, channels, current) => {
      told.push([name, max, channels, current]);
      return channels;
    },
    keep() {},
  };
  const channels = new Channels(() => 0, shared);
  const wide = { ...trunkTo('sip:127.0.0.1'), name: 'wide' };
  const early = [channels.take(wide), channels.take(wide)];
  channels.carryOn(wide)();
  expect(told).toEqual([]);
  const narrow = { ...wide, maxChannels: 3 };
  const giveBack = channels.carryOn(narrow);
  expect([channels.allHeld(), channels.hasFree(narrow), told]).toEqual([{ wide: 3 }, false, [['wide', 3, 3, 3]]]);
  giveBack();
  early[0]?.();
  expect(told.slice(1)).toEqual([
    ['wide', 3, 2, 2],
    ['wide', 1, 1, 1],
  ]);
});

test('channels that were given back while a further one was asked for are not used on: they are asked for again', async () => {
  /** The questions, each of which is answered as the test has it, and what the last one of them left this node with. */
  const asked: (() => void)[] = [];
  let known = 0;
  const shared: SharedChannels = {
    async hold(_trunk, _max, channels) {
      known = channels;
      await new Promise<void>((resolve) => asked.push(resolve));
      return channels;
    },
    keep() {},
  };
  const channels = new Channels(() => 0, shared);
  const wide = { ...trunkTo('sip:127.0.0.1'), name: 'wide' };
  const trunk = { ...wide, maxChannels: 3 };
  const early = [channels.take(wide), channels.take(wide)];
  const first = channels.expect(trunk);
  for (const give of early) give?.();
  expect([asked.length, known]).toEqual([2, 1]);
  asked.shift()?.();
  await settle();
  // Whoever waits for a turn has not taken its channel yet when the next one asks.
  const second = channels.expect(trunk);
  await settle();
  for (const answer of asked) answer();
  const expecting = [await first, await second];
  const late = expecting.map(() => channels.take(trunk));
  expect([late.includes(undefined), channels.held('wide'), known]).toEqual([false, 2, 2]);
});

test('a call that comes from another node while a channel is asked for is not counted in the answer: it is asked again', async () => {
  const asked: number[] = [];
  const answers: (() => void)[] = [];
  const shared: SharedChannels = {
    hold(_trunk, _max, channels) {
      asked.push(channels);
      return new Promise((resolve) => answers.push(() => resolve(channels)));
    },
    keep() {},
  };
  const channels = new Channels(() => 0, shared);
  const trunk = { ...trunkTo('sip:127.0.0.1'), maxChannels: 3 };
  const expecting = channels.expect(trunk);
  channels.carryOn(trunk);
  for (const answer of answers.splice(0)) answer();
  await settle();
  for (const answer of answers.splice(0)) answer();
  await expecting;
  expect([asked, channels.take(trunk) === undefined]).toEqual([[1, 1, 2], false]);
});

test('a trunk that no other node uses has its max_channels, and what was no call counts as none', () => {
  const channels = new Channels(() => 0);
  const trunk = { ...trunkTo('sip:127.0.0.1'), maxChannels: 2 };
  const [first, second, third] = [channels.take(trunk), channels.take(trunk), channels.take(trunk)];
  expect([first, second, third].map((give) => give !== undefined)).toEqual([true, true, false]);
  second?.(false);
  expect(channels.counts(trunk.name)).toEqual({ channelsInUse: 1, calls24h: 1, failures24h: 0 });
  for (let call = 1; call < 30; call++) channels.take(trunk)?.();
  expect(channels.counts(trunk.name).calls24h).toBe(30);
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

test('a trunk is in use while it carries a call, and what is known of it stays while it exists or a call is up', () => {
  let now = 1_000;
  const channels = new Channels(() => now);
  const trunk = { ...trunkTo('sip:127.0.0.1'), name: 'carrier' };
  expect(channels.lastUsed(trunk)).toBe(0);
  const give = channels.take(trunk);
  now = 5_000;
  expect(channels.lastUsed(trunk)).toBe(5_000);
  channels.keep(new Set());
  expect(channels.counts('carrier')).toMatchObject({ channelsInUse: 1, calls24h: 1 });
  give?.();
  give?.();
  now = 9_000;
  channels.keep(new Set(['carrier']));
  expect([channels.lastUsed(trunk), channels.counts('carrier')]).toMatchObject([5_000, { channelsInUse: 0, calls24h: 1 }]);
});

test('A call that is refused for its audio gives the channel of its trunk back, here and to other nodes', async () => {
  const sharedChannels: SharedChannels = { hold: async (_trunk, max, channels) => Math.min(max, channels), keep() {} };
  const carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9', { maxChannels: 1 })], { sharedChannels });
  const held = () => carrier.carrier.channelsHeld();
  const peer = await RawPeer.udp(carrier.port('udp'));
  const refused = async (id: string, body: string) => {
    peer.send(peer.request('INVITE', { id, body }));
    return (await peer.until(/^SIP\/2.0 [3-6]/)).slice('SIP/2.0 '.length, 'SIP/2.0 488'.length);
  };
  expect(await refused('none', sdp('m=audio 0 RTP/AVP 98'))).toBe('488');
  expect(await refused('broken', 'v=1')).toBe('400');
  expect(carrier.carrier.refusals().map(({ status, reason }) => [status, reason])).toEqual([
    [400, expect.stringContaining('description')],
    [488, expect.stringContaining('no audio')],
  ]);
  expect(held()).toEqual({});
  peer.send(peer.request('INVITE', { id: 'good', body: sdp() }));
  await peer.until(/^SIP\/2.0 100[\s\S]*Call-ID: good\r/);
  // The channel is taken then, and a further call finds none.
  expect([await refused('further', sdp()), carrier.incoming.length]).toEqual(['503', 1]);
  peer.close();
  await carrier.close();
});

test('A call that is given up while its number is looked up, or other nodes are asked, takes no channel and is told to nobody', async () => {
  for (const waits of ['number', 'nodes'] as const) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const wait = async <T>(where: typeof waits, value: T): Promise<T> => {
      if (where !== waits) return value;
      asked.resolve();
      await promise;
      return value;
    };
    const sharedChannels: SharedChannels = { hold: (_trunk, max, channels) => wait('nodes', Math.min(max, channels)), keep() {} };
    const carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9', { maxChannels: 1 })], { sharedChannels });
    carrier.numberOwner = () => wait('number', 'app');
    const peer = await RawPeer.udp(carrier.port('udp'));
    const invite = peer.request('INVITE', { id: 'impatient', body: sdp() });
    peer.send(invite);
    await asked.promise;
    const head = invite.slice(0, invite.indexOf('Content-Type')).replaceAll('INVITE', 'CANCEL');
    peer.send(`${head}Content-Length: 0\r\n\r\n`);
    await peer.until(/^SIP\/2.0 487/);
    resolve();
    // An answer to what came later is an answer after all that.
    peer.send(peer.request('OPTIONS'));
    await peer.until(/^SIP\/2.0 200[\s\S]*OPTIONS\r/);
    expect([carrier.incoming, carrier.carrier.channelsHeld(), carrier.carrier.refusals()]).toEqual([[], {}, []]);
    peer.close();
    await carrier.close();
  }
});
