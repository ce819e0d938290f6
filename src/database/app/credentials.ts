/**
 * API keys, kept as hashes, and webhook secrets, kept sealed: what an application signs in with, and what it is signed
 * to with.
 */
import { randomBytes } from 'node:crypto';
import { and, desc, eq, gt, isNotNull, isNull, lte, or, sql } from 'drizzle-orm';
import { sha256 } from '../../hash.ts';
import { newUuid } from '../../id.ts';
import { API_KEYS_PER_APP_MAX, WEBHOOK_SECRET_OVERLAP_SEC, WEBHOOK_SECRETS_REPLACED_MAX } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import { apiKeys, apps, webhookSecrets } from '../schema.ts';
import { opened, type Seal } from '../vault/seal.ts';

export interface CredentialStore {
  /** `'too_many'`: the application has as many as it may. */
  addKey(appUuid: string): Promise<{ readonly keyId: string; readonly apiKey: string } | 'no_app' | 'too_many'>;
  removeKey(appUuid: string, keyId: string): Promise<boolean>;
  keyIds(appUuid: string): Promise<readonly { readonly keyId: string; readonly createdAt: number }[]>;
  /** SHA-256 of every active key; empty also for an application that does not exist. */
  keyHashes(appUuid: string): Promise<readonly Uint8Array[]>;
  /**
   * A new signing secret. Each replaced one signs along for its own 24 h. `'too_many'`: three replaced ones sign along
   * already.
   */
  rotateSecret(appUuid: string): Promise<string | 'no_app' | 'too_many'>;
  /**
   * The secrets that sign now, the newest first. One that was sealed under another MASTER_KEY is left out. Throws where
   * none of them opens.
   */
  signingSecrets(appUuid: string): Promise<readonly string[]>;
  /** Tells whether MASTER_KEY opens one of the newest secrets at least. True where there are none. */
  opensAny(): Promise<boolean>;
}

/** A database that was used with two keys has secrets of both. */
const SECRETS_TRIED_MAX = 100;

/** Applications whose keys are asked for at once ask together. By Drizzle, one by one, each costs ten times that. */
const KEY_HASHES = `SELECT app_uuid, encode(hash, 'hex') AS hash FROM api_keys
  WHERE app_uuid IN (SELECT json_array_elements_text($1::text::json))`;

/** The digest under which a key is kept and looked up. */
export const keyHash = (apiKey: string): Uint8Array => sha256(apiKey);

export function newApiKey(appUuid: string, at: number) {
  const apiKey = `sk_${randomBytes(32).toString('base64url')}`;
  return { apiKey, row: { keyId: newUuid(), appUuid, hash: keyHash(apiKey), createdAt: Math.floor(at) } };
}

/** Standard Webhooks 1.0: `whsec_` and base64 of 24 to 64 random bytes. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

export const webhookSecretRow = (seal: Seal, appUuid: string, secret: string, at: number) => ({
  secretId: newUuid(),
  appUuid,
  sealed: seal.close(secret, appUuid),
  createdAt: Math.floor(at),
});

/**
 * Adds a key, unless the application is gone or has as many as it may. The application's row is locked, so that the
 * limit holds.
 */
function addKey(database: Database, appUuid: string, at: number) {
  const key = newApiKey(appUuid, at);
  return database.run((on) =>
    on.transaction(async (tx) => {
      const [app] = await tx.select({ appUuid: apps.appUuid }).from(apps).where(eq(apps.appUuid, appUuid)).for('update');
      if (app === undefined) return 'no_app' as const;
      const held = await tx.$count(apiKeys, eq(apiKeys.appUuid, appUuid));
      if (held >= API_KEYS_PER_APP_MAX) return 'too_many' as const;
      await tx.insert(apiKeys).values(key.row);
      return { keyId: key.row.keyId, apiKey: key.apiKey };
    }),
  );
}

/** Makes a new signing secret at `at` (ms since the epoch), and gives the present one its end. */
function rotate(database: Database, seal: Seal, appUuid: string, at: number) {
  const secret = newWebhookSecret();
  const until = at + WEBHOOK_SECRET_OVERLAP_SEC * 1000;
  return database.run((on) =>
    on.transaction(async (tx) => {
      const [app] = await tx.select({ appUuid: apps.appUuid }).from(apps).where(eq(apps.appUuid, appUuid)).for('update');
      if (app === undefined) return 'no_app' as const;
      const own = eq(webhookSecrets.appUuid, appUuid);
      await tx.delete(webhookSecrets).where(and(own, lte(webhookSecrets.signsUntil, at)));
      const replaced = await tx.$count(webhookSecrets, and(own, isNotNull(webhookSecrets.signsUntil)));
      if (replaced >= WEBHOOK_SECRETS_REPLACED_MAX) return 'too_many' as const;
      await tx
        .update(webhookSecrets)
        .set({ signsUntil: until })
        .where(and(own, isNull(webhookSecrets.signsUntil)));
      await tx.insert(webhookSecrets).values(webhookSecretRow(seal, appUuid, secret, at));
      return secret;
    }),
  );
}

/** The secrets as they are read again. */
function signing(database: Database, seal: Seal, now: () => number): Pick<CredentialStore, 'signingSecrets' | 'opensAny'> {
  return {
    async signingSecrets(appUuid) {
      const rows = await database.run((on) =>
        on
          .select({ sealed: webhookSecrets.sealed })
          .from(webhookSecrets)
          .where(
            and(
              eq(webhookSecrets.appUuid, appUuid),
              or(isNull(webhookSecrets.signsUntil), gt(webhookSecrets.signsUntil, Math.floor(now()))),
            ),
          )
          .orderBy(sql`signs_until DESC NULLS FIRST`),
      );
      const secrets = rows.flatMap((row) => opened(seal, row.sealed, appUuid) ?? []);
      if (secrets.length === 0 && rows.length > 0)
        throw new Error(`MASTER_KEY opens no webhook secret of this application: bin/sidetone secrets rotate ${appUuid}`);
      return secrets;
    },

    async opensAny() {
      const newest = await database.run((on) =>
        on
          .select({ sealed: webhookSecrets.sealed, appUuid: webhookSecrets.appUuid })
          .from(webhookSecrets)
          .orderBy(desc(webhookSecrets.createdAt))
          .limit(SECRETS_TRIED_MAX),
      );
      return newest.length === 0 || newest.some((row) => opened(seal, row.sealed, row.appUuid) !== undefined);
    },
  };
}

export function credentialStore(
  database: Database,
  seal: Seal,
  now: () => number,
  changed: (appUuid: string) => void,
): CredentialStore {
  return {
    async addKey(appUuid) {
      const outcome = await addKey(database, appUuid, now());
      changed(appUuid);
      return outcome;
    },

    async removeKey(appUuid, keyId) {
      const gone = await database.run((on) =>
        on
          .delete(apiKeys)
          .where(and(eq(apiKeys.appUuid, appUuid), eq(apiKeys.keyId, keyId)))
          .returning({ keyId: apiKeys.keyId }),
      );
      changed(appUuid);
      return gone.length > 0;
    },

    keyIds: (appUuid) =>
      database.run((on) =>
        on
          .select({ keyId: apiKeys.keyId, createdAt: apiKeys.createdAt })
          .from(apiKeys)
          .where(eq(apiKeys.appUuid, appUuid))
          .orderBy(apiKeys.createdAt)
          .limit(API_KEYS_PER_APP_MAX),
      ),

    keyHashes: coalesce({
      async load(asked) {
        const rows = await database.query<{ app_uuid: string; hash: string }>(KEY_HASHES, [JSON.stringify(asked)]);
        const hashes = Map.groupBy(rows, (row) => row.app_uuid);
        return asked.map((appUuid) => (hashes.get(appUuid) ?? []).map(({ hash }) => new Uint8Array(Buffer.from(hash, 'hex'))));
      },
    }),

    async rotateSecret(appUuid) {
      const outcome = await rotate(database, seal, appUuid, Math.floor(now()));
      changed(appUuid);
      return outcome;
    },

    ...signing(database, seal, now),
  };
}
