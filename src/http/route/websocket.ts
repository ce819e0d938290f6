/** WebSocket Sessions: the platform connects out to the application's server (interface, Sessions; contract §2). */

import type { ConnectWebsocketRequest, Sessions } from '../../call/ports/sessions.ts';
import {
  BOT_PARAMETER_MAX_CHARS,
  BOT_PARAMETER_NAME_MAX_CHARS,
  BOT_PARAMETERS_MAX,
  CLIENT_STATE_MAX_CHARS,
  WEBSOCKET_CONNECT_DEFAULT_SEC,
  WEBSOCKET_CONNECT_MAX_SEC,
  WEBSOCKET_HEADER_MAX_CHARS,
  WEBSOCKET_HEADERS_MAX,
  WEBSOCKET_URL_MAX_CHARS,
} from '../../limits.ts';
import { characters } from '../characters.ts';
import type { Route } from '../request-context.ts';
import { commandContext } from '../request-context.ts';
import { bodyRoute } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { isWholeUrl } from '../whole-url.ts';

const url = () =>
  type(/^[Ww][Ss][Ss]?:\/\/[^\s/?#]/)
    .and(`string <= ${WEBSOCKET_URL_MAX_CHARS}`)
    .narrow(
      (given, context) => isPlain(given) || context.mustBe('a URL with a port of 1 to 65535, and without userinfo and fragment'),
    )
    .describe(`a ws or wss URL of at most ${WEBSOCKET_URL_MAX_CHARS} characters`);

function isPlain(given: string): boolean {
  const parsed = isWholeUrl(given) ? URL.parse(given) : null;
  return parsed !== null && parsed.username === '' && parsed.password === '' && parsed.hash === '' && parsed.port !== '0';
}

/** Ours or the connection's own: hop-by-hop (RFC 9110 §7.6.1), the handshake's, Host, and what we add. */
const RESERVED =
  /^(host|connection|upgrade|keep-alive|proxy-.*|te|trailer|transfer-encoding|content-length|sec-websocket-.*|traceparent|x-session-uuid)$/i;
const headers = () =>
  type({
    "[/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/]": type(new RegExp(`^[\\x20-\\x7e]{0,${WEBSOCKET_HEADER_MAX_CHARS}}$`)).describe(
      `at most ${WEBSOCKET_HEADER_MAX_CHARS} printable ASCII characters`,
    ),
    '+': 'reject',
  }).narrow((given, context) => {
    const names = Object.keys(given);
    if (names.length > WEBSOCKET_HEADERS_MAX) return context.mustBe(`at most ${WEBSOCKET_HEADERS_MAX} headers`);
    const wrong = (name: string, expected: string) => context.reject({ path: ['websocket', 'headers', name], expected });
    const reserved = names.find((name) => RESERVED.test(name));
    if (reserved !== undefined) return wrong(reserved, 'absent: it is the platform’s own, or the connection’s');
    // Names are one whatever their case (RFC 9110 §5.1): of two such only one would be sent.
    const twice = names.find((name, at) => names.findIndex((each) => each.toLowerCase() === name.toLowerCase()) < at);
    return twice === undefined || wrong(twice, 'given once, in one case');
  });

/** Code points, not the units of UTF-16. */
const PARAMETER_NAME = new RegExp(`^[\\s\\S]{0,${BOT_PARAMETER_NAME_MAX_CHARS}}$`, 'u');

/** What the application tells its bot: the limits of Twilio's custom parameters, with a bound on their number. */
const parameters = () =>
  type({ '[string]': characters(0, BOT_PARAMETER_MAX_CHARS) }).narrow((given, context) => {
    const names = Object.keys(given);
    const fits = names.length <= BOT_PARAMETERS_MAX && names.every((name) => PARAMETER_NAME.test(name));
    return (
      fits ||
      context.mustBe(`at most ${BOT_PARAMETERS_MAX} strings with names of at most ${BOT_PARAMETER_NAME_MAX_CHARS} characters`)
    );
  });

const format = () =>
  type({ '+': 'reject', encoding: "'pcm_s16le'", sample_rate: '8000 | 16000 | 24000 | 48000' }).or({
    '+': 'reject',
    encoding: "'mulaw'",
    sample_rate: '8000',
  });

const connect = shape<ConnectWebsocketRequest>(
  () =>
    type({
      '+': 'reject',
      websocket: {
        '+': 'reject',
        url: url(),
        'headers?': headers(),
        'subprotocol?': type(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/).describe('a token of at most 64 characters'),
        'connect_timeout_sec?': `1 <= number.integer <= ${WEBSOCKET_CONNECT_MAX_SEC}`,
      },
      media_format: { '+': 'reject', from_session: format(), to_session: format() },
      'client_state?': characters(0, CLIENT_STATE_MAX_CHARS),
      'room_id?': characters(0, 64),
      'near?': characters(0, 64),
      'parameters?': parameters(),
      'phone_session_uuid?': characters(0, 64),
    }).narrow(
      ({ websocket, media_format: { from_session, to_session } }, context) =>
        websocket.subprotocol !== 'twilio' ||
        (from_session.encoding === 'mulaw' && to_session.encoding === 'mulaw') ||
        context.reject({ path: ['media_format'], expected: 'mulaw both ways for the subprotocol twilio' }),
    ),
  {
    'websocket.headers': { maxProperties: WEBSOCKET_HEADERS_MAX },
    'websocket.subprotocol': {
      examples: ['sidetone.v1', 'twilio'],
      description: 'a token of at most 64 characters; `sidetone.v1` and `twilio` (mulaw both ways) are understood',
    },
    parameters: { maxProperties: BOT_PARAMETERS_MAX, propertyNames: { maxLength: BOT_PARAMETER_NAME_MAX_CHARS } },
  },
  { 'websocket.connect_timeout_sec': WEBSOCKET_CONNECT_DEFAULT_SEC },
);

export const webSocketRoutes = (sessions: Sessions): readonly Route[] => [
  bodyRoute(
    {
      auth: 'application',
      tag: 'Sessions',
      resource: 'Session',
      method: 'POST',
      path: '/v1/sessions:connectWebsocket',
      summary: 'Connect a Session to a WebSocket server',
      success: [202, 'The Session, and the operation that connects.'],
      command: true,
      answerStoredBy: 'journal',
      starts: true,
      buckets: ['connect_websocket'],
    },
    connect,
    (context, request) => () => sessions.connectWebsocket(request, commandContext(context)),
  ),
];
