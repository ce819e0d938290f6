/** What operations answer with, by an example of each schema, for the API reference. */

const AT = '2026-03-01T12:00:00.123Z';
const LATER = '2026-03-01T13:00:00.123Z';
const UUID = '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f';
const OTHER = '0b7c3a52-6d1e-4c0e-9b4a-3d9a4a1d2f10';
const APP = `app_${UUID}`;
const EVENT = `evt_${UUID}`;
const RECORDING = `rec_${UUID}`;
const OPERATION = { operation_uuid: OTHER, status: 'in_progress' } as const;
const SESSION = {
  session_uuid: UUID,
  type: 'phone_out',
  created_at: AT,
  caller_id: '+15550100',
  did: '+15550199',
} as const;
const ROOM = {
  room_id: UUID,
  created_at: AT,
  member_count: 2,
  playback_status: 'stopped',
  voice_activity_events: true,
} as const;
const MESSAGE = {
  message_uuid: UUID,
  direction: 'outbound',
  from: '+15550100',
  to: '+15550199',
  text: 'Your code is 4711',
  status: 'delivered',
  segments: 1,
  encoding: 'gsm7',
  error_code: '',
  error_message: '',
  created_at: AT,
  updated_at: AT,
  sent_at: AT,
  delivered_at: AT,
} as const;
const SETTINGS = {
  app_uuid: APP,
  inbound_phone_numbers: ['+15550001'],
  outbound_caller_ids: ['+15550100'],
  webhook_url: 'https://app.example.com/hook',
  webhook_status: { state: 'enabled', since: AT, last_error: '' },
  blocked_webhook_events: [],
  room_limits: { max_rooms: 1_000, max_members_per_room: 250 },
  recording_store: { kept_bytes: 1_204_412_044, max_bytes: 50_000_000_000 },
} as const;
const SUMMARY = {
  app_uuid: APP,
  name: 'support line',
  webhook_url: SETTINGS.webhook_url,
  webhook_disabled: false,
  blocked_webhook_events: [],
  room_limits: SETTINGS.room_limits,
  allowed_destinations: ['+1', '+972'],
  blocked_destinations: ['+1900'],
  created_at: AT,
} as const;
const TRUNK = {
  name: 'acme',
  uri: 'sip:sip.acme.example',
  has_password: false,
  register: false,
  inbound_cidrs: ['203.0.113.0/24'],
  has_tls_key: false,
  status: {
    registered: false,
    registered_until: '',
    channels_in_use: 3,
    calls_24h: 240,
    failures_24h: 1,
    last_probe: { at: AT, ok: true, rtt_ms: 12, sip_status: 200 },
  },
} as const;
const RECORDED = {
  recording_uuid: RECORDING,
  session_uuid: UUID,
  state: 'active',
  masked: false,
  direction: 'both',
  channels: 'mono',
  include_gaps: true,
  enable_voice_activity_events: false,
  available: true,
  created_at: AT,
  duration: 12,
  media_url: `https://voice.example.com/v1/media/${RECORDING}/pull?expires=1772370000&signature=0123456789abcdef`,
  live_url: `https://voice.example.com/v1/media/${RECORDING}/live?expires=1772370000&signature=0123456789abcdef`,
  expires_at: LATER,
} as const;
const STORED = {
  recording_uuid: RECORDING,
  session_uuid: UUID,
  state: 'ended',
  created_at: AT,
  ended_at: LATER,
  duration: 3_600,
  media_url: RECORDED.media_url,
  expires_at: RECORDED.expires_at,
};
const CALL = {
  session_uuid: UUID,
  app_uuid: APP,
  type: 'phone_out',
  state: 'ended',
  caller_id: '+15550100',
  did: '+15550199',
  trunk: 'acme',
  created_at: AT,
  answered_at: AT,
  ended_at: LATER,
  duration_seconds: 3_600,
  hangup_cause: 'completed',
  hangup_by: 'callee',
} as const;
const ATTEMPT = { at: AT, status: 200, error: '', duration_ms: 35, next_attempt_at: '' } as const;
const LOGGED = {
  position: 4_711,
  webhook_id: EVENT,
  app_uuid: APP,
  event: 'session.held',
  session_uuid: UUID,
  status: 'delivered',
  created_at: AT,
  payload: { aud: APP, event: 'session.held', timestamp: AT, session_uuid: UUID, by: 'far_end' },
  attempts: [ATTEMPT],
} as const;

/** An example of every answer in JSON, by the name of its schema, against which a test holds it. */
export const ANSWER_EXAMPLES: Readonly<Record<string, object>> = {
  Operation: OPERATION,
  SessionOperation: { session_uuid: UUID, ...OPERATION },
  PlaybackOperation: OPERATION,
  RecordingOperation: { recording_uuid: RECORDING, ...OPERATION },
  RoomOperation: { room_id: UUID, ...OPERATION },
  RoomDeletion: { room_id: UUID, status: 'deleting' },
  RoomMembership: { room_id: UUID, session_uuid: OTHER, status: 'joining' },
  MessageOperation: { message_uuid: UUID, operation_uuid: OTHER, status: 'queued' },
  IngestReceipt: { operation_uuid: OTHER, bytes_received: 160_000 },
  Session: { ...SESSION, status: 'answered' },
  SessionList: { sessions: [{ ...SESSION, state: 'answered' }] },
  Room: { ...ROOM, playback_operation_uuid: '', playback_urls: [], playback_volume: 100 },
  RoomList: { rooms: [ROOM] },
  Member: { uuid: OTHER, muted: false },
  MemberList: { members: [{ uuid: OTHER, muted: false }] },
  Recording: RECORDED,
  StoredRecording: STORED,
  RecordingList: { recordings: [RECORDED] },
  StoredRecordingList: { recordings: [STORED], after: '' },
  Message: MESSAGE,
  MessageList: { messages: [MESSAGE] },
  LoggedMessageList: { messages: [{ app_uuid: APP, ...MESSAGE }] },
  LiveRoomList: {
    rooms: [{ room_id: UUID, app_uuid: APP, created_at: AT, members: [{ session_uuid: OTHER, muted: false, talking: true }] }],
  },
  WebrtcToken: { token_id: UUID, token: 'wt_0123456789abcdef', url: 'https://voice.example.com/v1/whip', expires_at: LATER },
  ApplicationSettings: SETTINGS,
  NewApplication: { app_uuid: APP, api_key: 'sk_0123456789abcdef', webhook_secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZg==' },
  ApplicationList: { apps: [SUMMARY] },
  Application: {
    ...SUMMARY,
    ...SETTINGS,
    payment_terminals: ['0010000'],
    api_keys: [{ key_id: OTHER, created_at: AT }],
  },
  NewApiKey: { key_id: OTHER, api_key: 'sk_0123456789abcdef' },
  NewWebhookSecret: { webhook_secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZg==' },
  Trunk: TRUNK,
  TrunkList: { trunks: [TRUNK] },
  TrunkProbe: { name: 'acme', status: 'probing' },
  DeviceList: {
    devices: [
      {
        username: 'desk4',
        created_at: AT,
        registered_until: LATER,
        address: '203.0.113.7:5060',
        user_agent: 'Phone 1.0',
        contacts: [
          {
            uri: 'sip:desk4@203.0.113.7:5060',
            transport: 'udp',
            registered_until: LATER,
            address: '203.0.113.7:5060',
            user_agent: 'Phone 1.0',
          },
        ],
      },
    ],
    after: '',
  },
  RefusalList: {
    refusals: [
      {
        at: AT,
        first_at: AT,
        count: 3,
        source: '198.51.100.9',
        transport: 'udp',
        method: 'INVITE',
        from: 'sip:100@198.51.100.9',
        to: 'sip:+15550001@voice.example.com',
        status: 403,
        reason: 'The source address is in no trunk',
        remedy: 'Add the address to inbound_cidrs of a trunk',
      },
    ],
  },
  LoggedEventList: { events: [LOGGED], next: '' },
  EventReplay: { webhook_id: EVENT, status: 'pending' },
  EventSample: { webhook_id: EVENT, event: 'session.created', status: 'pending' },
  CallList: { sessions: [CALL], after: '' },
  Timeline: { session: CALL, entries: [{ at: AT, kind: 'media', what: 'connected', codec: 'PCMU' }] },
  ConsoleLogin: { login: '0123456789abcdef', url: 'https://voice.example.com/console#login=0123456789abcdef', expires_at: LATER },
  NodeList: {
    nodes: [
      {
        node_id: OTHER,
        here: false,
        http_host: '192.0.2.11',
        http_port: 8080,
        sip: 'udp:192.0.2.11:5060',
        labels: ['east'],
        version: '0.1.0',
        started_at: AT,
        draining_at: '',
        dead_at: '',
        suspect: false,
        unreached: false,
        settings_apart: [],
        load: { load: 0.02, sessions: 12, rooms: 3, legs: 12, channels: {} },
      },
    ],
  },
  NodeCommand: { node_id: OTHER, status: 'draining' },
};

const problem = (code: string, message: string, more: object = {}): object => ({ code, message, ...more });

/** A problem of each status. */
export const PROBLEM_EXAMPLES: Readonly<Record<number, object>> = {
  400: problem('invalid_request', 'ring_timeout_sec: is required'),
  401: problem('unauthorized', 'Invalid API key'),
  403: problem('forbidden', 'Caller ID is not permitted'),
  404: problem('not_found', 'Session not found'),
  405: problem('invalid_request', 'Method not allowed'),
  409: problem('conflict', 'Session cannot be answered in its current state'),
  413: problem('payload_too_large', 'Request body is too large'),
  415: problem('invalid_request', 'Content-Type: must be application/json'),
  422: problem('invalid_request', 'Idempotency-Key was used for another request'),
  429: problem('rate_limited', 'Command rate limit exceeded. See Retry-After header.'),
  500: problem('internal_error', 'Internal error', { support_id: UUID }),
  502: problem('playback_source_error', 'A playback source could not be admitted', {
    detail: { reason: 'not_found', source_index: 1, retryable: false, upstream_status: 404 },
  }),
  503: problem('unavailable', 'Service temporarily unavailable. See Retry-After header.'),
  529: problem('unavailable', 'No outbound capacity. See Retry-After header.'),
};
