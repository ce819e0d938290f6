/**
 * The limits that docs/api.md and docs/operations promise, as numbers. Tests of behaviour take them from limits.ts,
 * so that a change of a promised number would change both the product and its test.
 */
import { expect, test } from 'bun:test';
import { buckets } from '../../src/call/rate/buckets.ts';
import * as limits from '../../src/limits.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const DAY_SEC = 86_400;
const MIB = 1024 * 1024;

test('Requests and lists have the limits of the interface', () => {
  expect(limits).toMatchObject({
    BODY_MAX_BYTES: MIB,
    COMMAND_BODY_MAX_BYTES: 64 * 1024,
    LIST_MATCHED_MAX_ITEMS: 50_000,
    LIST_DEFAULT_ITEMS: 1_000,
    IDEMPOTENCY_LEASE_SEC: 60,
    IDEMPOTENCY_KEPT_SEC: DAY_SEC,
    WEBHOOK_URL_MAX_CHARS: 2_048,
    WEBHOOK_SECRETS_REPLACED_MAX: 3,
    WEBHOOK_SECRET_OVERLAP_SEC: DAY_SEC,
    ENDED_SESSION_KEPT_SEC: DAY_SEC,
  });
});

test('Calls have the limits of the reference', () => {
  expect(limits).toMatchObject({
    RING_TIMEOUT_MAX_SEC: 600,
    CALL_DURATION_MIN_SEC: 60,
    CALL_DURATION_MAX_SEC: DAY_SEC,
    CALL_DURATION_DEFAULT_SEC: 14_400,
    DISPLAY_NAME_MAX_CHARS: 128,
    CLIENT_STATE_MAX_CHARS: 1_024,
    SIP_HEADERS_MAX: 20,
    DTMF_SEND_MAX_DIGITS: 64,
    DTMF_SEND_MIN_MS: 40,
    DTMF_SEND_MAX_MS: SECOND,
    DTMF_SEND_DEFAULT_MS: 100,
    DTMF_SENDS_WAITING_MAX: 8,
    TRANSFER_TIMEOUT_MIN_SEC: 5,
    TRANSFER_TIMEOUT_MAX_SEC: 120,
    TRANSFER_TIMEOUT_DEFAULT_SEC: 30,
    TRANSFER_URI_MAX_CHARS: 256,
    TRANSFERRED_HANGUP_MS: 10 * SECOND,
    MACHINE_DETECTION_MIN_MS: SECOND,
    MACHINE_DETECTION_MAX_MS: 30 * SECOND,
    MACHINE_DETECTION_DEFAULT_MS: 5 * SECOND,
    ROOM_PLAYBACK_CONFIRM_MS: 10 * SECOND,
    ROOM_TEARDOWN_MS: 10 * SECOND,
    RECORDING_LAST_MS: 5 * SECOND,
  });
});

test('Playback, digits, bots and browsers have the limits of the reference', () => {
  expect(limits).toMatchObject({
    PLAYBACK_URLS_MAX: 100,
    PLAYBACK_URL_MAX_CHARS: 2_048,
    SOURCE_CONNECT_MS: 5 * SECOND,
    SOURCE_FIRST_BYTE_MS: 10 * SECOND,
    SOURCE_REDIRECTS_MAX: 5,
    SOURCE_MAX_BYTES: 100 * MIB,
    INGEST_START_MS: MINUTE,
    INGEST_IDLE_MS: 30 * SECOND,
    COLLECT_DIGITS_MAX: 128,
    WEBSOCKET_URL_MAX_CHARS: 2_048,
    WEBSOCKET_HEADERS_MAX: 20,
    WEBSOCKET_CONNECT_DEFAULT_SEC: 10,
    WEBSOCKET_CONNECT_MAX_SEC: 30,
    WEBSOCKET_MESSAGE_MAX_BYTES: 8 * MIB,
    WEBSOCKET_PING_MS: 20 * SECOND,
    WEBSOCKET_PINGS_MISSED_MAX: 2,
    STREAM_BUFFER_MAX_SEC: 60,
    WEBRTC_TOKEN_MIN_SEC: 60,
    WEBRTC_TOKEN_MAX_SEC: DAY_SEC,
    WEBRTC_TOKEN_DEFAULT_SEC: 3_600,
    WEBRTC_SESSIONS_PER_TOKEN_MAX: 10,
    WEBRTC_TOKENS_PER_APP_MAX: 10_000,
    WEBRTC_DEFAULT_PORT: 3478,
  });
  // A push is read ahead by 2 s at most.
  expect(limits.PUSH_QUEUE_MS + limits.PUSH_AHEAD_MS).toBeLessThanOrEqual(2 * SECOND);
});

test('Payments and messages have the limits of the reference', () => {
  expect(limits).toMatchObject({
    PAYMENT_ATTEMPTS_MAX: 5,
    CHARGE_INSTALLMENTS_MAX: 36,
    CHARGE_PROVIDER_TIMEOUT_MS: 30 * SECOND,
    MESSAGE_TEXT_MAX_CHARS: 1_600,
    CHARGES_IN_FLIGHT_MAX: 500,
  });
});

test('SIP, trunks and devices have the limits of the operations page', () => {
  expect(limits).toMatchObject({
    SIP_REFUSALS_PER_SOURCE: 5,
    SIP_REFUSALS_MAX: 50,
    SIP_REFUSAL_ROWS_MAX: 200,
    RTP_PORT_REST_MS: MINUTE,
    RTP_PORT_LEAST_REST_MS: 2 * SECOND,
    SIP_PACE_WAIT_MAX_MS: 2 * SECOND,
    SIP_TRUNK_SILENT_MS: 4 * SECOND,
    SIP_TRUNK_FAILED_MS: 30 * SECOND,
    SIP_REFER_OPEN_MS: MINUTE,
    SIP_REFER_TARGET_MAX_CHARS: 1_024,
    DEVICE_CONTACTS_MAX: 10,
  });
});

test('What the operator sees has the limits of the operations page', () => {
  expect(limits).toMatchObject({
    SIP_TRACE_MAX_MESSAGES: 100,
    SIP_TRACE_MAX_CHARS: 4 * 1024,
    WEBHOOK_ANSWER_KEPT_BYTES: 2 * 1024,
    HISTORY_QUALITY_MS: 10 * SECOND,
    HISTORY_CALL_MAX_ENTRIES: 2_000,
    TIMELINE_MAX_EVENTS: 20_000,
    EVENT_STREAMS_MAX: 32,
    EVENT_STREAM_COMMENT_MS: 5 * SECOND,
    EVENT_STREAM_BEHIND_MAX_BYTES: MIB,
    CONSOLE_LOGIN_MS: 5 * MINUTE,
    OPERATOR_LIST_MAX_ITEMS: 10_000,
    PAGE_DEFAULT_ITEMS: 100,
    EVENT_LIST_MAX_ITEMS: 1_000,
    CALL_LIST_MAX_ITEMS: 1_000,
    API_KEYS_PER_APP_MAX: 100,
    TRUNKS_MAX: 1_000,
    DEVICES_MAX: 100_000,
    BLOCKED_EVENTS_MAX: 100,
    MCP_MESSAGES_OF_APP_MAX: 8,
    MCP_MESSAGES_MAX: 16,
  });
});

test('The nodes of a cluster judge each other by the times of the operations page', () => {
  expect(limits).toMatchObject({
    NODE_BEAT_MS: SECOND,
    NODE_SUSPECT_MS: 3 * SECOND,
    NODE_POLL_GAP_MAX_MS: 2_500,
    NODE_COMMAND_TIMEOUT_MS: 2 * SECOND,
    NODE_COMMAND_MARGIN_MS: 250,
    NODE_TOKEN_MS: 30 * SECOND,
    NODE_CACHE_MS: 5 * SECOND,
    RELAY_LEASE_MS: 4 * SECOND,
  });
});

/** `capacity/refill` of each bucket whose numbers the interface or the reference names. */
const RATES: Readonly<Record<string, readonly (keyof typeof buckets)[]>> = {
  '10/5': ['answer', 'reject', 'cancel', 'hangup', 'dtmf_send'],
  '5/2': ['hold', 'unhold'],
  '2/0.5': ['transfer'],
  '20/20': ['seek', 'playback_stop', 'playback_pause', 'playback_resume', 'playback_restart', 'recording_stop'],
  '8/4': ['playback_play'],
  '4/1': ['recording_create'],
  '4/0.8': ['dtmf_collect', 'dtmf_cancel', 'card_collect', 'cvv_collect', 'card_cancel', 'cvv_cancel'],
  '2/0.2': ['charge'],
  '15/10': ['room_mute', 'room_unmute', 'room_pause', 'room_resume', 'room_seek', 'room_playback_volume', 'room_stop'],
  '100/30': ['member_add', 'member_delete', 'room_delete'],
  '8/3': ['room_play', 'room_record'],
  '20/10': ['dial', 'connect_websocket', 'message_send', 'webrtc_token'],
  '40/20': ['session_list', 'room_list', 'message_get', 'app_get'],
  '10/2': ['room_create'],
  '5/1': ['app_patch'],
  '100/50': [
    'session_get',
    'room_get',
    'member_list',
    'member_get',
    'recording_list',
    'recording_get',
    'room_member_volume',
    'ingest',
  ],
};

test('Every bucket has the capacity and the refill that are promised', () => {
  const found = Object.entries(RATES).flatMap(([rate, names]) =>
    names.map((name) => [name, `${buckets[name].capacity}/${buckets[name].refill}`, rate] as const),
  );
  expect(found.filter(([, has, rate]) => has !== rate)).toEqual([]);
});
