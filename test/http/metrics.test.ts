import { expect, test } from 'bun:test';
import { sparing } from '../../src/http/metrics.ts';
import { createMetrics } from '../../src/metrics.ts';

test('the metrics of the process are there, but for those that stop everything while the heap is walked', async () => {
  const text = await createMetrics([{ name: 'legs', help: 'Legs.', kind: 'gauge', read: () => 3 }]).metrics();
  expect(text).toContain('sidetone_legs 3');
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(text).toContain(`sidetone_${name} `);
  expect(text).not.toContain('heap_space');
});

test('the metrics, which anybody may read, are made twenty times at once and ten times a second, and else told again', async () => {
  let now = 0;
  let made = 0;
  const read = sparing(
    async () => ++made,
    () => now,
  );
  const many = await Promise.all(Array.from({ length: 25 }, read));
  expect(many).toEqual([...Array.from({ length: 20 }, (_, at) => at + 1), 20, 20, 20, 20, 20]);
  now += 99;
  expect(await read()).toBe(20);
  now += 1;
  expect(await read()).toBe(21);
  now += 60_000;
  expect(new Set(await Promise.all(Array.from({ length: 30 }, read))).size).toBe(20);
  let isBroken = true;
  const broken = sparing(async () => {
    if (isBroken) throw new Error('a reading failed');
    return made;
  });
  for (let times = 0; times < 30; times++) await expect(broken()).rejects.toThrow('a reading failed');
  isBroken = false;
  expect(await broken()).toBe(made);
});
