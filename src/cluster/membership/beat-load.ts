/** What a node tells of itself with each beat: JSON, some of which a node of another release may not tell. */
import type { NodeRow } from '../../database/node/nodes.ts';

export interface BeatLoad {
  /** How full it is, 0 to 1 and beyond. */
  readonly load: number;
  /** The channels that it holds of trunks with `max_channels`, by trunk. */
  readonly channels: Readonly<Record<string, number>>;
  /** The trunks that it has registered, each with the end of its binding in milliseconds since the epoch. */
  readonly registered: Readonly<Record<string, number>>;
  /** The Service-Route of each of these that has one. */
  readonly serviceRoutes: Readonly<Record<string, readonly string[]>>;
}

/** Reads a beat. What is missing is zero, or empty. */
export function beatLoadOf(row: Pick<NodeRow, 'load'> | undefined): BeatLoad {
  const told: unknown = JSON.parse(row?.load ?? '{}');
  if (typeof told !== 'object' || told === null) return { load: 0, channels: {}, registered: {}, serviceRoutes: {} };
  return {
    load: 'load' in told && typeof told.load === 'number' ? told.load : 0,
    channels: 'channels' in told ? numbersOf(told.channels) : {},
    registered: 'registered' in told ? numbersOf(told.registered) : {},
    serviceRoutes: 'serviceRoutes' in told ? listsOf(told.serviceRoutes) : {},
  };
}

const numbersOf = (value: unknown): Readonly<Record<string, number>> =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, number]) => [name, Number(number)]))
    : {};

const listsOf = (value: unknown): Readonly<Record<string, readonly string[]>> =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, list]) => [name, Array.isArray(list) ? list.map(String) : []]))
    : {};
