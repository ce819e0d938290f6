/** What the operator is told of the nodes. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { SeenNode } from '../../src/http/operator/hooks.ts';
import { openPlatform, type Platform } from '../http/platform.ts';

const STARTED = Date.parse('2026-03-01T12:00:00.000Z');
const beat = {
  load: 0.5,
  sessions: 2,
  rooms: 1,
  legs: 3,
  channels: { carrier: 2 },
  registered: { carrier: 1 },
  serviceRoutes: {},
};
const node = (more: Partial<SeenNode>): SeenNode => ({
  nodeId: '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f',
  volumeId: 'volume',
  host: '192.0.2.11',
  httpPort: 8080,
  rtpHost: '192.0.2.11',
  sipContact: '192.0.2.11:5060',
  labels: [],
  version: '0.1.0',
  protocol: 1,
  startedAt: STARTED,
  drainingAt: undefined,
  deadAt: undefined,
  deadBy: '',
  drainSec: undefined,
  drainMode: 'wait',
  beat: 1,
  load: '{}',
  here: true,
  suspect: false,
  unreached: false,
  settingsApart: [],
  ...more,
});

let platform: Platform;
beforeAll(async () => {
  const list = async () => [node({ load: JSON.stringify(beat) }), node({ drainingAt: STARTED, deadAt: STARTED })];
  platform = await openPlatform({ nodes: { list, drain: async () => true, undrain: async () => true } });
});
afterAll(() => platform.close());

test('A node that is neither drained nor dead says so by an empty string, and tells nothing of registrations', async () => {
  const { status, body } = await platform.operator('GET', '/operator/v1/nodes');
  expect(status).toBe(200);
  expect(body.nodes).toMatchObject([
    { draining_at: '', dead_at: '' },
    { draining_at: '2026-03-01T12:00:00.000Z', dead_at: '2026-03-01T12:00:00.000Z' },
  ]);
  expect(body.nodes.map(({ load }: { load: object }) => load)).toEqual([
    { load: 0.5, sessions: 2, rooms: 1, legs: 3, channels: { carrier: 2 } },
    {},
  ]);
});
