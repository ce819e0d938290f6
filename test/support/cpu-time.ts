/**
 * The CPU time that this process has used, in milliseconds, all threads together. What work costs is told by it also on
 * a machine that is busy with something else, where the clock goes on while nothing is done.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
