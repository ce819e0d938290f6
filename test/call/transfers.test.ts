/** Transfers to another call: what is answered by what that call is, and which one a far end names by Replaces. */

import { expect, test } from 'bun:test';
import type { CommandContext } from '../../src/call/ports/sessions.ts';
import { type CallsElsewhere, type Replacement, type TransferParty, Transfers } from '../../src/call/session/transfers.ts';
import { mayReach } from '../../src/destinations.ts';
import { inbound, type SessionState } from '../../src/machine/session/session.ts';
import { problems } from '../../src/problem.ts';

const context: CommandContext = { appUuid: 'app', operationUuid: 'op', idempotencyKey: undefined, traceparent: '' };

/** A call of that type which is up on that trunk. Browsers are on none, and cannot be replaced. */
function party(
  type: 'sip' | 'webrtc' | undefined,
  { trunk = 'carrier', callId = '', ...more }: { trunk?: string; callId?: string } & Partial<SessionState> = {},
): TransferParty {
  const about = { sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0, inboundType: type };
  const transfers: TransferParty['transfers'] = {
    trunk,
    permits: () => true,
    dialled: (uri) => uri.replace(/^sip:|@.*$/g, ''),
    replacement: () => '<sip:x@there>',
    isNamedBy: (replaces) => replaces.callId === callId,
    transfer: () => {},
  };
  return {
    state: { ...inbound(about, 0), phase: 'answered', ...more },
    transfers: type === 'webrtc' ? undefined : transfers,
    refusal: () => undefined,
    command: async () => ({ status: 202, body: {} }),
  };
}

test('A call is transferred to a call of its trunk; to a browser it is 404, to a call of another trunk 409', async () => {
  const others = new Map([
    ['phone', party(undefined)],
    ['browser', party('webrtc')],
    ['other', party(undefined, { trunk: 'other' })],
  ]);
  const transfers = new Transfers(others, { reachOf: async () => mayReach() });
  const order = (sessionUuid: string) =>
    transfers.transfer(party(undefined), { type: 'transfer', target: { sessionUuid }, timeoutMs: 30_000 }, context);
  expect(await order('phone')).toMatchObject({ status: 202 });
  expect(await order('browser')).toMatchObject({ status: 404 });
  expect(await order('nobody')).toMatchObject({ status: 404 });
  expect(await order('other')).toMatchObject({ status: 409 });
  expect(transfers.replacement('app', 'browser')).toBeUndefined();
  expect(transfers.replacement('app', 'phone')).toEqual({ referTo: '<sip:x@there>', trunk: 'carrier' });
});

test('A call is transferred to numbers that the application may reach, and to names', async () => {
  const transfers = new Transfers(new Map(), { reachOf: async () => mayReach({ allowed: ['+1'], blocked: [] }) });
  const order = (target: { number: string } | { uri: string }) =>
    transfers.transfer(party(undefined), { type: 'transfer', target, timeoutMs: 30_000 }, context);
  for (const target of [{ number: '+15550100' }, { uri: 'sip:+15550100@x' }, { uri: 'sip:alice@x' }])
    expect(await order(target)).toMatchObject({ status: 202 });
  for (const target of [{ number: '+4420' }, { uri: 'sip:+4420@x' }, { uri: 'sip:0044@x' }])
    expect(await order(target)).toMatchObject({ status: 403 });
});

test('A call is not transferred to itself, to a host that is not permitted, nor where its state does not let it', async () => {
  const call = party(undefined);
  const transfers = new Transfers(new Map([['self', call]]), { reachOf: async () => mayReach() });
  const order = (actor: TransferParty, target: { uri: string } | { sessionUuid: string }) =>
    transfers.transfer(actor, { type: 'transfer', target, timeoutMs: 30_000 }, context);
  expect(await order(call, { sessionUuid: 'self' })).toMatchObject({ status: 409 });
  const strict = { ...party(undefined), transfers: call.transfers && { ...call.transfers, permits: () => false } };
  expect(await order(strict, { uri: 'sip:alice@elsewhere' })).toMatchObject({ status: 403 });
  const held = { ...strict, refusal: () => problems.conflict('held') };
  for (const target of [{ uri: 'sip:alice@elsewhere' }, { sessionUuid: 'nobody' }])
    expect(await order(held, target)).toMatchObject({ status: 409 });
});

test('A call is transferred to a call of another node by what that node says of it', async () => {
  const said = new Map<string, Replacement | 'unreachable'>([
    ['phone', { referTo: '<sip:x@there>', trunk: 'carrier' }],
    ['other', { referTo: '<sip:x@there>', trunk: 'other' }],
    ['ringing', { referTo: undefined, trunk: 'carrier' }],
    ['away', 'unreachable'],
  ]);
  const elsewhere = {
    ...{ order: async () => undefined, named: async () => undefined },
    replacement: async (_: string, sessionUuid: string) => said.get(sessionUuid),
  };
  const transfers = new Transfers(new Map(), { elsewhere, reachOf: async () => mayReach() });
  const order = (sessionUuid: string) =>
    transfers.transfer(party(undefined), { type: 'transfer', target: { sessionUuid }, timeoutMs: 30_000 }, context);
  const statuses = ['phone', 'other', 'ringing', 'away', 'nobody'].map(async (each) => (await order(each)).status);
  expect(await Promise.all(statuses)).toEqual([202, 409, 409, 503, 404]);
});

test('A Replaces names a live call of the application: not its own, not one that has ended, and never one of another', async () => {
  const calls = [
    party('webrtc', { sessionUuid: 'browser' }),
    party('sip', { sessionUuid: 'first', callId: 'a' }),
    party('sip', { sessionUuid: 'second', callId: 'b', phase: 'ringing' }),
    party('sip', { sessionUuid: 'ended', callId: 'c', phase: 'ended' }),
    party('sip', { sessionUuid: 'foreign', callId: 'd', appUuid: 'another' }),
  ];
  const asked: string[] = [];
  const elsewhere: CallsElsewhere = {
    order: async () => undefined,
    replacement: async () => undefined,
    named: async (appUuid, { callId }) => {
      asked.push(`${appUuid} ${callId}`);
      return callId === 'far' ? 'of-another-node' : undefined;
    },
  };
  const transfers = new Transfers(new Map(calls.map((each) => [each.state.sessionUuid, each])), {
    elsewhere,
    reachOf: async () => mayReach(),
  });
  const named = (callId: string) => transfers.requested('app', 'first', { callId, toTag: '1', fromTag: '2', earlyOnly: false });
  expect(await Promise.all(['a', 'b', 'c', 'd', 'e', 'far'].map(named))).toEqual([
    undefined,
    'second',
    undefined,
    undefined,
    undefined,
    'of-another-node',
  ]);
  // Another node is asked about what is not here, in the name of the application.
  expect(asked).toEqual(['app c', 'app d', 'app e', 'app far']);
});
