/** Tokens with which browsers call in. The application's server makes them; its API key never reaches a browser. */

import { timestamp } from '../../clock.ts';
import type { Store } from '../../database/store.ts';
import { isUuid } from '../../id.ts';
import {
  CLIENT_STATE_MAX_CHARS,
  WEBRTC_TOKEN_DEFAULT_SEC,
  WEBRTC_TOKEN_MAX_SEC,
  WEBRTC_TOKEN_MIN_SEC,
  WEBRTC_TOKENS_PER_APP_MAX,
} from '../../limits.ts';
import { problems } from '../../problem.ts';
import { characters } from '../characters.ts';
import { created, noContent, type Outcome, type Route } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { WHIP_PATH } from './whip.ts';

const number = () => type(/^\+[1-9][0-9]{1,14}$/).describe('an E.164 number');

interface TokenTerms {
  readonly ttl_sec?: number;
  readonly caller_id?: string;
  readonly to?: string;
  readonly client_state?: string;
}

export const tokenShape = shape<TokenTerms>(
  () =>
    type({
      '+': 'reject',
      'ttl_sec?': `${WEBRTC_TOKEN_MIN_SEC} <= number.integer <= ${WEBRTC_TOKEN_MAX_SEC}`,
      'caller_id?': number(),
      'to?': number(),
      'client_state?': characters(0, CLIENT_STATE_MAX_CHARS),
    }),
  {},
  { ttl_sec: WEBRTC_TOKEN_DEFAULT_SEC },
);

const facts = { auth: 'application', tag: 'Browsers', resource: 'Token', buckets: ['webrtc_token'] } as const;

type TokenStores = Pick<Store, 'webrtcTokens' | 'callerIds' | 'numbers'>;

/** Makes a token for an application. `publicUrl` is the origin of the URL that the browser calls. */
export async function makeToken(
  { webrtcTokens, callerIds, numbers }: TokenStores,
  publicUrl: string,
  appUuid: string,
  { ttl_sec: ttlSec = WEBRTC_TOKEN_DEFAULT_SEC, caller_id: callerId = '', to = '', client_state: clientState = '' }: TokenTerms,
): Promise<Outcome> {
  const isOwn = callerId === '' || (await callerIds.allowed(appUuid, callerId)) || (await numbers.owner(callerId)) === appUuid;
  if (!isOwn) return problems.callerId();
  const made = await webrtcTokens.create(appUuid, { ttlSec, callerId, did: to, clientState });
  if (made === 'too_many')
    return problems.conflict(`An application has at most ${WEBRTC_TOKENS_PER_APP_MAX} tokens that are good`);
  return created({
    token_id: made.tokenId,
    token: made.token,
    url: `${publicUrl}${WHIP_PATH}`,
    expires_at: timestamp(made.expiresAt),
  });
}

export const webrtcTokenRoutes = (store: TokenStores, publicUrl: string): readonly Route[] => [
  // It takes no Idempotency-Key: the answer that is kept under one would hold the secret.
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/v1/webrtc-tokens',
      summary: 'Make a token with which a browser calls in',
      success: [201, 'The token, shown once.'],
      starts: true,
      optional: true,
    },
    tokenShape,
    ({ appUuid }, terms) =>
      () =>
        makeToken(store, publicUrl, appUuid, terms),
  ),
  route(
    {
      ...facts,
      method: 'DELETE',
      path: '/v1/webrtc-tokens/:token_id',
      summary: 'Revoke a token, at once; calls that it began go on',
      success: [204, 'Revoked.'],
    },
    async ({ appUuid, params }) => {
      const tokenId = params.token_id ?? '';
      return isUuid(tokenId) && (await store.webrtcTokens.revoke(appUuid, tokenId)) ? () => noContent : undefined;
    },
  ),
];
