/**
 * `POST /mcp`: the tools of an assistant, for an application or for the operator. It passes admission like every other
 * route, so size, credentials and rate are judged there. There are no sessions, so GET and DELETE are 405.
 */
import { MCP_BODY_MAX_BYTES, MCP_MESSAGES_MAX, MCP_MESSAGES_OF_APP_MAX, UNAVAILABLE_RETRY_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext, Route } from '../request-context.ts';
import { type ActingOptions, actingTools } from './acting.ts';
import { type ReadingOptions, readingTools } from './reading.ts';

export interface McpOptions extends ReadingOptions, ActingOptions {
  readonly store: ActingOptions['store'];
  /** `MCP_WRITE`: there are tools that act. */
  readonly mayAct: boolean;
  readonly publicUrl: string;
  readonly log: Log;
}

export function mcpRoute(options: McpOptions): Route {
  /** The applications whose messages are worked on, each as often as it has some; "" is the operator. */
  const busy: string[] = [];
  const answer = async ({ request, body, appUuid, mayOnlyRead }: RequestContext): Promise<Response | Problem> => {
    const own = busy.filter((each) => each === appUuid).length;
    if (busy.length >= MCP_MESSAGES_MAX || own >= MCP_MESSAGES_OF_APP_MAX)
      return problems.unavailable('Too many messages at once. See Retry-After header.', UNAVAILABLE_RETRY_SEC);
    busy.push(appUuid);
    try {
      const user = { appUuid, mayOnlyRead, authorization: request.headers.get('authorization') ?? '' };
      const tools = [...readingTools(options, user), ...(options.mayAct ? actingTools(options, user) : [])];
      const { answerMessage } = await import('./server.ts');
      return await answerMessage(request, body, tools, user, options.log);
    } finally {
      busy.splice(busy.indexOf(appUuid), 1);
    }
  };
  return {
    method: 'POST',
    path: '/mcp',
    auth: 'either',
    summary: 'The Model Context Protocol',
    tag: 'MCP',
    success: [200, 'A message of the protocol.'],
    isUndocumented: true,
    maxBytes: MCP_BODY_MAX_BYTES,
    buckets: ['mcp'],
    takesBody: true,
    optionalBody: false,
    shape: undefined,
    prepare(context) {
      const origin = context.request.headers.get('origin');
      // A page of another site, or one that was given our address as its name's.
      if (origin !== null && origin !== options.publicUrl) return problems.forbidden('Origin: must be that of the platform');
      const { body } = context;
      if (typeof body !== 'object' || body === null || Array.isArray(body)) return problems.invalid('body: must be one message');
      return () => () => answer(context);
    },
  };
}
