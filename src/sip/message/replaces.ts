/**
 * The dialog that a Replaces names (RFC 3891 §6.1), as it stands in the URI of a Refer-To (RFC 5589 §7.3). It is
 * written from where the one stands who would receive an INVITE with it: `to-tag` is that one's own tag.
 *
 *   sip:bob@host?Replaces=12345%40client%3Bto-tag%3D7553452%3Bfrom-tag%3D31431&Subject=x
 */
import { parseParameters } from './uri.ts';

export interface Replaces {
  readonly callId: string;
  readonly toTag: string;
  readonly fromTag: string;
  /** The dialog is meant only while it is not answered. */
  readonly earlyOnly: boolean;
}

/** The Replaces in a URI. Undefined where there is none, more than one, or one that is malformed. */
export function replacesOf(uri: string): Replaces | undefined {
  // The user may have a question mark too (RFC 3261 §25.1), and an @ that ought to be escaped may follow this one.
  const [first, second] = uri.matchAll(/[?&]replaces=([^&]*)/gi);
  const value = second === undefined ? unescaped(first?.[1] ?? '') : '';
  const semicolon = value.indexOf(';');
  if (semicolon < 0) return undefined;
  const callId = value.slice(0, semicolon).trim();
  const parameters = parseParameters(value.slice(semicolon).trim());
  const [toTag, fromTag] = [parameters?.get('to-tag') ?? '', parameters?.get('from-tag') ?? ''];
  if (callId === '' || toTag === '' || fromTag === '') return undefined;
  return { callId, toTag, fromTag, earlyOnly: parameters?.has('early-only') === true };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
