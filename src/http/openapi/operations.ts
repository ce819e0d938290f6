/**
 * The operations of the API reference: what each route is called by generated clients, what it answers with, the
 * statuses that it may have beside those of every route of its kind, and a request that works.
 */

/** A status that only some routes have. */
type OwnStatus = 403 | 404 | 409 | 413 | 415 | 429 | 502 | 529;

export interface Operation {
  readonly id: string;
  /** The name of the schema of its success, or its media type when it is no JSON. Undefined for 204. */
  readonly answer?: string;
  readonly more?: readonly OwnStatus[];
  /** Statuses that a route of its kind has, and this one never. */
  readonly less?: readonly number[];
  /** It is refused without an Idempotency-Key. */
  readonly isKeyRequired?: boolean;
  /** The header fields that it reads beside those of every operation of its kind. */
  readonly headers?: readonly { readonly name: string; readonly description: string; readonly schema: object }[];
  /** The header fields of its success beside those of every operation of its kind. */
  readonly answerHeaders?: readonly 'Content-Disposition'[];
  readonly example?: Readonly<Record<string, unknown>>;
}

const PROMPT = 'https://media.example.com/welcome.wav';
const PCM = { encoding: 'pcm_s16le', sample_rate: 16_000 };
const UUID = '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f';
const APP = `app_${UUID}`;
const SESSION = '/v1/sessions/:uuid';
const ROOM = '/api/v1/rooms/:room_id';
const operation = (id: string, more: Omit<Operation, 'id' | 'answer'> = {}): Operation => ({ id, answer: 'Operation', ...more });
const onRoom = (id: string, more: Omit<Operation, 'id' | 'answer'> = {}): Operation => ({ id, answer: 'RoomOperation', ...more });

/** What the document says of each operation, by method and path as the routes have them. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'POST /v1/sessions:dial': {
    id: 'dial',
    answer: 'SessionOperation',
    more: [403, 404, 529],
    example: { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 },
  },
  'GET /v1/sessions': { id: 'listSessions', answer: 'SessionList', more: [413] },
  [`GET ${SESSION}`]: { id: 'getSession', answer: 'Session' },
  [`DELETE ${SESSION}`]: operation('disconnectSession'),
  [`POST ${SESSION}/answer`]: operation('answerSession'),
  [`POST ${SESSION}/reject`]: operation('rejectSession', { example: { reason: 'busy' } }),
  [`POST ${SESSION}/cancel`]: operation('cancelSession'),
  [`POST ${SESSION}/hold`]: operation('holdSession'),
  [`POST ${SESSION}/unhold`]: operation('unholdSession'),
  [`POST ${SESSION}/transfer`]: operation('transferSession', { more: [403], example: { to: '+15550102' } }),
  'POST /v1/sessions:connectWebsocket': {
    id: 'connectWebsocket',
    answer: 'SessionOperation',
    more: [404, 529],
    example: { websocket: { url: 'wss://bot.example.com/' }, media_format: { from_session: PCM, to_session: PCM } },
  },
  [`POST ${SESSION}/playback/play`]: {
    id: 'play',
    answer: 'PlaybackOperation',
    more: [502],
    example: { type: 'files', urls: [PROMPT] },
  },
  [`POST ${SESSION}/playback/stop`]: operation('stopPlayback'),
  [`POST ${SESSION}/playback/pause`]: operation('pausePlayback'),
  [`POST ${SESSION}/playback/resume`]: operation('resumePlayback'),
  [`POST ${SESSION}/playback/restart`]: operation('restartPlayback'),
  [`POST ${SESSION}/playback/seek`]: operation('seekPlayback', { example: { position_ms: 5_000 } }),
  'POST /v1/ingest/:ingest_uuid': { id: 'sendIngest', answer: 'IngestReceipt', more: [403, 409, 415] },
  [`POST ${SESSION}/dtmf/send`]: operation('sendDigits', { example: { digits: '123#' } }),
  [`POST ${SESSION}/dtmf/collect`]: operation('collectDigits', {
    more: [502],
    example: { prompt_files: [PROMPT], max_digits: 4 },
  }),
  [`DELETE ${SESSION}/dtmf/collect`]: operation('cancelDigitCollection'),
  [`POST ${SESSION}/payment/card/collect`]: operation('collectCard', { more: [502], example: { prompt_files: [PROMPT] } }),
  [`DELETE ${SESSION}/payment/card/collect`]: operation('cancelCardCollection'),
  [`POST ${SESSION}/payment/cvv/collect`]: operation('collectCvv', { more: [502], example: {} }),
  [`DELETE ${SESSION}/payment/cvv/collect`]: operation('cancelCvvCollection'),
  [`POST ${SESSION}/payment/charges`]: operation('charge', {
    more: [403],
    isKeyRequired: true,
    example: {
      card_uuid: `card_${UUID}`,
      cvv_uuid: `cvv_${UUID}`,
      exp_month: 12,
      exp_year: 2030,
      amount: 10_000,
      currency: 'ils',
      provider: 'sandbox',
      terminal_number: '0010000',
    },
  }),
  'POST /v1/messages': {
    id: 'sendMessage',
    answer: 'MessageOperation',
    more: [403],
    example: { from: '+15550100', to: '+15550199', text: 'Your code is 4711' },
  },
  'GET /v1/messages': { id: 'listMessages', answer: 'MessageList', more: [413] },
  'GET /v1/messages/:message_uuid': { id: 'getMessage', answer: 'Message' },
  'POST /api/v1/rooms': { id: 'createRoom', answer: 'Room', more: [403], example: { voice_activity_events: true } },
  'GET /api/v1/rooms': { id: 'listRooms', answer: 'RoomList', more: [413] },
  [`GET ${ROOM}`]: { id: 'getRoom', answer: 'Room' },
  [`DELETE ${ROOM}`]: { id: 'deleteRoom', answer: 'RoomDeletion' },
  [`POST ${ROOM}/members`]: { id: 'addMember', answer: 'RoomMembership', example: { session_uuid: UUID } },
  [`GET ${ROOM}/members`]: { id: 'listMembers', answer: 'MemberList' },
  [`GET ${ROOM}/members/:uuid`]: { id: 'getMember', answer: 'Member' },
  [`DELETE ${ROOM}/members/:uuid`]: { id: 'removeMember', answer: 'RoomMembership' },
  [`POST ${ROOM}/playback/play`]: onRoom('playToRoom', { more: [502], example: { type: 'files', urls: [PROMPT] } }),
  [`POST ${ROOM}/playback/pause`]: onRoom('pauseRoomPlayback'),
  [`POST ${ROOM}/playback/resume`]: onRoom('resumeRoomPlayback'),
  [`POST ${ROOM}/playback/stop`]: onRoom('stopRoomPlayback'),
  [`POST ${ROOM}/playback/seek`]: onRoom('seekRoomPlayback', { example: { offset_ms: -2_000 } }),
  [`POST ${ROOM}/playback/volume`]: onRoom('setRoomPlaybackVolume', { example: { volume: 80 } }),
  [`POST ${ROOM}/playback/record`]: { id: 'recordRoom', answer: 'RecordingOperation', example: { include_gaps: true } },
  [`POST ${ROOM}/playback/record/stop`]: onRoom('stopRoomRecording'),
  [`POST ${SESSION}/room/mute`]: operation('muteMember'),
  [`POST ${SESSION}/room/unmute`]: operation('unmuteMember'),
  [`POST ${SESSION}/room/volume`]: operation('setMemberVolume', { example: { volume: 50, direction: 'to_member' } }),
  [`POST ${SESSION}/recordings`]: {
    id: 'createRecording',
    answer: 'RecordingOperation',
    example: { direction: 'both', channels: 'mono' },
  },
  [`GET ${SESSION}/recordings`]: { id: 'listRecordings', answer: 'RecordingList' },
  [`GET ${SESSION}/recordings/:recording_uuid`]: { id: 'getRecording', answer: 'Recording' },
  [`POST ${SESSION}/recordings/:recording_uuid/stop`]: operation('stopRecording'),
  [`POST ${SESSION}/recordings/:recording_uuid/mask`]: operation('maskRecording'),
  [`POST ${SESSION}/recordings/:recording_uuid/unmask`]: operation('unmaskRecording'),
  'GET /v1/recordings': { id: 'searchRecordings', answer: 'StoredRecordingList' },
  'GET /v1/recordings/:recording_uuid': { id: 'findRecording', answer: 'StoredRecording' },
  'DELETE /v1/recordings/:recording_uuid': { id: 'removeRecording', more: [409] },
  'GET /api/v1/app': { id: 'getApplicationSettings', answer: 'ApplicationSettings', more: [404] },
  'PATCH /api/v1/app': { id: 'updateApplicationSettings', example: { webhook_url: 'https://app.example.com/hook' } },
  'POST /v1/webrtc-tokens': {
    id: 'createWebrtcToken',
    answer: 'WebrtcToken',
    more: [403, 409],
    example: { ttl_sec: 600, caller_id: '+15550100', to: '+15550001' },
  },
  'DELETE /v1/webrtc-tokens/:token_id': { id: 'revokeWebrtcToken' },
  'POST /operator/v1/apps': { id: 'createApplication', answer: 'NewApplication', example: { name: 'support line' } },
  'GET /operator/v1/apps': { id: 'listApplications', answer: 'ApplicationList' },
  'GET /operator/v1/apps/:app_uuid': { id: 'getApplication', answer: 'Application' },
  'PATCH /operator/v1/apps/:app_uuid': { id: 'updateApplication', example: { name: 'support line' } },
  'POST /operator/v1/apps/:app_uuid/api-keys': { id: 'createApiKey', answer: 'NewApiKey', more: [409] },
  'DELETE /operator/v1/apps/:app_uuid/api-keys/:key_id': { id: 'revokeApiKey' },
  'POST /operator/v1/apps/:app_uuid/webhook-secrets': { id: 'rotateWebhookSecret', answer: 'NewWebhookSecret', more: [409] },
  'POST /operator/v1/apps/:app_uuid/events': {
    id: 'sendSampleEvent',
    answer: 'EventSample',
    example: { event: 'session.created' },
  },
  'POST /operator/v1/apps/:app_uuid/dial': {
    id: 'dialForApplication',
    answer: 'SessionOperation',
    more: [529],
    example: { from: '+15550100', to: '+15550199' },
  },
  'POST /operator/v1/apps/:app_uuid/webrtc-tokens': {
    id: 'createWebrtcTokenForApplication',
    answer: 'WebrtcToken',
    more: [409],
    example: { to: '+15550001' },
  },
  'POST /operator/v1/apps/:app_uuid/sessions/:uuid/play': operation('playForApplication', {
    more: [409, 502],
    example: { url: PROMPT },
  }),
  'POST /operator/v1/apps/:app_uuid/sessions/:uuid/hangup': operation('hangUpForApplication'),
  'GET /operator/v1/rooms': { id: 'listLiveRooms', answer: 'LiveRoomList' },
  'GET /operator/v1/messages': { id: 'listLatestMessages', answer: 'LoggedMessageList' },
  'PUT /operator/v1/numbers/:e164': { id: 'assignNumber', example: { app_uuid: APP } },
  'DELETE /operator/v1/numbers/:e164': { id: 'unassignNumber' },
  'PUT /operator/v1/apps/:app_uuid/caller-ids/:e164': { id: 'permitCallerId' },
  'DELETE /operator/v1/apps/:app_uuid/caller-ids/:e164': { id: 'withdrawCallerId' },
  'PUT /operator/v1/apps/:app_uuid/payment-terminals/:terminal_number': { id: 'permitPaymentTerminal' },
  'DELETE /operator/v1/apps/:app_uuid/payment-terminals/:terminal_number': { id: 'withdrawPaymentTerminal' },
  'GET /operator/v1/apps/:app_uuid/devices': { id: 'listDevices', answer: 'DeviceList' },
  'PUT /operator/v1/apps/:app_uuid/devices/:username': {
    id: 'setDevice',
    more: [409],
    example: { password: 'correct horse battery staple' },
  },
  'DELETE /operator/v1/apps/:app_uuid/devices/:username': { id: 'removeDevice' },
  'GET /operator/v1/trunks': { id: 'listTrunks', answer: 'TrunkList' },
  'GET /operator/v1/trunks/:name': { id: 'getTrunk', answer: 'Trunk' },
  'PUT /operator/v1/trunks/:name': {
    id: 'setTrunk',
    more: [409],
    less: [404],
    example: { uri: 'sip:sip.acme.example', inbound_cidrs: ['203.0.113.0/24'] },
  },
  'POST /operator/v1/trunks/:name/probe': { id: 'probeTrunk', answer: 'TrunkProbe' },
  'DELETE /operator/v1/trunks/:name': { id: 'removeTrunk' },
  'GET /operator/v1/refusals': { id: 'listRefusals', answer: 'RefusalList' },
  'GET /operator/v1/events': { id: 'listEvents', answer: 'LoggedEventList' },
  'GET /operator/v1/events/stream': {
    id: 'followEvents',
    answer: 'text/event-stream',
    more: [403],
    headers: [
      {
        name: 'Last-Event-ID',
        description: 'The `id` of the last event that was read: the stream goes on after it. Without it, it begins now.',
        schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
      },
    ],
  },
  'POST /operator/v1/events/:webhook_id/replay': { id: 'replayEvent', answer: 'EventReplay', more: [409] },
  'GET /operator/v1/sessions': { id: 'listCalls', answer: 'CallList' },
  'GET /operator/v1/sessions/:uuid/timeline': { id: 'getTimeline', answer: 'Timeline' },
  'GET /operator/v1/sessions/:uuid/sip.txt': { id: 'getSipText', answer: 'text/plain' },
  'GET /operator/v1/sessions/:uuid/sip.pcap': {
    id: 'getSipCapture',
    answer: 'application/vnd.tcpdump.pcap',
    answerHeaders: ['Content-Disposition'],
  },
  'DELETE /operator/v1/sessions/:uuid': { id: 'eraseCall', more: [409] },
  'POST /operator/v1/console-logins': { id: 'createConsoleLogin', answer: 'ConsoleLogin', less: [503] },
  'GET /operator/v1/nodes': { id: 'listNodes', answer: 'NodeList' },
  'POST /operator/v1/nodes/:id/drain': { id: 'drainNode', answer: 'NodeCommand', example: { deadline_sec: 60 } },
  'POST /operator/v1/nodes/:id/undrain': { id: 'undrainNode', answer: 'NodeCommand' },
};
