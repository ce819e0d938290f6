/** What a transfer to another call is answered, by what that other call is. */
import { expect, test } from 'bun:test';
import type { CommandContext } from '../../src/call/ports/sessions.ts';
import { type TransferParty, Transfers } from '../../src/call/session/transfers.ts';
import { inbound } from '../../src/machine/session/session.ts';

const context: CommandContext = { appUuid: 'app', operationUuid: 'op', idempotencyKey: undefined, traceparent: '' };

/** A call of that type which is up on that trunk. Browsers are on none, and cannot be replaced. */
function party(type: 'sip' | 'webrtc' | undefined, trunk = 'carrier'): TransferParty {
  const about = { sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0, inboundType: type };
  return {
    state: { ...inbound(about, 0), phase: 'answered' },
    transfers:
      type === 'webrtc' ? undefined : { trunk, permits: () => true, replacement: () => '<sip:x@there>', transfer: () => {} },
    refusal: () => undefined,
    command: async () => ({ status: 202, body: {} }),
  };
}

test('A call is transferred to a call of its trunk; to a browser it is 404, to a call of another trunk 409', async () => {
  const others: Readonly<Record<string, TransferParty>> = {
    phone: party(undefined),
    browser: party('webrtc'),
    other: party(undefined, 'other'),
  };
  const transfers = new Transfers((name) => others[name], undefined);
  const order = (sessionUuid: string) =>
    transfers.transfer(party(undefined), { type: 'transfer', target: { sessionUuid }, timeoutMs: 30_000 }, context);
  expect(await order('phone')).toMatchObject({ status: 202 });
  expect(await order('browser')).toMatchObject({ status: 404 });
  expect(await order('nobody')).toMatchObject({ status: 404 });
  expect(await order('other')).toMatchObject({ status: 409 });
  expect(transfers.replacement('app', 'browser')).toBeUndefined();
  expect(transfers.replacement('app', 'phone')).toEqual({ referTo: '<sip:x@there>', trunk: 'carrier' });
});
