/**
 * A leg: the far end of one Session as its actor sees it, whatever carries it (a SIP dialog, a WebSocket). The actor
 * orders, the leg obeys and signals; each order returns at once, and what comes of it arrives later as a `LegSignal`,
 * an ordinary input of the Session's machine.
 */
import type { MayReach } from '../../destinations.ts';
import type { CallQuality, SipFacts } from '../../event/call-report.ts';
import type { RejectReason } from '../../event/hangup.ts';
import type { TransferTarget } from '../../machine/session/input.ts';
import type { LegAudio } from '../../media/engine.ts';
import type { StreamBegin } from '../../media/leg/packet-numbers.ts';
import type { StreamFormat } from '../../media/leg/stream.ts';
import type { LegEnd, LegSignal } from '../../notice/signal.ts';
import type { Described } from '../../sdp/negotiation.ts';
import type { CallSnapshot } from '../../sip/call/snapshot.ts';
import type { Replaces } from '../../sip/message/replaces.ts';

export type { LegEnd, LegSignal };

export interface Leg {
  /**
   * Its sound: what is played to it, what is recorded of it, and the Room it is in. Undefined while there is none, and
   * after the end. Notices of recordings may follow the last signal.
   */
  readonly audio: LegAudio | undefined;
  /**
   * Outbound: places the call. The door's `dial` only reserves the channel and makes the leg; nothing is sent before
   * this, so that the Session is durable before the far end hears of it. Inbound: no effect.
   */
  start(): void;
  /** Inbound: sends 180, once. */
  ring(): void;
  /** Inbound, before answer: 183 with SDP, so that playback is heard; then `leg.early_media`. */
  startEarlyMedia(): void;
  /** Inbound: 200 with SDP, then `leg.answered`. */
  answer(): void;
  /** Inbound, before answer: the final response of the reason (contract §2). */
  reject(reason: RejectReason): void;
  /** Outbound, before answer: CANCEL. After a crossing 200: ACK, then BYE. */
  cancel(): void;
  /**
   * Sends digits to the far end, after those that are being sent; `keys.sent` follows. Absent where there is nobody to
   * press keys for.
   */
  sendDigits?(operationUuid: string, digits: string, durationMs: number, gapMs: number): void;
  /**
   * Listens whether a machine has answered, for at most so long; `machine.detected` follows. Absent where nobody
   * answers.
   */
  detectMachine?(timeoutMs: number): void;
  /** Holds the far end, or no longer; `leg.own_hold` tells when it knows. Absent where there is nothing to hold. */
  hold?(on: boolean): void;
  /** What a phone leg can do for a transfer. Absent where nothing can be transferred. */
  readonly transfers?: LegTransfers;
  /**
   * Looks for a sign of life of a silent far end; `leg.alive` tells of one. Absent where the connection itself tells.
   */
  probe?(): void;
  /** Any state: BYE, CANCEL or a final response, whichever the dialog is at. Safe to call twice. */
  hangup(): void;
  /**
   * Secure collection begins or is over: keys and their tones reach no recording, Room, WebSocket or live URL in
   * between. Absent where nothing taps the leg.
   */
  secure?(on: boolean): void;
  /** How another node goes on with the call. Absent where none can. */
  readonly handOver?: LegHandOver;
  /** How the call has sounded so far. Absent where there is no RTP, undefined before it flows. */
  quality?(): Promise<CallQuality | undefined>;
  /** Tells what happened in the Session's Room or to its phone Session. Absent where nobody would hear of it. */
  hear?(news: RoomNews): void;
}

/** What a bot hears of the others in its Room, and of its phone Session (`sidetone.v1`). */
export type RoomNews =
  | { readonly type: 'dtmf'; readonly session_uuid: string; readonly digit: string; readonly duration_ms: number }
  | { readonly type: 'member_joined'; readonly session_uuid: string }
  | { readonly type: 'member_left'; readonly session_uuid: string; readonly reason: string }
  | { readonly type: 'speech_started' | 'speech_ended'; readonly session_uuid: string };

/** What a bot orders over its WebSocket. Without `sessionUuid` its phone Session is meant. */
export type BotOrder =
  | { readonly type: 'hangup'; readonly sessionUuid: string | undefined }
  | { readonly type: 'transfer'; readonly sessionUuid: string | undefined; readonly to: string }
  | { readonly type: 'send_dtmf'; readonly sessionUuid: string | undefined; readonly digits: string };

export interface LegHandOver {
  /** What another node needs to go on. Undefined: not now. */
  snapshot(): LegSnapshot | undefined;
  /** The same at any time while the call is up, so that another node can go on after a crash. */
  kept(): LegSnapshot | undefined;
  /**
   * Another node goes on: gives back what the leg holds. The far end hears nothing of it, and no signal follows but the
   * ends of recordings.
   */
  release(): void;
  /** The other node gave up, after it may have asked the far end to follow: has the far end come back. */
  reclaim(): void;
}

/** A call as plain data. */
export interface LegSnapshot {
  readonly trunk: string;
  readonly call: CallSnapshot;
  /** Our last description. */
  readonly origin: Described;
  /** The key that we encrypt the audio with, sealed under MASTER_KEY. Absent while it is in clear. */
  readonly audioKey?: string | undefined;
  /** What our packets began with. Absent where nothing was agreed on, and where a node of an older release told it. */
  readonly stream?: StreamBegin;
}

export interface LegTransfers {
  /** The name of the leg's trunk. */
  readonly trunk: string;
  /** Tells whether the trunk lets calls be transferred to that SIP URI (`transfer_hosts`). */
  permits(uri: string): boolean;
  /** The E.164 number that the user part of a SIP URI is on the trunk, else the user part. */
  dialled(uri: string): string;
  /** The Refer-To that makes another call take the place of this one. Undefined while it is not up. */
  replacement(): string | undefined;
  /** Tells whether a Replaces names the call of this leg, from when it rings to its end. */
  isNamedBy(replaces: Replaces): boolean;
  /** Asks the far end to call a number, a SIP URI or a Refer-To in our place. `leg.transfer` follows. */
  transfer(target: TransferTarget): void;
}

/** A leg that goes on with the call of another node. Its signals wait until somebody listens. */
export interface ResumedLeg {
  readonly leg: Leg & { readonly handOver: LegHandOver };
  listen(listener: LegListener): void;
}

/** A door calls this to hand its leg's signals to the Session's actor. Signals arrive in order. */
export type LegListener = (signal: LegSignal) => void;

/** The call that a Session wants placed. */
export interface DialOptions {
  readonly appUuid: string;
  /** An E.164 number, or `sip:` and the user name of a device. */
  readonly to: string;
  readonly from: string;
  /** Tells whether a number that the far end redirects the call to may be called. Undefined: none may. */
  readonly mayReach?: MayReach;
  readonly trunk?: string;
  readonly displayName?: string;
  readonly sipHeaders?: Readonly<Record<string, string>>;
  readonly listener: LegListener;
  /** An INVITE is about to be sent with that Call-ID. Each attempt has its own. */
  onPlaced?(callId: string): void;
}

/**
 * Why no leg was made. `no_trunk`: none is configured. `unknown_trunk`: none of that name. `no_node`: other nodes
 * alone may use the trunk. `no_capacity`: every channel of the trunks that could carry the call is in use.
 * `no_ports`: the RTP ports are used up. `draining`: the platform is shutting down. `unknown_device`: the
 * application has no such device.
 */
export type DialRefused = 'unknown_device' | 'no_trunk' | 'unknown_trunk' | 'no_node' | 'no_capacity' | 'no_ports' | 'draining';

/** The carrier as the heart sees it. */
export interface Dialer {
  /**
   * Goes on with a call of another node: opens its audio here and asks the far end to follow, with a CSeq that is
   * `ahead` higher. Resolves with the leg once the far end has, and with why where it does not; `asked` tells whether
   * the far end may have been asked.
   */
  resume?(
    snapshot: LegSnapshot,
    ahead: number,
    timeoutMs: number,
  ): Promise<ResumedLeg | { readonly failed: string; readonly asked: boolean }>;
  /** Makes the leg of a dial, with what it needs of a trunk, of which other nodes may be asked. */
  dial(options: DialOptions): Promise<{ readonly leg: Leg } | { readonly unavailable: DialRefused }>;
}

/** A connection to make to an application's WebSocket server. */
export interface WebSocketOptions {
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly traceparent: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly subprotocol: string | undefined;
  readonly connectTimeoutMs: number;
  readonly fromSession: StreamFormat;
  readonly toSession: StreamFormat;
  /** What the application tells the bot at the start. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The phone Session that the bot works for. */
  readonly phoneSessionUuid: string | undefined;
  /** Obeys the bot, and resolves with the reason where it is refused. */
  order(order: BotOrder): Promise<string | undefined>;
  readonly listener: LegListener;
}

/** The door to WebSocket servers as the heart sees it: makes the leg; nothing is sent before its `start`. */
export type WebSocketDialer = (options: WebSocketOptions) => Leg;

/** A call that came in and was given to an application; 100 has been sent. */
export interface IncomingCall {
  /** E.164, or `""` when the far end withholds it. */
  readonly callerId: string;
  readonly did: string;
  readonly appUuid: string;
  /** What SIP says of the call. */
  readonly sip?: SipFacts;
  /** A device or a browser of the application calls. Absent: it came from a carrier. */
  readonly type?: 'sip' | 'webrtc';
  readonly clientState?: string;
  readonly leg: Leg;
  /** Refuses the call with 503: the carrier may try elsewhere. `full`: its application, or the node, has no room. */
  refuse(why: 'full' | 'away'): void;
  /** Hands over the leg's signals, in order, from its beginning. Called once, at once. */
  listen(listener: LegListener): void;
}
