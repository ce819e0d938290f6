/** The entry of a command in the timeline of its call. */
import type { HistorySink } from '../../history/call-history.ts';
import type { RequestContext } from '../request-context.ts';

/** The routes by which the operator commands a call of an application. */
const OPERATOR_COMMANDS = '/operator/v1/apps/:app_uuid/';

/** Puts a command into the timeline of the Session that it named or made. */
export function addCommand(history: HistorySink | undefined, context: RequestContext, status: number, tookMs: number): void {
  const { route, params, path, operationUuid } = context;
  const isOperators = route.path.startsWith(OPERATOR_COMMANDS);
  const names = isOperators || route.path.startsWith('/v1/sessions/:uuid');
  const sessionUuid = (names ? params.uuid : undefined) ?? context.sessionUuid;
  if (history === undefined || sessionUuid === undefined) return;
  // A request that was not authenticated is nobody's; it leaves no mark in the timeline that it names.
  const appUuid = isOperators && context.isOperator ? params.app_uuid : context.appUuid;
  if (appUuid === undefined || appUuid === '') return;
  const took_ms = Math.round(tookMs * 10) / 10;
  const entry = { kind: 'command', method: route.method, path, status, operation_uuid: operationUuid, took_ms } as const;
  history.add(sessionUuid, entry, appUuid);
}
