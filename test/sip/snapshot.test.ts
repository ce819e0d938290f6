/** A call that goes on at another node: its numbers fence what the node before may still send. */
import { expect, test } from 'bun:test';
import { MOVE_CSEQ_STEP } from '../../src/limits.ts';
import { type Dialog, dialogRequest } from '../../src/sip/call/dialog.ts';
import { dialogOfSnapshot, snapshotOf } from '../../src/sip/call/snapshot.ts';
import { parseCSeq } from '../../src/sip/message/message.ts';
import fc from '../support/fast-check.ts';

const dialog = (localNumber: number, remoteNumber: number | undefined): Dialog => ({
  callId: 'a',
  localTag: 'b',
  remoteTag: 'c',
  local: '<sip:us@x>;tag=b',
  remote: '<sip:them@x>;tag=c',
  localNumber,
  remoteNumber,
  routes: ['<sip:proxy.example;lr>'],
  target: 'sip:them@192.0.2.1',
  peer: { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 7, fallback: { transport: 'udp', host: 'x', port: 1, flow: 3 } },
});

test('The far end takes every request of the node that goes on, and none of the one before (RFC 3261 §12.2.2).', () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.nat(MOVE_CSEQ_STEP - 2), fc.integer({ min: 1, max: 50 }), (number, since, epoch) => {
      const before = dialog(number, 5);
      // It goes as JSON, and lies in a row for a while in which the node before sends requests.
      const sent = JSON.parse(JSON.stringify(snapshotOf(before, { direction: 'inbound', farAllowsUpdate: true })));
      for (let n = 0; n < since; n++) before.localNumber++;
      const after = dialogOfSnapshot(sent, MOVE_CSEQ_STEP * epoch);
      const of = (each: Dialog, method: string) => parseCSeq(dialogRequest(each, method).headers.get('cseq'))?.number ?? 0;
      expect(of(after, 'INVITE')).toBeGreaterThan(of(before, 'BYE'));
    }),
  );
});

test('Another node has the same dialog but for the connection it came over.', () => {
  for (const remoteNumber of [undefined, 9]) {
    const after = dialogOfSnapshot(
      JSON.parse(JSON.stringify(snapshotOf(dialog(3, remoteNumber), { direction: 'outbound', farAllowsUpdate: false }))),
      0,
    );
    const { peer: _, ...rest } = dialog(3, remoteNumber);
    expect(after).toMatchObject(rest);
    expect(after.remoteNumber).toBe(remoteNumber);
    expect(after.peer).toEqual({ transport: 'udp', host: '192.0.2.1', port: 5060, flow: 0 });
  }
});
