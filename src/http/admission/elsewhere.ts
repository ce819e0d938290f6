/**
 * A request whose Session or Room is on another node goes there: admission up to here ran where the request came in;
 * buckets, machine and commit run at the owner, which stores the answer under the key.
 *
 *   answered → its status and body · moved, not delivered → looked up again, then 503 · unknown → 503, and the key
 *   stays marked
 */
import type { Operation, Peers, Whose } from '../../call/ports/peers.ts';
import { isUuid } from '../../id.ts';
import { problems } from '../../problem.ts';
import type { Outcome, RequestContext, Route } from '../request-context.ts';

/** The node where it was last, the one that its row names, and the next one where it moves just then. */
const TRIES = 3;

/** What a request is about. Undefined: it can be served by any node. */
export function whoseOf(route: Route, params: Readonly<Record<string, string>>, body: unknown): Whose | undefined {
  const { path } = route;
  const text = (name: string): string | undefined => {
    const value = typeof body === 'object' && body !== null ? Object.entries(body).find(([key]) => key === name)?.[1] : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  const dials = path === '/v1/sessions:dial' || path === '/operator/v1/apps/:app_uuid/dial';
  if (dials || path === '/v1/sessions:connectWebsocket') {
    // A bot is on the node of the phone Session that it works for; its Room may be on another.
    const near = [text('phone_session_uuid'), text('near'), text('room_id')].flatMap((id) =>
      id !== undefined && isUuid(id) ? [id] : [],
    );
    const to = dials ? text('to') : undefined;
    const device = to?.startsWith('sip:') === true ? to.slice('sip:'.length) : undefined;
    return { kind: 'new', near, trunk: text('trunk'), isPhone: dials, device };
  }
  if (path === '/api/v1/rooms' && route.method === 'POST') return { kind: 'new', near: [], trunk: undefined, isPhone: false };
  // A Session is inspected by its row, wherever it is.
  if (path === '/v1/sessions/:uuid' && route.method === 'GET') return undefined;
  const { room_id: roomId = '', uuid: sessionUuid = '' } = params;
  if (path.includes('/:room_id')) {
    if (!isUuid(roomId)) return undefined;
    const joins = path.endsWith('/members') && route.method === 'POST';
    const leaves = path.endsWith('/members/:uuid') && route.method === 'DELETE';
    const member = joins ? text('session_uuid') : leaves ? sessionUuid : undefined;
    return member !== undefined && isUuid(member) ? { kind: 'member', sessionUuid: member, roomId } : { kind: 'room', roomId };
  }
  const isOfSession = path.startsWith('/v1/sessions/:uuid') || path.startsWith('/operator/v1/apps/:app_uuid/sessions/:uuid');
  return isOfSession && isUuid(sessionUuid) ? { kind: 'session', sessionUuid } : undefined;
}

/** The application that asks, or the one that the operator asks for. */
const applicationOf = ({ appUuid, params }: RequestContext): string => (appUuid === '' ? (params.app_uuid ?? '') : appUuid);

/** The fields that name audio sources. */
const SOURCES = ['url', 'urls', 'prompt_files', 'retry_prompt_files'] as const;

/** Whether the command opens audio sources, which takes as long as their servers do. */
const opensSources = ({ route, body }: RequestContext): boolean =>
  route.opensSources === true && typeof body === 'object' && body !== null && SOURCES.some((name) => name in body);

/** The step of admission. */
export function elsewhere(peers: Peers): (context: RequestContext) => Promise<Outcome | undefined> | undefined {
  return (context) => {
    const whose = whoseOf(context.route, context.params, context.body);
    return whose === undefined ? undefined : served(peers, context, whose);
  };
}

async function served(peers: Peers, context: RequestContext, whose: Whose): Promise<Outcome | undefined> {
  const tried: string[] = [];
  while (tried.length < TRIES) {
    const nodeId = await peers.nodeOf(whose, applicationOf(context), tried);
    if (nodeId === undefined) return undefined;
    const result = await peers.forward(nodeId, operationOf(context), opensSources(context));
    tried.push(nodeId);
    if (result.outcome === 'moved' || result.outcome === 'not_delivered') continue;
    context.isForwarded = true;
    switch (result.outcome) {
      case 'answered':
        return result.answer;
      case 'refused':
        return result.problem;
      case 'unknown':
        // The mark stays: a retry is told that the request is in progress until its outcome is known.
        context.keyed = undefined;
        return problems.nodeAway('this call');
    }
  }
  return problems.nodeAway('this call');
}

const operationOf = (context: RequestContext): Operation => ({
  method: context.route.method,
  route: context.route.path,
  params: context.params,
  path: context.path,
  query: context.search,
  body: context.body,
  appUuid: context.appUuid,
  operationUuid: context.operationUuid,
  traceparent: context.traceparent,
  ...(context.keyed === undefined ? {} : { key: { key: context.keyed.key, fingerprint: context.keyed.fingerprint } }),
});
