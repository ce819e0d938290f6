import { describe, expect, test } from 'bun:test';
import { type Connection, Listeners } from '../../src/http/listeners.ts';
import { LISTENER_SHARES, LISTENER_STALL_MAX_MS, LISTENER_SWEEP_MS, LISTENERS_OF_ONE_MAX } from '../../src/limits.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/** Two applications have all places. */
const appOf = (count: number): string => `app_${Math.floor(count / LISTENER_SHARES.ofApp)}`;
const silent: Connection = { wait() {}, resume() {}, drop() {} };

/** A listener of a source that has whatever it is given, and what was done to its connection. */
function scene() {
  const clock = new VirtualClock();
  const listeners = new Listeners(clock);
  const done: string[] = [];
  const listener = listeners.admit('rec_1', 'app', {
    wait: () => void done.push('wait'),
    resume: () => void done.push('resume'),
    drop: () => void done.push('drop'),
  });
  let give: (bytes: Uint8Array | undefined) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const source = {
    closed: 0,
    next: () =>
      new Promise<Uint8Array | undefined>((resolve, reject) => {
        give = resolve;
        fail = reject;
      }),
    close: () => void source.closed++,
  };
  const body = listener?.listen(source, new Uint8Array([1]));
  if (body === undefined) throw new Error('not admitted');
  return {
    clock,
    listeners,
    done,
    source,
    reader: body.getReader(),
    give: (bytes?: Uint8Array) => give(bytes),
    fail: (error: Error) => fail(error),
  };
}

describe('listeners', () => {
  test('are so many altogether and of one recording', () => {
    const listeners = new Listeners(new VirtualClock());
    const admitted = [];
    for (let count = 0; count < LISTENER_SHARES.all; count++)
      admitted.push(listeners.admit(`rec_${Math.floor(count / LISTENERS_OF_ONE_MAX)}`, appOf(count), silent));
    expect(admitted.every((each) => each !== undefined)).toBe(true);
    expect(listeners.admit('rec_another', 'app_0', silent)).toBeUndefined();
    // An application that has next to none finds its first places.
    const first = Array.from({ length: LISTENER_SHARES.reservedOfApp + 1 }, () =>
      listeners.admit('rec_another', 'app_another', silent),
    );
    expect(first.filter((each) => each === undefined)).toHaveLength(1);
    for (const each of first) each?.close();
    admitted[0]?.close();
    admitted[0]?.close();
    expect(listeners.admit('rec_1', 'app_0', silent)).toBeUndefined();
    expect(listeners.admit('rec_0', 'app_0', silent)).toBeDefined();
    expect(listeners.admit('rec_0', 'app_0', silent)).toBeUndefined();
  });

  test('of one recording leave one place where one of them goes', () => {
    const listeners = new Listeners(new VirtualClock());
    const admitted = Array.from({ length: LISTENERS_OF_ONE_MAX + 1 }, () => listeners.admit('rec_0', 'app_0', silent));
    expect(admitted.filter((each) => each === undefined)).toHaveLength(1);
    admitted[0]?.close();
    expect(listeners.admit('rec_0', 'app_0', silent)).toBeDefined();
    expect(listeners.admit('rec_0', 'app_0', silent)).toBeUndefined();
  });

  test('of one application leave places for those of others', () => {
    const listeners = new Listeners(new VirtualClock());
    const admitted = Array.from({ length: LISTENER_SHARES.all }, (_, count) =>
      listeners.admit(`rec_${count}`, 'app_greedy', silent),
    );
    expect(admitted.filter((each) => each !== undefined)).toHaveLength(LISTENER_SHARES.ofApp);
    expect(listeners.admit('rec_own', 'app_other', silent)).toBeDefined();
    admitted[0]?.close();
    expect(listeners.admit('rec_0', 'app_greedy', silent)).toBeDefined();
    expect(listeners.admit('rec_0', 'app_greedy', silent)).toBeUndefined();
  });

  test('may be silent for as long as there is nothing to hear', async () => {
    const { clock, listeners, done, reader, give } = scene();
    expect((await reader.read()).value).toEqual(new Uint8Array([1]));
    const next = reader.read();
    await clock.advance(24 * 3600 * 1000);
    expect([done, listeners.size]).toEqual([['wait'], 1]);
    give(new Uint8Array([2]));
    expect((await next).value).toEqual(new Uint8Array([2]));
  });

  test('go back to the usual time when all was heard', async () => {
    const { clock, listeners, done, source, reader, give } = scene();
    await reader.read();
    const last = reader.read();
    await settle();
    give(undefined);
    expect((await last).done).toBe(true);
    expect([done, source.closed, listeners.size]).toEqual([['wait', 'resume'], 1, 0]);
    await clock.advance(LISTENER_SWEEP_MS);
    expect(clock.armed).toBe(0);
  });

  test('that take nothing of what they were given are cut off in time', async () => {
    const { clock, listeners, done, source, reader } = scene();
    await reader.read();
    await clock.advance(LISTENER_STALL_MAX_MS - 1);
    expect(listeners.size).toBe(1);
    await clock.advance(LISTENER_SWEEP_MS);
    expect([done, source.closed, listeners.size]).toEqual([['wait', 'drop'], 1, 0]);
    expect(
      await reader.read().then(
        () => 'more',
        () => 'broken off',
      ),
    ).toBe('broken off');
    await clock.advance(LISTENER_SWEEP_MS);
    expect(clock.armed).toBe(0);
  });

  test('whose source fails hear that it broke off', async () => {
    const { done, source, listeners, reader, fail } = scene();
    await reader.read();
    const next = reader.read();
    await settle();
    fail(new Error('the disk'));
    expect(
      await next.then(
        () => 'more',
        () => 'broken off',
      ),
    ).toBe('broken off');
    expect([done, source.closed, listeners.size]).toEqual([['wait', 'drop'], 1, 0]);
  });

  test('that leave give everything back, and nothing more reaches them', async () => {
    const { source, listeners, reader, give } = scene();
    await reader.read();
    const next = reader.read();
    await settle();
    await reader.cancel();
    expect([source.closed, listeners.size]).toEqual([1, 0]);
    give(new Uint8Array([2]));
    expect((await next).done).toBe(true);
  });
});
