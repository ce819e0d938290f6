import { expect, test } from 'bun:test';
import { createMetrics } from '../../src/metrics.ts';

test('the metrics of the process are there, but for those that stop everything while the heap is walked', async () => {
  const text = await createMetrics([{ name: 'legs', help: 'Legs.', kind: 'gauge', read: () => 3 }]).metrics();
  expect(text).toContain('sidetone_legs 3');
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(text).toContain(`sidetone_${name} `);
  expect(text).not.toContain('heap_space');
});
