import { expect, test } from 'bun:test';
import type { Parameter, Row } from '../../src/database/driver/database.ts';
import { sessionColumns } from '../../src/database/journal/flush.ts';
import type { SessionRow } from '../../src/database/journal/journal.ts';
import { isStored } from '../../src/database/journal/stored.ts';

const session: SessionRow = {
  ...{ sessionUuid: 's', appUuid: 'app', nodeId: 'node', epoch: 1, type: 'phone_in', state: 'answered', callerId: '', did: '' },
  ...{ answered: true, clientState: '', roomId: '', running: '', trunk: '', createdAt: 0, answeredAt: 0, endedAt: undefined },
  summary: '',
};
const event = {
  ...{ webhookId: 'evt', appUuid: 'app', name: 'dtmf.received', sessionUuid: 's' },
  lanes: ['s'],
  body: '{}',
  traceparent: '',
  at: 0,
};

/** A database with that row and those events. */
const database = (row: SessionRow, events: readonly string[]) => ({
  query: async <R extends Row>(text: string, parameters: readonly Parameter[] = []): Promise<readonly R[]> => {
    const rows: readonly Row[] = text.includes('FROM sessions')
      ? [sessionColumns(row)]
      : events.includes(String(parameters[0]))
        ? [{ one: 1 }]
        : [];
    return rows.map((each) => each as R);
  },
});

test('A change that leaves its row as it was is stored where its event is', async () => {
  expect(await isStored(database(session, ['evt']), { session, events: [event] })).toBe(true);
  expect(await isStored(database(session, []), { session, events: [event] })).toBe(false);
});

test('A change whose row another node has is stored where its event is', async () => {
  const others = { ...session, nodeId: 'other', epoch: 2 };
  expect(await isStored(database(others, ['evt']), { session, events: [event] })).toBe(true);
  expect(await isStored(database(others, []), { session, events: [event] })).toBe(false);
  expect(await isStored(database(others, []), { session, events: [] })).toBe(false);
});

test('A change of nothing but its row is stored where the row is so', async () => {
  expect(await isStored(database(session, []), { session, events: [] })).toBe(true);
  expect(await isStored(database(session, []), { session: { ...session, roomId: 'r' }, events: [] })).toBe(false);
});
