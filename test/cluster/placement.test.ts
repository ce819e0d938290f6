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

test('A dial goes where one of its trunks may be used', () => {
  const rows = [nodeRow('east', { labels: ['east'] }), nodeRow('west', { labels: ['west'] }), nodeRow('none')];
  const names = (...trunks: readonly PlacedTrunk[]) => reaching(trunks, rows).map(({ nodeId }) => nodeId);
  const east = { name: 'a', nodes: ['east', 'far'] };
  expect(names(east)).toEqual(['east']);
  expect(names(east, { name: 'b', nodes: ['west'] })).toEqual(['east', 'west']);
  expect(names(east, { name: 'c', nodes: undefined })).toEqual(['east', 'west', 'none']);
  expect(names({ name: 'd', nodes: ['nowhere'] })).toEqual([]);
  // Any node can say that there is no such trunk.
  expect(names()).toEqual(['east', 'west', 'none']);
});
