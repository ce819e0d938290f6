/** A look, at the start, whether the addresses of RTP are this machine's. It needs no media plane. */
import { startError } from '../../start-error.ts';

/**
 * Throws where no socket can be bound on the address that a setting names: each call, or each pipe to another node,
 * would find no port.
 */
export async function tryAddress(setting: string, host: string): Promise<void> {
  try {
    (await Bun.udpSocket({ hostname: host, port: 0 })).close();
  } catch (error) {
    throw startError(setting, `no port of ${host} can be bound`, error);
  }
}
