/** The nodes of the platform: listed, drained and taken into use again. */

import { timestamp } from '../../clock.ts';
import { isUuid } from '../../id.ts';
import { NODE_DRAIN_MAX_SEC } from '../../limits.ts';
import { ok, type Route } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { noBody, shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import type { OperatorNodes, SeenNode } from './hooks.ts';

const drain = shape(
  () =>
    type({
      '+': 'reject',
      'deadline_sec?': `0 <= number.integer <= ${NODE_DRAIN_MAX_SEC}`,
      'mode?': "'wait' | 'move'",
    }),
  {},
  { mode: 'wait' },
);

const SHOWN: ReadonlySet<string> = new Set(['load', 'sessions', 'rooms', 'legs', 'channels']);
const facts = { auth: 'operator', tag: 'Operator: nodes', resource: 'Node' } as const;
const accepted = (nodeId: string, status: string) => ({ status: 202, body: { node_id: nodeId, status } });

export const nodeRoutes = (nodes: OperatorNodes): readonly Route[] => [
  route(
    {
      ...facts,
      method: 'GET',
      path: '/operator/v1/nodes',
      summary: 'List the nodes, and those that died within a day',
      success: [200, '`{"nodes": […]}`, by their start'],
    },
    () => async () => ok({ nodes: (await nodes.list()).map(nodeBody) }),
  ),
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/operator/v1/nodes/:id/drain',
      summary: 'Give a node no new calls, and hand its calls to others or wait; past the deadline they are ended',
      optional: true,
      success: [202, 'It drains within a second. Without a deadline it waits for its calls.'],
    },
    drain,
    async (context, { deadline_sec: deadlineSec, mode = 'wait' }) => {
      const { id = '' } = context.params;
      if (!isUuid(id) || !(await nodes.drain(id, deadlineSec, mode))) return undefined;
      return () => accepted(id, 'draining');
    },
  ),
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/operator/v1/nodes/:id/undrain',
      summary: 'Give a node new calls again',
      optional: true,
      success: [202, 'It is in use again within a second.'],
    },
    noBody,
    async (context) => {
      const { id = '' } = context.params;
      return isUuid(id) && (await nodes.undrain(id)) ? () => accepted(id, 'in_use') : undefined;
    },
  ),
];

const nodeBody = (row: SeenNode): Readonly<Record<string, unknown>> => ({
  node_id: row.nodeId,
  here: row.here,
  http_host: row.host,
  http_port: row.httpPort,
  sip: row.sipContact,
  labels: row.labels,
  version: row.version,
  started_at: timestamp(row.startedAt),
  draining_at: row.drainingAt === undefined ? '' : timestamp(row.drainingAt),
  dead_at: row.deadAt === undefined ? '' : timestamp(row.deadAt),
  suspect: row.suspect,
  unreached: row.unreached,
  settings_apart: row.settingsApart,
  load: loadBody(row.load),
});

/** What a node tells the operator of itself with each beat. A beat has more, which is between the nodes. */
const loadBody = (beat: string): Readonly<Record<string, unknown>> => {
  const told: unknown = JSON.parse(beat);
  if (typeof told !== 'object' || told === null) return {};
  return Object.fromEntries(Object.entries(told).filter(([name]) => SHOWN.has(name)));
};
