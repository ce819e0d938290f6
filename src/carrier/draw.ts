/** Draws by weight: of trunks (docs/operations/carriers.md, Routing) and of SRV records (RFC 2782). */

/**
 * The least weight that is drawn by: one of 0 has a very small chance beside others (RFC 2782), and is drawn among its
 * like.
 */
const LEAST_WEIGHT = 0.01;

/**
 * The lot of one weight; the largest lot of several is drawn. Efraimidis and Spirakis: the largest u^(1/w) is drawn
 * with a probability of w over the sum of all weights. `random` gives numbers in [0, 1).
 */
export const lotOf = (weight: number, random: () => number): number => random() ** (1 / Math.max(weight, LEAST_WEIGHT));
