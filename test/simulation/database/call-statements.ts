/** Sessions, Rooms and Idempotency-Keys. */
import { IDEMPOTENCY_LEASE_SEC } from '../../../src/limits.ts';
import type { Execution, Statement } from './statement.ts';
import { listAt, NONE, numberAt, numberOrNullAt, ONE, read, step, textAt, textOrNullAt, write } from './statement.ts';
import type { IdempotencyRecord, RoomRecord, SessionRecord, Tables } from './tables.ts';

const byCreation = (a: { readonly created_at: number }, b: { readonly created_at: number }) => a.created_at - b.created_at;

/** Changes the rows of Sessions that `isMeant`, and returns them as they are now. */
function changeSessions(
  { sessions }: Tables,
  isMeant: (row: SessionRecord) => boolean,
  change: (row: SessionRecord) => SessionRecord,
): readonly SessionRecord[] {
  const changed = [...sessions.values()].filter(isMeant).map(change);
  for (const row of changed) sessions.set(row.session_uuid, row);
  return changed;
}

function takeRoom(execution: Execution, isMeant: (row: RoomRecord) => boolean): readonly RoomRecord[] {
  const { tables } = execution;
  const nodeId = textAt(execution, 1);
  if (!tables.isAlive(nodeId)) return [];
  const taken = [...tables.rooms.values()]
    .filter((row) => row.deleted_at === null && isMeant(row))
    .map((row) => ({ ...row, node_id: nodeId, epoch: row.epoch + 1 }));
  for (const row of taken) tables.rooms.set(row.room_id, row);
  return taken;
}

const liveRoom = ({ tables }: Execution, roomId: string): RoomRecord | undefined => {
  const row = tables.rooms.get(roomId);
  return row?.deleted_at === null ? row : undefined;
};

/** The calls of a lost node that another may take, as many as are asked for, without those that are locked. */
function keptCalls(execution: Execution): readonly SessionRecord[] {
  const from = textAt(execution, 2);
  const trunks = new Set(listAt(execution, 4));
  return [...execution.tables.sessions.values()]
    .filter(({ node_id, ended_at, state }) => node_id === from && ended_at === null && state === 'answered')
    .filter(({ trunk }) => trunks.has(trunk))
    .filter(
      ({ running, session_uuid }) =>
        running.includes('"call":') && !running.includes('"secure":') && !execution.isLocked(`session ${session_uuid}`),
    )
    .sort(byCreation)
    .slice(0, numberAt(execution, 3));
}

const sessionLock = (execution: Execution) => [`session ${textAt(execution, 2)}`];
const roomLock = (execution: Execution) => [`room ${textAt(execution, 2)}`];

const sessionStatements: readonly Statement[] = [
  read(/^SELECT session_uuid::text .* FROM sessions WHERE node_id = \$1 AND ended_at IS NULL$/s, (execution) =>
    [...execution.tables.sessions.values()].filter((row) => row.node_id === textAt(execution, 1) && row.ended_at === null),
  ),
  read(/^SELECT json_agg\(shown\)::text AS rows FROM \(\s+SELECT at, .* FROM json_array_elements/s, (execution) => {
    const shown = listAt<readonly [string, string]>(execution, 1).flatMap(([appUuid, sessionUuid], index) => {
      const row = execution.tables.sessions.get(sessionUuid);
      if (row?.app_uuid !== appUuid) return [];
      const { node_id, type, state, caller_id, did, answered, created_at, ended_at, client_state } = row;
      return [{ at: index + 1, node_id, type, state, caller_id, did, answered, created_at, ended_at, client_state }];
    });
    return [{ rows: shown.length === 0 ? null : JSON.stringify(shown) }];
  }),
  write(/^UPDATE sessions AS s SET node_id = \$1, epoch = epoch \+ 1/, (execution) => {
    const { tables } = execution;
    const nodeId = textAt(execution, 1);
    return () =>
      tables.isAlive(nodeId)
        ? changeSessions(
            tables,
            (row) => row.ended_at === null && row.node_id !== nodeId && !tables.isAlive(row.node_id),
            (row) => ({ ...row, node_id: nodeId, epoch: row.epoch + 1 }),
          )
        : NONE;
  }),
  write(
    /^UPDATE sessions SET node_id = \$1, epoch = epoch \+ 1 WHERE session_uuid IN \(/,
    (execution) => {
      const { tables } = execution;
      const nodeId = textAt(execution, 1);
      const isMeant = new Set(keptCalls(execution).map((row) => row.session_uuid));
      return () =>
        tables.isAlive(nodeId)
          ? changeSessions(
              tables,
              (row) => isMeant.has(row.session_uuid),
              (row) => ({ ...row, node_id: nodeId, epoch: row.epoch + 1 }),
            )
          : NONE;
    },
    // They are free, so that nothing is waited for (SKIP LOCKED).
    (execution) => keptCalls(execution).map((row) => `session ${row.session_uuid}`),
  ),
  write(
    /^UPDATE sessions SET node_id = \$1, epoch = \$4::int \+ 1\s+WHERE session_uuid = \$2/,
    (execution) => {
      const { tables } = execution;
      const nodeId = textAt(execution, 1);
      const epoch = numberAt(execution, 4);
      const isMeant = ({ node_id, epoch: known }: SessionRecord) =>
        (node_id === textAt(execution, 3) && known === epoch) || (node_id === nodeId && known === epoch + 1);
      return () =>
        changeSessions(
          tables,
          (row) => row.session_uuid === textAt(execution, 2) && row.ended_at === null && isMeant(row) && tables.isAlive(nodeId),
          (row) => ({ ...row, node_id: nodeId, epoch: epoch + 1 }),
        );
    },
    sessionLock,
  ),
];

const roomStatements: readonly Statement[] = [
  read(/^SELECT room_id::text .* FROM rooms WHERE node_id = \$1 AND deleted_at IS NULL$/s, (execution) =>
    [...execution.tables.rooms.values()].filter((row) => row.node_id === textAt(execution, 1) && row.deleted_at === null),
  ),
  write(/^UPDATE rooms AS r SET node_id = \$1/, (execution) => {
    const { tables } = execution;
    return () =>
      takeRoom(execution, ({ node_id: owner }) => owner !== null && owner !== textAt(execution, 1) && !tables.isAlive(owner));
  }),
  read(/^SELECT node_id FROM rooms WHERE room_id = \$1::uuid AND app_uuid = \$2/, (execution) => {
    const row = liveRoom(execution, textAt(execution, 1));
    return row?.app_uuid === textAt(execution, 2) ? [{ node_id: row.node_id }] : NONE;
  }),
  write(
    /^UPDATE rooms SET node_id = \$1, epoch = epoch \+ 1\s+WHERE room_id = \$2::uuid AND node_id IS NULL/,
    (execution) => () => takeRoom(execution, (row) => row.room_id === textAt(execution, 2) && row.node_id === null),
    roomLock,
  ),
  write(
    /^UPDATE rooms SET node_id = \$1, epoch = \$4::int \+ 1\s+WHERE room_id = \$2::uuid AND \(\(node_id = \$3/,
    (execution) => () => {
      const row = liveRoom(execution, textAt(execution, 2));
      const [taker, owner, epoch] = [textAt(execution, 1), textAt(execution, 3), numberAt(execution, 4)];
      // It is this node's already where the answer to the first statement was lost.
      if (row?.node_id === taker && row.epoch === epoch + 1 && execution.tables.isAlive(taker)) return [row];
      return takeRoom(execution, (each) => each === row && each.node_id === owner && each.epoch === epoch);
    },
    roomLock,
  ),
  write(
    /^UPDATE rooms SET node_id = NULL/,
    (execution) => () => {
      const { tables } = execution;
      const row = liveRoom(execution, textAt(execution, 2));
      const isMine = row?.node_id === textAt(execution, 1) && row.epoch === numberAt(execution, 3);
      if (row === undefined || !isMine || !tables.isAlive(textAt(execution, 1))) return NONE;
      tables.rooms.set(row.room_id, { ...row, node_id: null, epoch: row.epoch + 1 });
      return ONE;
    },
    roomLock,
  ),
  read(/^SELECT node_id, epoch FROM rooms WHERE room_id = \$1/, (execution) => {
    const row = liveRoom(execution, textAt(execution, 1));
    return row === undefined ? NONE : [{ node_id: row.node_id, epoch: row.epoch }];
  }),
  read(/^SELECT s\.session_uuid::text .* FROM sessions AS s JOIN rooms/s, (execution) => {
    const room = execution.tables.rooms.get(textAt(execution, 1));
    return [...execution.tables.sessions.values()].filter(
      (row) => row.app_uuid === room?.app_uuid && row.ended_at === null && row.room_id === room.room_id,
    );
  }),
  read(/^SELECT room_id::text .* FROM rooms\s+WHERE app_uuid = \$1 AND deleted_at IS NULL ORDER BY/s, (execution) =>
    [...execution.tables.rooms.values()]
      .filter((row) => row.app_uuid === textAt(execution, 1) && row.deleted_at === null)
      .sort((a, b) => b.created_at - a.created_at),
  ),
  read(/^SELECT room_id, count\(\*\)::int AS members FROM sessions/, (execution) => {
    const members = new Map<string, number>();
    for (const { app_uuid: app, ended_at: endedAt, room_id: room } of execution.tables.sessions.values())
      if (app === textAt(execution, 1) && endedAt === null && room !== '') members.set(room, (members.get(room) ?? 0) + 1);
    return [...members].map(([room_id, count]) => ({ room_id, members: count }));
  }),
  step(
    /^SELECT pg_advisory_xact_lock\(hashtextextended\('rooms '/,
    () => ({ rows: ONE }),
    (execution) => [`rooms of ${textAt(execution, 1)}`],
  ),
  step(/^INSERT INTO rooms/, (execution) => {
    const { tables } = execution;
    const appUuid = textAt(execution, 3);
    const live = [...tables.rooms.values()].filter((row) => row.app_uuid === appUuid && row.deleted_at === null).length;
    if (!tables.isAlive(textAt(execution, 1)) || live >= numberAt(execution, 6)) return { rows: NONE };
    const row: RoomRecord = {
      room_id: textAt(execution, 2),
      app_uuid: appUuid,
      node_id: textAt(execution, 1),
      epoch: 0,
      voice_activity_events: execution.parameters[3] === true,
      hold_music_url: textAt(execution, 7),
      volume: null,
      deleting: true,
      playback: '',
      created_at: numberAt(execution, 5),
      deleted_at: null,
    };
    return { rows: ONE, apply: () => void tables.rooms.set(row.room_id, row) };
  }),
  write(
    /^DELETE FROM rooms WHERE room_id = \$1::uuid AND node_id = \$2/,
    (execution) => () => {
      const row = liveRoom(execution, textAt(execution, 1));
      if (row?.node_id === textAt(execution, 2)) execution.tables.rooms.delete(row.room_id);
      return NONE;
    },
    (execution) => [`room ${textAt(execution, 1)}`],
  ),
];

const keyOf = ({ app_uuid, key }: { readonly app_uuid: string; readonly key: string }) => `${app_uuid} ${key}`;
type Asked = Pick<IdempotencyRecord, 'app_uuid' | 'key' | 'fingerprint'>;
const KEPT_MS = 24 * 3_600_000;

/** The mark of the Idempotency-Key that the first two parameters name, while it has no answer and is `node`'s. */
function markOf(execution: Execution, node: string): IdempotencyRecord | undefined {
  const mark = execution.tables.idempotency.get(`${textAt(execution, 1)} ${textAt(execution, 2)}`);
  return mark?.fingerprint === textAt(execution, 3) && mark.status === null && mark.node_id === node ? mark : undefined;
}

const keyStatements: readonly Statement[] = [
  write(/^\s*WITH mine AS \([^)]*\), marked AS \(\s*INSERT INTO idempotency/, (execution) => {
    const { tables } = execution;
    const asked = listAt<Asked>(execution, 1);
    // What is told of a key that was not marked is read in the statement's snapshot.
    const seen = new Map(asked.map((each) => [keyOf(each), tables.idempotency.get(keyOf(each))]));
    const { now } = execution;
    const alive = tables.isAlive(textAt(execution, 2));
    return () =>
      asked.map((each) => {
        const known = tables.idempotency.get(keyOf(each));
        const isOpen =
          alive &&
          (known === undefined ||
            known.created_at < now - KEPT_MS ||
            (known.status === null && known.lease_until < now && known.fingerprint === each.fingerprint));
        if (isOpen)
          tables.idempotency.set(keyOf(each), {
            ...each,
            status: null,
            body: null,
            lease_until: now + IDEMPOTENCY_LEASE_SEC * 1000,
            node_id: textAt(execution, 2),
            created_at: now,
          });
        const before = seen.get(keyOf(each));
        return {
          ...each,
          alive,
          fresh: isOpen,
          same: before === undefined ? null : before.fingerprint === each.fingerprint,
          status: before?.status ?? null,
          body: before?.body ?? null,
        };
      });
  }),
  read(/^SELECT asked\.app_uuid, asked\.key, asked\.fingerprint/, (execution) =>
    listAt<Asked & { readonly at: number }>(execution, 1).flatMap(({ at, ...asked }) => {
      const known = execution.tables.idempotency.get(keyOf(asked));
      if (known === undefined || known.created_at < at - KEPT_MS) return [];
      const same = known.fingerprint === asked.fingerprint;
      return known.status === null && known.lease_until < at && same
        ? []
        : [{ ...asked, same, status: known.status, body: known.body }];
    }),
  ),
  write(/^UPDATE idempotency SET status = \$4/, (execution) => () => {
    const mark = markOf(execution, textAt(execution, 6));
    if (mark !== undefined)
      execution.tables.idempotency.set(keyOf(mark), {
        ...mark,
        status: numberAt(execution, 4),
        body: textOrNullAt(execution, 5),
      });
    return NONE;
  }),
  write(/^DELETE FROM idempotency WHERE app_uuid = \$1/, (execution) => () => {
    const mark = markOf(execution, textAt(execution, 4));
    if (mark !== undefined) execution.tables.idempotency.delete(keyOf(mark));
    return NONE;
  }),
  write(/^WITH of_node AS .*UPDATE idempotency AS i SET lease_until = least/s, (execution) => () => {
    const { idempotency } = execution.tables;
    const [leaseMs, workedMs] = [/ - (\d+)\)/, /created_at \+ (\d+)/].map((ms) => Number(ms.exec(execution.text)?.[1]));
    const left = [...idempotency.values()].filter(
      (each) =>
        each.node_id === textAt(execution, 1) && each.status === null && each.created_at >= execution.now - (leaseMs ?? 0),
    );
    for (const each of left)
      idempotency.set(keyOf(each), {
        ...each,
        lease_until: Math.min(each.lease_until, each.created_at + (workedMs ?? 0)),
        node_id: '',
      });
    return left.map(() => ({ released: 1 }));
  }),
];

const nodeRow = (row: Tables['nodes'] extends ReadonlyMap<string, infer R> ? R : never) => row;

const nodeStatements: readonly Statement[] = [
  write(/^WITH beats AS \(INSERT INTO node_beats/, (execution) => () => {
    execution.tables.nodes.set(textAt(execution, 1), {
      node_id: textAt(execution, 1),
      volume_id: textAt(execution, 2),
      host: textAt(execution, 3),
      http_port: numberAt(execution, 4),
      rtp_host: textAt(execution, 5),
      sip_contact: textAt(execution, 6),
      labels: textAt(execution, 7),
      version: textAt(execution, 8),
      protocol: numberAt(execution, 9),
      started_at: execution.now,
      draining_at: null,
      drain_sec: null,
      drain_mode: 'wait',
      dead_at: null,
      dead_by: null,
      beat: 0,
      load: '{}',
    });
    return NONE;
  }),
  write(/^UPDATE nodes SET sip_contact/, (execution) => () => {
    const row = execution.tables.nodes.get(textAt(execution, 1));
    if (row !== undefined) execution.tables.nodes.set(row.node_id, { ...row, sip_contact: textAt(execution, 2) });
    return NONE;
  }),
  write(/^WITH mine AS \(UPDATE node_beats/, (execution) => {
    const { nodes } = execution.tables;
    const nodeId = textAt(execution, 1);
    const seen = [...nodes.values()].filter((row) => row.dead_at === null || row.node_id === nodeId).map(nodeRow);
    return () => {
      const row = nodes.get(nodeId);
      if (row !== undefined) nodes.set(nodeId, { ...row, beat: row.beat + 1, load: textAt(execution, 2) });
      return seen;
    };
  }),
  read(/^SELECT n\.node_id.* WHERE n\.node_id = \$1$/s, (execution) => {
    const row = execution.tables.nodes.get(textAt(execution, 1));
    return row === undefined ? NONE : [row];
  }),
  read(/^SELECT n\.node_id.* WHERE n\.dead_at IS NULL AND \(n\.node_id = \$1 OR n\.volume_id = \$2\)$/s, (execution) =>
    [...execution.tables.nodes.values()]
      .filter((row) => row.dead_at === null)
      .filter((row) => row.node_id === textAt(execution, 1) || row.volume_id === textAt(execution, 2)),
  ),
  write(
    /^UPDATE nodes AS n SET dead_at/,
    (execution) => () => {
      const { nodes } = execution.tables;
      const row = nodes.get(textAt(execution, 2));
      const beat = numberOrNullAt(execution, 3);
      if (row === undefined || row.dead_at !== null || (beat !== null && row.beat !== beat)) return NONE;
      nodes.set(row.node_id, { ...row, dead_at: execution.now, dead_by: textAt(execution, 1) });
      return ONE;
    },
    (execution) => [`node ${textAt(execution, 2)}`],
  ),
  write(
    /^UPDATE nodes SET dead_at/,
    (execution) => () => {
      const { nodes } = execution.tables;
      const nodeId = textAt(execution, 1);
      for (const row of nodes.values())
        if (row.node_id !== nodeId && row.dead_at === null)
          nodes.set(row.node_id, { ...row, dead_at: execution.now, dead_by: nodeId });
      return NONE;
    },
    ({ tables }) => [...tables.nodes.values()].filter((row) => row.dead_at === null).map((row) => `node ${row.node_id}`),
  ),
  write(/^UPDATE nodes SET draining_at = coalesce/, (execution) => () => {
    const { nodes } = execution.tables;
    const row = nodes.get(textAt(execution, 1));
    if (row?.dead_at !== null) return NONE;
    const mode = textAt(execution, 3);
    const kept = row.draining_at === null ? 'wait' : row.drain_mode;
    const drain = { drain_sec: numberOrNullAt(execution, 2), drain_mode: mode === 'as_ordered' ? kept : mode };
    nodes.set(row.node_id, { ...row, draining_at: row.draining_at ?? execution.now, ...drain });
    return ONE;
  }),
  write(/^UPDATE nodes SET draining_at = NULL/, (execution) => () => {
    const { nodes } = execution.tables;
    const row = nodes.get(textAt(execution, 1));
    if (row?.dead_at !== null) return NONE;
    nodes.set(row.node_id, { ...row, draining_at: null, drain_sec: null });
    return ONE;
  }),
  write(/^INSERT INTO cluster_meta/, (execution) => () => {
    const { meta } = execution.tables;
    const isKept = meta.has(textAt(execution, 1)) && !execution.text.includes('DO UPDATE');
    if (!isKept) meta.set(textAt(execution, 1), textAt(execution, 2));
    return NONE;
  }),
  read(/^SELECT value FROM cluster_meta/, (execution) => {
    const value = execution.tables.meta.get(textAt(execution, 1));
    return value === undefined ? NONE : [{ value }];
  }),
];

export const callStatements: readonly Statement[] = [
  ...sessionStatements,
  ...roomStatements,
  ...keyStatements,
  ...nodeStatements,
];
