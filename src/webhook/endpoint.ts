/**
 * The webhook endpoints of applications and the keys that sign for them, cached for a few seconds so that a delivery
 * costs no query.
 */

import type { AppStore } from '../database/app/apps.ts';
import type { CredentialStore } from '../database/app/credentials.ts';
import { ENDPOINT_CACHE_MAX_APPS, ENDPOINT_CACHE_MS } from '../limits.ts';
import { signingKey } from '../outbound/webhook-signature.ts';

export interface Endpoint {
  /** `""`: the application has none. */
  readonly url: string;
  /** The endpoint answered 410, and the application has not been patched since. */
  readonly disabled: boolean;
  /** Since when it is set, unset or disabled; milliseconds since the epoch. */
  readonly since: number;
  /** The newest first. */
  readonly keys: readonly Uint8Array[];
  readonly blocks: (event: string) => boolean;
}

export interface Endpoints {
  /** The endpoint that is known now, without waiting; undefined when it must be looked up. */
  known(appUuid: string): Endpoint | undefined;
  /** Rejects with `StoreUnavailable`. */
  lookUp(appUuid: string): Promise<Endpoint>;
}

export function endpoints(
  apps: Pick<AppStore, 'get' | 'onChange'>,
  credentials: Pick<CredentialStore, 'signingSecrets'>,
  now: () => number,
): Endpoints {
  const cache = new Map<string, { readonly endpoint: Endpoint; readonly until: number }>();
  const looking = new Map<string, Promise<Endpoint>>();
  apps.onChange((appUuid) => {
    cache.delete(appUuid);
    // A look-up under way may have read the old row: its caller gets it, nobody after.
    looking.delete(appUuid);
  });

  const load = async (appUuid: string): Promise<Endpoint> => {
    const [app, secrets] = await Promise.all([apps.get(appUuid), credentials.signingSecrets(appUuid)]);
    return {
      url: app?.webhookUrl ?? '',
      disabled: app?.webhookDisabled ?? false,
      since: app?.webhookSince ?? 0,
      keys: secrets.map(signingKey),
      blocks: blocker(app?.blockedWebhookEvents ?? []),
    };
  };

  return {
    known(appUuid) {
      const found = cache.get(appUuid);
      return found !== undefined && found.until > now() ? found.endpoint : undefined;
    },
    lookUp(appUuid) {
      const under = looking.get(appUuid);
      if (under !== undefined) return under;
      const answer: Promise<Endpoint> = load(appUuid)
        .then((endpoint) => {
          if (looking.get(appUuid) === answer) {
            if (cache.size >= ENDPOINT_CACHE_MAX_APPS) cache.clear();
            cache.set(appUuid, { endpoint, until: now() + ENDPOINT_CACHE_MS });
          }
          return endpoint;
        })
        .finally(() => {
          if (looking.get(appUuid) === answer) looking.delete(appUuid);
        });
      looking.set(appUuid, answer);
      return answer;
    },
  };
}

/** `blocked_webhook_events`: event names, and a prefix with a trailing `.*` (contract §8). */
export function blocker(patterns: readonly string[]): (event: string) => boolean {
  const exact = new Set(patterns.filter((each) => !each.endsWith('.*')));
  const prefixes = patterns.filter((each) => each.endsWith('.*')).map((each) => each.slice(0, -1));
  return (event) => exact.has(event) || prefixes.some((prefix) => event.startsWith(prefix));
}
