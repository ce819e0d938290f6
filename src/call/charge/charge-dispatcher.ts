/**
 * Charges of this node: one attempt each. What is durable before anything leaves is the charge as `attempting`, with
 * its references destroyed; what comes back is kept until the database has it. A process that dies in between leaves a
 * charge that is ended as `indeterminate`, for nobody can know. One that was refused because the database did not
 * answer, and is stored after all, is ended as `failed`: nothing has left.
 */

import type { Clock } from '../../clock.ts';
import type { ChargeRow, Consumed, PaymentStore } from '../../database/call/payments.ts';
import { StoreUnavailable, warnUnlessAway } from '../../database/journal/journal.ts';
import { platformEvent } from '../../event/platform-event.ts';
import { newUuid, newWebhookId } from '../../id.ts';
import { CHARGE_LEFT_AFTER_MS, CHARGES_IN_FLIGHT_MAX, STORE_LAST_OUTCOME_MS, VAULT_SWEEP_MAX_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type ChargeGateway, type ChargeOutcome, chargeCompleted } from '../../machine/payment/charge.ts';
import { collectionFailed } from '../../machine/payment/collection.ts';
import { type Problem, problems } from '../../problem.ts';
import type { ChargeRequest, Charges } from '../ports/charges.ts';
import { type Answer, accepted, type CommandContext } from '../ports/sessions.ts';
import { storedAnswer } from '../step-change.ts';
import { untilStored } from '../until-stored.ts';

const BUSY_RETRY_SEC = 5;
const SWEEP_LEAST_MS = 100;
const NOTHING_KNOWN = { brand: '', last4: '' };

export interface ChargeDispatcherOptions {
  readonly store: PaymentStore;
  /** The payment provider; undefined when payments are off (`PAYMENT_PROVIDER=off`). */
  readonly gateway: ChargeGateway | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** A Session that is connected; undefined: it is not. */
  connected(sessionUuid: string): { readonly clientState: string } | undefined;
  /** Tells whether this node has the Session. */
  isHere(sessionUuid: string): boolean;
  /** Tells whether a Session of the application is live by its row. One that is not here is moving. */
  isLive(appUuid: string, sessionUuid: string): Promise<boolean>;
  mayUseTerminal(appUuid: string, terminalNumber: string): Promise<boolean>;
}

export class ChargeDispatcher implements Charges {
  readonly provider: string | undefined;
  readonly #options: ChargeDispatcherOptions;
  readonly #inFlight = new Map<string, Promise<void>>();
  /** Charges that the database is asked to take. */
  readonly #admissions = new Set<Promise<Answer | Problem>>();
  /** When the stop was asked for, in ms since the epoch. */
  #closedAt: number | undefined;
  #cancelSweep: (() => void) | undefined;

  constructor(options: ChargeDispatcherOptions) {
    this.#options = options;
    this.provider = options.gateway?.identifier;
  }

  /**
   * Ends what an earlier process left: collections as failed, charges as indeterminate. Call before its Sessions are
   * ended.
   */
  async start(): Promise<void> {
    const { store, clock } = this.#options;
    await this.endCollections();
    await this.#endLeft(store.shared ? clock.now() - CHARGE_LEFT_AFTER_MS : Number.MAX_SAFE_INTEGER);
    await this.#sweep();
  }

  /**
   * Ends the collections that processes which are gone left, as failed: before their Sessions are taken over. One that
   * the database refuses holds up neither the others nor those.
   */
  async endCollections(): Promise<void> {
    const { store, clock, log } = this.#options;
    for (const collection of await store.unfinished()) {
      const { appUuid, sessionUuid, operationUuid, kind, clientState, traceparent } = collection;
      const about = { appUuid, clientState, traceparent, webhookId: newWebhookId(), now: clock.now() };
      const event = collectionFailed(sessionUuid, operationUuid, kind, 'internal_error');
      await store.endUnfinished(collection, platformEvent(event, about)).catch((error: unknown) => {
        if (error instanceof StoreUnavailable) throw error;
        const told = { session_uuid: sessionUuid, operation_uuid: operationUuid, error: String(error) };
        log.error(told, 'the end of a collection is refused by the database: it is told later');
      });
    }
  }

  /** Charges with the provider, for `/metrics`. */
  get attempting(): number {
    return this.#inFlight.size;
  }

  async charge(sessionUuid: string, request: ChargeRequest, context: CommandContext): Promise<Answer | Problem> {
    const { gateway, clock } = this.#options;
    if (gateway === undefined) return problems.notConfigured('Payment');
    const { appUuid, operationUuid } = context;
    const { terminalNumber, amount, currency } = request;
    if (!(await this.#options.mayUseTerminal(appUuid, terminalNumber)))
      return problems.forbidden('Payment terminal is not assigned to this application');
    if (!gateway.serves(terminalNumber)) return problems.notConfigured('The payment terminal');
    if ((context.until ?? Infinity) <= clock.now())
      return problems.unavailable('The charge came too late. See Retry-After header.', BUSY_RETRY_SEC);
    const { connected, isHere, isLive } = this.#options;
    const session = connected(sessionUuid);
    if (session === undefined && !isHere(sessionUuid) && (await isLive(appUuid, sessionUuid))) return problems.callMoved();
    if (session === undefined) return problems.conflict('Session is not connected');
    if (this.#closedAt !== undefined || this.#inFlight.size + this.#admissions.size >= CHARGES_IN_FLIGHT_MAX)
      return problems.unavailable('Too many charges are under way. See Retry-After header.', BUSY_RETRY_SEC);
    const charge: ChargeRow = {
      chargeUuid: newUuid(),
      operationUuid,
      appUuid,
      sessionUuid,
      amount,
      currency,
      provider: gateway.identifier,
      terminalNumber,
      clientState: session.clientState,
      traceparent: context.traceparent,
      createdAt: clock.now(),
    };
    const admission = this.#admit(gateway, charge, request, context);
    this.#admissions.add(admission);
    try {
      return await admission;
    } finally {
      this.#admissions.delete(admission);
    }
  }

  /** Stores the charge, which destroys its references, and attempts it. */
  async #admit(
    gateway: ChargeGateway,
    charge: ChargeRow,
    request: ChargeRequest,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const answer = accepted(charge.operationUuid);
    const references = { card: request.cardUuid, cvv: request.cvvUuid };
    const { store } = this.#options;
    const consumed = await store.admit(charge, references, storedAnswer(context, answer)).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) this.#endInDoubt(charge, references);
      throw error;
    });
    if (consumed === 'unknown') return problems.notFound('Payment reference');
    if (consumed === 'used') return problems.conflict('Payment reference has already been used');
    if (consumed === 'expired') return problems.conflict('Payment reference has expired');
    this.#attempt(gateway, charge, request, consumed);
    return answer;
  }

  /**
   * Takes no more charges, and waits for those with the provider, and for those that the database is just taking. The
   * provider's timeout bounds that, and a database that is away is waited for no longer than `STORE_LAST_OUTCOME_MS`.
   */
  async close(): Promise<void> {
    this.#closedAt ??= this.#options.clock.now();
    this.#cancelSweep?.();
    while (this.#admissions.size + this.#inFlight.size > 0)
      await Promise.allSettled([...this.#admissions, ...this.#inFlight.values()]);
  }

  #attempt(gateway: ChargeGateway, charge: ChargeRow, request: ChargeRequest, consumed: Consumed): void {
    const { card, cvv, brand, last4 } = consumed;
    const { chargeUuid, operationUuid, sessionUuid } = charge;
    const { expMonth, expYear, amount, currency, terminalNumber, installments } = request;
    const terms = { expMonth, expYear, amount, currency, terminalNumber, installments };
    const work = gateway
      .charge({ chargeUuid, operationUuid, sessionUuid, ...terms, card, cvv, last4 })
      .catch((): ChargeOutcome => {
        // An error of a gateway may quote the card it was given, so it is not looked at.
        this.#options.log.error({ operation_uuid: operationUuid }, 'a bug in a charge gateway');
        return { status: 'indeterminate', reason: 'internal_error' };
      })
      .then((outcome) => {
        card.fill(0);
        cvv.fill(0);
        return this.#complete(charge, outcome, { brand, last4 });
      })
      .finally(() => this.#inFlight.delete(charge.chargeUuid));
    this.#inFlight.set(charge.chargeUuid, work);
  }

  /**
   * A charge that was refused because the database did not answer ends where it is stored after all: nothing has left.
   */
  #endInDoubt(charge: ChargeRow, references: { readonly card: string; readonly cvv: string }): void {
    const { store, clock, log } = this.#options;
    const end = async () => {
      if (await untilStored(clock, () => store.wasAdmitted(charge, references), this.#mayGoOn()))
        await this.#complete(charge, { status: 'failed', reason: 'interrupted', retryable: true }, NOTHING_KNOWN);
    };
    const work = end()
      .catch((error: unknown) =>
        log.error({ operation_uuid: charge.operationUuid, reason: String(error) }, 'a charge is in doubt'),
      )
      .finally(() => this.#inFlight.delete(charge.chargeUuid));
    this.#inFlight.set(charge.chargeUuid, work);
  }

  /** Whether what begins now is still tried: always, but for a while only where the platform is being stopped. */
  #mayGoOn(): () => boolean {
    const { clock } = this.#options;
    const began = clock.now();
    return () => this.#closedAt === undefined || clock.now() < Math.max(began, this.#closedAt) + STORE_LAST_OUTCOME_MS;
  }

  /**
   * An outcome is a fact: it is kept until the database takes it. One that a stop could not wait for is told as
   * `indeterminate` after the next start.
   */
  async #complete(charge: ChargeRow, outcome: ChargeOutcome, card: { brand: string; last4: string }): Promise<void> {
    const { store, clock, log } = this.#options;
    const { appUuid, clientState, traceparent } = charge;
    const about = { appUuid, clientState, traceparent, webhookId: newWebhookId(), now: clock.now() };
    const event = platformEvent(chargeCompleted(charge, outcome, card), about);
    const complete = () => store.complete(charge.chargeUuid, outcome.status, event, clock.now());
    const told = { operation_uuid: charge.operationUuid, status: outcome.status };
    try {
      const done = await untilStored(clock, complete, this.#mayGoOn());
      if (done === undefined) log.error(told, 'the database did not take the outcome of a charge before the stop');
    } catch (error) {
      log.error({ ...told, reason: String(error) }, 'a charge could not be completed');
    }
  }

  async #endLeft(until: number): Promise<void> {
    for (const charge of await this.#options.store.attempting(until)) {
      if (this.#inFlight.has(charge.chargeUuid)) continue;
      await this.#complete(charge, { status: 'indeterminate', reason: 'interrupted' }, NOTHING_KNOWN);
    }
  }

  /** Destroys references when their time is over, and looks for charges that nobody works on. */
  async #sweep(): Promise<void> {
    const { store, clock, log } = this.#options;
    let waitMs = VAULT_SWEEP_MAX_MS;
    try {
      const next = await store.destroyExpired(clock.now());
      if (next !== undefined) waitMs = Math.min(waitMs, Math.max(SWEEP_LEAST_MS, next - clock.now()));
      await this.#endLeft(clock.now() - CHARGE_LEFT_AFTER_MS);
    } catch (error) {
      warnUnlessAway(log, error, {}, 'expired payment references were not destroyed yet');
    }
    if (this.#closedAt !== undefined) return;
    this.#cancelSweep = clock.at(clock.now() + waitMs, () => void this.#sweep());
  }
}
