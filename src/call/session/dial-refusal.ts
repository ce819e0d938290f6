/** How a dial that cannot be carried now is answered. */
import { type Problem, problems } from '../../problem.ts';
import type { DialRefused } from '../ports/leg.ts';

export const NO_CAPACITY_RETRY_SEC = 5;

/** The response to a dial that no trunk can carry now. */
export function dialRefused(why: DialRefused): Problem {
  switch (why) {
    case 'unknown_device':
      return problems.notFound('Device');
    case 'no_trunk':
      return problems.noTrunk();
    case 'unknown_trunk':
      return problems.invalid('trunk: must be the name of a trunk that this application may use');
    case 'no_capacity':
      return problems.noCapacity(NO_CAPACITY_RETRY_SEC);
    case 'no_ports':
      return problems.unavailable('No RTP ports are free.', NO_CAPACITY_RETRY_SEC);
    case 'draining':
      return problems.draining();
  }
}
