/** The OpenAPI document is one that other programs can read. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { EVENT_NAMES } from '../../src/event/names.ts';
import type { OpenApiDocument } from '../support/openapi-check.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
let text = '';
beforeAll(async () => {
  platform = await openPlatform({
    nodes: { list: async () => [], drain: async () => true, undrain: async () => true },
  });
  text = (await platform.raw('/openapi.json')).text;
});
afterAll(() => platform.close());

test('the document passes the recommended rules of Redocly without an error or a warning', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const found = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  expect(found.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([]);
});

test('the document is valid OpenAPI 3.1', async () => {
  expect(await SwaggerParser.validate(JSON.parse(text))).toMatchObject({ openapi: '3.1.0' });
});

test('every operation has a name of its own, and every success a schema of its body', () => {
  const document: OpenApiDocument = JSON.parse(text);
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const names = operations.map(({ operationId }) => operationId);
  expect(new Set(names).size).toBe(names.length);
  const bare = operations.flatMap(({ operationId, responses }) =>
    Object.entries(responses)
      .filter(([status]) => /^2/.test(status) && status !== '204')
      .filter(([, { content = {} }]) =>
        Object.values(content).every(
          ({ schema }) => Object.keys(schema).join() === 'type' && JSON.stringify(schema).includes('object'),
        ),
      )
      .map(([status]) => `${operationId} ${status}`),
  );
  expect(bare).toEqual([]);
  for (const { requestBody } of operations) {
    const json = requestBody?.content['application/json'];
    if (json !== undefined) expect(json.example).toBeDefined();
  }
});

test('the document has every event as a webhook, with a body that is an example of it', () => {
  const { webhooks }: { readonly webhooks: Readonly<Record<string, object>> } = JSON.parse(text);
  expect(Object.keys(webhooks).sort()).toEqual([...EVENT_NAMES].sort());
});
