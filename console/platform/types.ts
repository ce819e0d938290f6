/** What the operator API answers, as far as the console reads it. Times are RFC 3339, or empty. */

export interface Session {
  readonly role: 'operator' | 'reader';
  readonly csrf: string;
  readonly expires_at: string;
}

interface Quality {
  readonly mos?: number;
  readonly packets_lost?: number;
  readonly jitter_ms?: number;
  readonly round_trip_ms?: number;
}

export interface Call {
  readonly session_uuid: string;
  readonly app_uuid: string;
  readonly type: string;
  readonly state: string;
  readonly caller_id: string;
  readonly did: string;
  readonly trunk: string;
  readonly created_at: string;
  readonly answered_at: string;
  readonly ended_at: string;
  readonly duration_seconds: number;
  readonly hangup_cause: string;
  readonly hangup_by: string;
  readonly quality?: Quality;
}

interface CommandEntry {
  readonly at: string;
  readonly kind: 'command';
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly operation_uuid: string;
  readonly took_ms: number;
}

export interface SipEntry {
  readonly at: string;
  readonly kind: 'sip';
  readonly direction: 'in' | 'out';
  readonly transport: string;
  readonly peer: string;
  readonly first_line: string;
  readonly call_id: string;
  readonly cseq: string;
}

export interface MediaEntry {
  readonly at: string;
  readonly kind: 'media';
  readonly what: string;
  readonly [detail: string]: string | number | boolean;
}

export interface EventEntry {
  readonly at: string;
  readonly kind: 'event';
  readonly name: string;
  readonly webhook_id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface WebhookEntry {
  readonly at: string;
  readonly kind: 'webhook';
  readonly webhook_id: string;
  readonly attempt: number;
  readonly status: number;
  readonly error: string;
  readonly took_ms: number;
  readonly response: string;
  readonly next_at: string;
}

export interface QualityEntry {
  readonly at: string;
  readonly kind: 'quality';
  readonly packets_in: number;
  readonly packets_lost: number;
  readonly jitter_ms: number;
  readonly round_trip_ms: number;
  readonly mos: number;
}

export type Entry = CommandEntry | SipEntry | MediaEntry | EventEntry | WebhookEntry | QualityEntry;

export interface Timeline {
  readonly session: Call;
  readonly entries: readonly Entry[];
}

export interface App {
  readonly app_uuid: string;
  readonly name: string;
  readonly webhook_url: string;
  readonly webhook_disabled: boolean;
  readonly created_at: string;
}

export interface AppDetail extends App {
  readonly inbound_phone_numbers: readonly string[];
  readonly outbound_caller_ids: readonly string[];
  readonly webhook_status: { readonly state: string; readonly since: string; readonly last_error: string };
  readonly blocked_webhook_events: readonly string[];
  readonly room_limits: { readonly max_rooms: number; readonly max_members_per_room: number };
  readonly allowed_destinations: readonly string[];
  readonly blocked_destinations: readonly string[];
  readonly recording_store?: { readonly kept_bytes: number; readonly max_bytes: number };
  readonly payment_terminals: readonly string[];
  readonly api_keys: readonly { readonly key_id: string; readonly created_at: string }[];
}

export interface Trunk {
  readonly name: string;
  readonly uri: string;
  readonly register: boolean;
  readonly inbound_cidrs: readonly string[];
  readonly max_channels?: number;
  readonly srtp?: string;
  readonly status: {
    readonly registered: boolean;
    readonly registered_until: string;
    readonly register_sip_status?: number;
    readonly last_probe?: { readonly at: string; readonly ok: boolean; readonly rtt_ms: number; readonly sip_status: number };
    readonly channels_in_use: number;
    readonly calls_24h: number;
    readonly failures_24h: number;
  };
}

export interface Refusal {
  readonly at: string;
  readonly first_at: string;
  readonly count: number;
  readonly source: string;
  readonly transport: string;
  readonly method: string;
  readonly from: string;
  readonly to: string;
  readonly status: number;
  readonly reason: string;
  readonly remedy: string;
}

export interface Room {
  readonly room_id: string;
  readonly app_uuid: string;
  readonly created_at: string;
  readonly members: readonly { readonly session_uuid: string; readonly muted: boolean; readonly talking: boolean }[];
}

export interface Message {
  readonly message_uuid: string;
  readonly app_uuid: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly status: string;
  readonly segments: number;
  readonly error_code: string;
  readonly error_message: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface LoggedEvent {
  readonly position: number;
  readonly webhook_id: string;
  readonly app_uuid: string;
  readonly event: string;
  readonly session_uuid: string;
  readonly status: 'pending' | 'delivered' | 'dead' | 'blocked' | 'undeliverable';
  readonly created_at: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly attempts: readonly {
    readonly at: string;
    readonly status: number;
    readonly error: string;
    readonly duration_ms: number;
    readonly next_attempt_at: string;
  }[];
}
