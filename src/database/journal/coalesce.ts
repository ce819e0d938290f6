/**
 * Calls of one kind that wait at the same time share one round trip. At most `flights` round trips are under way; the
 * rest gather, so that a busy moment makes batches larger, not more of them, and an idle one adds no wait.
 */
import { COALESCE_BATCH_MAX_ITEMS, COALESCE_WAITING_MAX_ITEMS } from '../../limits.ts';
import { StoreUnavailable } from './journal.ts';

interface Waiting<K, V> {
  readonly item: K;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
}

export interface CoalesceOptions<K, V> {
  /** Answers a batch, one value an item, in the same order. */
  readonly load: (items: readonly K[]) => Promise<readonly V[]>;
  /** Two items of the same name never share a batch. */
  readonly distinct?: (item: K) => string;
  readonly flights?: number;
}

/**
 * A call that joins the next batch. Rejects with `StoreUnavailable` when too many wait already, else with what `load`
 * threw.
 */
export function coalesce<K, V>(options: CoalesceOptions<K, V>): (item: K) => Promise<V> {
  const { load, distinct, flights = 2 } = options;
  let waiting: Waiting<K, V>[] = [];
  let flying = 0;
  let scheduled = false;

  const takeBatch = (): Waiting<K, V>[] => {
    if (distinct === undefined) return waiting.splice(0, COALESCE_BATCH_MAX_ITEMS);
    const batch: Waiting<K, V>[] = [];
    const left: Waiting<K, V>[] = [];
    const names = new Set<string>();
    for (const each of waiting) {
      const name = distinct(each.item);
      if (batch.length < COALESCE_BATCH_MAX_ITEMS && !names.has(name)) {
        names.add(name);
        batch.push(each);
      } else left.push(each);
    }
    waiting = left;
    return batch;
  };

  const fly = async (): Promise<void> => {
    scheduled = false;
    while (waiting.length > 0 && flying < flights) {
      flying += 1;
      void land(takeBatch());
    }
  };

  const land = async (batch: readonly Waiting<K, V>[]): Promise<void> => {
    try {
      const values = await load(batch.map((each) => each.item));
      if (values.length !== batch.length) throw new Error('a batch was answered in part');
      for (const [at, value] of values.entries()) batch[at]?.resolve(value);
    } catch (error) {
      for (const each of batch) each.reject(error);
    } finally {
      flying -= 1;
      void fly();
    }
  };

  return (item) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= COALESCE_WAITING_MAX_ITEMS) {
        reject(new StoreUnavailable('too many reads are waiting for the database'));
        return;
      }
      waiting.push({ item, resolve, reject });
      if (scheduled) return;
      scheduled = true;
      // After the microtasks of this turn: calls that arrive together leave together.
      queueMicrotask(() => void fly());
    });
}
