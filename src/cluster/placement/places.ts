/**
 * Remembers on which other node a Session or Room was found, so that the next command for it goes there without a look
 * into the database. What is remembered may be out of date: the node that is asked then says so (`moved`), and the row
 * is read again.
 */
import { NODE_PLACES_MAX } from '../../limits.ts';

export class Places {
  /** The nodes by name, in the order of their last use: the one that was used longest ago comes first. */
  readonly #nodes = new Map<string, string>();
  readonly #own: string;

  /** `own`: this node. What its own rows name is not remembered, because nobody would say that it has moved. */
  constructor(own: string) {
    this.#own = own;
  }

  /** Returns the node on which an object was found before, else what `look` finds, and remembers it. */
  async of<T extends string | null | undefined>(appUuid: string, id: string, look: () => Promise<T>): Promise<string | T> {
    const key = keyOf(appUuid, id);
    const node = this.#nodes.get(key) ?? (await look());
    this.#nodes.delete(key);
    if (typeof node !== 'string' || node === this.#own) return node;
    this.#nodes.set(key, node);
    const [oldest] = this.#nodes.keys();
    if (this.#nodes.size > NODE_PLACES_MAX && oldest !== undefined) this.#nodes.delete(oldest);
    return node;
  }

  /** Has the next question for an object answered by its row. */
  forget(appUuid: string, id: string): void {
    this.#nodes.delete(keyOf(appUuid, id));
  }
}

/** Another application's object is another one, so that it is not found. */
const keyOf = (appUuid: string, id: string): string => `${appUuid} ${id}`;
