/**
 * The Sessions of this node as the doors see them: commands in, answers out. HTTP routes validate shapes and call this;
 * nothing here knows HTTP beyond the status of an answer.
 */

import type { Command } from '../../machine/session/input.ts';
import type { Problem } from '../../problem.ts';
import type { OpenIngest } from '../session/ingests.ts';

/** The sender of a command and the way to answer: application, operation, idempotency key, trace. */
export interface CommandContext {
  readonly appUuid: string;
  /** The request's `Operation-Id`, or one that the platform made. */
  readonly operationUuid: string;
  /** The Idempotency-Key to store the answer under, in the same commit as the effect. */
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string;
  /** When its sender gives it up, in ms since the epoch: from then on nothing of it is committed. Absent: never. */
  readonly until?: number;
}

/** An admitted command: the status and body to send, already stored under the Idempotency-Key. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The acknowledgement of an admitted command (interface, Operation acknowledgement). */
export const accepted = (operationUuid: string, more: Readonly<Record<string, unknown>> = {}): Answer => ({
  status: 202,
  body: { ...more, operation_uuid: operationUuid, status: 'in_progress' },
});

export interface DialRequest {
  readonly from: string;
  readonly to: string;
  readonly ring_timeout_sec: number;
  readonly trunk?: string;
  readonly send_digits?: string;
  readonly display_name?: string;
  readonly max_duration_sec?: number;
  readonly sip_headers?: Readonly<Record<string, string>>;
  readonly client_state?: string;
  /** The Room that the Session joins at the answer. */
  readonly room_id?: string;
  /** A Session or Room; in a cluster the new Session is made on its node. */
  readonly near?: string;
  readonly room_muted?: boolean;
  readonly machine_detection?: { readonly timeout_ms?: number };
}

export type SessionCommand = Command;

/** Checked by its shape; the address behind the URL is screened when the connection is made. */
export interface ConnectWebsocketRequest {
  readonly websocket: {
    readonly url: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly subprotocol?: string;
    readonly connect_timeout_sec?: number;
  };
  readonly media_format: { readonly from_session: WireFormat; readonly to_session: WireFormat };
  readonly client_state?: string;
  /** The Room that the Session joins when it is connected. */
  readonly room_id?: string;
  /** A Session or Room; in a cluster the new Session is made on its node. */
  readonly near?: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly phone_session_uuid?: string;
}

interface WireFormat {
  readonly encoding: 'pcm_s16le' | 'mulaw';
  readonly sample_rate: number;
}

/** A Session as GET and list show it, before `state` is named `status` (interface, Session). */
export interface SessionView {
  readonly session_uuid: string;
  readonly type: string;
  readonly state: string;
  readonly created_at: string;
  readonly caller_id: string;
  readonly did: string;
  /** What its application made the Session with (an extension). Absent where there is none, and in a list. */
  readonly client_state?: string;
}

export interface SessionFilter {
  readonly states: readonly string[];
  /** Inclusive, ms since the epoch. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  readonly limit: number;
}

export interface Sessions {
  dial(request: DialRequest, context: CommandContext): Promise<Answer | Problem>;
  connectWebsocket(request: ConnectWebsocketRequest, context: CommandContext): Promise<Answer | Problem>;
  /**
   * Tells whether the Session is the application's and takes the command: it is live, or the command is terminal and it
   * ended less than 24 h ago.
   */
  owns(appUuid: string, sessionUuid: string, command: SessionCommand['type']): Promise<boolean>;
  /** Admission from the state on: 409 is decided by the Session's machine, then the work, then one commit. */
  command(sessionUuid: string, command: SessionCommand, context: CommandContext): Promise<Answer | Problem>;
  /** This node takes no new Sessions: it drains. */
  readonly isDraining: boolean;
  /** Tells whether this node runs the Session, whatever its application. */
  isHere(sessionUuid: string): boolean;
  /** Finds the push of the application that takes a body under that name, or undefined. */
  ingest(appUuid: string, ingestUuid: string): OpenIngest | undefined;
  get(appUuid: string, sessionUuid: string): Promise<SessionView | undefined>;
  list(appUuid: string, filter: SessionFilter): Promise<readonly SessionView[] | Problem>;
}
