/**
 * The `sandbox` carrier of short messages: takes everything, and reports it delivered a moment later, also after a
 * crash in between.
 */
import type { Clock } from '../clock.ts';
import { newUuid } from '../id.ts';
import type { OpenPart, SmsGateway, SmsListener } from '../machine/message/gateway.ts';

const DELIVERY_MS = 100;
/** The receipt is made again after this where it could not be stored. */
const RETRY_MS = 5_000;
const WINDOW = 50;
const ID_PREFIX = 'sandbox-';

export function sandboxSms(clock: Clock): SmsGateway {
  let listener: SmsListener | undefined;
  let closed = false;
  const deliver = (part: OpenPart, afterMs: number): void => {
    clock.at(clock.now() + afterMs, () => {
      if (closed) return;
      const about = { smscId: part.smscId, recipient: part.to.replace('+', ''), isMarked: true };
      const receipt = { ...about, state: 'delivered', error: '' } as const;
      listener?.onReceipt(receipt).catch(() => deliver(part, RETRY_MS));
    });
  };
  return {
    window: WINDOW,
    partsOf: (segments) => segments,
    start: (to) => {
      listener = to;
    },
    ready: () => !closed,
    async submit({ parts, to }) {
      return parts.map((part) => {
        const smscId = `${ID_PREFIX}${newUuid()}`;
        deliver({ smscId, to }, DELIVERY_MS);
        return { part, outcome: { outcome: 'accepted', smscId } };
      });
    },
    ownReceipts: {
      idPrefix: ID_PREFIX,
      resume: (parts) => {
        for (const part of parts) deliver(part, DELIVERY_MS);
      },
    },
    close: async () => {
      closed = true;
    },
  };
}
