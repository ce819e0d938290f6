/** One-time logins to the console, for a program that has the operator token and a person who has a browser. */
import { timestamp } from '../../clock.ts';
import { created, type Route } from '../request-context.ts';
import { bareRoute } from '../route.ts';
import type { ConsoleSessions } from './console-sessions.ts';

export const loginRoutes = (sessions: ConsoleSessions, publicUrl: string): readonly Route[] => [
  bareRoute(
    {
      auth: 'operator',
      tag: 'Operator: console',
      method: 'POST',
      path: '/operator/v1/console-logins',
      summary: 'Make a login to the console that works once, within five minutes',
      success: [201, '`{login, url, expires_at}`. `url` has the login in its fragment, which no server sees.'],
    },
    () => () => {
      const { login, expiresAt } = sessions.newLogin();
      return created({ login, url: `${publicUrl}/console#login=${login}`, expires_at: timestamp(expiresAt) });
    },
  ),
];
