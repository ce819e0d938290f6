/** A WebRTC leg, and the port that all of them share (native/plane/webrtc/webrtc_port.h). */
import { getSystemErrorName } from 'node:util';
import type { Log } from '../../log.ts';
import { startError } from '../../start-error.ts';
import type { WebrtcLeg, WebrtcLegOptions } from '../audio.ts';
import { native } from '../native.ts';
import { LINK_STATES, NOTICE, type NoticeRecord } from '../worker/notice.ts';
import { NegotiatedLeg } from './negotiated-leg.ts';
import type { PlaneLegOptions } from './plane-leg.ts';

export interface WebrtcPort {
  /** Its number in the process. */
  readonly number: number;
  /** The UDP port that it is bound to. */
  readonly port: number;
  readonly fingerprint: string;
}

/** What came to the port and was refused, and how its handshakes went. */
export interface WebrtcCounters {
  readonly checks: number;
  readonly unknownChecks: number;
  readonly forgedChecks: number;
  readonly strangePackets: number;
  readonly overflownPackets: number;
  readonly handshakes: number;
  readonly failedHandshakes: number;
  readonly lostLinks: number;
}

export interface WebrtcListen {
  readonly host: string;
  readonly port: number;
  /** Nobody asked for it: where the address cannot be bound, there is no WebRTC. */
  readonly isDefault: boolean;
}

/**
 * Opens the port. Undefined, and said in one line of the log, when this build has no WebRTC. Throws in one line when
 * the address that was asked for cannot be bound. A browser that is unheard for `consentMs` is lost.
 */
export function openWebrtcPort(listen: WebrtcListen, consentMs: number, log: Log): WebrtcPort | undefined {
  const { host, port, isDefault } = listen;
  if (!native.webrtcSupported()) {
    log.info({}, 'WebRTC is off: the media plane was built without libssl-dev or libsrtp2-dev');
    return undefined;
  }
  const out = new Uint32Array(2);
  const errno = native.webrtcOpen(host, port, consentMs, out);
  const [number = 0, bound = 0] = out;
  if (errno !== 0 && isDefault) {
    log.warn({ host, port, errno }, 'WebRTC is off: its port cannot be bound (see WEBRTC_LISTEN)');
    return undefined;
  }
  if (errno !== 0) throw startError('WEBRTC_LISTEN', `port ${port} of ${host} cannot be bound`, getSystemErrorName(-errno));
  return { number, port: bound, fingerprint: native.webrtcFingerprint(number) };
}

export function countersOf({ number }: WebrtcPort): WebrtcCounters {
  const words = new Uint32Array(8);
  native.webrtcCounters(number, words);
  const [checks = 0, unknownChecks = 0, forgedChecks = 0, strangePackets = 0] = words;
  const [overflownPackets = 0, handshakes = 0, failedHandshakes = 0, lostLinks = 0] = words.subarray(4);
  return {
    checks,
    unknownChecks,
    forgedChecks,
    strangePackets,
    overflownPackets,
    handshakes,
    failedHandshakes,
    lostLinks,
  };
}

export class LinkedLeg extends NegotiatedLeg implements WebrtcLeg {
  constructor(options: PlaneLegOptions, port: number, { ssrc, ice, fingerprint }: WebrtcLegOptions) {
    super(options);
    this.placement.command({ type: 'open webrtc', leg: options.id, port, ssrc, ice, fingerprint });
  }

  restartIce(ice: WebrtcLegOptions['ice']): void {
    if (!this.over) this.placement.command({ type: 'restart ice', leg: this.id, ice });
  }

  override notice(record: NoticeRecord): void {
    if (record.kind !== NOTICE.link) {
      super.notice(record);
      return;
    }
    const state = LINK_STATES[record.a];
    if (state !== undefined && state !== 'checking') this.notify({ type: 'link', state });
  }
}
