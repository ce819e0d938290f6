/** The inputs of a Session's machine, and the effects it asks for in return. */

import type { Event } from '../../event/event.ts';
import type { RejectReason } from '../../event/hangup.ts';
import type { MemberDirection } from '../../event/room-event.ts';
import type { LegSignal } from '../../notice/signal.ts';
import type { Problem } from '../../problem.ts';
import type { CollectTerms } from '../dtmf/collect.ts';
import type { CollectionKind, CollectionTerms, PaymentRecord } from '../payment/collection.ts';
import type { PlaybackControl, PushFormat } from '../playback/playback.ts';
import type { RecordingCommand, RecordingEffect, RecordingRecord } from '../recording/recording.ts';
import type { MemberCommand, MemberEffect, VolumeOrder } from '../room/membership.ts';
import type { SessionState } from './session.ts';

export type Command =
  | MemberCommand
  | RecordingCommand
  | { readonly type: 'answer' }
  | { readonly type: 'reject'; readonly reason: RejectReason }
  | { readonly type: 'cancel' }
  /** Holds the far end, or no longer. */
  | { readonly type: 'hold' }
  | { readonly type: 'unhold' }
  | { readonly type: 'send_digits'; readonly digits: string; readonly durationMs: number; readonly gapMs: number }
  | { readonly type: 'transfer'; readonly target: TransferTarget | OtherSession; readonly timeoutMs: number }
  | { readonly type: 'hangup' }
  | { readonly type: 'play'; readonly urls: readonly string[]; readonly loop: number; readonly volume: number }
  | { readonly type: 'play_stream'; readonly url: string; readonly volume: number }
  | { readonly type: 'play_silence' }
  | { readonly type: 'play_push'; readonly format: PushFormat; readonly volume: number }
  | { readonly type: 'stop_playback' }
  | { readonly type: 'control_playback'; readonly control: PlaybackControl }
  /** `prompts`: how many files there are to play first. */
  | { readonly type: 'collect'; readonly terms: CollectTerms; readonly promptUrls: readonly string[] }
  | { readonly type: 'cancel_collect' }
  | {
      readonly type: 'collect_payment';
      readonly terms: CollectionTerms;
      readonly promptUrls: readonly string[];
      /** The reference of the card that a CVV belongs to; its brand says how many digits there are. */
      readonly cardUuid: string | undefined;
    }
  | { readonly type: 'cancel_payment'; readonly kind: CollectionKind };

/** The Session that a call is connected with. It is resolved to its Refer-To before the machine sees it. */
interface OtherSession {
  readonly sessionUuid: string;
}

/** The target of a transfer: an E.164 number, a SIP URI, or the Refer-To of another call (RFC 3891). */
export type TransferTarget = { readonly number: string } | { readonly uri: string } | { readonly referTo: string };

/** The commands that the call's own state decides; its membership and its recordings decide the rest. */
export type CallCommand = Exclude<Command, MemberCommand | RecordingCommand>;

export type SessionInput =
  /** The first input of every Session. */
  | { readonly type: 'begin' }
  | { readonly type: 'command'; readonly command: Command; readonly operationUuid: string }
  | { readonly type: 'deadline' }
  /** The platform is going down and the grace is over. */
  | { readonly type: 'shutdown' }
  /** A member's volume was carried out, as far as it could be. */
  | { readonly type: 'volume_set'; readonly order: VolumeOrder; readonly failed: readonly MemberDirection[] }
  /** The Room is being deleted. */
  | { readonly type: 'room_closed'; readonly roomId: string }
  /** Another node mixes the Room from now on, under that number. */
  | { readonly type: 'room_moved'; readonly roomId: string; readonly room: number }
  /** The Session is to be given to another node, which its actor does. */
  | { readonly type: 'hand_over' }
  /** A bug in this Session's own actor. */
  | { readonly type: 'broken' }
  | LegSignal;

/** Orders to the leg, performed after the step is durable, in this order. */
export type Effect =
  | MemberEffect
  | RecordingEffect
  | { readonly do: 'start' }
  | { readonly do: 'ring' }
  | { readonly do: 'early_media' }
  | { readonly do: 'answer' }
  | { readonly do: 'reject'; readonly reason: RejectReason }
  | { readonly do: 'cancel' }
  | { readonly do: 'hangup' }
  | { readonly do: 'hold'; readonly on: boolean }
  | {
      readonly do: 'send_digits';
      readonly operationUuid: string;
      readonly digits: string;
      readonly durationMs: number;
      readonly gapMs: number;
    }
  | { readonly do: 'transfer'; readonly target: TransferTarget }
  /** Listens whether a machine has answered. */
  | { readonly do: 'detect_machine'; readonly timeoutMs: number }
  /** Looks for a sign of life of a far end that is silent. */
  | { readonly do: 'probe' }
  | { readonly do: 'play'; readonly operationUuid: string; readonly loop: number; readonly volume: number }
  | { readonly do: 'stop_playback'; readonly operationUuid: string }
  | { readonly do: 'control_playback'; readonly operationUuid: string; readonly control: PlaybackControl }
  /** Keeps what is keyed out of whatever hears the leg, from here on or no longer. */
  | { readonly do: 'secure'; readonly on: boolean }
  /** Opens the sources and plays them under that name; they fail as a playback does. */
  | { readonly do: 'prompt'; readonly name: string; readonly urls: readonly string[] };

export interface Step {
  readonly state: SessionState;
  readonly events: readonly Event[];
  readonly effects: readonly Effect[];
  /** The records of a secure collection that the store keeps. */
  readonly payments?: readonly PaymentRecord[];
  /** The records of recordings that the store keeps. */
  readonly recordings?: readonly RecordingRecord[];
  /** The reason why a command was refused. Undefined when it was admitted. */
  readonly refused?: Problem;
}
