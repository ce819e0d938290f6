import pino from 'pino';
import { isOneFile } from './installation.ts';
import { LOG_WAITING_MAX_LINES } from './limits.ts';

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
 * stdout does not take are lost: on a full disk, and beyond LOG_WAITING_MAX_LINES of a reader that stands still, which
 * a line tells once it reads again.
 */
export function createLog(level: string): Log {
  // Calls go on without a log: it is written again when the disk has room.
  process.stdout.on('error', () => {});
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!process.stdout.isTTY || isOneFile) {
    const log: Log = pino(
      options,
      boundedLines(process.stdout, (lines) => log.warn({ lines }, 'the log was not read, and lines of it were lost')),
    );
    return log;
  }
  const pretty = pino.transport({ target: 'pino-pretty' });
  // The thread that writes ends with its terminal, which is no reason for calls to end.
  pretty.on('error', () => {});
  return pino(options, pretty);
}

/** A stream that tells when it has taken a line, or has failed to. */
interface LineSink {
  write(line: string, taken: () => void): unknown;
}

/**
 * Passes lines on while fewer than LOG_WAITING_MAX_LINES wait for the sink, and loses them otherwise. `onLost` is told
 * how many were lost before the next one that is passed on.
 */
export function boundedLines(sink: LineSink, onLost: (lines: number) => void): { write(line: string): void } {
  let waiting = 0;
  let lost = 0;
  const taken = () => {
    waiting--;
  };
  return {
    write(line) {
      if (waiting >= LOG_WAITING_MAX_LINES) {
        lost++;
        return;
      }
      const lines = lost;
      lost = 0;
      if (lines > 0) onLost(lines);
      waiting++;
      sink.write(line, taken);
    },
  };
}

/** Says nothing; for tests. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
