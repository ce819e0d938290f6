/** Calls from browsers, as the HTTP door sees them: WHIP (RFC 9725) without its HTTP. */
import type { Problem } from '../../problem.ts';

/** A token as it was found by its secret. */
export interface WebrtcToken {
  readonly tokenId: string;
  readonly appUuid: string;
  /** E.164, or `""`. */
  readonly callerId: string;
  readonly did: string;
  readonly clientState: string;
}

/** A call that was begun. */
export interface WhipCreated {
  readonly sessionUuid: string;
  /** The name of the ICE session, which a restart changes. */
  readonly etag: string;
  /** Our SDP. */
  readonly answer: string;
}

/** What a `PATCH` gives: nothing for trickled candidates, else a description and the name of the ICE session. */
export type WhipPatched = undefined | { readonly etag: string; readonly fragment: string } | { readonly answer: string };

export interface BrowserCalls {
  /** Answers an offer and begins the call. */
  create(token: WebrtcToken, offer: Uint8Array): Promise<WhipCreated | Problem>;
  /**
   * Takes trickled candidates, an ICE restart, or (beyond WHIP) a new offer of the same stream. `ifMatch` is the header
   * as it was sent.
   */
  patch(token: WebrtcToken, sessionUuid: string, change: WhipChange): Promise<WhipPatched | Problem>;
  /** Hangs up. False: the token has no such call. */
  hangUp(token: WebrtcToken, sessionUuid: string): Promise<boolean | Problem>;
}

/** The calls of one node. */
export interface OwnBrowserCalls extends BrowserCalls {
  /** `elsewhere` tells how many live calls the token has at other nodes; it is asked once this one is counted here. */
  create(token: WebrtcToken, offer: Uint8Array, elsewhere?: () => Promise<number>): Promise<WhipCreated | Problem>;
  /** The live calls of a token here, those that are being made among them. */
  liveOf(tokenId: string): number;
}

export interface WhipChange {
  readonly kind: 'fragment' | 'offer';
  readonly body: Uint8Array;
  readonly ifMatch: string | undefined;
}
