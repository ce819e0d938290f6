/** The time that a database has seen, kept in it as a fact, by which a clock that is wrong at a start is found. */
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { LEAP_MS, look, type WitnessedTime } from '../../machine/node/witnessed-time.ts';
import type { Database } from '../driver/database.ts';

const NAME = 'time_seen';
const READ = 'SELECT value FROM cluster_meta WHERE name = $1';
const WRITE = 'INSERT INTO cluster_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value';
const REDATE = `UPDATE recordings SET ended_at = $3::bigint WHERE removed_at IS NULL AND ended_at BETWEEN $1::bigint AND $2::bigint`;

/**
 * Makes what looks at the time. The look resolves with whether what is past its retention may be removed: not while
 * the time is ahead of what the database has seen. Recordings that a clock behind has dated are kept from now on.
 */
export function timeWitness(database: Database, clock: Clock, log: Log): () => Promise<boolean> {
  return async () => {
    const now = Math.floor(clock.now());
    // The time of a process goes on from its start: the clock was wrong then, and is right by now.
    if (now - clock.wall() > LEAP_MS) {
      const hours = Math.round((now - clock.wall()) / 3_600_000);
      log.error({ hours }, 'the clock was set back since this process started: it removes nothing until it is started again');
      return false;
    }
    const [row] = await database.query(READ, [NAME]);
    const { verdict, time, misdated } = look(row === undefined ? undefined : witnessed(String(row.value)), now);
    if (misdated !== undefined) await database.query(REDATE, [Math.floor(misdated.from), Math.floor(misdated.to), now]);
    await database.query(WRITE, [NAME, JSON.stringify(time)]);
    const fields = { hours: Math.round((now - time.seen) / 3_600_000), seen: new Date(time.seen).toISOString() };
    if (verdict === 'ahead')
      log.warn(
        fields,
        'the clock is hours ahead of what the database has seen: nothing is removed for a day, in case it is wrong',
      );
    if (verdict === 'behind') log.error(fields, 'the clock is behind what the database has seen: set it, and start again');
    return verdict !== 'ahead';
  };
}

function witnessed(text: string): WitnessedTime | undefined {
  const { seen, leapt, behind }: Partial<WitnessedTime> = JSON.parse(text);
  return seen === undefined ? undefined : { seen, leapt, behind };
}
