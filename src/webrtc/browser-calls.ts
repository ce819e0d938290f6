/**
 * The door to browsers: takes their offers (WHIP, RFC 9725), answers them, and gives the call to its application, which
 * answers it as it answers a call from a carrier.
 */
import { randomBytes, randomInt } from 'node:crypto';
import type { IncomingCall } from '../call/ports/leg.ts';
import type { OwnBrowserCalls, WebrtcToken, WhipChange, WhipCreated, WhipPatched } from '../call/ports/webrtc.ts';
import type { Clock } from '../clock.ts';
import {
  DRAINING_RETRY_SEC,
  WEBRTC_ICE_SESSIONS_MAX,
  WEBRTC_NO_ROOM_RETRY_SEC,
  WEBRTC_SESSIONS_PER_TOKEN_MAX,
} from '../limits.ts';
import type { MediaEngine } from '../media/engine.ts';
import { type Problem, problems } from '../problem.ts';
import {
  type BrowserOffer,
  browserAgreement,
  browserAnswer,
  iceFragment,
  readBrowserOffer,
  readIceFragment,
} from '../sdp/browser-offer.ts';
import type { Direction } from '../sdp/description.ts';
import { type HostCandidate, type IceCredentials, ownCredentials } from '../sdp/ice.ts';
import type { AudioCodec, Refused } from '../sdp/negotiation.ts';
import { BrowserLeg } from './browser-leg.ts';

export interface BrowserCallsOptions {
  readonly media: Pick<MediaEngine, 'webrtc' | 'openWebrtcLeg'>;
  /** The addresses at which browsers reach our port, the first one preferred. */
  readonly hosts: readonly string[];
  readonly codecs: readonly AudioCodec[];
  readonly clock: Clock;
  /** Gives the call to its application. Undefined: it was refused. */
  onCall(call: IncomingCall): Promise<string | undefined>;
  /**
   * Hangs up a call from a browser that an earlier process has left here, and that has no leg. False: there is none of
   * that application. A problem: it cannot be hung up now.
   */
  hangUpLost(appUuid: string, sessionUuid: string): Promise<boolean | Problem>;
}

/** A call that is live, by its Session. */
interface Live {
  readonly tokenId: string;
  readonly leg: BrowserLeg;
  readonly sessionId: number;
  readonly ssrc: number;
  /** The last offer, and the directions of all so far. */
  offer: BrowserOffer;
  readonly directions: Set<Direction>;
  /** Our names in the ICE session of the call, and the browser's, which tell a restart from a repetition. */
  ice: IceCredentials;
  theirs: IceCredentials;
  /** Our names in each ICE session so far, by the browser's: it may have missed the answer to the last restart. */
  readonly iceSessions: Map<string, IceCredentials>;
  version: number;
}

const random = (bytes: number): Uint8Array => new Uint8Array(randomBytes(bytes));

export class WebrtcDoor implements OwnBrowserCalls {
  readonly #options: BrowserCallsOptions;
  readonly #live = new Map<string, Live>();
  /** Calls of each token, those that are being made among them. */
  readonly #ofToken = new Map<string, number>();

  constructor(options: BrowserCallsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#live.size;
  }

  liveOf(tokenId: string): number {
    return this.#ofToken.get(tokenId) ?? 0;
  }

  async create(token: WebrtcToken, body: Uint8Array, elsewhere = async (): Promise<number> => 0): Promise<WhipCreated | Problem> {
    const { media, codecs } = this.#options;
    if (media.webrtc === undefined) return problems.notConfigured('WebRTC');
    const offer = readBrowserOffer(body, codecs);
    if ('refused' in offer) return refusal(offer);
    if (!(await this.#takePlace(token, elsewhere)))
      return problems.conflict(`The token has ${WEBRTC_SESSIONS_PER_TOKEN_MAX} live Sessions`);
    const ice = ownCredentials(random);
    const ssrc = randomInt(1, 2 ** 32);
    let sessionUuid: string | undefined;
    const leg = await BrowserLeg.open({
      open: (notify) => media.openWebrtcLeg({ ssrc, ice, fingerprint: offer.fingerprint }, notify),
      wait: (ms, then) => this.#options.clock.at(this.#options.clock.now() + ms, then),
      onEnded: () => {
        this.#count(token.tokenId, -1);
        if (sessionUuid !== undefined) this.#live.delete(sessionUuid);
        sessionUuid = '';
      },
    });
    if (leg === undefined) {
      this.#count(token.tokenId, -1);
      return problems.unavailable('No media is free. See Retry-After header.', WEBRTC_NO_ROOM_RETRY_SEC);
    }
    leg.agree(browserAgreement(offer));
    const begun = await this.#begin(token, leg);
    if (begun === undefined) {
      leg.hangup();
      return problems.unavailable('The call cannot be taken now. See Retry-After header.', DRAINING_RETRY_SEC);
    }
    const live: Live = {
      tokenId: token.tokenId,
      leg,
      offer,
      directions: new Set([offer.direction]),
      ice,
      theirs: offer.ice,
      iceSessions: new Map([[offer.ice.ufrag, ice]]),
      ssrc,
      sessionId: randomInt(2 ** 47),
      version: 1,
    };
    // The leg may be over already; then there is nothing to hang up on or to restart.
    if (sessionUuid === undefined) this.#live.set(begun, live);
    sessionUuid = begun;
    return { sessionUuid: begun, etag: etagOf(ice), answer: this.#answer(live) };
  }

  async patch(token: WebrtcToken, sessionUuid: string, { kind, body, ifMatch }: WhipChange): Promise<WhipPatched | Problem> {
    const live = this.#find(token, sessionUuid);
    if (live === undefined) return problems.notFound('Session');
    if (kind === 'offer') return this.#renegotiate(live, body);
    if (ifMatch === undefined) return problems.preconditionRequired();
    const fragment = readIceFragment(body);
    if (fragment === undefined) return problems.invalid('body: must be an SDP fragment (RFC 8840)');
    const isRestart = fragment.ice !== undefined && fragment.ice.ufrag !== live.theirs.ufrag;
    const matches = ifMatch === '*' || ifMatch.split(',').some((each) => each.trim().replace(/^W\//, '') === etagOf(live.ice));
    if (!matches) return problems.preconditionFailed('If-Match does not name the ICE session');
    if (fragment.ice === undefined) return undefined;
    // A browser that has lost the answer to a restart sends it again, and learns what it would have learnt.
    const isRepeated = !isRestart && ifMatch === '*' && live.iceSessions.size > 1;
    if (!isRestart && !isRepeated) return undefined;
    if (isRestart) this.#restartIce(live, fragment.ice);
    const midName = live.offer.sections[live.offer.audio]?.mid ?? '';
    return { etag: etagOf(live.ice), fragment: iceFragment(live.ice, midName, this.#candidates()) };
  }

  #restartIce(live: Live, theirs: IceCredentials): void {
    live.theirs = theirs;
    live.ice = ownCredentials(random);
    live.iceSessions.set(theirs.ufrag, live.ice);
    const [oldest] = live.iceSessions.keys();
    if (live.iceSessions.size > WEBRTC_ICE_SESSIONS_MAX && oldest !== undefined) live.iceSessions.delete(oldest);
    live.leg.media?.restartIce(live.ice);
  }

  /** A call that has lost its process is known by its Session and application: nothing says which token began it. */
  async hangUp(token: WebrtcToken, sessionUuid: string): Promise<boolean | Problem> {
    if (!this.#live.has(sessionUuid)) return await this.#options.hangUpLost(token.appUuid, sessionUuid);
    const live = this.#find(token, sessionUuid);
    live?.leg.hungUp();
    return live !== undefined;
  }

  /** Another offer of the same stream: its direction may change, as for a hold. */
  #renegotiate(live: Live, body: Uint8Array): WhipPatched | Problem {
    const offer = readBrowserOffer(body, this.#options.codecs);
    if ('refused' in offer) return refusal(offer);
    const ice = live.iceSessions.get(offer.ice.ufrag);
    const isSame = ice !== undefined && sameBytes(offer.fingerprint.bytes, live.offer.fingerprint.bytes);
    if (!isSame) return problems.unprocessable('body: must be an offer of the same ICE session and certificate');
    live.ice = ice;
    live.theirs = offer.ice;
    const held = isHold(offer.direction, live.directions);
    live.directions.add(offer.direction);
    live.offer = offer;
    live.version++;
    live.leg.agree({ ...browserAgreement(offer), held });
    return { answer: this.#answer(live) };
  }

  #find({ tokenId }: WebrtcToken, sessionUuid: string): Live | undefined {
    const live = this.#live.get(sessionUuid);
    return live?.tokenId === tokenId ? live : undefined;
  }

  #begin(token: WebrtcToken, leg: BrowserLeg): Promise<string | undefined> {
    return this.#options.onCall({
      type: 'webrtc',
      appUuid: token.appUuid,
      callerId: token.callerId,
      did: token.did,
      clientState: token.clientState,
      leg,
      refuse: () => {},
      listen: (listener) => leg.listen(listener),
    });
  }

  #answer({ offer, ice, ssrc, sessionId, version }: Live): string {
    const fingerprint = this.#options.media.webrtc?.fingerprint ?? '';
    const candidates = this.#candidates();
    return browserAnswer(offer, { ice, fingerprint, candidates, ssrc, sessionId, version });
  }

  #candidates(): readonly HostCandidate[] {
    const port = this.#options.media.webrtc?.port ?? 0;
    return this.#options.hosts.map((host) => ({ host, port }));
  }

  /**
   * Counts one more call of a token, unless it has as many as it may. The call is counted here before others are asked:
   * of two nodes that take one each at the same time, each sees that of the other.
   */
  async #takePlace({ tokenId }: WebrtcToken, elsewhere: () => Promise<number>): Promise<boolean> {
    if (this.liveOf(tokenId) >= WEBRTC_SESSIONS_PER_TOKEN_MAX) return false;
    this.#count(tokenId, 1);
    const others = await elsewhere();
    if (this.liveOf(tokenId) + others <= WEBRTC_SESSIONS_PER_TOKEN_MAX) return true;
    this.#count(tokenId, -1);
    return false;
  }

  #count(tokenId: string, by: number): void {
    const now = this.liveOf(tokenId) + by;
    if (now <= 0) this.#ofToken.delete(tokenId);
    else this.#ofToken.set(tokenId, now);
  }
}

/**
 * Whether an offer holds the call, after offers of the directions `before`. A browser that has only sent so far is no
 * hold, for that is how WHIP is meant, and one that has only listened takes nothing away.
 */
const isHold = (direction: Direction, before: ReadonlySet<Direction>): boolean =>
  (before.has('sendrecv') && (direction === 'sendonly' || direction === 'inactive')) ||
  (before.has('sendonly') && direction === 'inactive');

const etagOf = ({ ufrag }: IceCredentials): string => `"${ufrag}"`;

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at]);

const refusal = ({ refused, why }: Refused): Problem =>
  refused === 400 ? problems.invalid(`body: must be ${why}`) : problems.unprocessable(`body: must have ${why}`);
