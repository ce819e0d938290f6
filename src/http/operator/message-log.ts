/** The latest short messages, of one application or of all. */
import type { MessageStore } from '../../database/messages.ts';
import { isAppUuid } from '../../id.ts';
import { CALL_LIST_MAX_ITEMS, PAGE_DEFAULT_ITEMS } from '../../limits.ts';
import { isProblem, problems } from '../../problem.ts';
import { itemLimit, OF_ONE_APP, strayParameter } from '../list-query.ts';
import { ok, queryOf, type Route } from '../request-context.ts';
import { messageBody } from '../route/messages.ts';
import { route } from '../route.ts';

export const messageLogRoutes = (messages: Pick<MessageStore, 'latest'>): readonly Route[] => [
  route(
    {
      auth: 'operator',
      tag: 'Operator: messages',
      method: 'GET',
      path: '/operator/v1/messages',
      summary: 'List the latest short messages, newest first',
      success: [200, '`{"messages": […]}`, each with its `app_uuid`'],
      query: [
        OF_ONE_APP,
        { name: 'limit', description: 'Default 100.', schema: { type: 'integer', minimum: 1, maximum: CALL_LIST_MAX_ITEMS } },
      ],
    },
    (context) => {
      const query = queryOf(context);
      const stray = strayParameter(query, ['app_uuid', 'limit']);
      if (stray !== undefined) return stray;
      const appUuid = query.get('app_uuid') ?? undefined;
      const limit = itemLimit(query, PAGE_DEFAULT_ITEMS, CALL_LIST_MAX_ITEMS);
      if (appUuid !== undefined && !isAppUuid(appUuid)) return problems.invalid('app_uuid: must be app_<uuid-v4>');
      if (isProblem(limit)) return limit;
      return async () => {
        const found = await messages.latest(appUuid, limit);
        return ok({ messages: found.map((each) => ({ app_uuid: each.appUuid, ...messageBody(each) })) });
      };
    },
  ),
];
