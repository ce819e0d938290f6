/** Numbers, caller IDs and payment terminals: what belongs to which application. */

import type { Permitted } from '../../database/app/numbers.ts';
import type { Store } from '../../database/store.ts';
import { APP_UUID } from '../../id.ts';
import { E164_PATTERN, isE164 } from '../../phone-number.ts';
import { type Problem, problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { noContent, type RequestContext } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { pathApp } from './apps.ts';

const owner = shape(() =>
  type({
    '+': 'reject',
    app_uuid: type(APP_UUID).describe('an app_uuid: app_ and a lowercase UUID'),
  }),
);

const TERMINAL = /^[0-9]{7}$/;
const FORMS = {
  e164: { pattern: E164_PATTERN, description: 'an E.164 number with leading +' },
  terminal_number: { pattern: TERMINAL.source, description: 'seven digits' },
} as const;
const facts = { auth: 'operator', tag: 'Operator: numbers', forms: FORMS } as const;
const NUMBER = '/operator/v1/numbers/:e164';

const pathNumber = (context: RequestContext): string | Problem => {
  const e164 = context.params.e164 ?? '';
  return isE164(e164) ? e164 : problems.invalid(`e164: must be ${FORMS.e164.description}`);
};

const pathTerminal = (context: RequestContext): string | Problem => {
  const terminal = context.params.terminal_number ?? '';
  return TERMINAL.test(terminal) ? terminal : problems.invalid(`terminal_number: must be ${FORMS.terminal_number.description}`);
};

export const assignmentRoutes = (store: Store): readonly Route[] => [
  bodyRoute(
    { ...facts, resource: 'Application', method: 'PUT', path: NUMBER, summary: 'Assign a number', success: [204, 'Assigned.'] },
    owner,
    async (context, body) => {
      const e164 = pathNumber(context);
      if (typeof e164 !== 'string') return e164;
      if (!(await store.numbers.assign(e164, body.app_uuid))) return undefined;
      return () => noContent;
    },
  ),
  route(
    { ...facts, resource: 'Number', method: 'DELETE', path: NUMBER, summary: 'Unassign a number', success: [204, 'Unassigned.'] },
    async (context) => {
      const e164 = pathNumber(context);
      if (typeof e164 !== 'string') return e164;
      if (!(await store.numbers.unassign(e164))) return undefined;
      return () => noContent;
    },
  ),
  ...permission('caller-ids/:e164', 'Caller ID', pathNumber, store.callerIds),
  ...permission('payment-terminals/:terminal_number', 'Payment terminal', pathTerminal, store.terminals),
];

/** PUT and DELETE of one entry of an application's list. */
function permission(
  path: string,
  resource: string,
  pathValue: (context: RequestContext) => string | Problem,
  permitted: Permitted,
): readonly Route[] {
  const full = `/operator/v1/apps/:app_uuid/${path}`;
  const change = (apply: (appUuid: string, value: string) => Promise<boolean>) => async (context: RequestContext) => {
    const appUuid = pathApp(context);
    const value = pathValue(context);
    if (typeof value !== 'string') return value;
    return appUuid !== undefined && (await apply(appUuid, value)) ? () => noContent : undefined;
  };
  return [
    bareRoute(
      {
        ...facts,
        resource: 'Application',
        method: 'PUT',
        path: full,
        summary: `Permit a ${resource.toLowerCase()}`,
        success: [204, 'Permitted.'],
      },
      change(permitted.allow),
    ),
    route(
      {
        ...facts,
        resource,
        method: 'DELETE',
        path: full,
        summary: `Withdraw a ${resource.toLowerCase()}`,
        success: [204, 'Withdrawn.'],
      },
      change(permitted.disallow),
    ),
  ];
}
