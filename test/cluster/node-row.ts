import type { NodeRow } from '../../src/database/node/nodes.ts';

/** The row of a node that has said nothing of itself but what is given. */
export const nodeRow = (nodeId: string, more: Partial<NodeRow> = {}): NodeRow => ({
  nodeId,
  labels: [],
  load: '{}',
  volumeId: '',
  host: '',
  httpPort: 0,
  rtpHost: '',
  sipContact: '',
  version: '',
  protocol: 1,
  startedAt: 0,
  drainingAt: undefined,
  drainSec: undefined,
  drainMode: 'wait',
  deadAt: undefined,
  deadBy: '',
  beat: 0,
  ...more,
});
