/**
 * The payment provider and the carrier of short messages. They outlive the platform's processes, and remember what they
 * were asked, so that a card that is charged twice, or a message that is sent twice, is seen.
 */
import { type Clock, sleep } from '../../src/clock.ts';
import type { SmsGateway, Submitted } from '../../src/machine/message/gateway.ts';
import type { ChargeGateway, ChargeOutcome } from '../../src/machine/payment/charge.ts';
import { sandboxCharge } from '../../src/provider/sandbox-charge.ts';
import { sandboxSms } from '../../src/provider/sandbox-sms.ts';
import type { Random } from './random.ts';

export class Providers {
  readonly #random: Random;
  readonly #onDouble: (what: string) => void;
  readonly #charged = new Set<string>();
  /** Parts of messages that were taken. */
  readonly #sent = new Set<string>();

  constructor(random: Random, onDouble: (what: string) => void) {
    this.#random = random;
    this.#onDouble = onDouble;
  }

  charges(clock: Clock, isAlive: () => boolean): ChargeGateway {
    const sandbox = sandboxCharge(clock);
    return {
      ...sandbox,
      charge: async (order): Promise<ChargeOutcome> => {
        if (this.#charged.has(order.operationUuid))
          this.#onDouble(`the charge ${order.operationUuid} reached the provider twice`);
        this.#charged.add(order.operationUuid);
        const outcome = await sandbox.charge(order);
        await sleep(clock, this.#random.between(20, 4_000));
        if (!isAlive()) await new Promise(() => {});
        return this.#random.chance(0.1) ? { status: 'indeterminate', reason: 'provider_timeout' } : outcome;
      },
    };
  }

  messages(clock: Clock, isAlive: () => boolean): SmsGateway {
    const sandbox = sandboxSms(clock);
    return {
      ...sandbox,
      window: 3,
      submit: async (submission): Promise<readonly Submitted[]> => {
        await sleep(clock, this.#random.between(5, 1_500));
        if (!isAlive()) await new Promise(() => {});
        const { messageUuid, parts } = submission;
        const fate = this.#random.int(0, 9);
        if (fate === 0) return parts.slice(0, 1).map((part) => ({ part, outcome: { outcome: 'later' } }));
        for (const part of parts) {
          const name = `part ${part} of the message ${messageUuid}`;
          if (this.#sent.has(name)) this.#onDouble(`${name} was sent twice`);
          this.#sent.add(name);
        }
        const taken = await sandbox.submit(submission);
        if (fate === 1) return parts.slice(0, 1).map((part) => ({ part, outcome: { outcome: 'unknown' } }));
        await sleep(clock, this.#random.between(5, 300));
        return taken;
      },
    };
  }
}
