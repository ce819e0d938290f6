/**
 * The processes of the platform as rows: their signs of life, their burial, and what they leave. A node's death is
 * permanent: its id is never used again, and nothing that it writes later is stored (`journal/flush.ts`).
 */
import type { Database, Row } from '../driver/database.ts';

/** What a process says of itself when it starts. */
export interface NodeAbout {
  /** The DATA_DIR, which outlives the process. */
  readonly volumeId: string;
  /** The address and port at which other nodes reach its HTTP server. */
  readonly host: string;
  readonly httpPort: number;
  readonly rtpHost: string;
  /** `host:port` of its SIP; `""` while no socket is bound. */
  readonly sipContact: string;
  readonly labels: readonly string[];
  readonly version: string;
  readonly protocol: number;
}

export interface NodeRow extends NodeAbout {
  readonly nodeId: string;
  /** Milliseconds since the epoch by the database's clock, as the three below. They are for people only. */
  readonly startedAt: number;
  readonly drainingAt: number | undefined;
  readonly deadAt: number | undefined;
  /** The node that declared it dead. */
  readonly deadBy: string;
  /** How long the drain waits from the order that said so, in seconds; undefined: until it is empty. */
  readonly drainSec: number | undefined;
  readonly drainMode: 'wait' | 'move';
  /** Rises each second while it lives and reaches the database. */
  readonly beat: number;
  /** JSON, as the node wrote it. */
  readonly load: string;
}

export interface NodeStore {
  readonly nodeId: string;
  /** Enters this process. Before it, no flush is taken. */
  join(about: NodeAbout): Promise<void>;
  /** Tells the port that SIP was bound to. */
  announce(sipContact: string): Promise<void>;
  /** Raises my beat and reads all nodes that are not dead, and my own. */
  beat(load: string): Promise<readonly NodeRow[]>;
  /** All nodes that are not dead, and those that died within the last day. */
  list(): Promise<readonly NodeRow[]>;
  get(nodeId: string): Promise<NodeRow | undefined>;
  /** The nodes that are not dead and are that process (`""`: none), or work on that DATA_DIR or a copy of it. */
  onVolume(nodeId: string, volumeId: string): Promise<readonly NodeRow[]>;
  /**
   * Declares a node dead if its beat is still the one that was seen; undefined: whatever it is. False: it is not, or it
   * was dead already.
   */
  bury(nodeId: string, beat: number | undefined): Promise<boolean>;
  /** Declares all other nodes dead. Only the one owner of a database may. */
  buryOthers(): Promise<void>;
  /** This process ends by itself. */
  leave(): Promise<void>;
  /**
   * Drains a node, until it is empty where there is no `deadlineSec`. Resolves with false when no such node lives.
   * `as_ordered` keeps the mode of a drain that was ordered before, and is `wait` where there was none.
   */
  drain(nodeId: string, deadlineSec: number | undefined, mode: 'wait' | 'move' | 'as_ordered'): Promise<boolean>;
  undrain(nodeId: string): Promise<boolean>;
  /** Writes a fact of the cluster where there is none, and reads what there is. */
  fact(name: string, value: string): Promise<string>;
  /** Calls back once, when a flush or a beat says that this node was declared dead. */
  onDead(told: (by: string) => void): void;
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
const COLUMNS = `n.node_id, n.volume_id, n.host, n.http_port, n.rtp_host, n.sip_contact, array_to_json(n.labels)::text AS labels, n.version,
  n.protocol, n.started_at, n.draining_at, n.drain_sec, n.drain_mode, n.dead_at, n.dead_by, b.beat, b.load`;
const FROM = 'FROM nodes AS n JOIN node_beats AS b ON b.node_id = n.node_id';
const JOIN = `WITH beats AS (INSERT INTO node_beats (node_id, beat, at, load) VALUES ($1, 0, ${NOW}, '{}'))
  INSERT INTO nodes (node_id, volume_id, host, http_port, rtp_host, sip_contact, labels, version, protocol, started_at)
  VALUES ($1, $2, $3, $4::int, $5, $6, ARRAY(SELECT json_array_elements_text($7::text::json)), $8, $9::int, ${NOW})`;
const BEAT = `WITH mine AS (UPDATE node_beats SET beat = beat + 1, at = ${NOW}, load = $2 WHERE node_id = $1)
  SELECT ${COLUMNS} ${FROM} WHERE n.dead_at IS NULL OR n.node_id = $1`;
const LIST = `SELECT ${COLUMNS} ${FROM} WHERE n.dead_at IS NULL OR n.dead_at > ${NOW} - 86400000 ORDER BY n.started_at, n.node_id`;
const BURY = `UPDATE nodes AS n SET dead_at = ${NOW}, dead_by = $1 FROM node_beats AS b
  WHERE n.node_id = $2 AND b.node_id = n.node_id AND n.dead_at IS NULL AND ($3::bigint IS NULL OR b.beat = $3::bigint) RETURNING 1`;
const BURY_OTHERS = `UPDATE nodes SET dead_at = ${NOW}, dead_by = $1 WHERE node_id <> $1 AND dead_at IS NULL`;
/** A drain that is asked for again keeps its beginning. The mode of one that is over stays in the row. */
const DRAIN = `UPDATE nodes SET draining_at = coalesce(draining_at, ${NOW}), drain_sec = $2::bigint,
  drain_mode = CASE WHEN $3::text <> 'as_ordered' THEN $3::text WHEN draining_at IS NULL THEN 'wait' ELSE drain_mode END
  WHERE node_id = $1 AND dead_at IS NULL RETURNING 1`;
const UNDRAIN = 'UPDATE nodes SET draining_at = NULL, drain_sec = NULL WHERE node_id = $1 AND dead_at IS NULL RETURNING 1';
const FACT = 'INSERT INTO cluster_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING';

/**
 * The row is of a node that is dead or unknown. It is no join: where such a statement has waited for a row, PostgreSQL
 * looks at the row as it is by then, and takes a join with a row that is not there for as true as before. A row that
 * another node took over meanwhile would be taken from that.
 */
export const OF_NO_LIVE_NODE = 'node_id <> ALL (ARRAY(SELECT n.node_id FROM nodes AS n WHERE n.dead_at IS NULL))';

/** What `nodes.ts` shares with the journal: whoever first learns of the death tells it. */
export interface OwnDeath {
  tell(by: string): void;
}

/** `nodeId` names this process. */
export function nodeStore(database: Database, nodeId: string): NodeStore & OwnDeath {
  const listeners: ((by: string) => void)[] = [];
  let isDead = false;
  const tell = (by: string): void => {
    if (isDead) return;
    isDead = true;
    for (const listener of listeners) listener(by);
  };
  return {
    nodeId,
    tell,
    async join(about) {
      const { volumeId, host, httpPort, rtpHost, sipContact, labels, version, protocol } = about;
      const list = JSON.stringify(labels);
      await database.query(JOIN, [nodeId, volumeId, host, httpPort, rtpHost, sipContact, list, version, protocol]);
    },
    announce: async (sipContact) =>
      void (await database.query('UPDATE nodes SET sip_contact = $2 WHERE node_id = $1', [nodeId, sipContact])),
    async beat(load) {
      const rows = (await database.query(BEAT, [nodeId, load])).map(nodeRow);
      const own = rows.find((row) => row.nodeId === nodeId);
      if (own?.deadAt !== undefined) tell(own.deadBy);
      return rows;
    },
    list: async () => (await database.query(LIST)).map(nodeRow),
    async get(which) {
      const [row] = await database.query(`SELECT ${COLUMNS} ${FROM} WHERE n.node_id = $1`, [which]);
      return row === undefined ? undefined : nodeRow(row);
    },
    async onVolume(which, volumeId) {
      const isIt = 'n.dead_at IS NULL AND (n.node_id = $1 OR n.volume_id = $2)';
      return (await database.query(`SELECT ${COLUMNS} ${FROM} WHERE ${isIt}`, [which, volumeId])).map(nodeRow);
    },
    bury: async (which, beat) => (await database.query(BURY, [nodeId, which, beat ?? null])).length > 0,
    buryOthers: async () => void (await database.query(BURY_OTHERS, [nodeId])),
    async leave() {
      // A beat or a flush that is under way would tell of it.
      isDead = true;
      await database.query(BURY, [nodeId, nodeId, null]);
    },
    drain: async (which, sec, mode) => (await database.query(DRAIN, [which, sec ?? null, mode])).length > 0,
    undrain: async (which) => (await database.query(UNDRAIN, [which])).length > 0,
    async fact(name, value) {
      await database.query(FACT, [name, value]);
      const [row] = await database.query('SELECT value FROM cluster_meta WHERE name = $1', [name]);
      return String(row?.value);
    },
    onDead: (told) => void listeners.push(told),
  };
}

const nodeRow = (row: Row): NodeRow => ({
  nodeId: String(row.node_id),
  volumeId: String(row.volume_id),
  host: String(row.host),
  httpPort: Number(row.http_port),
  rtpHost: String(row.rtp_host),
  sipContact: String(row.sip_contact),
  labels: JSON.parse(String(row.labels)),
  version: String(row.version),
  protocol: Number(row.protocol),
  startedAt: Number(row.started_at),
  drainingAt: row.draining_at === null ? undefined : Number(row.draining_at),
  drainSec: row.drain_sec === null ? undefined : Number(row.drain_sec),
  drainMode: row.drain_mode === 'move' ? 'move' : 'wait',
  deadAt: row.dead_at === null ? undefined : Number(row.dead_at),
  deadBy: String(row.dead_by ?? ''),
  beat: Number(row.beat),
  load: String(row.load),
});
