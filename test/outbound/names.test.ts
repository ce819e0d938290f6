/** What name servers say of names, at real sockets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getServers, setServers } from 'node:dns';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressesOf } from '../../src/outbound/dns/addresses.ts';
import { LookUpRests } from '../../src/outbound/dns/look-up-rests.ts';
import { NameServers } from '../../src/outbound/dns/name-servers.ts';
import { Names } from '../../src/outbound/dns/names.ts';
import { addressRecord, aliasRecord, NameServerPeer, reply } from '../support/name-server-peer.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const A = 1;
const addresses = (count: number) => ({
  records: [Buffer.concat(Array.from({ length: count }, (_, at) => addressRecord(`10.0.${at >> 8}.${at & 0xff}`)))],
  count,
});

let peer: NameServerPeer;
let folder: string;
const usual = getServers();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sidetone-names-'));
  peer = await NameServerPeer.open();
  setServers([`${peer.host}:${peer.port}`]);
});

afterAll(() => {
  setServers(usual);
  peer.close();
  rmSync(folder, { recursive: true });
});

describe('the addresses of a name', () => {
  test('are those in the answer, behind aliases too, of the IP version that is asked for', async () => {
    peer.answers = (asked) =>
      asked.type === A
        ? reply(asked, { records: [aliasRecord('b.test'), addressRecord('192.0.2.1'), addressRecord('192.0.2.2')] })
        : reply(asked, { records: [addressRecord('192.0.2.3'), addressRecord('2001:db8:0:0:1:0:0:1')] });
    expect(await addressesOf('a.test', 4)).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(await addressesOf('a.test', 6)).toEqual(['2001:db8::1:0:0:1']);
  });

  test('are none where name servers say so, or cannot say', async () => {
    peer.answers = (asked) => reply(asked, { code: 3 });
    expect(await addressesOf('a.test', 4)).toEqual([]);
    peer.answers = (asked) => reply(asked, { records: [aliasRecord('a.test')] });
    expect(await addressesOf('a.test', 4)).toEqual([]);
    peer.answers = (asked) => reply(asked, { code: 2 });
    await expect(addressesOf('a.test', 4)).rejects.toThrow('ESERVFAIL');
    for (const name of ['', 'a..test', `${'a'.repeat(64)}.test`, 'a b.test', 'a.'.repeat(130)])
      expect([name, await addressesOf(name, 4)]).toEqual([name, []]);
  });
});

describe('a name', () => {
  const known = new Map([
    ['short.test', '192.0.2.1'],
    ['a.b.test', '192.0.2.2'],
    ['nats.one.test', '192.0.2.3'],
    ['nats.two.test', '192.0.2.4'],
    ['a.b.two.test', '192.0.2.5'],
  ]);
  const named = async (resolv: string, hosts = '') => {
    writeFileSync(join(folder, 'resolv.conf'), resolv);
    writeFileSync(join(folder, 'hosts'), hosts);
    const asked: string[] = [];
    peer.answers = (question) => {
      const address = question.type === A ? known.get(question.name) : undefined;
      if (question.type === A) asked.push(question.name);
      return reply(question, address === undefined ? { code: 3 } : { records: [addressRecord(address)] });
    };
    const resolvConf = new NameServers({ path: join(folder, 'resolv.conf'), now: () => performance.now(), ask: () => {} });
    const names = new Names({ hosts: join(folder, 'hosts'), resolvConf });
    const find = async (name: string) =>
      (await names.find(name, [4, 6], '').catch((error) => [{ address: error.message }])).map(({ address }) => address);
    return { find, asked };
  };

  test('is asked for with the suffixes of resolv.conf: after itself where it has dots enough, before it where not', async () => {
    const { find, asked } = await named('domain zero.test\nsearch one.test two.test .\n');
    expect([await find('nats'), await find('a.b')]).toEqual([['192.0.2.3'], ['192.0.2.5']]);
    expect(asked).toEqual(['nats.one.test', 'a.b', 'a.b.one.test', 'a.b.two.test']);
    expect([await find('nats.'), await find('none.test')]).toEqual([['nats. has no address'], ['none.test has no address']]);
    expect(asked.slice(4)).toEqual(['nats', 'none.test', 'none.test.one.test', 'none.test.two.test']);
    const dotted = await named('search two.test\noptions timeout:1 ndots:3\n');
    expect([await dotted.find('a.b'), await dotted.find('a.b.test')]).toEqual([['192.0.2.5'], ['192.0.2.2']]);
    expect(dotted.asked).toEqual(['a.b.two.test', 'a.b.test.two.test', 'a.b.test']);
  });

  test('is found where name servers cannot say what it is with a suffix; without one nobody can say', async () => {
    const { find, asked } = await named('search broken.test two.test\noptions ndots:5\n');
    const { answers } = peer;
    peer.answers = (question) => (question.name.endsWith('broken.test') ? reply(question, { code: 2 }) : answers(question));
    expect([await find('a.b'), await find('a.b.test')]).toEqual([['192.0.2.5'], ['192.0.2.2']]);
    expect(asked).toEqual(['a.b.two.test', 'a.b.test.two.test', 'a.b.test']);
    expect((await find('none.test'))[0]).toContain('ESERVFAIL');
  });

  test('has 64 addresses at most, and its owner rests where it has more', async () => {
    const clock = new VirtualClock();
    const names = new Names({
      resolvConf: { follow: () => ({ servers: [], suffixes: [], dots: 1 }) },
      rests: new LookUpRests(clock),
    });
    const asked: string[] = [];
    peer.answers = (question) => {
      if (question.type !== A) return reply(question, { code: 3 });
      asked.push(`${question.name}${question.overTcp ? ' over TCP' : ''}`);
      return question.overTcp ? reply(question, addresses(4_064)) : reply(question, { isCut: true });
    };
    expect((await names.find('many.test', [4, 6], 'app_1')).map(({ address }) => address)).toEqual(
      Array.from({ length: 64 }, (_, at) => `10.0.0.${at}`),
    );
    const next = names.find('next.test', [4], 'app_1');
    expect((await names.find('other.test', [4], 'app_2')).length).toBe(64);
    expect(asked.splice(0)).toEqual(['many.test', 'many.test over TCP', 'other.test', 'other.test over TCP']);
    clock.advance(400);
    expect((await next).length).toBe(64);
    expect(asked).toEqual(['next.test', 'next.test over TCP']);
  });

  test('is not asked for where it is an address, this machine or in the file of hosts', async () => {
    const hosts = '::2 Short.test\n192.0.2.9 short.test other # not.test\nfe80::1%lo zone.test\nwrong a.b.test\n';
    const { find, asked } = await named('', hosts);
    expect([await find('short.test'), await find('OTHER')]).toEqual([['192.0.2.9', '::2'], ['192.0.2.9']]);
    expect([await find('192.0.2.7'), await find('::7')]).toEqual([['192.0.2.7'], ['::7']]);
    expect([await find('localhost'), await find('a.localhost.')]).toEqual(Array(2).fill(['127.0.0.1', '::1']));
    expect(asked).toEqual([]);
    expect([await find('not.test'), await find('zone.test'), await find('a.b.test')]).toEqual([
      ['not.test has no address'],
      ['zone.test has no address'],
      ['192.0.2.2'],
    ]);
  });
});
