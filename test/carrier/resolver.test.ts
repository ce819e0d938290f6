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
