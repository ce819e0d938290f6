/**
 * The server transactions of each call, the oldest first. One far end that sends request after request within its call
 * would else have the places of all calls, for each is kept 32 s.
 */
import { SIP_TRANSACTIONS_OF_CALL_MAX } from '../../limits.ts';
import type { ServerTransaction } from './server.ts';

export class ServersOfCalls {
  readonly #servers = new Map<object, Set<ServerTransaction>>();
  readonly #calls = new Map<ServerTransaction, object>();

  add(call: object, transaction: ServerTransaction): void {
    const servers = this.#servers.get(call) ?? new Set();
    this.#servers.set(call, servers.add(transaction));
    this.#calls.set(transaction, call);
  }

  /** Takes out a transaction that is over, of a call or of none. */
  delete(transaction: ServerTransaction): void {
    const call = this.#calls.get(transaction);
    if (call === undefined) return;
    this.#calls.delete(transaction);
    const servers = this.#servers.get(call);
    servers?.delete(transaction);
    if (servers?.size === 0) this.#servers.delete(call);
  }

  /** The oldest answered transaction of a call that has too many. Undefined where it has not. */
  beyond(call: object): ServerTransaction | undefined {
    const servers = this.#servers.get(call);
    if (servers === undefined || servers.size <= SIP_TRANSACTIONS_OF_CALL_MAX) return undefined;
    for (const each of servers) if (each.finalStatus !== undefined) return each;
    return undefined;
  }
}
