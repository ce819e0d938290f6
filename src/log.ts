import pino from 'pino';
import { isOneFile } from './installation.ts';

/**
 * The log of a component. Fields are an allow-list by construction: identifiers, counts, states and durations. Never a
 * header, a body, a URL's query, a secret or a digit.
 */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * JSON lines on stdout; human-readable when stdout is a terminal and the platform runs from its sources. Lines that
 * stdout does not take, as on a full disk, are lost.
 */
export function createLog(level: string): Log {
  // Calls go on without a log: it is written again when the disk has room.
  process.stdout.on('error', () => {});
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!process.stdout.isTTY || isOneFile) return pino(options);
  const pretty = pino.transport({ target: 'pino-pretty' });
  // The thread that writes ends with its terminal, which is no reason for calls to end.
  pretty.on('error', () => {});
  return pino(options, pretty);
}

/** Says nothing; for tests. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
