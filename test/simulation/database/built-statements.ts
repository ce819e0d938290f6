/**
 * The statements that the product builds with Drizzle: applications, credentials, and the rows of recordings. Drizzle
 * asks for rows as arrays, in the order of the columns that it names.
 */
import type { Execution, Statement } from './statement.ts';
import { listAt, NONE, numberAt, read, textAt, write } from './statement.ts';
import type { AppRecord, RecordingRecord } from './tables.ts';

/** The rows with their columns in the order in which the statement names them. */
function inOrder({ text }: Execution, rows: readonly RecordingRecord[]) {
  const names = [...(/^select (.*?) from /.exec(text)?.[1] ?? '').matchAll(/"([a-z0-9_]+)"/g)].map(([, name = '']) => name);
  return rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])));
}

const recordings = ({ tables }: Execution): readonly RecordingRecord[] => [...tables.recordings.values()];

const appOf = (execution: Execution) => execution.tables.apps.get(textAt(execution, 1));

/** Tells whether a live node, but not `except`, has the volume. */
const isOnLiveNode = ({ tables }: Execution, volumeId: string, except: string): boolean =>
  [...tables.nodes.values()].some((row) => row.volume_id === volumeId && row.dead_at === null && row.node_id !== except);

const recordingStatements: readonly Statement[] = [
  read(/^select .* from "recordings" where "recordings"\."recording_uuid" in/, (execution) =>
    inOrder(
      execution,
      recordings(execution).filter((row) => execution.parameters.includes(row.recording_uuid)),
    ),
  ),
  read(/^select .* from "recordings" where \("recordings"\."ended_at" is null and NOT EXISTS/s, (execution) => {
    const except = execution.parameters[1] === true ? textAt(execution, 1) : '';
    return inOrder(
      execution,
      recordings(execution)
        .filter((row) => row.ended_at === null && !isOnLiveNode(execution, row.volume_id, except))
        .sort((a, b) => a.created_at - b.created_at),
    );
  }),
  read(/^select .* from "recordings" where \(\("recordings"\."volume_id" = \$1/, (execution) =>
    inOrder(
      execution,
      recordings(execution).filter(
        (row) =>
          row.volume_id === textAt(execution, 1) && row.ended_at !== null && row.duration_ms === null && row.removed_at === null,
      ),
    ),
  ),
  read(/^select .* from "recordings" where \("recordings"\."removed_at" is null/s, (execution) =>
    inOrder(
      execution,
      recordings(execution).filter(
        (row) => row.removed_at === null && row.ended_at !== null && row.ended_at < numberAt(execution, 1),
      ),
    ),
  ),
  write(/^update "recordings" set "duration_ms"/, (execution) => () => {
    const row = execution.tables.recordings.get(textAt(execution, 3));
    const file = { duration_ms: numberAt(execution, 1), bytes: numberAt(execution, 2) };
    if (row !== undefined) execution.tables.recordings.set(row.recording_uuid, { ...row, ...file });
    return NONE;
  }),
];

/** Which of the pairs of an application and a text are permitted, by their places from 1 on. */
const allowed = (text: RegExp, permitted: (app: AppRecord) => readonly string[]): Statement =>
  read(text, (execution) =>
    listAt<readonly [string, string]>(execution, 1).flatMap(([appUuid, value], at) => {
      const app = execution.tables.apps.get(appUuid);
      return app !== undefined && permitted(app).includes(value) ? [{ allowed: at + 1 }] : [];
    }),
  );

export const builtStatements: readonly Statement[] = [
  ...recordingStatements,
  read(/^SELECT name, webhook_url, .* FROM apps WHERE app_uuid = \$1$/s, (execution) => {
    const app = appOf(execution);
    if (app === undefined) return NONE;
    const { webhook_url, max_rooms, max_members_per_room } = app;
    return [
      {
        name: 'simulated',
        webhook_url,
        webhook_disabled: false,
        webhook_since: '0',
        blocked: '[]',
        max_rooms,
        max_members_per_room,
        allowed: '[]',
        refused: '[]',
        created_at: '0',
      },
    ];
  }),
  read(/^SELECT app_uuid, encode\(hash, 'hex'\) AS hash FROM api_keys/, (execution) =>
    listAt<string>(execution, 1).flatMap((app_uuid) => {
      const app = execution.tables.apps.get(app_uuid);
      return app === undefined ? [] : [{ app_uuid, hash: Buffer.from(app.key_hash).toString('hex') }];
    }),
  ),
  read(/^select "sealed" from "webhook_secrets"/, (execution) => {
    const app = appOf(execution);
    return app === undefined ? NONE : [{ sealed: app.sealed_secret }];
  }),
  allowed(/^\nSELECT .* AS allowed\n.* FROM caller_ids AS t /s, ({ caller_ids }) => caller_ids),
  allowed(/^\nSELECT .* AS allowed\n.* FROM payment_terminals AS t /s, ({ terminals }) => terminals),
  read(/^SELECT to_number, from_number, reference, total FROM received_parts /, () => NONE),
  read(/^SELECT 1$/, () => [{ one: 1 }]),
  write(/^NOTIFY sidetone_events$/, () => () => NONE),
];
