/** Bodies that are nested deeper than anything the API takes, or hold more. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { cutAt, extentOf } from '../../src/bounds/nesting.ts';
import { newUuid } from '../../src/id.ts';
import fc from '../support/fast-check.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(() => platform.close());

/** The depth of a value that was parsed. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** The members of a value that was parsed, less one of each object or list. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  return members.reduce((sum, each) => sum + membersOf(each), Math.max(0, members.length - 1));
}

test('the depth and the members of a text are those of the value it holds', () => {
  const value = fc.oneof(fc.array(fc.jsonValue({ maxDepth: 7 })), fc.jsonValue({ maxDepth: 8 }));
  fc.assert(
    fc.property(value, (any) => {
      const text = JSON.stringify(any);
      const read: unknown = JSON.parse(text);
      expect(extentOf(text)).toEqual({ depth: depthOf(read), members: membersOf(read) });
    }),
  );
  expect(extentOf(String.raw`"[[[[,\"[[[[,"`)).toEqual({ depth: 0, members: 0 });
});

test('what lies deeper is cut off, and the rest is as it was', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 0, max: 9 }), (text, most) => {
      const value: unknown = JSON.parse(text);
      const cut = cutAt(value, most);
      expect(depthOf(cut)).toBe(Math.min(most, depthOf(value)));
      if (depthOf(value) <= most) expect(cut).toEqual(value);
    }),
  );
});

test('a body of more fields or items than any has is refused before each of them is judged', async () => {
  const app = await platform.testStore.store.apps.create({ name: 'crowded' });
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]));
  const many = fields(5_000);
  const dial = { from: '+15550100', to: '+15550199', ring_timeout_sec: 10 };
  const urls = { urls: Array.from({ length: 10_000 }, () => 1) };
  const play = `/v1/sessions/${newUuid()}/playback/play`;
  for (const [path, body, message] of [
    ['/v1/sessions:dial', many, 'body: must have at most 1000 fields or items'],
    ['/v1/sessions:dial', { ...dial, sip_headers: many }, 'sip_headers: must have at most 1000 fields or items'],
    ['/v1/sessions:dial', { ...dial, sip_headers: fields(60_000) }, 'body: must have at most 20000 fields and items'],
    [play, urls, 'urls: must have at most 1000 fields or items'],
  ] as const) {
    const reply = await platform.call(app, 'POST', path, body);
    expect(reply.body.message).toBe(message);
    expect([400, 422]).toContain(reply.status);
  }
});

test('a body that is nested thousands deep is judged by its shape, at once', async () => {
  const app = await platform.testStore.store.apps.create({ name: 'deep' });
  const headers = { authorization: `Bearer ${app.appUuid}:${app.apiKey}`, 'content-type': 'application/json' };
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const)
    for (const [path, field] of [
      ['/api/v1/rooms', 'voice_activity_events'],
      [`/v1/sessions/${newUuid()}/dtmf/collect`, 'barge_in'],
    ] as const) {
      const body = `{"${field}":${open.repeat(9_000)}0${close.repeat(9_000)}}`;
      const { status, body: told } = await platform.raw(path, { method: 'POST', headers, body });
      expect([path, status, told.message]).toEqual([path, 400, expect.stringMatching(new RegExp(`^${field}: must be `))]);
    }
});
