/**
 * Calls that leave the platform and come back to it, over its own SIP port and RTP: a trunk without a carrier. Such a
 * call is recognised by a secret of this process in its INVITE, never by its address. The secret goes into no event,
 * trace or log.
 */
import type { Headers } from '../../sip/message/message.ts';

/** The header field with the name of the trunk and the secret. */
export const LOOPBACK_FIELD = 'x-sidetone-loopback';

export class Loopback {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** The header fields of an INVITE over that trunk. */
  marks(trunk: string): readonly (readonly [string, string])[] {
    return [
      [LOOPBACK_FIELD, `${this.#secret} ${trunk}`],
      // Five hops at most: a call that is passed on and on over this trunk ends.
      ['max-forwards', '5'],
    ];
  }

  /** The name of the trunk that a request came back over. Undefined when it did not leave this process. */
  trunkOf(headers: Headers): string | undefined {
    const value = headers.get(LOOPBACK_FIELD);
    const prefix = `${this.#secret} `;
    return value?.startsWith(prefix) === true ? value.slice(prefix.length) : undefined;
  }
}
