/** The OpenAPI document is one that other programs can read. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { EVENT_NAMES } from '../../src/event/names.ts';
import { newWebhookId } from '../../src/id.ts';
import type { Outbound } from '../../src/outbound/outbound.ts';
import { createRecordingUrls } from '../../src/recording-storage/signed-url.ts';
import { attemptDelivery } from '../../src/webhook/delivery.ts';
import { eventFaults } from '../support/event-check.ts';
import type { OpenApiDocument } from '../support/openapi-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
let text = '';
beforeAll(async () => {
  platform = await openPlatform({
    recordingUrls: createRecordingUrls({ masterKey: new Uint8Array(32), publicUrl: '', ttlSec: 3600 }),
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
  const isHead = (method: string) => method === 'head';
  const all = Object.values(document.paths).flatMap((path) => Object.entries(path));
  const operations = all.flatMap(([method, operation]) => (isHead(method) ? [] : [operation]));
  const names = all.map(([, { operationId }]) => operationId);
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

test('every answer has the header field `traceparent`, those of WHIP and of the signed URLs too', () => {
  const { paths, components }: OpenApiDocument = JSON.parse(text);
  const without = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses)
        .filter(
          ([, { $ref = '', headers = components.responses[$ref.split('/').at(-1) ?? '']?.headers ?? {} }]) =>
            !('traceparent' in headers),
        )
        .map(([status]) => `${method} ${path} ${status}`),
    ),
  );
  expect(without).toEqual([]);
});

test('every body that an operation takes is a component by its name, and its example is of it', () => {
  const document: OpenApiDocument = JSON.parse(text);
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  const bodies = Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .flatMap(({ operationId, requestBody }) => {
      const json = requestBody?.content['application/json'];
      return json === undefined
        ? []
        : [{ name: `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Request`, ...json }];
    });
  expect(bodies.length).toBeGreaterThan(30);
  for (const { name, schema, example } of bodies) {
    expect(schema).toEqual({ $ref: `#/components/schemas/${name}` });
    const validate = ajv.compile(document.components.schemas[name] ?? false);
    expect([name, validate(example), validate.errors]).toEqual([name, true, null]);
  }
});

test('every answer and every problem in JSON has an example that is of its schema', () => {
  const document: OpenApiDocument = JSON.parse(text);
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'doc', components: document.components });
  const answers = Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .flatMap(({ operationId, responses }) =>
      Object.entries(responses).map(([status, each]) => ({ name: `${operationId} ${status}`, ...each })),
    );
  const problems = Object.entries(document.components.responses).map(([name, each]) => ({ name, ...each }));
  const bodies = [...answers, ...problems].flatMap(({ name, content }) => {
    const json = content?.['application/json'];
    // Players read signed URLs, and browsers speak WHIP: neither is a program that needs an example.
    return json === undefined || /^(getRecordingMedia|listenToRecording)|FromBrowser /.test(name) ? [] : [{ name, ...json }];
  });
  expect(bodies.length).toBeGreaterThan(80);
  for (const { name, schema, example } of bodies) {
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/')));
    expect([name, validate(example), validate.errors]).toEqual([name, true, null]);
  }
});

test('the document has every event as a webhook, with a body that is an example of it', () => {
  const { webhooks }: OpenApiDocument = JSON.parse(text);
  expect(Object.keys(webhooks).sort()).toEqual([...EVENT_NAMES].sort());
});

test('every sample is of its schema, and so is one that was asked for and one of a Session with a client_state', () => {
  const { webhooks }: OpenApiDocument = JSON.parse(text);
  const examples = Object.values(webhooks).map(({ post }) => post.requestBody.content['application/json'].example);
  const ofSession = examples.filter((example) => 'session_uuid' in example);
  expect(examples).toHaveLength(EVENT_NAMES.length);
  expect(ofSession.length).toBeGreaterThan(30);
  const samples = [
    ...examples,
    ...examples.map((example) => ({ ...example, test: true })),
    ...ofSession.map((example) => ({ ...example, client_state: 'order 7' })),
  ];
  expect(samples.flatMap(eventFaults)).toEqual([]);
});

test('the header fields of a delivery are those of the document, one by one', async () => {
  const { webhooks, components }: OpenApiDocument = JSON.parse(text);
  const names = new Set(
    Object.values(webhooks).flatMap(({ post }) => post.parameters.map(({ $ref }) => $ref.split('/').at(-1) ?? '')),
  );
  const keys = [new Uint8Array(24), new Uint8Array(32)];
  const endpoint = { url: 'http://receiver.invalid/', disabled: false, since: 0, keys, blocks: () => false };
  const event = { appUuid: 'app_1', webhookId: newWebhookId(), body: '{}' };
  const sent = Promise.withResolvers<Readonly<Record<string, string>>>();
  const outbound: Outbound = {
    async fetch({ headers }) {
      sent.resolve(headers);
      return { status: 204, headers: new Headers(), body: undefined };
    },
  };
  await attemptDelivery({ outbound, clock: new VirtualClock(), timeoutSec: 5 }, endpoint, event, `00-${'a'.repeat(32)}`);
  const { 'content-type': type, 'user-agent': _, ...headers } = await sent.promise;
  expect(type).toBe('application/json');
  const described = [...names].map((name) => components.parameters[name]);
  expect(described.map((field) => field?.name.toLowerCase()).sort()).toEqual(Object.keys(headers).sort());
  const ajv = new Ajv2020();
  for (const field of described) {
    expect(field).toMatchObject({ in: 'header', required: true });
    expect([field?.name, ajv.validate(field?.schema ?? false, headers[field?.name.toLowerCase() ?? ''])]).toEqual([
      field?.name,
      true,
    ]);
  }
});

test('the patterns of the header fields of a command let through what the platform takes, and nothing else', () => {
  const { components }: OpenApiDocument = JSON.parse(text);
  const ajv = new Ajv2020();
  const takes = (name: string, value: string) => ajv.validate(components.parameters[name]?.schema ?? false, value);
  for (const good of ['a', 'order 7', '~'.repeat(255)]) expect([good, takes('IdempotencyKey', good)]).toEqual([good, true]);
  for (const bad of ['', 'ä', ' a', 'a ', 'a\tb', 'a'.repeat(256)])
    expect([bad, takes('IdempotencyKey', bad)]).toEqual([bad, false]);
  expect(takes('OperationId', crypto.randomUUID())).toBe(true);
  for (const bad of ['abc', crypto.randomUUID().toUpperCase(), '00000000-0000-1000-8000-000000000000'])
    expect([bad, takes('OperationId', bad)]).toEqual([bad, false]);
});

test('the patterns of the parameters of a path let through what the platform takes, and nothing else', async () => {
  const { paths } = JSON.parse(text);
  const ajv = new Ajv2020({ strict: false });
  const odd = ['+1', '+15550177', '15550177', '+155501771234567890', '0010000', '001000', 'lobby', 'a.b-c_d', '~a', 'a~', '-a'];
  const given = [...odd, '_', 'é', 'a b', 'a/b', 'a'.repeat(64), 'a'.repeat(65), `app_${crypto.randomUUID()}`];
  const wrong: unknown[] = [];
  const judged: string[] = [];
  for (const [path, { put }] of Object.entries<Record<string, OpenApiDocument['paths'][string][string]>>(paths)) {
    const name = /\{([a-z0-9_]+)\}$/.exec(path)?.[1] ?? '';
    if (put === undefined) continue;
    const parameters: readonly { readonly name: string; readonly schema: object }[] = paths[path].put.parameters;
    const schema = parameters.find((each) => each.name === name)?.schema ?? false;
    for (const value of given) {
      const url = path.replace('{app_uuid}', `app_${crypto.randomUUID()}`).replace(`{${name}}`, encodeURIComponent(value));
      const { body } = await platform.operator('PUT', url, put.requestBody?.content['application/json']?.example);
      const isRefused = body?.message?.startsWith(`${name}: `) === true;
      if (ajv.validate(schema, value) === isRefused) wrong.push({ path, value, isRefused });
    }
    judged.push(name);
  }
  expect(wrong).toEqual([]);
  expect(judged.sort()).toEqual(['e164', 'e164', 'name', 'terminal_number', 'username']);
});

test('the acknowledgement of a command has the fields of the interface, and that of a message a status of its own', () => {
  const { schemas } = JSON.parse(text).components;
  const ajv = new Ajv2020({ strict: false, schemas: [{ $id: 'openapi', components: { schemas } }] });
  addFormats.default(ajv);
  const told = { session_uuid: crypto.randomUUID(), room_id: crypto.randomUUID(), message_uuid: crypto.randomUUID() };
  const ids: Readonly<Record<string, string>> = { ...told, recording_uuid: `rec_${crypto.randomUUID()}` };
  const takes = (name: string, status: string, operation: string, recording = ids.recording_uuid) => {
    const required: readonly string[] = schemas[name].required;
    const body = Object.fromEntries(required.map((field) => [field, ids[field]]));
    if (required.includes('recording_uuid')) body.recording_uuid = recording;
    return ajv.validate(`openapi#/components/schemas/${name}`, { ...body, status, operation_uuid: operation });
  };
  const uuid = crypto.randomUUID();
  const commands = ['Operation', 'SessionOperation', 'PlaybackOperation', 'RecordingOperation', 'RoomOperation'];
  for (const name of commands) {
    const permitted = ['in_progress', 'completed', 'queued'].filter((status) => takes(name, status, uuid));
    expect({ name, permitted }).toEqual({ name, permitted: ['in_progress', 'completed'] });
  }
  expect(['in_progress', 'completed', 'queued'].filter((status) => takes('MessageOperation', status, uuid))).toEqual(['queued']);
  expect([...commands.map((name) => takes(name, 'in_progress', '')), takes('MessageOperation', 'queued', 'x')]).not.toContain(
    true,
  );
  expect(takes('RecordingOperation', 'in_progress', uuid, uuid)).toBe(false);
});

test('what a setting counts as where it is left out is told, for a trunk, a drain and the recording of a Room too', () => {
  const { schemas } = JSON.parse(text).components;
  const DEFAULTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    SetTrunkRequest: {
      ...{ register: false, inbound_format: 'auto', outbound_format: 'plus_e164', identity: 'none', trust_identity: false },
      ...{ srtp: 'off', srtp_without_tls: false, session_timer: 'on', priority: 0, weight: 1, follow_redirects: false },
    },
    DrainNodeRequest: { mode: 'wait' },
    RecordRoomRequest: { include_gaps: false },
  };
  for (const [name, fields] of Object.entries(DEFAULTS))
    for (const [field, value] of Object.entries(fields))
      expect({ field, told: schemas[name].properties[field].description }).toEqual({
        field,
        told: expect.stringMatching(new RegExp(`(^|; )${JSON.stringify(value)} when left out$`)),
      });
});

test('a webhook that lacks a field of its schema, or has one more, is found', () => {
  const { webhooks }: OpenApiDocument = JSON.parse(text);
  for (const { post } of Object.values(webhooks)) {
    const { example } = post.requestBody.content['application/json'];
    expect(eventFaults({ ...example, not_described: 1 }).join()).toContain('not_described');
    for (const common of ['aud', 'timestamp']) {
      const { [common]: _, ...rest } = example;
      expect(eventFaults(rest).join()).toContain(common);
    }
  }
});

test('the objects of an event are held too, and one of two kinds is described as each of them, not as a mixture', () => {
  const { webhooks }: OpenApiDocument = JSON.parse(text);
  const sample = (name: string) => webhooks[name]?.post.requestBody.content['application/json'].example ?? {};
  const refused = { ...sample('session.ended'), sip: { status: 486, reason: 'Busy Here' } };
  expect(eventFaults(refused)).toEqual([]);
  expect(eventFaults({ ...refused, sip: { ...refused.sip, not_described: 1 } })).toHaveLength(1);
  const { session_uuid, ...recording } = sample('recording.ended');
  expect(eventFaults({ ...recording, room_id: session_uuid })).toEqual([]);
  expect(eventFaults(recording)).toHaveLength(1);
  const { card_uuid, payment_method_details: _, ...collected } = sample('payment.card.collected');
  expect(eventFaults({ ...collected, status: 'failed', reason: 'no_input' })).toEqual([]);
  expect(eventFaults({ ...collected, status: 'failed', reason: 'no_input', card_uuid })).toHaveLength(1);
  expect(eventFaults({ ...collected, status: 'failed', reason: 'unheard_of' })).toHaveLength(1);
});

test('what the stream of events and the signed URLs of recordings answer and read is in the document', () => {
  const { paths }: OpenApiDocument = JSON.parse(text);
  const stream = paths['/operator/v1/events/stream']?.get;
  expect(stream).toMatchObject({
    responses: { 403: expect.anything() },
    parameters: expect.arrayContaining([expect.objectContaining({ name: 'Last-Event-ID', in: 'header' })]),
  });
  for (const kind of ['pull', 'live']) {
    const { get, head } = paths[`/v1/media/{recording_uuid}/${kind}`] ?? {};
    for (const operation of [get, head])
      expect(operation).toMatchObject({ responses: { 405: expect.anything(), 500: expect.anything() } });
    expect(get).toMatchObject({ responses: { 200: { headers: { 'Accept-Ranges': expect.anything() } } } });
    // An answer to HEAD has no body.
    expect(Object.values(head?.responses ?? {}).filter(({ content }) => content !== undefined)).toEqual([]);
  }
});

test('the header fields of a finished recording are in the document', () => {
  const { paths }: OpenApiDocument = JSON.parse(text);
  const named = (status: number) => Object.keys(paths['/v1/media/{recording_uuid}/pull']?.get?.responses[status]?.headers ?? {});
  for (const status of [200, 206, 304]) expect(named(status)).toContain('ETag');
  for (const status of [206, 416]) expect(named(status)).toContain('Content-Range');
});

test('every kind of entry of a timeline is described with its fields', () => {
  const fields: Readonly<Record<string, readonly string[]>> = {
    command: ['method', 'path', 'status', 'operation_uuid', 'took_ms'],
    sip: ['direction', 'transport', 'peer', 'first_line', 'call_id', 'cseq'],
    media: ['what'],
    event: ['name', 'webhook_id', 'body'],
    webhook: ['webhook_id', 'attempt', 'status', 'error', 'took_ms', 'response', 'next_at'],
    quality: ['packets_in', 'packets_lost', 'jitter_ms', 'round_trip_ms', 'mos'],
  };
  const { schemas } = JSON.parse(text).components;
  const { oneOf, discriminator } = schemas.Timeline.properties.entries.items;
  expect(Object.keys(discriminator.mapping)).toEqual(Object.keys(fields));
  expect(Object.values(discriminator.mapping)).toEqual(oneOf.map((each: { $ref: string }) => each.$ref));
  for (const [kind, reference] of Object.entries<string>(discriminator.mapping)) {
    const { required, properties } = schemas[reference.split('/').at(-1) ?? ''];
    expect([required, properties.kind]).toEqual([['at', 'kind', ...(fields[kind] ?? [])], { const: kind }]);
  }
});
