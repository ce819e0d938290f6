/** The trunks that a node has in memory, while several changes are read at once. */
import { expect, test } from 'bun:test';
import { TrunkList } from '../../src/compose/trunk-list.ts';
import type { TrunkRow } from '../../src/database/trunk/trunks.ts';
import { settle } from '../support/virtual-clock.ts';

const trunk = (name: string): TrunkRow => ({
  ...{ name, uri: 'sip:carrier.invalid', username: undefined, password: undefined, register: false, inboundCidrs: [] },
  ...{ maxChannels: undefined, codecs: undefined, settings: {}, tlsKey: undefined },
});

test('A reading of the trunks that comes late does not bring back what a later change took away', async () => {
  let stored = [trunk('a'), trunk('b')];
  const readings: (() => void)[] = [];
  const list = new TrunkList(() => {
    const seen = stored;
    return new Promise((resolve) => readings.push(() => resolve(seen)));
  });
  const first = list.reload();
  await settle();
  stored = [trunk('a')];
  const second = list.reload();
  const third = list.reload();
  await settle();
  // The later reading is answered first, if it is made before the other one is over.
  for (const answer of readings.splice(0).reverse()) answer();
  await settle();
  for (const answer of readings) answer();
  expect([await first, await second, await third]).toEqual([[], [], undefined]);
  expect(list.rows.map(({ name }) => name)).toEqual(['a']);
});

test('Trunks that are set up at once are told of together, once, also where they are as before', async () => {
  const readings: (() => void)[] = [];
  const list = new TrunkList(() => new Promise((resolve) => readings.push(() => resolve([trunk('a'), trunk('b')]))));
  const first = list.reload();
  const set = ['a', 'b', 'a'].map((name) => list.reload(name));
  for (const answer of readings.splice(0)) answer();
  await settle();
  for (const answer of readings.splice(0)) answer();
  expect([await first, ...(await Promise.all(set))]).toEqual([['a', 'b', 'a'], undefined, undefined, undefined]);
  const again = [list.reload(), list.reload('b')];
  await settle();
  for (const answer of readings.splice(0)) answer();
  expect(await Promise.all(again)).toEqual([['b'], undefined]);
});
