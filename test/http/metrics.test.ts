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

test('the metrics, which anybody may read, are made anew only after ten times as long as that took', async () => {
  let now = 0;
  let made = 0;
  const read = sparing(
    async () => {
      now += 5;
      return ++made;
    },
    () => now,
  );
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  now += 49;
  expect(await read()).toBe(1);
  now += 1;
  expect(await read()).toBe(2);
  let isBroken = true;
  const broken = sparing(async () => {
    if (isBroken) throw new Error('a reading failed');
    return made;
  });
  await expect(broken()).rejects.toThrow('a reading failed');
  isBroken = false;
  expect(await broken()).toBe(2);
});
