/** The node that a dial to a device is placed at. */
import { expect, test } from 'bun:test';
import { nodeOfDevice } from '../../src/cluster/placement/placement.ts';

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
