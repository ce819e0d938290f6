/** What another node needs to go on with a call from a carrier. */
import type { LegSnapshot } from '../../src/call/ports/leg.ts';

export const snapshot: LegSnapshot = {
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
