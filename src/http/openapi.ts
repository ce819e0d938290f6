/** OpenAPI 3.1, from the same routes and shapes that are served. */
import { Hono } from 'hono';
import { type DescribeRouteOptions, describeRoute, generateSpecs } from 'hono-openapi';
import type { Route } from './route.ts';

const PROBLEM = { $ref: '#/components/schemas/Problem' };
const problem = (description: string) => ({ description, content: { 'application/json': { schema: PROBLEM } } });

/** The document of all routes. */
export async function openapiDocument(routes: readonly Route[], publicUrl: string): Promise<object> {
  const described = new Hono();
  for (const each of routes)
    described.on(each.method, each.path, describeRoute(operation(each)), (context) => context.body(null));
  return await generateSpecs(described, {
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

const isBare = (schema: object): boolean => !('properties' in schema) && !('anyOf' in schema);
