/** Playback to one Session: play of every kind, stop, pause, resume, restart, seek. */

import type { SessionCommand, Sessions } from '../../call/ports/sessions.ts';
import { COMMAND_BODY_MAX_BYTES, PLAYBACK_POSITION_MAX_MS, PLAYBACK_URL_MAX_CHARS, PLAYBACK_URLS_MAX } from '../../limits.ts';
import type { Place } from '../../machine/playback/playback.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { bareRoute, bodyRoute } from '../route.ts';
import { type Shape, shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { hasUserInfo, isWholeUrl } from '../whole-url.ts';
import { onSession } from './sessions.ts';

const SOURCE_URL = `an http or https URL of at most ${PLAYBACK_URL_MAX_CHARS} characters without user and password`;

/**
 * A URL from which audio may be fetched. The address behind it is screened when it is fetched. A user and a password
 * are refused here, because they would be told in events, and the fetch refuses them without saying why.
 */
export const sourceUrl = () =>
  type(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#]/)
    .and(`string <= ${PLAYBACK_URL_MAX_CHARS}`)
    .narrow((url, context) => (isWholeUrl(url) && !hasUserInfo(url)) || context.mustBe(SOURCE_URL))
    .describe(SOURCE_URL);

/** A playlist of files, for a Session or for a Room. */
export const playlist = () =>
  type({
    '+': 'reject',
    type: "'files'",
    urls: sourceUrl().array().atLeastLength(1).atMostLength(PLAYBACK_URLS_MAX),
    'loop?': type('0 <= number.integer <= 1000000').describe('0 to 1000000, where 0 goes on until it is stopped'),
    'volume?': '0 <= number.integer <= 200',
  });

/** What is meant where a field is left out: once, and as loud as it is. A `loop` of 0 goes on until it is stopped. */
export const PLAY = { loop: 1, volume: 100 };

const play = shape(
  () =>
    playlist()
      .or({ '+': 'reject', type: "'stream'", url: sourceUrl(), 'volume?': '0 <= number.integer <= 200' })
      .or({ '+': 'reject', type: "'silence'" })
      .or({
        '+': 'reject',
        type: "'push'",
        media_format: type({ '+': 'reject', encoding: "'pcm_s16le'", sample_rate: '8000 | 16000 | 24000 | 48000' }).or({
          '+': 'reject',
          encoding: "'mulaw'",
          sample_rate: '8000',
        }),
        'volume?': '0 <= number.integer <= 200',
      }),
  {},
  PLAY,
);

type PlayRequest = typeof play extends Shape<infer Request> ? Request : never;

/** A seek, of a Session's playback or a Room's. `placeOf` sees to it that exactly one of the two fields is given. */
export const seek = shape(
  () =>
    type({
      '+': 'reject',
      'position_ms?': `0 <= number.integer <= ${Number.MAX_SAFE_INTEGER}`,
      'offset_ms?': `${Number.MIN_SAFE_INTEGER} <= number.integer <= ${Number.MAX_SAFE_INTEGER}`,
    }),
  { '': { minProperties: 1, maxProperties: 1, description: 'Exactly one of `position_ms` and `offset_ms` is given.' } },
);

/**
 * The place that a seek names. A place beyond the longest call is past the end of anything, which completes the
 * playback.
 */
export function placeOf(request: { readonly position_ms?: number; readonly offset_ms?: number }): Place | Problem {
  const { position_ms: positionMs, offset_ms: offsetMs } = request;
  if (positionMs !== undefined && offsetMs === undefined) return { positionMs: Math.min(positionMs, PLAYBACK_POSITION_MAX_MS) };
  if (offsetMs !== undefined && positionMs === undefined)
    return { offsetMs: Math.max(-PLAYBACK_POSITION_MAX_MS, Math.min(offsetMs, PLAYBACK_POSITION_MAX_MS)) };
  return problems.invalid('position_ms: exactly one of position_ms and offset_ms is required');
}

const facts = {
  auth: 'application',
  tag: 'Playback',
  resource: 'Session',
  command: true,
  answerStoredBy: 'journal',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  success: [202, 'Admitted; the outcome is an event.'],
  method: 'POST',
} as const;

export const playbackRoutes = (sessions: Sessions): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      path: '/v1/sessions/:uuid/playback/play',
      summary: 'Play audio to the Session',
      opensSources: true,
      sizeHint: `the ${PLAYBACK_URLS_MAX} URLs of a playlist have to fit into it together`,
      buckets: ['playback_play'],
    },
    play,
    (context, request) => onSession(sessions, context, playOf(request)),
  ),
  bareRoute(
    { ...facts, path: '/v1/sessions/:uuid/playback/stop', summary: 'Stop what plays', buckets: ['playback_stop'] },
    (context) => onSession(sessions, context, { type: 'stop_playback' }),
  ),
  ...(['pause', 'resume', 'restart'] as const).map((type) =>
    bareRoute(
      { ...facts, path: `/v1/sessions/:uuid/playback/${type}`, summary: SUMMARY[type], buckets: [`playback_${type}`] },
      (context) => onSession(sessions, context, { type: 'control_playback', control: { type } }),
    ),
  ),
  bodyRoute(
    { ...facts, path: '/v1/sessions/:uuid/playback/seek', summary: 'Move within what plays', buckets: ['seek'] },
    seek,
    (context, request) => {
      const place = placeOf(request);
      if (isProblem(place)) return place;
      return onSession(sessions, context, { type: 'control_playback', control: { type: 'seek', place } });
    },
  ),
];

const SUMMARY = {
  pause: 'Hold what plays where it is',
  resume: 'Go on with what is held',
  restart: 'Play from the beginning again',
} as const;

/** The command of a play, defaults filled in. */
function playOf(request: PlayRequest): SessionCommand {
  switch (request.type) {
    case 'files':
      return { type: 'play', urls: request.urls, loop: request.loop ?? PLAY.loop, volume: request.volume ?? PLAY.volume };
    case 'stream':
      return { type: 'play_stream', url: request.url, volume: request.volume ?? PLAY.volume };
    case 'silence':
      return { type: 'play_silence' };
    case 'push':
      return { type: 'play_push', format: request.media_format, volume: request.volume ?? PLAY.volume };
  }
}
