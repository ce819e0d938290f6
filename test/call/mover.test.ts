/** The hand-over of calls, as the node sees it that is asked to go on with one. */
import { expect, test } from 'bun:test';
import type { LegSnapshot } from '../../src/call/ports/leg.ts';
import type { MovePeers } from '../../src/call/ports/session-moves.ts';
import { Mover } from '../../src/call/session/mover.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const snapshot: LegSnapshot = {
  trunk: 'carrier',
  call: {
    direction: 'inbound',
    dialog: {
      ...{ callId: 'a', localTag: 'b', remoteTag: 'c', local: '<sip:us@x>;tag=b', remote: '<sip:them@x>;tag=c' },
      ...{ localNumber: 1, remoteNumber: 1, routes: [], target: 'sip:them@192.0.2.1' },
    },
    peer: { transport: 'udp', host: '192.0.2.1', port: 5060 },
    farAllowsUpdate: false,
  },
  origin: { sessionId: 1, version: 1 },
};

test('A node that is asked for a call too late leaves its far end alone, which is back at its own node by then.', async () => {
  const clock = new VirtualClock();
  let answer: Parameters<MovePeers['serve']>[0] | undefined;
  const asked: number[] = [];
  new Mover({
    peers: {
      serve: (by) => {
        answer = by;
      },
      ask: async () => undefined,
      place: async () => undefined,
    },
    dialer: {
      resume: async (_, ahead) => {
        asked.push(ahead);
        return { failed: 'the far end refused with 488', asked: true };
      },
    },
    clock,
    log: silentLog,
    nodeId: 'b',
    all: () => [],
    find: () => undefined,
    take: async () => false,
    hold: () => () => {},
    goOn: async () => {},
    handedOver: () => {},
  });
  const prepare = (until: number) => answer?.({ type: 'prepare', sessionUuid: newUuid(), snapshot, ahead: 1_000 }, 'a', until);
  expect(await prepare(clock.now() + 1)).toMatchObject({ type: 'failed', asked: true });
  expect(await prepare(clock.now())).toMatchObject({ type: 'failed', asked: false });
  expect(asked).toEqual([1_000]);
});
