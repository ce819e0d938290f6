/**
 * The signed URLs of a recording (interface, Recording media URLs; contract §5). Whoever holds one may fetch that
 * recording until it expires.
 *
 *   /v1/media/rec_<uuid>/<pull|live>?expires=<unix seconds>&signature=<64 hex digits>
 *
 * The signature is HMAC-SHA256 over uuid, kind and expiry, under a key of its own derived from MASTER_KEY. A URL has
 * one spelling: what reads as the same to a parser (an encoded letter, a further parameter, another order) is another
 * string, and refused.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isUuid } from '../id.ts';

/** The kinds of URL: `pull` begins at byte zero, `live` where the recording is now. */
export type RecordingUrlKind = 'pull' | 'live';

interface SignedRecordingUrls {
  readonly mediaUrl: string;
  readonly liveUrl: string;
  /** The end of both, in milliseconds since the epoch: a whole second. From then on they are refused. */
  readonly expiresAt: number;
}

export interface RecordingUrls {
  /**
   * Signs the URLs of a recording. `recordingUuid` is `rec_<uuid-v4>`; anything else throws. `now` is in milliseconds
   * since the epoch.
   */
  sign(recordingUuid: string, now: number): SignedRecordingUrls;
  /**
   * Tells what a URL leads to, by its path and its query as they were sent (`?` included). Undefined when it is
   * altered, malformed or expired.
   */
  verify(
    pathname: string,
    rawSearch: string,
    now: number,
  ): { readonly recordingUuid: string; readonly kind: RecordingUrlKind } | undefined;
}

interface RecordingUrlOptions {
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  /** The key before it: what was signed under that is good until its end. */
  readonly masterKeyBefore?: Uint8Array | undefined;
  /** The origin that URLs are handed out under. */
  readonly publicUrl: string;
  readonly ttlSec: number;
}

const PATH = /^\/v1\/media\/rec_([0-9a-f-]{36})\/(pull|live)$/;
// Twelve digits are thousands of years, and exact as a number of milliseconds.
const SEARCH = /^\?expires=([1-9][0-9]{0,11})&signature=([0-9a-f]{64})$/;

/** Throws where the key is not one. */
export function createRecordingUrls({ masterKey, masterKeyBefore, publicUrl, ttlSec }: RecordingUrlOptions): RecordingUrls {
  const signature = signer(masterKey);
  const signers = masterKeyBefore === undefined ? [signature] : [signature, signer(masterKeyBefore)];

  return {
    sign(recordingUuid, now) {
      if (!recordingUuid.startsWith('rec_') || !isUuid(recordingUuid.slice(4)))
        throw new Error('a recording is named rec_<uuid-v4>');
      const expires = Math.floor(now / 1000) + ttlSec;
      const url = (kind: RecordingUrlKind) =>
        `${publicUrl}/v1/media/${recordingUuid}/${kind}?expires=${expires}&signature=${signature(recordingUuid, kind, String(expires)).toString('hex')}`;
      return { mediaUrl: url('pull'), liveUrl: url('live'), expiresAt: expires * 1000 };
    },
    verify(pathname, rawSearch, now) {
      const [, uuid, kind] = PATH.exec(pathname) ?? [];
      const [, expires, told] = SEARCH.exec(rawSearch) ?? [];
      if (uuid === undefined || !isUuid(uuid) || expires === undefined || told === undefined) return undefined;
      if (kind !== 'pull' && kind !== 'live') return undefined;
      const recordingUuid = `rec_${uuid}`;
      const given = Buffer.from(told, 'hex');
      if (!signers.some((sign) => timingSafeEqual(sign(recordingUuid, kind, expires), given))) return undefined;
      return now < Number(expires) * 1000 ? { recordingUuid, kind } : undefined;
    },
  };
}

function signer(masterKey: Uint8Array): (recordingUuid: string, kind: string, expires: string) => Buffer {
  if (masterKey.length !== 32) throw new Error('the master key is 32 bytes');
  const key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: recording URLs', 32));
  return (recordingUuid, kind, expires) => createHmac('sha256', key).update(`${recordingUuid} ${kind} ${expires}`).digest();
}
