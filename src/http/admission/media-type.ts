/**
 * 415: an explicit media type that is not JSON. Missing or blank is tolerated, parameters are accepted (interface,
 * Endpoints).
 */
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+=("[^"]*"|[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*)*;?$/i;

export function mediaType(context: RequestContext): Problem | undefined {
  if (!context.route.takesBody) return undefined;
  const given = context.request.headers.get('content-type')?.trim() ?? '';
  return given === '' || JSON_TYPE.test(given) ? undefined : problems.unsupportedMediaType();
}
