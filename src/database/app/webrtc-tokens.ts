/** Tokens with which browsers call in, kept as hashes. */
import { randomBytes } from 'node:crypto';
import { and, eq, gt } from 'drizzle-orm';
import { sha256 } from '../../hash.ts';
import { newUuid } from '../../id.ts';
import { WEBRTC_TOKEN_KEPT_MS, WEBRTC_TOKENS_PER_APP_MAX } from '../../limits.ts';
import type { Database, Row } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import { apps, webrtcTokens } from '../schema.ts';

interface TokenTerms {
  readonly ttlSec: number;
  readonly callerId: string;
  readonly did: string;
  readonly clientState: string;
}

/** A token as its application names it. */
interface OwnToken {
  readonly appUuid: string;
  readonly tokenId: string;
}

interface FoundToken {
  readonly tokenId: string;
  readonly appUuid: string;
  readonly callerId: string;
  readonly did: string;
  readonly clientState: string;
}

export interface WebrtcTokenStore {
  /** Makes a token; its secret is given here and never again. `'too_many'`: the application has as many as it may. */
  create(
    appUuid: string,
    terms: TokenTerms,
  ): Promise<{ readonly tokenId: string; readonly token: string; readonly expiresAt: number } | 'too_many'>;
  /** Revokes a token. Resolves with false when the application has no such token that is still good. */
  revoke(appUuid: string, tokenId: string): Promise<boolean>;
  /** The token of a secret, while it is good: a call may be begun with it. */
  find(token: string): Promise<FoundToken | undefined>;
  /** The token of a secret, also WEBRTC_TOKEN_KEPT_MS after it was good: calls that were begun with it go on. */
  findBegun(token: string): Promise<FoundToken | undefined>;
}

/** Anybody may ask, with any secret: those who ask at once ask together, and keep no others from the database. */
const FOUND = `SELECT encode(hash, 'hex') AS hash, token_id, app_uuid, caller_id, did, client_state, expires_at FROM webrtc_tokens
  WHERE hash IN (SELECT decode(json_array_elements_text($1::text::json), 'hex')) AND expires_at > $2::bigint`;

/**
 * An application may name tokens that it does not have as often as it likes. A token is not deleted: a call that was
 * begun with it is still hung up with it.
 */
const REVOKED = `UPDATE webrtc_tokens SET expires_at = $2::bigint FROM json_array_elements($1::text::json) AS asked
  WHERE token_id = (asked->>'tokenId')::uuid AND app_uuid = asked->>'appUuid' AND expires_at > $2::bigint RETURNING token_id`;

const foundToken = (row: Row): FoundToken => ({
  tokenId: String(row.token_id),
  appUuid: String(row.app_uuid),
  callerId: String(row.caller_id),
  did: String(row.did),
  clientState: String(row.client_state),
});

export function webrtcTokenStore(database: Database, now: () => number): WebrtcTokenStore {
  const isGood = () => gt(webrtcTokens.expiresAt, Math.floor(now()));
  /** The rows of secrets that are good, or were WEBRTC_TOKEN_KEPT_MS ago. */
  const rowOf = coalesce({
    async load(secrets: readonly string[]) {
      const hashes = secrets.map((secret) => Buffer.from(sha256(secret)).toString('hex'));
      const rows = await database.query(FOUND, [JSON.stringify(hashes), Math.floor(now()) - WEBRTC_TOKEN_KEPT_MS]);
      const byHash = new Map(rows.map((row) => [row.hash, row]));
      return hashes.map((hash) => byHash.get(hash));
    },
  });
  const revoked = coalesce({
    distinct: ({ tokenId }: OwnToken) => tokenId,
    async load(tokens) {
      const rows = await database.query(REVOKED, [JSON.stringify(tokens), Math.floor(now())]);
      const gone = new Set(rows.map((row) => row.token_id));
      return tokens.map(({ tokenId }) => gone.has(tokenId));
    },
  });
  return {
    create: (appUuid, { ttlSec, callerId, did, clientState }) =>
      database.run((on) =>
        on.transaction(async (tx) => {
          const at = Math.floor(now());
          // The application's row is locked, so that the limit holds.
          await tx.select({ appUuid: apps.appUuid }).from(apps).where(eq(apps.appUuid, appUuid)).for('update');
          const held = await tx.$count(webrtcTokens, and(eq(webrtcTokens.appUuid, appUuid), isGood()));
          if (held >= WEBRTC_TOKENS_PER_APP_MAX) return 'too_many' as const;
          const token = `wt_${randomBytes(32).toString('base64url')}`;
          const expiresAt = at + ttlSec * 1000;
          const tokenId = newUuid();
          const row = { tokenId, appUuid, hash: sha256(token), callerId, did, clientState, createdAt: at, expiresAt };
          await tx.insert(webrtcTokens).values(row);
          return { tokenId, token, expiresAt };
        }),
      ),

    revoke: (appUuid, tokenId) => revoked({ appUuid, tokenId }),

    async find(token) {
      const row = await rowOf(token);
      return row === undefined || Number(row.expires_at) <= now() ? undefined : foundToken(row);
    },

    async findBegun(token) {
      const row = await rowOf(token);
      return row && foundToken(row);
    },
  };
}
