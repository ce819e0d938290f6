/**
 * Names in place of addresses in session descriptions (RFC 8866 §5.7): they are resolved, and screened, before the
 * description is used.
 */
import ipaddr from 'ipaddr.js';
import { SDP_RESOLVE_TIMEOUT_MS } from '../../limits.ts';
import { lookUpForeign } from '../../outbound/lookup.ts';
import { type Addresses, parseDescription } from '../../sdp/description.ts';

/** Names that one description may have us look up. */
const NAMES_MAX = 4;

/** The names in a session description that stand for addresses. */
export function namesIn(body: Uint8Array): readonly string[] {
  const names = parseDescription(body)?.media.flatMap(({ type, hostName }) =>
    type === 'audio' && hostName !== '' ? [hostName] : [],
  );
  return [...new Set(names)].slice(0, NAMES_MAX);
}

/**
 * Looks names up, for SDP_RESOLVE_TIMEOUT_MS at most, for addresses of the IP version that our ports speak. `far` is
 * the address of whoever sent the description. A name has no entry in the result when it has no address that RTP can
 * be sent to. Never rejects.
 */
export async function addressesOf(
  names: readonly string[],
  far: string,
  family: 4 | 6,
  wait: (ms: number, then: () => void) => () => void,
): Promise<Addresses> {
  const found = new Map<string, string>();
  const timeUp = Promise.withResolvers<void>();
  const cancel = wait(SDP_RESOLVE_TIMEOUT_MS, timeUp.resolve);
  const all = names.map(async (name) => {
    const addresses = await lookUpForeign(name, far, family).catch(() => []);
    const usable = addresses.find(({ address }) => isReachable(address));
    if (usable !== undefined) found.set(name, usable.address);
  });
  await Promise.race([Promise.all(all), timeUp.promise]);
  cancel();
  return found;
}

/** Whether RTP may be sent to an address: it is one host, neither multicast, broadcast nor unspecified. */
function isReachable(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const range = ipaddr.process(address).range();
  return range !== 'multicast' && range !== 'broadcast' && range !== 'unspecified' && range !== 'reserved';
}
