/**
 * Recordings of a Session and of a Room (interface, Recordings; contract §5). Their audio is fetched by signed URLs.
 */

import type { RecordedView, Recordings } from '../../call/ports/recordings.ts';
import type { Rooms } from '../../call/ports/rooms.ts';
import type { SessionCommand, Sessions } from '../../call/ports/sessions.ts';
import type { RecordingQuery } from '../../database/call/recordings.ts';
import { isRecordingUuid, isUuid, UUID_V4 } from '../../id.ts';
import {
  BODY_MAX_BYTES,
  COMMAND_BODY_MAX_BYTES,
  MEDIA_RETRY_AFTER_SEC,
  PAGE_DEFAULT_ITEMS,
  RECORDING_LIST_MAX_ITEMS,
} from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { createdBetween, itemLimit, pageAfter, pageOf, strayParameter } from '../list-query.ts';
import type { Find, RequestContext, Route } from '../request-context.ts';
import { noContent, ok, queryOf } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { orderedRoom } from './rooms.ts';
import { onSession } from './sessions.ts';

const SENSITIVITY = 0.5;
const SPEECH_MS = 100;
const SILENCE_MS = 500;

const create = shape(
  () =>
    type({
      '+': 'reject',
      direction: "'both' | 'session_in' | 'session_out'",
      channels: "'mono' | 'stereo'",
      'include_gaps?': 'boolean',
      'enable_voice_activity_events?': 'boolean',
      'voice_activity_config?': {
        '+': 'reject',
        'sensitivity?': '0 <= number <= 1',
        'speech_duration_ms?': '20 <= number.integer <= 5000',
        'silence_duration_ms?': '20 <= number.integer <= 3600000',
      },
    }).narrow(
      ({ direction, channels }, context) =>
        (direction === 'both' ||
          context.reject({ path: ['direction'], expected: 'both; the other directions are unsupported' })) &&
        (channels === 'mono' || context.reject({ path: ['channels'], expected: 'mono; stereo is unsupported' })),
    ),
  {
    direction: { description: '`both`; the other directions are unsupported yet (400)' },
    channels: { description: '`mono`; `stereo` is unsupported yet (400)' },
  },
  {
    include_gaps: false,
    enable_voice_activity_events: false,
    'voice_activity_config.sensitivity': SENSITIVITY,
    'voice_activity_config.speech_duration_ms': SPEECH_MS,
    'voice_activity_config.silence_duration_ms': SILENCE_MS,
  },
);
const createInRoom = shape(() => type({ '+': 'reject', 'include_gaps?': 'boolean' }), {}, { include_gaps: false });

const facts = { auth: 'application', tag: 'Recordings', resource: 'Session' } as const;
const command = {
  ...facts,
  method: 'POST',
  command: true,
  answerStoredBy: 'journal',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  success: [202, 'Admitted.'],
} as const;
const ALL = '/v1/sessions/:uuid/recordings';
const ONE = `${ALL}/:recording_uuid`;
const BY_NAME = '/v1/recordings/:recording_uuid';
const date = { type: 'string', format: 'date-time' } as const;

export const recordingRoutes = (sessions: Sessions, rooms: Rooms, recordings: Recordings): readonly Route[] => [
  ...sessionRoutes(sessions, recordings),
  ...roomRoutes(rooms, recordings),
  ...namedRoutes(recordings),
];

const OUT_OF_REACH = 'The recording store cannot be reached. See Retry-After header.';

const named = {
  auth: 'application',
  tag: 'Recordings',
  resource: 'Recording',
  path: BY_NAME,
  buckets: ['recording_get'],
} as const;

async function foundByName(recordings: Recordings, { appUuid, params }: RequestContext) {
  const { recording_uuid: uuid = '' } = params;
  return isRecordingUuid(uuid) ? await recordings.find(appUuid, uuid) : undefined;
}

/** Recordings by themselves, also after the end of their calls (an extension). */
const namedRoutes = (recordings: Recordings): readonly Route[] => [
  route(
    {
      auth: 'application',
      tag: 'Recordings',
      method: 'GET',
      path: '/v1/recordings',
      summary: 'List recordings under way and ended ones, newest first, each with a fresh URL',
      success: [200, '`{"recordings": […], "after"}`. `after` asks for the next page; it is empty on the last one.'],
      buckets: ['recording_search'],
      query: [
        { name: 'session_uuid', description: 'Of one Session.', schema: { type: 'string', pattern: UUID_V4.source } },
        { name: 'room_id', description: 'Of one Room.', schema: { type: 'string', pattern: UUID_V4.source } },
        { name: 'created_after', description: 'Inclusive.', schema: date },
        { name: 'created_before', description: 'Exclusive.', schema: date },
        { name: 'after', description: 'The `after` of the page before.', schema: { type: 'string' } },
        {
          name: 'limit',
          description: 'Default 100.',
          schema: { type: 'integer', minimum: 1, maximum: RECORDING_LIST_MAX_ITEMS },
        },
      ],
    },
    (context) => {
      const query = recordingQuery(queryOf(context));
      if (isProblem(query)) return query;
      return async () => {
        const found = await recordings.kept(context.appUuid, { ...query, limit: query.limit + 1 });
        const { page, after } = pageOf(found, query.limit, recordingEnd);
        return ok({ recordings: page, after });
      };
    },
  ),
  route(
    {
      ...named,
      method: 'GET',
      summary: 'Find a recording, also after its call, with a fresh URL',
      success: [200, 'The recording; `state` is `active`, `ended` or `removed`.'],
    },
    async (context) => {
      const found = await foundByName(recordings, context);
      return found && (() => ok({ ...found }));
    },
  ),
  route(
    {
      ...named,
      method: 'DELETE',
      summary: 'Remove a recording that is over, before its retention is; its URLs are 410 from then on',
      success: [204, 'Removed, by this request or before.'],
    },
    async (context) => {
      const found = await foundByName(recordings, context);
      if (found === undefined) return undefined;
      return async () => {
        const outcome = await recordings.remove(context.appUuid, found.recording_uuid);
        if (outcome === undefined) return problems.notFound('Recording');
        if (outcome === 'off') return problems.notConfigured('Recording');
        if (outcome === 'active') return problems.conflict('Recording is not over yet: stop it first');
        return outcome === 'removed' ? noContent : problems.unavailable(OUT_OF_REACH, MEDIA_RETRY_AFTER_SEC);
      };
    },
  ),
];

const PARAMETERS = ['session_uuid', 'room_id', 'created_after', 'created_before', 'after', 'limit'];

/** The query of the list, from its parameters. */
function recordingQuery(query: URLSearchParams): RecordingQuery | Problem {
  const stray = strayParameter(query, PARAMETERS);
  if (stray !== undefined) return stray;
  const sessionUuid = query.get('session_uuid') ?? undefined;
  const roomId = query.get('room_id') ?? undefined;
  const between = createdBetween(query);
  const after = pageAfter(query, isRecordingUuid);
  const limit = itemLimit(query, PAGE_DEFAULT_ITEMS, RECORDING_LIST_MAX_ITEMS);
  if (sessionUuid !== undefined && !isUuid(sessionUuid)) return problems.invalid('session_uuid: must be a lowercase UUID v4');
  if (roomId !== undefined && !isUuid(roomId)) return problems.invalid('room_id: must be a lowercase UUID v4');
  if (isProblem(between)) return between;
  if (isProblem(after)) return after;
  if (isProblem(limit)) return limit;
  return { sessionUuid, roomId, ...between, after, limit };
}

const recordingEnd = ({ recording_uuid: id, created_at: createdAt }: RecordedView) => ({ createdAt: Date.parse(createdAt), id });

const sessionRoutes = (sessions: Sessions, recordings: Recordings): readonly Route[] => [
  bodyRoute(
    {
      ...command,
      path: ALL,
      summary: 'Record a Session',
      success: [202, '`{recording_uuid, operation_uuid, status}`; `recording.became_available` or `recording.failed` follows.'],
      buckets: ['recording_create'],
    },
    create,
    (
      context,
      { include_gaps: includeGaps = false, enable_voice_activity_events: tellsSpeech = false, voice_activity_config: told },
    ) => {
      const voiceActivity = {
        sensitivity: told?.sensitivity ?? SENSITIVITY,
        speechDurationMs: told?.speech_duration_ms ?? SPEECH_MS,
        silenceDurationMs: told?.silence_duration_ms ?? SILENCE_MS,
      };
      const terms = recordings.terms({ includeGaps, voiceActivity: tellsSpeech ? voiceActivity : undefined });
      return onSession(sessions, context, { type: 'record', terms });
    },
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: ALL,
      summary: 'List the live recordings of a Session',
      success: [200, '`{"recordings": […]}`: active or stopping, oldest first; no history.'],
      buckets: ['recording_list'],
    },
    async (context) => {
      const found = await listed(recordings, context);
      return found && (() => ok({ recordings: found }));
    },
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: ONE,
      summary: 'Inspect a live recording',
      success: [200, 'The recording.'],
      buckets: ['recording_get'],
    },
    async (context) => {
      const found = await listed(recordings, context);
      if (found === undefined) return undefined;
      const one = found.find(({ recording_uuid }) => recording_uuid === context.params.recording_uuid);
      return one === undefined ? problems.notFound('Recording') : () => ok({ ...one });
    },
  ),
  bareRoute({ ...command, path: `${ONE}/stop`, summary: 'Stop a recording', buckets: ['recording_stop'] }, (context) =>
    onRecording(sessions, recordings, context, 'stop_recording'),
  ),
  bareRoute({ ...command, path: `${ONE}/mask`, summary: 'Keep what follows out of a recording', buckets: ['seek'] }, (context) =>
    onRecording(sessions, recordings, context, 'mask_recording'),
  ),
  bareRoute({ ...command, path: `${ONE}/unmask`, summary: 'Let what follows into a recording', buckets: ['seek'] }, (context) =>
    onRecording(sessions, recordings, context, 'unmask_recording'),
  ),
];

const listed = (recordings: Recordings, { appUuid, params }: RequestContext) => recordings.list(appUuid, params.uuid ?? '');

/** A Session that is not the application's hides that it has recordings. */
function onRecording(
  sessions: Sessions,
  recordings: Recordings,
  context: RequestContext,
  type: 'stop_recording' | 'mask_recording' | 'unmask_recording',
): ReturnType<Find> {
  const { uuid = '', recording_uuid: recordingUuid = '' } = context.params;
  const found = recordings.isLive(context.appUuid, uuid, recordingUuid);
  if (found === undefined) return undefined;
  if (!found) return problems.notFound('Recording');
  const order: SessionCommand = { type, recordingUuid };
  return onSession(sessions, context, order);
}

const roomRoutes = (rooms: Rooms, recordings: Recordings): readonly Route[] => [
  bodyRoute(
    {
      ...command,
      resource: 'Room',
      maxBytes: BODY_MAX_BYTES,
      path: '/api/v1/rooms/:room_id/playback/record',
      summary: 'Record a Room',
      success: [202, '`{recording_uuid, operation_uuid, room_id, status}`; `recording.became_available` follows.'],
      optional: true,
      buckets: ['room_record'],
    },
    createInRoom,
    (context, { include_gaps: includeGaps = false }) =>
      orderedRoom(rooms, context, { type: 'record', terms: recordings.terms({ includeGaps, voiceActivity: undefined }) }),
  ),
  bareRoute(
    {
      ...command,
      resource: 'Room',
      maxBytes: BODY_MAX_BYTES,
      path: '/api/v1/rooms/:room_id/playback/record/stop',
      summary: 'Stop the recording of a Room',
      buckets: ['room_record'],
    },
    (context) => orderedRoom(rooms, context, { type: 'stop_recording' }),
  ),
];
