/**
 * The webhook endpoints of applications and the keys that sign for them, cached for a few seconds so that a delivery
 * costs no query.
 */

import { BriefCache } from '../bounds/brief-cache.ts';
import type { AppStore } from '../database/app/apps.ts';
import type { CredentialStore } from '../database/app/credentials.ts';
import { blocker } from '../event/names.ts';
import { APP_CACHE_MAX_ITEMS, APP_CACHE_MS } from '../limits.ts';
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

/** Makes the cache of endpoints. An application that is changed is looked up anew at once. */
export function endpoints(
  apps: Pick<AppStore, 'settings' | 'onChange'>,
  credentials: Pick<CredentialStore, 'signingSecrets'>,
  now: () => number,
): Endpoints {
  const load = async (appUuid: string): Promise<Endpoint> => {
    const [app, secrets] = await Promise.all([apps.settings(appUuid), credentials.signingSecrets(appUuid)]);
    return {
      url: app?.webhookUrl ?? '',
      disabled: app?.webhookDisabled ?? false,
      since: app?.webhookSince ?? 0,
      keys: secrets.map(signingKey),
      blocks: blocker(app?.blockedWebhookEvents ?? []),
    };
  };

  const cache = new BriefCache({ load, keptMs: APP_CACHE_MS, most: APP_CACHE_MAX_ITEMS, now });
  apps.onChange((appUuid) => cache.forget(appUuid));
  return { known: (appUuid) => cache.known(appUuid), lookUp: (appUuid) => cache.get(appUuid) };
}
