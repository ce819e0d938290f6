/** What an application keeps in recordings: counted as the rows have it, and bounded. */
import { describe, expect, test } from 'bun:test';
import { KeptCount } from '../../src/call/recording/kept-count.ts';
import { KeptRecordings } from '../../src/call/recording/kept-recordings.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { silentLog } from '../../src/log.ts';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

interface Row {
  readonly app: string;
  /** The node that records it. */
  readonly node: 'here' | 'there';
  /** Bytes of its file, which grows while it is under way. */
  bytes: number;
  /** Bytes as the row has them. */
  noted: number;
  state: 'under way' | 'over' | 'removed';
}

const act = fc.oneof(
  fc.record({
    act: fc.constant('begin' as const),
    app: fc.constantFrom('a', 'b'),
    node: fc.constantFrom('here' as const, 'there' as const),
  }),
  fc.record({
    act: fc.constantFrom('grow' as const, 'end' as const, 'end unmeasured' as const, 'remove' as const),
    at: fc.nat(5),
  }),
  fc.record({
    act: fc.constantFrom('look begins' as const, 'database reads' as const, 'look ends' as const, 'restart' as const),
  }),
);

describe('what an application keeps in recordings', () => {
  test('is exact after a look in which nothing happened, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        let count = new KeptCount();
        const rows: Row[] = [];
        let begun: readonly string[] | undefined;
        let read: ReadonlyMap<string, number> | undefined;
        const sum = (app: string, of: (row: Row) => number) =>
          rows.reduce((all, row) => (row.app === app && row.state !== 'removed' ? all + of(row) : all), 0);
        const stored = (row: Row) => (row.node === 'here' && row.state === 'under way' ? 0 : row.noted);
        const query = () => new Map(['a', 'b'].map((app) => [app, sum(app, stored)]));
        const measure = () => {
          for (const [name, row] of rows.entries()) {
            if (row.state !== 'under way') continue;
            row.noted = row.bytes;
            if (row.node === 'here') count.measured(String(name), row.bytes);
          }
        };
        const look = () => {
          measure();
          count.lookEnds(count.lookBegins(), query());
          for (const app of ['a', 'b']) expect(count.of(app)).toBe(sum(app, ({ bytes }) => bytes));
        };
        for (const each of acts) {
          if ('app' in each) {
            rows.push({ app: each.app, node: each.node, bytes: 0, noted: 0, state: 'under way' });
            if (each.node === 'here') count.begin(String(rows.length - 1), each.app);
          } else if ('at' in each) {
            const row = rows[each.at];
            if (row === undefined) continue;
            const name = String(each.at);
            if (each.act === 'grow' && row.state === 'under way') row.bytes += 10;
            if (each.act === 'remove' && row.state === 'over') row.state = 'removed';
            if (each.act.startsWith('end') && row.state === 'under way') {
              Object.assign(row, { state: 'over', noted: row.bytes });
              if (row.node === 'here') count.end(name, each.act === 'end' ? row.bytes : undefined);
              if (row.node === 'here') count.measured(name, row.bytes);
            }
          } else if (each.act === 'look begins') {
            begun = count.lookBegins();
            read = undefined;
          } else if (each.act === 'database reads' && begun !== undefined) read = query();
          else if (each.act === 'look ends' && begun !== undefined && read !== undefined) {
            count.lookEnds(begun, read);
            begun = undefined;
            read = undefined;
          } else if (each.act === 'restart') {
            for (const row of rows)
              if (row.node === 'here' && row.state === 'under way') Object.assign(row, { state: 'over', noted: row.bytes });
            count = new KeptCount();
            begun = undefined;
            look();
          }
        }
        look();
      }),
    );
  });

  test('has what ended since the last look, and has it once when a look that began after that has read it', () => {
    const count = new KeptCount();
    for (const name of ['r1', 'r2', 'r3']) count.begin(name, 'app');
    count.measured('r1', 10);
    count.end('r1', 30);
    count.measured('r2', 5);
    count.end('r2', undefined);
    expect(count.of('app')).toBe(35);
    const begun = count.lookBegins();
    count.end('r3', 7);
    count.lookEnds(begun, new Map([['app', 36]]));
    expect(count.of('app')).toBe(43);
    count.lookEnds(count.lookBegins(), new Map([['app', 43]]));
    expect([count.of('app'), count.underWay()]).toEqual([43, []]);
  });

  test('is measured late where an end did not tell it, said again once there was room, and left alone after the close', async () => {
    const clock = new VirtualClock();
    const [noted, lines]: [unknown[], string[]] = [[], []];
    let stored = 0;
    const kept = new KeptRecordings({
      maxBytes: 100,
      rows: { kept: async () => new Map([['app', stored]]), sized: async (sizes) => void noted.push([...sizes]) },
      volumeId: 'volume',
      sizeOf: async (name) => (name === 'rec_late' ? 120 : 1),
      clock,
      log: { ...silentLog, warn: (_fields, text) => void lines.push(String(text)) },
    });
    await kept.keepLooking();
    for (const name of ['rec_late', 'rec_told']) kept.begun(name, 'app');
    kept.ended('rec_told', 3);
    kept.ended('rec_late', undefined);
    await clock.advance(1);
    expect([noted, kept.of('app').keptBytes]).toEqual([[[['rec_late', 120]]], 123]);
    for (const [bytes, hasRoom, said] of [
      [123, false, 1],
      [123, false, 1],
      [50, true, 1],
      [100, false, 2],
    ] as const) {
      stored = bytes;
      await clock.advance(60_000);
      expect([kept.hasRoomFor('app'), lines.length]).toEqual([hasRoom, said]);
    }
    const looking = kept.keepLooking();
    kept.close();
    await looking;
    expect(clock.armed).toBe(0);
  });

  test('is counted again once a minute, also after the database was away, and is told once in the log', async () => {
    const clock = new VirtualClock();
    const lines: string[] = [];
    let stored = 90;
    let isAway = false;
    const noted: unknown[] = [];
    const kept = new KeptRecordings({
      maxBytes: 100,
      rows: {
        async kept() {
          if (isAway) throw new Error('away');
          return new Map([['app', stored]]);
        },
        sized: async (sizes) => void noted.push([...sizes]),
      },
      volumeId: 'volume',
      sizeOf: async () => 10,
      clock,
      log: { ...silentLog, warn: (_fields, text) => void lines.push(String(text)) },
    });
    expect(kept.hasRoomFor('app')).toBe(true);
    await kept.keepLooking();
    expect([kept.of('app'), kept.full]).toEqual([{ keptBytes: 90, maxBytes: 100 }, 0]);
    kept.begun('rec_1', 'app');
    await clock.advance(60_000);
    expect(noted).toEqual([[['rec_1', 10]]]);
    expect([kept.hasRoomFor('app'), kept.hasRoomFor('app'), kept.hasRoomFor('other'), kept.full]).toEqual([
      false,
      false,
      true,
      1,
    ]);
    expect(lines).toHaveLength(1);
    isAway = true;
    stored = 0;
    await clock.advance(60_000);
    expect(kept.hasRoomFor('app')).toBe(false);
    isAway = false;
    await clock.advance(60_000);
    expect([kept.hasRoomFor('app'), kept.of('app').keptBytes]).toEqual([true, 10]);
    kept.close();
  });

  test('is read also where the database refuses to note a size, which the log tells, as of the reading', async () => {
    const lines: string[] = [];
    let fault: Error | undefined;
    const kept = new KeptRecordings({
      maxBytes: 100,
      rows: {
        async kept() {
          if (fault !== undefined) throw fault;
          return new Map([['app', 90]]);
        },
        sized: () => Promise.reject(new Error('one row is refused')),
      },
      volumeId: 'volume',
      sizeOf: async () => 20,
      clock: new VirtualClock(),
      log: { ...silentLog, warn: (_fields, text) => void lines.push(text) },
    });
    kept.begun('rec_1', 'app');
    await kept.look();
    expect(kept.of('app').keptBytes).toBe(110);
    expect(lines).toEqual(['the sizes of recordings could not be noted']);
    fault = new Error('refused');
    await kept.look();
    expect(lines.slice(2)).toEqual(['what applications keep in recordings could not be read']);
    fault = new StoreUnavailable('away');
    await kept.look();
    expect(lines).toHaveLength(4);
  });

  test('is looked at anew after a removal, where a look under way has read the rows of before', async () => {
    const late = Promise.withResolvers<number>();
    const reads = [Promise.resolve(100), late.promise, Promise.resolve(0), Promise.resolve(100)];
    const kept = new KeptRecordings({
      maxBytes: 100,
      rows: { kept: async () => new Map([['app', (await reads.shift()) ?? 0]]), sized: async () => {} },
      volumeId: 'volume',
      sizeOf: async () => undefined,
      clock: new VirtualClock(),
      log: silentLog,
    });
    await kept.look();
    void kept.look();
    const removed = kept.removed('app');
    late.resolve(100);
    await removed;
    expect(kept.hasRoomFor('app')).toBe(true);
    // No request waits for a look while there is room.
    await kept.removed('app');
    expect(reads).toHaveLength(1);
  });
});
