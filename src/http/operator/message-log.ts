/** The latest short messages, of one application or of all. */
import type { MessageStore } from '../../database/messages.ts';
import { isAppUuid } from '../../id.ts';
import { CALL_LIST_MAX_ITEMS } from '../../limits.ts';
import { problems } from '../../problem.ts';
import { ok, type Route } from '../request-context.ts';
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
        { name: 'app_uuid', description: 'Of one application.', schema: { type: 'string' } },
        { name: 'limit', description: 'Default 100.', schema: { type: 'integer', minimum: 1, maximum: CALL_LIST_MAX_ITEMS } },
      ],
    },
    ({ query }) => {
      for (const name of query.keys()) {
        if (name !== 'app_uuid' && name !== 'limit')
          return problems.invalid('query: has a parameter that is not app_uuid or limit');
        if (query.getAll(name).length > 1) return problems.invalid(`${name}: must be given once`);
      }
      const appUuid = query.get('app_uuid') ?? undefined;
      const limit = query.get('limit') ?? '100';
      if (appUuid !== undefined && !isAppUuid(appUuid)) return problems.invalid('app_uuid: must be app_<uuid-v4>');
      if (!/^[0-9]{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > CALL_LIST_MAX_ITEMS)
        return problems.invalid(`limit: must be a whole number from 1 to ${CALL_LIST_MAX_ITEMS}`);
      return async () => {
        const found = await messages.latest(appUuid, Number(limit));
        return ok({ messages: found.map((each) => ({ app_uuid: each.appUuid, ...messageBody(each) })) });
      };
    },
  ),
];
