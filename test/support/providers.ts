/** The actors behind the message routes, on a store, with the sandbox as the far side; nothing is started. */

import { ChargeDispatcher } from '../../src/call/charge/charge-dispatcher.ts';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import type { Clock } from '../../src/clock.ts';
import type { Store } from '../../src/database/store.ts';
import { mayReach } from '../../src/destinations.ts';
import { silentLog } from '../../src/log.ts';
import type { ChargeGateway } from '../../src/machine/payment/charge.ts';
import { sandboxCharge } from '../../src/provider/sandbox-charge.ts';
import { sandboxSms } from '../../src/provider/sandbox-sms.ts';
import { noIncoming } from './no-incoming.ts';

export function sandboxProviders(store: Store, clock: Clock, charging: ChargeGateway = sandboxCharge(clock)) {
  const mayCallFrom = store.callerIds.allowed;
  const reachOf = async () => mayReach();
  const gateway = sandboxSms(clock);
  return {
    charges: new ChargeDispatcher({
      store: store.payments,
      gateway: charging,
      clock,
      log: silentLog,
      connected: () => ({ clientState: '' }),
      isHere: () => true,
      isLive: async () => true,
      mayUseTerminal: store.terminals.allowed,
    }),
    messages: new MessageDispatcher({
      store: store.messages,
      gateway,
      clock,
      log: silentLog,
      incoming: noIncoming,
      mayCallFrom,
      reachOf,
    }),
  };
}
