/**
 * How the answer of a command is stored under its Idempotency-Key, by the commit that carries the effect: as the rest
 * of a row that marks the key, or as a row of its own where the marks are in memory (`key-marks.ts`).
 */
import { IDEMPOTENCY_KEPT_SEC } from '../../limits.ts';
import type { KeyMarks } from '../idempotency/key-marks.ts';
import type { StoredAnswer } from './journal.ts';

/** An answer as a row. It has a fingerprint and an age where it is a row of its own. */
export interface AnswerRow {
  readonly app_uuid: string;
  readonly key: string;
  readonly status: number;
  /** JSON. */
  readonly body: string;
  readonly fingerprint?: string;
  /** When the key was marked; ms since the epoch. */
  readonly created_at?: number;
}

export interface KeptAnswers {
  readonly as: 'update' | 'insert';
  /** The row of an answer, or undefined when its key is not marked and the answer is not stored. */
  row(answer: StoredAnswer): AnswerRow | undefined;
}

/** `marks`: those of a process that has its database for itself. */
export function keptAnswers(marks: KeyMarks | undefined): KeptAnswers {
  const plain = ({ appUuid, key, status, body }: StoredAnswer): AnswerRow => ({
    app_uuid: appUuid,
    key,
    status,
    body: JSON.stringify(body),
  });
  if (marks === undefined) return { as: 'update', row: plain };
  return {
    as: 'insert',
    row(answer) {
      const mark = marks.of(answer);
      return mark === undefined ? undefined : { ...plain(answer), fingerprint: mark.fingerprint, created_at: mark.markedAt };
    },
  };
}

const COLUMNS = 'guard uuid, room_guard uuid, app_uuid text, key text, status smallint, body text';

/**
 * The mark is found by its primary key inside LATERAL, because a plan that was made while the table was empty read all
 * marks for each flush otherwise: 4,800 keyed writes a second instead of 9,800. The answer is inserted in its place: an
 * UPDATE would leave out a mark that another statement changes meanwhile, and keep the effect without its answer. The
 * rows are the JSON array `parameter`, of which each is kept that meets `condition` on `a`.
 */
const update = (parameter: string, condition: string): string => `INSERT INTO idempotency AS i
    (app_uuid, key, fingerprint, status, body, lease_until, node_id, created_at)
  SELECT m.app_uuid, m.key, m.fingerprint, a.status, a.body, m.lease_until, m.node_id, m.created_at
  FROM json_to_recordset(${parameter}::text::json) AS a (${COLUMNS}),
    LATERAL (SELECT * FROM idempotency WHERE app_uuid = a.app_uuid AND key = a.key LIMIT 1) AS m
  WHERE m.status IS NULL AND ${condition}
  ON CONFLICT (app_uuid, key) DO UPDATE SET status = excluded.status, body = excluded.body
  WHERE i.status IS NULL AND i.fingerprint = excluded.fingerprint`;

/** An answer that is stored stays, for as long as it is kept. */
const insert = (parameter: string, condition: string): string => `INSERT INTO idempotency AS i
    (app_uuid, key, fingerprint, status, body, lease_until, created_at)
  SELECT app_uuid, key, fingerprint, status, body, created_at, created_at
  FROM json_to_recordset(${parameter}::text::json) AS a (${COLUMNS}, fingerprint text, created_at bigint)
  WHERE ${condition}
  ON CONFLICT (app_uuid, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    lease_until = excluded.lease_until, created_at = excluded.created_at
  WHERE i.status IS NULL OR i.created_at < excluded.created_at - ${IDEMPOTENCY_KEPT_SEC * 1000}`;

export const answerStatement = { update, insert } as const;

/** Stores answers as rows of their own. */
export const INSERT_ANSWER = insert('$1', 'true');
