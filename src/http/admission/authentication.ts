/** 400 and 401: `Authorization: Bearer <app_uuid>:<api_key>` (interface, Authentication), or the operator's token. */
import { timingSafeEqual } from 'node:crypto';
import { BriefCache } from '../../bounds/brief-cache.ts';
import type { AppStore } from '../../database/app/apps.ts';
import { type CredentialStore, keyHash } from '../../database/app/credentials.ts';
import { sha256 } from '../../hash.ts';
import { isAppUuid } from '../../id.ts';
import { APP_CACHE_MAX_ITEMS, APP_CACHE_MS, AUTHORIZATION_MAX_CHARS } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import { type ConsoleSession, type ConsoleSessions, hasSessionCookie } from '../console/console-sessions.ts';
import type { HttpPeer } from '../pipelining.ts';
import type { RequestContext } from '../request-context.ts';
import { WrongTokens } from '../wrong-tokens.ts';

export interface AuthenticationOptions {
  readonly apps: Pick<AppStore, 'onChange'>;
  readonly credentials: Pick<CredentialStore, 'keyHashes'>;
  readonly operatorToken: string;
  /** A second token of the operator, for reading only. */
  readonly operatorReadToken?: string | undefined;
  /** The console's sessions, whose cookie stands for the token that opened them. */
  readonly console: ConsoleSessions;
  readonly now: () => number;
  /** The far end of a request's connection, where the server knows it. */
  readonly peer?: ((request: Request) => HttpPeer | undefined) | undefined;
}

const BEARER = /^Bearer +([^\s].*)$/i;

export function authentication(
  options: AuthenticationOptions,
): (context: RequestContext) => Problem | undefined | Promise<Problem | undefined> {
  const { apps, credentials, now } = options;
  const hashes = new BriefCache({ load: credentials.keyHashes, keptMs: APP_CACHE_MS, most: APP_CACHE_MAX_ITEMS, now });
  apps.onChange((appUuid) => hashes.forget(appUuid));
  const operatorHash = sha256(options.operatorToken);
  const readHash = options.operatorReadToken === undefined ? undefined : sha256(options.operatorReadToken);
  const wrongTokens = new WrongTokens();
  const operator = (credential: string | undefined, context: RequestContext): Problem | undefined => {
    const isEither = context.route.auth === 'either';
    if (credential === undefined)
      return isEither
        ? problems.missingCredentials()
        : { ...problems.malformedAuthorization(), message: 'Authorization must be: Bearer <operator_token>' };
    const hash = sha256(credential);
    if (timingSafeEqual(hash, operatorHash)) return undefined;
    context.mayOnlyRead = readHash !== undefined && timingSafeEqual(hash, readHash);
    // A route for either looks at `mayOnlyRead` itself.
    if (context.mayOnlyRead)
      return context.route.method === 'GET' || isEither ? undefined : problems.forbidden('This operator token may only read');
    const address = options.peer?.(context.request)?.address;
    const waitSec = address === undefined ? undefined : wrongTokens.count(address, options.now());
    return waitSec === undefined ? problems.invalidOperatorToken() : problems.rateLimited(waitSec);
  };
  /** The operator by the console's cookie, which counts only where no other credentials are given. */
  const browser = async (cookie: string, context: RequestContext): Promise<Problem | undefined> => {
    const session = await options.console.find(cookie);
    if (session === undefined) return hasSessionCookie(cookie) ? problems.invalidOperatorToken() : operator(undefined, context);
    context.isStillAdmitted = async () => (await options.console.find(cookie)) !== undefined;
    return asOperator(inSession(session, context), context);
  };
  return (context) => {
    const { headers } = context.request;
    const { auth } = context.route;
    const cookie = auth === 'operator' ? headers.get('cookie') : null;
    if (cookie !== null && !headers.has('authorization')) return browser(cookie, context);
    const header = headers.get('authorization') ?? '';
    const credential = header.length <= AUTHORIZATION_MAX_CHARS ? BEARER.exec(header)?.[1]?.trimEnd() : undefined;
    if (auth === 'operator' || (auth === 'either' && credential?.startsWith('app_') !== true))
      return asOperator(operator(credential, context), context);
    // No credential has a blank within it (RFC 6750 §2.1); a field that was sent twice comes as one that has.
    if (credential === undefined || /\s/.test(credential)) return problems.malformedAuthorization();
    const colon = credential.indexOf(':');
    if (colon < 0 || !isAppUuid(credential.slice(0, colon))) return problems.malformedAuthorization();
    const appUuid = credential.slice(0, colon);
    const apiKey = credential.slice(colon + 1);
    if (apiKey === '') return problems.missingApiKey();
    const given = keyHash(apiKey);
    const judge = (right: readonly Uint8Array[]): Problem | undefined => {
      let match = false;
      for (const hash of right) if (timingSafeEqual(hash, given)) match = true;
      if (!match) return problems.invalidApiKey();
      context.appUuid = appUuid;
      return undefined;
    };
    const known = hashes.known(appUuid);
    return known === undefined ? hashes.get(appUuid).then(judge) : judge(known);
  };
}

/** Marks the context of a request that the operator's credentials let in. */
function asOperator(problem: Problem | undefined, context: RequestContext): Problem | undefined {
  context.isOperator = problem === undefined;
  return problem;
}

/** A browser sends its cookie by itself, so what changes something has to prove that a page of ours asked. */
function inSession({ role, csrf }: ConsoleSession, context: RequestContext): Problem | undefined {
  context.mayOnlyRead = role === 'reader';
  if (context.route.method === 'GET') return undefined;
  if (context.mayOnlyRead) return problems.forbidden('This operator token may only read');
  const given = context.request.headers.get('x-csrf-token') ?? '';
  return timingSafeEqual(sha256(given), sha256(csrf))
    ? undefined
    : problems.forbidden('X-CSRF-Token: must be the one of the session');
}
