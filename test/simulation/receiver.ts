/**
 * The applications' receiver of webhooks: it hears, answers as its mood is, and keeps what came, in order of receipt.
 */
import { type Outbound, OutboundError, type OutboundRequest, type OutboundResponse } from '../../src/outbound/outbound.ts';
import type { Faults, ReceiverMood } from './faults.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export interface Delivery {
  readonly webhookId: string;
  readonly body: string;
  readonly at: number;
}

export interface ReceiverOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly faults: Faults;
  onDelivery(delivery: Delivery): void;
}

export class Receiver {
  readonly #options: ReceiverOptions;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** The outside as one process reaches it. */
  outbound(isAlive: () => boolean, pass: (run: () => void) => void): Outbound {
    return { fetch: (request) => this.#fetch(request, isAlive, pass) };
  }

  #mood(): ReceiverMood {
    const { faults, random } = this.#options;
    return faults.receiver === 'moody' ? random.pick(['well', 'fails', 'unheard', 'slow', 'hangs'] as const) : faults.receiver;
  }

  #fetch(request: OutboundRequest, isAlive: () => boolean, pass: (run: () => void) => void): Promise<OutboundResponse> {
    const { scheduler, random, onDelivery } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<OutboundResponse>();
    const mood = this.#mood();
    const { 'webhook-id': webhookId = '' } = request.headers;
    const { body } = request;
    if (typeof body !== 'string') throw new Error('a webhook without a text');
    request.signal.addEventListener('abort', () => {
      if (isAlive()) reject(new OutboundError('timeout', 'given up'));
    });
    const later = (ms: number, settle: () => void) =>
      void scheduler.after(ms, () =>
        pass(() => {
          if (isAlive()) settle();
        }),
      );
    const wayMs = () => random.between(1, 40) * (mood === 'slow' ? 40 : 1);
    scheduler.after(wayMs(), () => {
      // A request that is under way arrives, whatever becomes of its sender.
      if (mood !== 'fails' || random.chance(0.5)) onDelivery({ webhookId, body, at: scheduler.now });
      if (mood === 'hangs') return;
      later(wayMs(), () => {
        if (mood === 'unheard') reject(new OutboundError('unreachable', 'reset'));
        else resolve({ status: mood === 'fails' ? 503 : 200, headers: new Headers(), body: undefined });
      });
    });
    return promise;
  }
}
