/** The nodes that a dial may be placed at. */
import { expect, test } from 'bun:test';
import { nodeOfDevice, type PlacedTrunk, reaching } from '../../src/cluster/placement/placement.ts';
import { nodeRow } from './node-row.ts';

test('A device behind a proxy is called by any node, unless the proxy is behind a NAT', () => {
  const flow = (path: string, transport: 'udp' | 'tcp' = 'udp') => ({
    nodeId: 'other',
    binding: { transport, host: '203.0.113.1', uri: 'sip:alice@192.168.1.10', path },
  });
  expect(nodeOfDevice('own', [flow('')])).toBe('other');
  for (const transport of ['udp', 'tcp'] as const) {
    expect(nodeOfDevice('own', [flow('<sip:token@203.0.113.1:5070;lr>, <sip:10.1.1.1;lr>', transport)])).toBeUndefined();
    expect(nodeOfDevice('own', [flow('<sip:token@10.1.1.1;lr>', transport)])).toBe('other');
    expect(nodeOfDevice('own', [flow('<sip:edge.example;lr>', transport)])).toBe('other');
  }
});

test('A dial goes where one of its trunks may be used, and to one with a free channel while there is any', () => {
  const held = (channels: Readonly<Record<string, number>>) => ({ load: JSON.stringify({ channels }) });
  const rows = [
    nodeRow('east', { labels: ['east'], ...held({ small: 1 }) }),
    nodeRow('west', { labels: ['west'], ...held({ small: 1, big: 1 }) }),
    nodeRow('none'),
  ];
  const names = (...trunks: readonly PlacedTrunk[]) => reaching(trunks, rows, rows).map(({ nodeId }) => nodeId);
  const small = { name: 'small', nodes: ['east', 'far'], maxChannels: 2 };
  const big = { name: 'big', nodes: ['west'], maxChannels: 2 };
  const open = { name: 'open', nodes: undefined, maxChannels: undefined };
  expect(names(small, big)).toEqual(['west']);
  expect(names(small)).toEqual(['east']);
  expect(names(small, { ...big, maxChannels: 1 })).toEqual(['east', 'west']);
  expect(names({ ...small, maxChannels: 3 }, big)).toEqual(['east', 'west']);
  expect(names({ ...small, nodes: ['nowhere'] })).toEqual([]);
  expect(names(small, open)).toEqual(['east', 'west', 'none']);
  // Any node can say that there is no such trunk.
  expect(names()).toEqual(['east', 'west', 'none']);
});
