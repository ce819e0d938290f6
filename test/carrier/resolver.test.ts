/** Which addresses a name stands for, and in which order (RFC 3263 §4). */
import { expect, test } from 'bun:test';
import { createResolver } from '../../src/carrier/socket/resolver.ts';
import { SIP_TARGETS_MAX } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('All addresses of a name are targets, of the version of IP that is preferred, and SRV records share the places', async () => {
  const four = (name: string, count: number) => Array.from({ length: count }, (_, i) => ({ address: `${name}${i}`, family: 4 }));
  const names = {
    addresses: async (name: string) =>
      (name === 'six' ? [] : four(name, name === 'one' ? 1 : 20)).concat({ address: '::1', family: 6 }),
    services: async (name: string) =>
      name === '_sip._udp.srv.test'
        ? [
            { name: 'many', port: 2, priority: 2, weight: 0 },
            { name: 'one', port: 1, priority: 1, weight: 0 },
          ]
        : [],
  };
  const resolver = createResolver(new VirtualClock(), () => [4, 6], names);
  const hosts = async (host: string) =>
    (await resolver.targets(host, undefined, 'udp')).map((each) => `${each.host} ${each.port}`);
  expect(await hosts('a.test')).toEqual(Array.from({ length: SIP_TARGETS_MAX }, (_, i) => `a.test${i} 5060`));
  expect(await hosts('six')).toEqual(['::1 5060']);
  expect(await hosts('srv.test')).toEqual(['one0 1', 'many0 2', 'many1 2', 'many2 2', 'many3 2']);
});

test('SRV records of one priority are drawn by their weight each time, those of the next priority come after them', async () => {
  const names = {
    addresses: async (name: string) => [{ address: name, family: 4 }],
    services: async () => [
      { name: 'heavy', port: 1, priority: 1, weight: 75 },
      { name: 'light', port: 1, priority: 1, weight: 25 },
      { name: 'never', port: 1, priority: 1, weight: 0 },
      { name: 'later', port: 1, priority: 2, weight: 65_535 },
    ],
  };
  let state = 1;
  // The numbers of a linear congruential generator (Numerical Recipes), the same in each run.
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const resolver = createResolver(new VirtualClock(), () => [4, 6], names, random);
  const steady = await resolver.resolve('srv.test', undefined, 'udp');
  const first = new Map<string, number>();
  for (let calls = 0; calls < 1_000; calls++) {
    const hosts = (await resolver.targets('srv.test', undefined, 'udp')).map(({ host }) => host);
    first.set(hosts[0] ?? '', (first.get(hosts[0] ?? '') ?? 0) + 1);
    expect(hosts[3]).toBe('later');
    expect(await resolver.resolve('srv.test', undefined, 'udp')).toEqual(steady);
  }
  expect(first.get('heavy')).toBeWithin(700, 800);
  expect(first.get('light')).toBeWithin(200, 300);
  expect(first.get('never') ?? 0).toBeLessThan(5);
});
