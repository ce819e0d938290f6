/**
 * Short messages that come from telephones. Each segment is a row before it is acknowledged, and the last one that was
 * missing makes the event, in one transaction. What the SMSC sends again because its acknowledgement was lost is told
 * from what a person writes twice by the link: it comes on another one. Where the answer of the database was lost, it
 * comes on the same one, and is known by its time.
 */
import type { Event } from '../event/event.ts';
import { platformEvent } from '../event/platform-event.ts';
import { newUuid, newWebhookId } from '../id.ts';
import { RECEIVED_AGAIN_MS, RECEIVED_GIVEN_UP_MAX } from '../limits.ts';
import { INCOMING_ALPHABETS } from '../machine/message/alphabet.ts';
import type { CarrierLink } from '../machine/message/gateway.ts';
import { assembled, type IncomingPart, type StoredPart } from '../machine/message/incoming.ts';
import type { Database, Queryable, Row } from './driver/database.ts';
import { emit } from './journal/emit.ts';
import { StoreUnavailable } from './journal/journal.ts';

export interface ReceivedStore {
  /**
   * Stores a part for an application, and emits the event of its message once all parts are there. A part that the SMSC
   * sends again is not stored twice. `isAgain`: it was to be stored at that `now` before, and the database did not tell
   * whether it was.
   */
  take(part: IncomingPart, link: CarrierLink, appUuid: string, now: number, isAgain?: boolean): Promise<void>;
  /**
   * Emits what there is of messages that have waited for a part since `before`, ms since the epoch. Rejects where the
   * database has refused one of them, once all others were.
   */
  giveUp(before: number, now: number): Promise<void>;
}

/** What the parts of one message have in common, in the order of the parameters. */
type Key = readonly [to: string, from: string, reference: number, total: number];

const OF_KEY = 'to_number = $1::text AND from_number = $2::text AND reference = $3::int AND total = $4::smallint';
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('received'), hashtext($1::text))`;
/**
 * The acknowledgement of a part may be lost where its link was lost within a minute. One of a message that still waits
 * may come again at any time.
 */
const CAME_BEFORE = `UPDATE received_parts SET came_again = true WHERE part_id = (
  SELECT part_id FROM received_parts WHERE ${OF_KEY} AND number = $5::smallint AND octets = $6::bytea
    AND ((link <> $7::text AND received_at >= $8::bigint AND NOT came_again) OR (total > 1 AND message_uuid IS NULL)
      OR (link = $7::text AND received_at = $9::bigint))
  ORDER BY part_id LIMIT 1) RETURNING 1`;
const INSERT = `INSERT INTO received_parts (to_number, from_number, reference, total, number, octets, link, received_at, app_uuid, alphabet)
  VALUES ($1::text, $2::text, $3::int, $4::smallint, $5::smallint, $6::bytea, $7::text, $8::bigint, $9::text, $10::text)`;
const WAITING = `SELECT part_id, number, octets, alphabet, app_uuid FROM received_parts WHERE ${OF_KEY} AND message_uuid IS NULL ORDER BY part_id`;
const TOLD = `UPDATE received_parts SET message_uuid = $5::uuid WHERE ${OF_KEY} AND message_uuid IS NULL`;
const LATE = `SELECT to_number, from_number, reference, total FROM received_parts WHERE message_uuid IS NULL AND received_at < $1::bigint
  GROUP BY to_number, from_number, reference, total LIMIT ${RECEIVED_GIVEN_UP_MAX}`;

/** Makes the store. `onEvents` is called after each commit that wrote an event. */
export function receivedStore(database: Database, onEvents: () => void): ReceivedStore {
  return {
    async take(part, link, appUuid, now, isAgain = false) {
      const key: Key = [part.to, part.from, part.reference, part.total];
      const isTold = await database.transaction(async (within) => {
        await within.query(LOCK, [`${part.to} ${part.from}`]);
        const here = [...key, part.number, part.octets, link.id];
        const at = Math.floor(now);
        const before = [Math.floor(link.since - RECEIVED_AGAIN_MS), isAgain ? at : null];
        // Nobody was told yet of the event that may have been stored with the part.
        if ((await within.query(CAME_BEFORE, [...here, ...before])).length > 0) return isAgain;
        await within.query(INSERT, [...here, at, appUuid, part.alphabet]);
        return await tell(within, key, now, false);
      });
      if (isTold) onEvents();
    },

    async giveUp(before, now) {
      const failures: unknown[] = [];
      for (const row of await database.query(LATE, [Math.floor(before)])) {
        const key: Key = [String(row.to_number), String(row.from_number), Number(row.reference), Number(row.total)];
        const told = database.transaction(async (within) => {
          await within.query(LOCK, [`${key[0]} ${key[1]}`]);
          return await tell(within, key, now, true);
        });
        const failed = (error: unknown) => {
          if (error instanceof StoreUnavailable) throw error;
          failures.push(error);
        };
        if (await told.catch(failed)) onEvents();
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** Emits the event of a message all of whose parts are there, or `anyway`. Resolves with whether it did. */
async function tell(within: Queryable, key: Key, now: number, anyway: boolean): Promise<boolean> {
  const [to, from, , total] = key;
  const rows = await within.query(WAITING, key);
  const { text, segments } = assembled(rows.map(partOf));
  if (segments === 0 || (segments < total && !anyway)) return false;
  const messageUuid = newUuid();
  const event: Event = {
    event: 'message.received',
    message_uuid: messageUuid,
    from,
    to,
    text,
    segments: total,
    missing_segments: total - segments,
  };
  const appUuid = String(rows.at(-1)?.app_uuid);
  await emit(within, [platformEvent(event, { appUuid, clientState: '', traceparent: '', webhookId: newWebhookId(), now })]);
  await within.query(TOLD, [...key, messageUuid]);
  return true;
}

function partOf(row: Row): StoredPart {
  const alphabet = INCOMING_ALPHABETS.find((each) => each === row.alphabet);
  if (alphabet === undefined || !(row.octets instanceof Uint8Array)) throw new Error('a part of a later version');
  return { alphabet, octets: row.octets, number: Number(row.number) };
}
