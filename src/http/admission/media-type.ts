/**
 * 415: an explicit media type that is not JSON. Missing or blank is tolerated, parameters are accepted (interface,
 * Endpoints). A compressed body is 415 too (RFC 9110 §15.5.16): unpacked it could be of any size. The audio of a push
 * has any media type, but no coding either: compressed bytes would be heard as noise.
 */
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+=("[^"]*"|[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*)*;?$/i;

/** Whether a `Content-Type` is that of JSON, whatever its case and with or without parameters. */
export const isJsonType = (given: string): boolean => JSON_TYPE.test(given.trim());

export function mediaType(context: RequestContext): Problem | undefined {
  const { takesBody, maxBytes } = context.route;
  if (!takesBody && maxBytes !== Number.POSITIVE_INFINITY) return undefined;
  const { headers } = context.request;
  const coding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (coding !== '' && coding !== 'identity') return problems.unsupportedCoding();
  if (!takesBody) return undefined;
  const given = headers.get('content-type')?.trim() ?? '';
  return given === '' || isJsonType(given) ? undefined : problems.unsupportedMediaType();
}
