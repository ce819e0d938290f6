/**
 * Whether a descriptor of this process holds a UDP port. An attempt to bind the port would not tell: once it is free, a
 * test that runs beside this one may take it.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export function holdsUdpPort(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = readFileSync('/proc/self/net/udp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(local))
    .map((columns) => `socket:[${columns[9]}]`);
  return readdirSync('/proc/self/fd').some((descriptor) => {
    try {
      return sockets.includes(readlinkSync(`/proc/self/fd/${descriptor}`));
    } catch {
      return false; // It was closed since the directory was read.
    }
  });
}
