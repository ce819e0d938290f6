/** The packet time (RFC 8866 §6.4): what we ask for, and what we send where the far end asks. */
import type { ParsedMedia } from 'sdp-transform';

/** The packet time that we ask for. */
export const PTIME_MS = 20;

/**
 * The packet time that we send, in milliseconds: the one they ask for when it is 10 to 60 in whole frames of 10 ms,
 * else 20; no longer than the longest that they take (`a=maxptime`), if that is one frame at least.
 */
export function packetTime({ ptime, maxptime }: Pick<ParsedMedia, 'ptime' | 'maxptime'>): number {
  const [wanted, longest] = [positive(ptime), positive(maxptime)];
  const asked = wanted !== undefined && wanted >= 10 && wanted <= 60 && wanted % 10 === 0 ? wanted : PTIME_MS;
  const most = longest === undefined ? asked : Math.max(10, Math.floor(longest / 10) * 10);
  return Math.min(asked, most);
}

/** A number that may be written with a fraction of zero. */
const positive = (value: number | string = 0): number | undefined => (Number(value) > 0 ? Number(value) : undefined);
