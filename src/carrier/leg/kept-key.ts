/**
 * The key that encrypts what we send, sealed under MASTER_KEY for the process or node that goes on with the call: some
 * far ends pass over a new key in a re-INVITE, and would hear nothing more.
 */
import type { LegSnapshot } from '../../call/ports/leg.ts';
import { opened, type Seal } from '../../database/vault/seal.ts';
import { type OwnKey, SRTP_SUITES } from '../../sdp/sdes.ts';

/** What a key is sealed for: it opens for no other call. */
const ownerOf = (callId: string): string => `audio of ${callId}`;

/** The key of one call. It is sealed once, however often it is asked for. */
export class KeptKey {
  #of: Uint8Array | undefined;
  #sealed: string | undefined;

  /** The key as base64. Undefined where there is none. */
  sealed(seal: Seal, callId: string, own: OwnKey | undefined): string | undefined {
    if (own === undefined) return undefined;
    if (this.#of === own.key) return this.#sealed;
    this.#of = own.key;
    this.#sealed = seal.close(`${own.suite} ${own.key.toBase64()}`, ownerOf(callId)).toBase64();
    return this.#sealed;
  }
}

/** What the node before had of a call. */
export interface LegBefore extends Pick<LegSnapshot, 'origin' | 'stream'> {
  readonly ownKey: OwnKey | undefined;
}

/** What a snapshot tells of the audio. A key that does not open is none: the far end is offered a new one then. */
export function legBefore({ call, origin, stream, audioKey }: LegSnapshot, seal: Seal): LegBefore {
  const key = audioKey && opened(seal, Uint8Array.fromBase64(audioKey), ownerOf(call.dialog.callId));
  return { origin, ...(stream && { stream }), ownKey: key ? ownKeyOf(key) : undefined };
}

function ownKeyOf(text: string): OwnKey | undefined {
  const [name, key = ''] = text.split(' ');
  const suite = SRTP_SUITES.find((each) => each === name);
  return suite && { suite, key: Uint8Array.fromBase64(key) };
}
