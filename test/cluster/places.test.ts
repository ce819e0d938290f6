/** The places of Sessions and Rooms of other nodes, as a node remembers them. */
import { expect, test } from 'bun:test';
import { Places } from '../../src/cluster/placement/places.ts';
import { NODE_PLACES_MAX } from '../../src/limits.ts';

test('The node of an object is looked up once, until it is forgotten, for each application by itself.', async () => {
  const places = new Places('own');
  const looks: string[] = [];
  const of = (appUuid: string, id: string, found: string | null | undefined) =>
    places.of(appUuid, id, async () => {
      looks.push(`${appUuid} ${id}`);
      return found;
    });
  expect([await of('app', 'one', 'b'), await of('app', 'one', 'c'), await of('other', 'one', undefined)]).toEqual([
    'b',
    'b',
    undefined,
  ]);
  expect(looks.splice(0)).toEqual(['app one', 'other one']);
  places.forget('other', 'one');
  expect(await of('app', 'one', 'c')).toBe('b');
  places.forget('app', 'one');
  expect(await of('app', 'one', 'c')).toBe('c');
  expect(looks.splice(0)).toEqual(['app one']);
  // Nobody would say that one of this node has moved, or that one without a node has one by now.
  for (const found of ['own', null]) {
    expect([await of('app', String(found), found), await of('app', String(found), 'b')]).toEqual([found, 'b']);
    expect(looks.splice(0)).toHaveLength(2);
  }
});

test('What was used longest ago is forgotten first, and no more is remembered than may be.', async () => {
  const places = new Places('own');
  let looks = 0;
  const of = (id: number) =>
    places.of('app', String(id), async () => {
      looks++;
      return 'b';
    });
  for (let id = 0; id < NODE_PLACES_MAX; id++) await of(id);
  await of(0);
  expect(looks).toBe(NODE_PLACES_MAX);
  await of(NODE_PLACES_MAX);
  await of(0);
  expect(looks).toBe(NODE_PLACES_MAX + 1);
  await of(1);
  expect(looks).toBe(NODE_PLACES_MAX + 2);
});
