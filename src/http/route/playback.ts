/** Playback to one Session: play and stop. */
import { type } from 'arktype';
import type { Sessions } from '../../actor/sessions.ts';
import { COMMAND_BODY_MAX_BYTES, PLAYBACK_URL_MAX_CHARS, PLAYBACK_URLS_MAX } from '../../limits.ts';
import { problems } from '../../problem.ts';
import { bareRoute, bodyRoute, type Route } from '../route.ts';
import { shape } from '../shape.ts';
import { onSession } from './sessions.ts';

/** Where audio may be fetched from; the address behind it is screened when it is. */
export const sourceUrl = type(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#]/)
  .and(`string <= ${PLAYBACK_URL_MAX_CHARS}`)
  .narrow((url, context) => URL.canParse(url) || context.mustBe('a URL'))
  .describe(`an http or https URL of at most ${PLAYBACK_URL_MAX_CHARS} characters`);

const play = shape(
  type({
    '+': 'reject',
    type: "'files'",
    urls: sourceUrl.array().atLeastLength(1).atMostLength(PLAYBACK_URLS_MAX),
    'loop?': '0 <= number.integer <= 1000000',
    'volume?': '0 <= number.integer <= 200',
  })
    .or({ '+': 'reject', type: "'stream'", url: sourceUrl, 'volume?': '0 <= number.integer <= 200' })
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
);

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
    { ...facts, path: '/v1/sessions/:uuid/playback/play', summary: 'Play audio to the Session', buckets: ['playback_play'] },
    play,
    async (exchange, request) => {
      if (request.type === 'files') {
        const { urls, loop = 1, volume = 100 } = request;
        return await onSession(sessions, exchange, { type: 'play', urls, loop, volume });
      }
      // Whose Session it is comes first, as for every command.
      const owned = await onSession(sessions, exchange, { type: 'stop_playback' });
      return owned === undefined ? undefined : () => problems.notConfigured(`Playback of type ${request.type}`);
    },
  ),
  bareRoute(
    { ...facts, path: '/v1/sessions/:uuid/playback/stop', summary: 'Stop what plays', buckets: ['playback_stop'] },
    (exchange) => onSession(sessions, exchange, { type: 'stop_playback' }),
  ),
];
