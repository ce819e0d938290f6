/** OpenAPI 3.1, from the same routes and shapes that are served. */
import { Hono } from 'hono';
import { type DescribeRouteOptions, describeRoute, generateSpecs } from 'hono-openapi';
import { webhooks } from './openapi-webhooks.ts';
import type { Route } from './request-context.ts';

const PROBLEM = { $ref: '#/components/schemas/Problem' };
const problem = (description: string) => ({ description, content: { 'application/json': { schema: PROBLEM } } });

/** The document of all routes and events. `media`: and of recordings under their signed URLs. */
export async function openapiDocument(routes: readonly Route[], publicUrl: string, media = false): Promise<object> {
  const described = new Hono();
  for (const each of routes)
    described.on(each.method, each.path, describeRoute(operation(each)), (context) => context.body(null));
  if (media) {
    for (const kind of ['pull', 'live'] as const)
      described.get(`/v1/media/:recording_uuid/${kind}`, describeRoute(mediaOperation(kind)), (context) => context.body(null));
  }
  const specs = await generateSpecs(described, {
    documentation: {
      openapi: '3.1.0',
      info: {
        title: 'Sidetone',
        version: '1',
        description:
          'A programmable voice platform. Commands answer 202; what comes of them arrives as signed, ordered webhooks.',
      },
      servers: [{ url: publicUrl }],
      components: {
        securitySchemes: {
          application: { type: 'http', scheme: 'bearer', description: '`<app_uuid>:<api_key>`' },
          operator: { type: 'http', scheme: 'bearer', description: 'The operator token.' },
        },
        schemas: {
          Problem: {
            type: 'object',
            required: ['code', 'message'],
            properties: {
              code: { type: 'string', description: 'Stable: branch on it.' },
              message: { type: 'string', description: 'English; may change.' },
              detail: { type: 'object', description: 'Of a 502 only.' },
              support_id: { type: 'string', description: 'Of a 500 only.' },
            },
          },
        },
      },
    },
  });
  return { ...specs, webhooks: webhooks() };
}

function operation(each: Route): DescribeRouteOptions {
  const [status, description] = each.success;
  const paths = [...each.path.matchAll(/:([a-z0-9_]+)/g)].filter(([, name]) => name !== 'dial').map(([, name = '']) => name);
  const headers = each.command === true ? ['Idempotency-Key', 'Operation-Id'] : [];
  return {
    summary: each.summary,
    tags: [each.tag],
    security: [{ [each.auth]: [] }],
    parameters: [
      ...paths.map((name) => ({ name, in: 'path' as const, required: true, schema: { type: 'string' as const } })),
      ...headers.map((name) => ({ name, in: 'header' as const, required: false, schema: { type: 'string' as const } })),
      ...(each.query ?? []).map(({ name, description: about, schema }) => ({
        name,
        in: 'query' as const,
        description: about,
        required: false,
        schema,
      })),
    ],
    ...(each.schema === undefined || (each.optionalBody && each.takesBody && isBare(each.schema))
      ? {}
      : { requestBody: { required: !each.optionalBody, content: { 'application/json': { schema: each.schema } } } }),
    responses: {
      [status]: { description, ...(status === 204 ? {} : { content: { 'application/json': { schema: { type: 'object' } } } }) },
      400: problem('Malformed or invalid request'),
      401: problem('Missing or invalid key'),
      ...(each.resource === undefined ? {} : { 404: problem(`${each.resource} not found`) }),
      ...(each.command === true ? { 409: problem('State conflict'), 422: problem('Key reused, or the shape of a dial') } : {}),
      ...(each.buckets === undefined ? {} : { 429: problem('Rate limited; see Retry-After') }),
      500: problem('Unexpected'),
      503: problem('Temporarily unavailable, or not configured'),
    },
  };
}

/** A signed URL needs no key: it is one. */
function mediaOperation(kind: 'pull' | 'live'): DescribeRouteOptions {
  const wav = { 'audio/wav': { schema: { type: 'string' as const, format: 'binary' } } };
  const parameter = (name: string, where: 'path' | 'query' | 'header', required: boolean) => ({
    name,
    in: where,
    required,
    schema: { type: 'string' as const },
  });
  const finite = kind === 'pull';
  return {
    summary: finite ? 'A recording from its beginning' : 'A recording from where it is now',
    tags: ['Recordings'],
    security: [],
    parameters: [
      parameter('recording_uuid', 'path', true),
      parameter('expires', 'query', true),
      parameter('signature', 'query', true),
      ...(finite ? ['Range', 'If-Range', 'If-None-Match'].map((name) => parameter(name, 'header', false)) : []),
    ],
    responses: {
      200: { description: finite ? 'WAV; without an end while it is recorded' : 'WAV without an end', content: wav },
      ...(finite
        ? { 206: { description: 'A range of a finished recording', content: wav }, 304: { description: 'Not modified' } }
        : {}),
      403: problem('The URL was altered, or has expired'),
      404: problem(finite ? 'Recording not found' : 'Recording not found, or not live'),
      410: problem('Removed after its retention'),
      ...(finite ? { 416: problem('The range is beyond the end') } : {}),
      503: problem('Temporarily unavailable; see Retry-After'),
    },
  };
}

const isBare = (schema: object): boolean => !('properties' in schema) && !('anyOf' in schema);
