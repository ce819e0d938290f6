/** WHIP in the API reference: its bodies are SDP, so it is none of the routes. */

const problem = (description: string, ...names: readonly string[]) => ({
  description,
  ...headers(...names),
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
});
const sdp = (type: string) => ({ content: { [type]: { schema: { type: 'string' } } } });
const headers = (...names: readonly string[]) => ({
  headers: Object.fromEntries(['traceparent', ...names].map((name) => [name, { schema: { type: 'string' } }])),
});
const OFFER = 'application/sdp';
const FRAGMENT = 'application/trickle-ice-sdpfrag';
const COMMON = {
  401: problem('No token, or one that is unknown, expired or revoked', 'WWW-Authenticate'),
  405: problem('Another method', 'Allow'),
  429: problem('Too many requests with the token, or guesses; see Retry-After', 'Retry-After'),
  500: problem('A bug'),
  503: problem('WebRTC is not there (without Retry-After), or not now (with it)', 'Retry-After'),
};
const ONE = [{ name: 'session_uuid', in: 'path', required: true, schema: { type: 'string' } }];
const facts = { tags: ['Browsers'], security: [{ browser: [] }] };
/** The paths of WHIP. */
export const whipPaths = (path: string): Record<string, Record<string, object>> => ({
  [path]: {
    post: {
      ...facts,
      operationId: 'callFromBrowser',
      summary: 'Call from a browser (WHIP, RFC 9725)',
      requestBody: { required: true, ...sdp(OFFER) },
      responses: {
        201: { description: 'Our SDP; Location is the call', ...headers('Location', 'ETag'), ...sdp(OFFER) },
        ...COMMON,
        400: problem('A body that cannot be read'),
        409: problem('The token has as many live Sessions as it may'),
        413: problem('The offer is too long'),
        415: problem('No application/sdp'),
        422: problem('An offer without audio that we can do'),
      },
    },
  },
  [`${path}/{session_uuid}`]: {
    patch: {
      ...facts,
      operationId: 'changeCallFromBrowser',
      summary: 'Trickle candidates, restart ICE, or change the direction of the audio',
      parameters: [...ONE, { name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } }],
      requestBody: {
        required: true,
        content: { [FRAGMENT]: { schema: { type: 'string' } }, [OFFER]: { schema: { type: 'string' } } },
      },
      responses: {
        200: {
          description: 'The fragment that answers a restart, or the SDP that answers an offer',
          ...headers('ETag'),
          content: { [FRAGMENT]: { schema: { type: 'string' } }, [OFFER]: { schema: { type: 'string' } } },
        },
        204: { description: 'The candidates were taken', ...headers() },
        ...COMMON,
        400: problem('A body that cannot be read'),
        404: problem('The token has no such call'),
        412: problem('If-Match names another ICE session'),
        413: problem('The body is too long'),
        415: problem('Neither a fragment nor an offer'),
        422: problem('An offer of another stream'),
        428: problem('If-Match is missing'),
      },
    },
    delete: {
      ...facts,
      operationId: 'hangUpFromBrowser',
      summary: 'Hang up',
      parameters: ONE,
      responses: {
        200: { description: 'Hung up', ...headers(), ...sdp('text/plain') },
        ...COMMON,
        404: problem('The token has no such call'),
      },
    },
  },
});
