/** How much memory this process may use, as the kernel tells it. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';

/**
 * The lowest limit of the control groups that this process is in (cgroup v2: `memory.max` of a container, `MemoryMax`
 * of systemd, each within the one above), at most the memory of the machine. Bytes.
 */
export function memoryLimit(groups = '/sys/fs/cgroup', membership = '/proc/self/cgroup', machine = totalmem()): number {
  const [, own = '/'] = /^0::(\/.*)$/m.exec(textOf(membership)) ?? [];
  const names = own.split('/').filter((name) => name !== '' && name !== '..');
  const paths = [...names.keys(), names.length].map((depth) => join(groups, ...names.slice(0, depth), 'memory.max'));
  // A group without a limit has the word `max`.
  const limits = paths.map((path) => Number.parseInt(textOf(path), 10)).filter((bytes) => bytes > 0);
  return Math.min(machine, ...limits);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
