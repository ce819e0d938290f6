/** The operations that other nodes admitted and forwarded here. */
import type { Operation, Whose } from '../../call/ports/peers.ts';
import type { Rooms } from '../../call/ports/rooms.ts';
import type { Answer, Sessions } from '../../call/ports/sessions.ts';
import type { Clock } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import type { Store } from '../../database/store.ts';
import { stackOf } from '../../error-facts.ts';
import type { HistorySink } from '../../history/call-history.ts';
import { NODE_RETRY_AFTER_SEC, UNAVAILABLE_RETRY_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Problem, problems } from '../../problem.ts';
import { storeAway } from '../failure.ts';
import { contextOf, type Outcome, type RequestContext, type Route } from '../request-context.ts';
import { addCommand } from './command-entry.ts';
import { whoseOf } from './elsewhere.ts';

/**
 * Serves an operation that another node admitted. `until`, in ms since the epoch, is when that node gives it up. Never
 * rejects. `'moved'`: its Session or Room is not here.
 */
export type Perform = (operation: Operation, until: number) => Promise<Answer | Problem | 'moved'>;

interface ForwardedParts {
  readonly clock: Clock;
  readonly sessions: Pick<Sessions, 'isDraining' | 'isHere'>;
  readonly rooms: Pick<Rooms, 'isHere'>;
  readonly store: { readonly sessions: Pick<Store['sessions'], 'owner'> };
  readonly history?: HistorySink | undefined;
  readonly log: Log;
}

/** Serves what other nodes forward. A request that is about a Session or Room that is not here is not looked into. */
export function forwarded(
  parts: ForwardedParts,
  routes: readonly Route[],
  serve: (context: RequestContext) => Promise<Outcome>,
): Perform {
  const known = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));
  const { clock, sessions, rooms, log, history, store } = parts;
  const isHere = async (whose: Whose | undefined, appUuid: string): Promise<boolean> => {
    if (whose === undefined) return true;
    // Whoever asked has not read yet that this node drains.
    if (whose.kind === 'new') return !sessions.isDraining;
    if (whose.kind !== 'room' && sessions.isHere(whose.sessionUuid)) return true;
    if (whose.kind === 'session' || !rooms.isHere(whose.roomId)) return false;
    // Whoever asked may have known a member's call from here, which is at another node by now.
    return whose.kind === 'room' || (await store.sessions.owner(appUuid, whose.sessionUuid)) === undefined;
  };
  return async (operation, until) => {
    const { method, params, body, appUuid, key } = operation;
    const route = known.get(`${method} ${operation.route}`);
    if (route === undefined) return problems.unavailable('The nodes are of different releases.', NODE_RETRY_AFTER_SEC);
    const request = new Request(`http://node.invalid${operation.path}${operation.query}`, { method });
    const context: RequestContext = {
      ...contextOf(request, route, { ...params }),
      traceparent: operation.traceparent,
      body,
      appUuid,
      isOperator: appUuid === '',
      operationUuid: operation.operationUuid,
      keyed: key === undefined ? undefined : { appUuid, ...key },
      until,
    };
    const started = clock.now();
    let outcome: Outcome;
    try {
      if (!(await isHere(whoseOf(route, params, body), appUuid))) return 'moved';
      outcome = await serve(context);
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        log.error({ route: route.path, error: stackOf(error) }, 'an operation of another node ended in a bug');
      outcome = storeAway();
    }
    if (outcome instanceof Response) return problems.unavailable('The operation cannot be forwarded.', UNAVAILABLE_RETRY_SEC);
    if (method !== 'GET') addCommand(history, context, outcome.status, clock.now() - started);
    return outcome;
  };
}
