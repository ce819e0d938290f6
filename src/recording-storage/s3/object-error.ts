/**
 * The faults between us and an object store, by what is to be done about them. None carries a URL, a header or a body.
 */
import { codeOf } from '../../error-facts.ts';

type ObjectFault =
  /** The store was not reached, or is in no state to answer. Everything waits and is tried again soon. */
  | 'away'
  /** Bucket, credentials, region or clock are not right: everything waits until someone has changed that. */
  | 'refused'
  /** This one request will not do, others may. */
  | 'rejected'
  /** There is no multipart upload of that id, or no longer. */
  | 'upload unknown'
  /** There is no such object. */
  | 'missing';

export class ObjectError extends Error {
  override readonly name = 'ObjectError';
  readonly fault: ObjectFault;
  /** The store's own word (`NoSuchBucket`) or the connection's (`ECONNRESET`). */
  readonly code: string;
  /** The status of the HTTP answer. Undefined when there was none. */
  readonly status: number | undefined;

  constructor(fault: ObjectFault, code: string, status?: number) {
    super(`object store: ${fault}: ${code}`);
    this.fault = fault;
    this.code = code;
    this.status = status;
  }
}

/** Said of one request or its upload, not of the bucket. */
const OF_ONE = new Set([
  'BadDigest',
  'EntityTooLarge',
  'EntityTooSmall',
  'IncompleteBody',
  'InvalidDigest',
  'InvalidPart',
  'InvalidPartOrder',
  'InvalidRange',
  'MalformedXML',
  'XAmzContentSHA256Mismatch',
]);
/** Said with a status of 4xx, or of 200, and yet of the moment. */
const OF_THE_MOMENT = new Set([
  'InternalError',
  'OperationAborted',
  'RequestTimeout',
  'ServiceUnavailable',
  'SlowDown',
  'Throttling',
  'ThrottlingException',
]);

/** Reads an answer that is no success. `body` is its XML, if it had one. */
export function faultOf(status: number, body: string): ObjectError {
  const code = word(/<Code>([^<]*)<\/Code>/.exec(body)?.[1]) ?? `HTTP ${status}`;
  return new ObjectError(kindOf(status, code), code, status);
}

function kindOf(status: number, code: string): ObjectFault {
  if (code === 'NoSuchUpload') return 'upload unknown';
  if (code === 'NoSuchKey') return 'missing';
  if (OF_ONE.has(code)) return 'rejected';
  if (OF_THE_MOMENT.has(code) || status === 408 || status === 429) return 'away';
  if (status === 501) return 'refused';
  // A HEAD has no body to say what is missing.
  if (status === 404 && code === 'HTTP 404') return 'missing';
  return status >= 500 ? 'away' : 'refused';
}

/** Reads the error that broke a connection, or `fetch` itself. */
export function connectionFault(error: unknown): ObjectError {
  if (error instanceof ObjectError) return error;
  return new ObjectError('away', word(codeOf(error)) ?? word(error instanceof Error ? error.name : undefined) ?? 'Error');
}

/** Something from outside, fit for a log line. */
const word = (text: string | undefined): string | undefined =>
  text !== undefined && /^[A-Za-z0-9_.-]{1,64}$/.test(text) ? text : undefined;
