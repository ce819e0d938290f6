/** The ingest URLs that are remembered, and for whom. */
import { expect, test } from 'bun:test';
import { Ingests } from '../../src/call/session/ingests.ts';
import { INGESTS_REMEMBERED_MAX } from '../../src/limits.ts';
import type { Ingest } from '../../src/media/engine.ts';

const NODE = '6f1c2a34-5b6d-4e7f-8a9b-0123456789ab';
const ingest: Ingest = {
  accept: () => true,
  write: async () => true,
  end() {},
  fail() {},
  over: new Promise(() => {}),
};
const entry = (appUuid: string, operationUuid = 'op') => ({ appUuid, operationUuid, ingest, expiresAt: 60_000 });

test('The URLs of one application are forgotten for its own, and not for those of another that has more', () => {
  const ingests = new Ingests();
  const quiet = ingests.add(entry('quiet'), NODE);
  const first = ingests.add(entry('busy'), NODE);
  for (let at = 2; at < INGESTS_REMEMBERED_MAX; at++) ingests.add(entry('busy'), NODE);
  expect(ingests.find('busy', first)).toBeDefined();
  const last = ingests.add(entry('busy'), NODE);
  expect([ingests.find('busy', first), ingests.find('quiet', quiet)?.appUuid]).toEqual([undefined, 'quiet']);
  expect(ingests.find('busy', last)).toBeDefined();
});

test('An ingest is found by its own application alone, until it is forgotten, and its name tells the node', () => {
  const ingests = new Ingests();
  const name = ingests.add(entry('one', 'its operation'), NODE);
  expect(name.slice(24)).toBe(NODE.slice(24));
  expect([ingests.find('one', name)?.operationUuid, ingests.find('other', name)]).toEqual(['its operation', undefined]);
  ingests.forget('other', name);
  expect(ingests.find('one', name)).toBeDefined();
  ingests.forget('one', name);
  expect(ingests.find('one', name)).toBeUndefined();
});
