/** The `sandbox` carrier of short messages: takes everything, and reports it delivered a moment later. */
import type { Clock } from '../clock.ts';
import { newUuid } from '../id.ts';
import type { SmsGateway, SmsListener } from '../machine/message/gateway.ts';

const DELIVERY_MS = 100;
const WINDOW = 50;

export function sandboxSms(clock: Clock): SmsGateway {
  let listener: SmsListener | undefined;
  let closed = false;
  return {
    window: WINDOW,
    partsOf: (segments) => segments,
    start: (to) => {
      listener = to;
    },
    ready: () => !closed,
    async submit({ parts, to }) {
      return parts.map((part) => {
        const smscId = newUuid();
        clock.at(clock.now() + DELIVERY_MS, () => {
          if (closed) return;
          // Lost with the database: the message stays `sent`, as with a real SMSC whose receipt never comes.
          listener?.onReceipt({ smscId, state: 'delivered', error: '', recipient: to.replace('+', '') }).catch(() => {});
        });
        return { part, outcome: { outcome: 'accepted', smscId } };
      });
    },
    close: async () => {
      closed = true;
    },
  };
}
