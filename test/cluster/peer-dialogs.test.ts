/** SIP requests and hand-overs of calls from node to node, with no bus between them but calls. */
import { expect, test } from 'bun:test';
import type { LegSnapshot } from '../../src/call/ports/leg.ts';
import type { MoveReply, MoveRequest } from '../../src/call/ports/session-moves.ts';
import type { Bus } from '../../src/cluster/bus/bus.ts';
import { Dialogs } from '../../src/cluster/peer/dialogs.ts';
import { Moves } from '../../src/cluster/peer/moves.ts';
import { MOVE_PREPARED_MS, NODE_COMMAND_TIMEOUT_MS } from '../../src/limits.ts';
import { nodeRow } from './node-row.ts';

const SOURCE = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 0 } as const;
const dialog = { callId: 'a', localTag: 'b', remoteTag: 'c', local: '<sip:us@x>;tag=b', remote: '<sip:them@x>;tag=c' };
const snapshot: LegSnapshot = {
  trunk: 'carrier',
  call: {
    direction: 'inbound',
    dialog: { ...dialog, localNumber: 1, remoteNumber: 1, routes: [], target: 'sip:them@192.0.2.1' },
    peer: { transport: 'udp', host: '192.0.2.1', port: 5060 },
    farAllowsUpdate: false,
  },
  origin: { sessionId: 1, version: 1 },
};
const BYE = Buffer.from('BYE sip:x SIP/2.0\r\n\r\n');

/** What node `a` asks of others, and what each answers. */
function busOf(answers: Readonly<Record<string, unknown>>) {
  const asked: { readonly nodeId: string; readonly kind: string; readonly timeoutMs: number; readonly deadlineMs: number }[] = [];
  const answerers = new Map<string, Parameters<Bus['answer']>[1]>();
  const bus: Pick<Bus, 'ask' | 'answer'> = {
    ask: async (nodeId, kind, _body, timeoutMs, deadlineMs) => {
      asked.push({ nodeId, kind, timeoutMs, deadlineMs });
      return nodeId in answers ? { outcome: 'answered', body: answers[nodeId] } : { outcome: 'not_delivered' };
    },
    answer: (kind, answerer) => void answerers.set(kind, answerer),
  };
  return { bus, asked, hear: async (kind: string, body: unknown) => answerers.get(kind)?.(body, 'b') };
}

function dialogsOf(answers: Readonly<Record<string, unknown>>, suspects: readonly string[] = []) {
  const { bus, asked, hear } = busOf(answers);
  const members = {
    rows: ['a', 'b', 'c', 'd'].map((nodeId) => nodeRow(nodeId)),
    isSuspect: (id: string) => suspects.includes(id),
  };
  return { dialogs: new Dialogs({ bus, members: () => members, nodeId: 'a' }), asked, hear };
}

test('What answers a request that another node received goes to that node.', async () => {
  const { dialogs, asked } = dialogsOf({});
  dialogs.answer('c', BYE, SOURCE);
  expect(asked.map(({ nodeId, kind }) => `${kind} ${nodeId}`)).toEqual(['sip.answer c']);
});

test('A request of no call here is taken where one of the other nodes takes it; one that is suspect is not waited for', async () => {
  const { dialogs, asked } = dialogsOf({ b: { taken: false }, c: { taken: true } }, ['d']);
  expect(await dialogs.take(BYE, SOURCE)).toBe(true);
  expect(asked.map(({ nodeId }) => nodeId)).toEqual(['b', 'c']);
  for (const answers of [{}, { b: { taken: false }, c: {}, d: undefined }])
    expect(await dialogsOf(answers).dialogs.take(BYE, SOURCE)).toBe(false);
});

test('What another node received is taken as from that node; what is no message is not', async () => {
  const { dialogs, hear } = dialogsOf({});
  const [taken, sent]: [unknown[], unknown[]] = [[], []];
  dialogs.serve({
    takeStray: (bytes, source) => taken.push([Buffer.from(bytes).toString(), source]) > 0,
    sendFor: (bytes, peer) => void sent.push([Buffer.from(bytes).toString(), peer]),
  });
  const message = { bytes: BYE.toString('base64'), peer: SOURCE };
  expect(await hear('sip.request', message)).toEqual({ taken: true });
  expect(await hear('sip.answer', message)).toEqual({});
  for (const kind of ['sip.request', 'sip.answer'])
    for (const body of [null, 'text', {}, { bytes: 1, peer: SOURCE }]) await hear(kind, body);
  expect([taken, sent]).toEqual([[[BYE.toString(), { ...SOURCE, via: 'b' }]], [[BYE.toString(), SOURCE]]]);
});

test('A move is refused by the other node before this one gives it up, and what is no message is no reply', async () => {
  const { bus, asked, hear } = busOf({ b: { type: 'committed' }, c: {}, d: null });
  const moves = new Moves({ bus, place: async () => undefined });
  const abort: MoveRequest = { type: 'abort', sessionUuid: 's' };
  expect(await Promise.all(['b', 'c', 'd', 'e'].map((nodeId) => moves.ask(nodeId, abort)))).toEqual([
    { type: 'committed' },
    ...[undefined, undefined, undefined],
  ]);
  for (const { timeoutMs, deadlineMs } of asked) {
    expect(timeoutMs).toBe(NODE_COMMAND_TIMEOUT_MS);
    expect(deadlineMs).toBeLessThan(timeoutMs);
  }
  // A far end that is asked to follow has its time.
  await moves.ask('b', { type: 'prepare', sessionUuid: 's', snapshot, ahead: 1 });
  expect(asked.at(-1)?.deadlineMs).toBeGreaterThan(MOVE_PREPARED_MS);
  const served: unknown[] = [];
  moves.serve(async (...order): Promise<MoveReply> => {
    served.push(order);
    return { type: 'prepared' };
  });
  expect(await hear('move', { request: abort, until: 7 })).toEqual({ type: 'prepared' });
  for (const body of [null, {}, { request: abort }, { request: 'abort', until: 7 }, { until: 7 }])
    expect(await hear('move', body)).toEqual({});
  expect(served).toEqual([[abort, 'b', 7]]);
});
