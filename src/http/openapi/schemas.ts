/**
 * The bodies that the API answers with and posts, as JSON Schema 2020-12. Tests hold every answer and every webhook of
 * the platform against them.
 */
import { EVENT_STATUSES } from '../../database/event/events.ts';
import type { TrunkSettings } from '../../database/trunk/trunk-settings.ts';
import { MESSAGE_STATUSES } from '../../machine/message/message.ts';
import { EVENT_SCHEMAS } from './event/events.ts';
import {
  appUuid,
  flag,
  listOf,
  object,
  ref,
  type Schema,
  text,
  texts,
  time,
  timeOrNone,
  uuid,
  webhookId,
  whole,
} from './schema.ts';
import { TIMELINE_SCHEMAS } from './timeline.ts';

const SESSION = {
  session_uuid: uuid,
  type: { enum: ['phone_in', 'phone_out', 'sip', 'webrtc', 'websocket'] },
  created_at: time,
  caller_id: text,
  did: text,
};
const STATE = { enum: ['new', 'connecting', 'ringing', 'early_media', 'answered', 'ended'] };
const ROOM = {
  room_id: uuid,
  created_at: time,
  member_count: whole,
  playback_status: { enum: ['stopped', 'playing', 'paused'] },
  voice_activity_events: flag,
};
const LIMITS = object({ max_rooms: whole, max_members_per_room: whole });
/** The field is there where `APP_RECORDING_MAX_GB` bounds what an application keeps. */
const STORE_USE = { recording_store: object({ kept_bytes: whole, max_bytes: whole }) };
const OPERATION = { operation_uuid: text, status: { enum: ['in_progress', 'completed', 'queued'] } };
const MESSAGE = {
  message_uuid: uuid,
  direction: { const: 'outbound' },
  from: text,
  to: text,
  text,
  status: { enum: MESSAGE_STATUSES },
  segments: whole,
  encoding: { enum: ['gsm7', 'ucs2'] },
  error_code: text,
  error_message: text,
  created_at: time,
  updated_at: time,
  sent_at: timeOrNone,
  delivered_at: timeOrNone,
};
const APP_OWN = {
  app_uuid: appUuid,
  inbound_phone_numbers: texts,
  outbound_caller_ids: texts,
  webhook_url: text,
  webhook_status: object({ state: { enum: ['enabled', 'disabled', 'unset'] }, since: time, last_error: text }),
  blocked_webhook_events: texts,
  room_limits: LIMITS,
};
const APP_SUMMARY = {
  app_uuid: appUuid,
  name: text,
  webhook_url: text,
  webhook_disabled: flag,
  blocked_webhook_events: texts,
  room_limits: LIMITS,
  created_at: time,
};
/** The settings of a trunk as they are told: those that were set. */
const TRUNK_SETTINGS = {
  country_code: text,
  inbound_format: { enum: ['auto', 'e164', 'national'] },
  outbound_format: { enum: ['plus_e164', 'e164', 'national', 'international_00'] },
  outbound_prefix: text,
  auth_username: text,
  from_user: text,
  from_domain: text,
  outbound_proxy: text,
  contact_user: text,
  identity: { enum: ['none', 'pai', 'rpid'] },
  trust_identity: flag,
  srtp: { enum: ['off', 'optional', 'required'] },
  srtp_without_tls: flag,
  session_timer: { enum: ['on', 'off'] },
  max_cps: whole,
  priority: whole,
  weight: whole,
  apps: { type: 'array', items: appUuid },
  follow_redirects: flag,
  transfer_hosts: texts,
  advertise: text,
  nodes: texts,
  tls: object({}, { ca: text, cert: text }),
} satisfies Readonly<Record<keyof TrunkSettings, Schema>>;

/** Every schema that an answer or a webhook refers to, by its name. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  ...EVENT_SCHEMAS,
  Problem: object(
    {
      code: {
        enum: [
          'invalid_request',
          'invalid_authorization_header',
          'payload_too_large',
          'result_set_too_large',
          'unauthorized',
          'forbidden',
          'not_found',
          'conflict',
          'recording_not_active',
          'room_full',
          'rate_limited',
          'playback_source_error',
          'unavailable',
          'internal_error',
        ],
        description: 'Stable: branch on it.',
      },
      message: { type: 'string', description: 'English; may change.' },
    },
    {
      detail: { ...ref('SourceDetail'), description: 'Of a 502 only.' },
      support_id: { ...uuid, description: 'Of a 500 only: it is in the log.' },
    },
  ),
  SourceDetail: object(
    {
      reason: {
        enum: [
          'unsupported',
          'not_found',
          'access_denied',
          'timeout',
          'unreachable',
          'rejected',
          'invalid_response',
          'preparation_failed',
        ],
      },
      retryable: flag,
    },
    { source_index: whole, upstream_status: whole },
  ),
  Operation: object(OPERATION, { already_ended: { const: true, description: 'The Session had ended before.' } }),
  SessionOperation: object({ session_uuid: uuid, ...OPERATION }),
  PlaybackOperation: object(OPERATION, {
    ingest: object({
      url: text,
      method: { const: 'POST' },
      headers: { type: 'object', additionalProperties: text },
      expires_at: time,
    }),
  }),
  RecordingOperation: object({ recording_uuid: text, ...OPERATION }, { room_id: uuid }),
  RoomOperation: object({ room_id: uuid, ...OPERATION }),
  RoomDeletion: object({ room_id: uuid, status: { const: 'deleting' } }),
  RoomMembership: object({ room_id: uuid, session_uuid: text, status: { enum: ['joining', 'leaving'] } }),
  MessageOperation: object({ message_uuid: uuid, ...OPERATION }),
  IngestReceipt: object({ operation_uuid: text, bytes_received: whole }),
  Session: object({ ...SESSION, status: STATE }, { client_state: text }),
  SessionSummary: object({ ...SESSION, state: STATE }),
  SessionList: listOf('sessions', 'SessionSummary'),
  Room: object({ ...ROOM, playback_operation_uuid: text, playback_urls: texts, playback_volume: whole }),
  RoomSummary: object(ROOM),
  RoomList: listOf('rooms', 'RoomSummary'),
  Member: object({ uuid, muted: flag }),
  MemberList: listOf('members', 'Member'),
  Recording: object({
    recording_uuid: text,
    session_uuid: uuid,
    state: { enum: ['active', 'stopping'] },
    masked: flag,
    direction: { const: 'both' },
    channels: { const: 'mono' },
    include_gaps: flag,
    enable_voice_activity_events: flag,
    available: flag,
    created_at: time,
    duration: { type: 'integer', description: 'Seconds so far, rounded down.' },
    media_url: text,
    live_url: text,
    expires_at: timeOrNone,
  }),
  StoredRecording: object(
    {
      recording_uuid: text,
      state: { enum: ['active', 'ended', 'removed'] },
      created_at: time,
      ended_at: timeOrNone,
      media_url: text,
      expires_at: timeOrNone,
    },
    {
      session_uuid: uuid,
      room_id: uuid,
      duration: { type: 'integer', description: 'Seconds, rounded down; absent before the end.' },
    },
  ),
  RecordingList: listOf('recordings', 'Recording'),
  StoredRecordingList: object({
    recordings: { type: 'array', items: ref('StoredRecording') },
    after: { type: 'string', description: 'Asks for the next page; empty on the last one.' },
  }),
  Message: object(MESSAGE),
  MessageList: listOf('messages', 'Message'),
  LoggedMessage: object({ app_uuid: appUuid, ...MESSAGE }),
  LoggedMessageList: listOf('messages', 'LoggedMessage'),
  LiveRoom: object({
    room_id: uuid,
    app_uuid: appUuid,
    created_at: time,
    members: { type: 'array', items: object({ session_uuid: uuid, muted: flag, talking: flag }) },
  }),
  LiveRoomList: listOf('rooms', 'LiveRoom'),
  WebrtcToken: object({ token_id: uuid, token: text, url: text, expires_at: time }),
  ApplicationSettings: object(APP_OWN, STORE_USE),
  NewApplication: object({ app_uuid: appUuid, api_key: text, webhook_secret: text }),
  ApplicationSummary: object(APP_SUMMARY, STORE_USE),
  ApplicationList: listOf('apps', 'ApplicationSummary'),
  Application: object(
    {
      ...APP_SUMMARY,
      ...APP_OWN,
      payment_terminals: texts,
      api_keys: { type: 'array', items: object({ key_id: uuid, created_at: time }) },
    },
    STORE_USE,
  ),
  NewApiKey: object({ key_id: uuid, api_key: text }),
  NewWebhookSecret: object({ webhook_secret: text }),
  Trunk: {
    ...object(
      {
        name: text,
        uri: text,
        has_password: flag,
        register: flag,
        inbound_cidrs: texts,
        has_tls_key: flag,
        status: object(
          { registered: flag, registered_until: timeOrNone, channels_in_use: whole, calls_24h: whole, failures_24h: whole },
          { register_sip_status: whole, last_probe: object({ at: time, ok: flag, rtt_ms: whole, sip_status: whole }) },
        ),
      },
      { username: text, max_channels: whole, codecs: texts, ...TRUNK_SETTINGS },
    ),
    description: 'With the settings of its PUT, secrets apart.',
  },
  Device: object({
    username: text,
    created_at: time,
    registered_until: timeOrNone,
    address: text,
    user_agent: text,
    contacts: {
      type: 'array',
      items: object({
        uri: text,
        transport: { enum: ['udp', 'tcp', 'tls'] },
        registered_until: time,
        address: text,
        user_agent: text,
      }),
    },
  }),
  DeviceList: object({
    devices: { type: 'array', items: ref('Device') },
    after: { type: 'string', description: 'Asks for the next page; empty on the last one.' },
  }),
  TrunkList: listOf('trunks', 'Trunk'),
  TrunkProbe: object({ name: text, status: { const: 'probing' } }),
  RefusalList: object({
    refusals: {
      type: 'array',
      items: object({
        at: time,
        first_at: time,
        count: whole,
        source: text,
        transport: text,
        method: text,
        from: text,
        to: text,
        status: whole,
        reason: text,
        remedy: text,
      }),
    },
  }),
  LoggedEvent: object({
    position: whole,
    webhook_id: webhookId,
    app_uuid: appUuid,
    event: text,
    session_uuid: text,
    status: { enum: EVENT_STATUSES },
    created_at: time,
    payload: { type: 'object', description: 'The body as it is sent.' },
    attempts: {
      type: 'array',
      items: object({ at: time, status: whole, error: text, duration_ms: whole, next_attempt_at: timeOrNone }),
    },
  }),
  LoggedEventList: object({
    events: { type: 'array', items: ref('LoggedEvent') },
    next: { type: 'string', description: 'The `after` or `before` of the next page; empty on the last one.' },
  }),
  EventReplay: object({ webhook_id: webhookId, status: { const: 'pending' } }),
  EventSample: object({ webhook_id: webhookId, event: text, status: { const: 'pending' } }),
  Call: object(
    {
      session_uuid: uuid,
      app_uuid: appUuid,
      type: text,
      state: STATE,
      caller_id: text,
      did: text,
      trunk: text,
      created_at: time,
      answered_at: timeOrNone,
      ended_at: timeOrNone,
      duration_seconds: whole,
      hangup_cause: text,
      hangup_by: text,
    },
    { quality: ref('CallQuality') },
  ),
  CallList: object({
    sessions: { type: 'array', items: ref('Call') },
    after: { type: 'string', description: 'Asks for the next page; empty on the last one.' },
  }),
  ...TIMELINE_SCHEMAS,
  ConsoleLogin: object({ login: text, url: text, expires_at: time }),
  Node: object({
    node_id: text,
    here: flag,
    http_host: text,
    http_port: whole,
    sip: text,
    labels: texts,
    version: text,
    started_at: time,
    draining_at: timeOrNone,
    dead_at: timeOrNone,
    suspect: flag,
    unreached: flag,
    settings_apart: texts,
    load: {
      ...object(
        {},
        {
          load: { type: 'number', description: 'How full the node is: 1 is full.' },
          sessions: whole,
          rooms: whole,
          legs: whole,
          channels: {
            type: 'object',
            additionalProperties: whole,
            description: 'The channels that it holds of each trunk with `max_channels`.',
          },
        },
      ),
      description: 'As of its last beat; empty where the platform is one node.',
    },
  }),
  NodeList: listOf('nodes', 'Node'),
  NodeCommand: object({ node_id: text, status: { enum: ['draining', 'in_use'] } }),
};
