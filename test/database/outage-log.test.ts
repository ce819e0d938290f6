/** What an operator reads of an outage of the database. */
import { expect, test } from 'bun:test';
import { asUnavailable, sqlState } from '../../src/database/driver/database.ts';
import { OutageLog } from '../../src/database/driver/outage-log.ts';
import { OUTAGE_OVER_MS, OUTAGE_SAID_EVERY_MS } from '../../src/limits.ts';
import { type LogFields, silentLog } from '../../src/log.ts';

function outageLog() {
  const said: string[] = [];
  const say = (level: string) => (fields: LogFields) => void said.push(`${level} ${fields.away_ms ?? ''}`.trim());
  return { outage: new OutageLog({ ...silentLog, warn: say('warn'), info: say('info') }), said };
}

const refused = new Error('the database is away (ECONNREFUSED)');

test('An outage of the database is one line when it begins, one a minute, and one when it is over', () => {
  const { outage, said } = outageLog();
  outage.answered(0);
  expect(said).toEqual([]);
  // Ten questions a second, for 90 s.
  for (let now = 1_000; now <= 91_000; now += 100) outage.failed(refused, now);
  expect(said.splice(0)).toEqual(['warn', `warn ${OUTAGE_SAID_EVERY_MS}`]);
  expect(outage.awayMs(91_000)).toBe(90_000);
  // One question that was answered is not the end: others may wait for a connection still.
  outage.answered(91_100);
  outage.failed(refused, 91_200);
  expect(said).toEqual([]);
  outage.answered(91_300);
  outage.answered(91_200 + OUTAGE_OVER_MS);
  outage.answered(91_300 + OUTAGE_OVER_MS);
  expect(said.splice(0)).toEqual(['info 90300']);
  expect(outage.awayMs(199_000)).toBe(0);
  outage.failed(refused, 200_000);
  expect(said.splice(0)).toEqual(['warn']);
});

test('An outage that one question alone has met lasted until the next one was answered', () => {
  const { outage, said } = outageLog();
  outage.failed(refused, 1_000);
  outage.answered(6_000);
  expect(said).toEqual(['warn', 'info 5000']);
});

test('What fails while the platform closes its connections is no outage', () => {
  const { outage, said } = outageLog();
  outage.close();
  outage.failed(refused, 1_000);
  expect(said).toEqual([]);
});

test('A database whose disk is full is told to be that, not by its number alone', () => {
  const full = Object.assign(new Error('could not extend file'), { code: '53100', severity: 'ERROR' });
  expect(String(asUnavailable(full))).toBe('StoreUnavailable: the database is away (its disk is full: 53100)');
});

test('What the system says of a connection is no answer of the server, though it is as long as an SQLSTATE', () => {
  for (const code of ['ECONNREFUSED', 'EACCES', 'EPIPE', 'EPERM', 'EBUSY', 'ENXIO']) {
    const failed = Object.assign(new Error(`connect ${code} 10.0.0.1:5432`), { code, syscall: 'connect' });
    expect(sqlState(failed)).toBeUndefined();
    for (const error of [failed, new Error('a query failed', { cause: failed })])
      expect(String(asUnavailable(error))).toStartWith('StoreUnavailable: the database is away');
  }
  // The server's own are not taken for the system's.
  for (const code of ['23505', 'P0001', 'XX000', 'HV00N', '42P01'])
    expect(sqlState(Object.assign(new Error('refused'), { code }))).toBe(code);
});
