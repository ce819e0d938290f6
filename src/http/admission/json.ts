/** 400: the body is JSON in UTF-8. */

import { cutAt, extentOf } from '../../bounds/nesting.ts';
import { JSON_DEPTH_MAX, JSON_TOTAL_MEMBERS_MAX } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function json(context: RequestContext): Problem | undefined {
  const { raw, route } = context;
  if (raw === undefined) return undefined;
  if (raw.length === 0 && route.optionalBody) {
    context.body = {};
    return undefined;
  }
  try {
    const text = utf8.decode(raw);
    const { depth, members } = extentOf(text);
    if (members > JSON_TOTAL_MEMBERS_MAX)
      return problems.invalid(`body: must have at most ${JSON_TOTAL_MEMBERS_MAX} fields and items`);
    const body: unknown = JSON.parse(text);
    context.body = depth > JSON_DEPTH_MAX ? cutAt(body, JSON_DEPTH_MAX) : body;
    return undefined;
  } catch {
    return problems.invalid('body: must be valid JSON');
  }
}
