/**
 * The devices as the composition root keeps them for the carrier: all users in memory, their contacts in the database.
 */
import type { Device, DeviceDirectory } from '../call/ports/devices.ts';
import type { DeviceStore, StoredDevice } from '../database/device/devices.ts';
import { coalesce } from '../database/journal/coalesce.ts';

export class DeviceUsers implements DeviceDirectory {
  readonly #store: DeviceStore;
  readonly #users = new Map<string, StoredDevice>();
  /** The sum of what `changedAt` is of all users. It tells, with their number, whether the database has other ones. */
  #changes = 0n;
  readonly #read: (username: string | undefined) => Promise<readonly string[]>;

  constructor(store: DeviceStore) {
    this.#store = store;
    // Looks follow each other, as one that was overtaken would bring the row of before back.
    this.#read = coalesce({ load: (asked) => this.#load(asked), flights: 1 });
  }

  get size(): number {
    return this.#users.size;
  }

  find(username: string): Device | undefined {
    return this.#users.get(username);
  }

  bindings(username: string): ReturnType<DeviceDirectory['bindings']> {
    return this.#store.bindings(username);
  }

  change(...given: Parameters<DeviceDirectory['change']>): ReturnType<DeviceDirectory['change']> {
    return this.#store.change(...given);
  }

  /**
   * Reads all users again where any of them has changed, here or on another node. Resolves with the names of those that
   * are gone or have another password: their contacts are bound no more. Each name is told once, to whoever asked
   * first.
   */
  reload(): Promise<readonly string[]> {
    return this.#read(undefined);
  }

  /** Reads one user again, which was set up, changed or taken down. Resolves as `reload`. */
  refresh(username: string): Promise<readonly string[]> {
    return this.#read(username);
  }

  /** Looks at users by their names, or at all of them for an undefined one. */
  async #load(asked: readonly (string | undefined)[]): Promise<readonly (readonly string[])[]> {
    const names = asked.filter((name) => name !== undefined);
    let gone: readonly string[] = [];
    if (names.length === asked.length) gone = this.#take(names, await this.#store.some(names));
    else if ((await this.#store.version()) !== `${this.#users.size} ${this.#changes}`)
      gone = this.#take([...this.#users.keys()], await this.#store.all());
    return asked.map((_, at) => (at === 0 ? gone : []));
  }

  /** Keeps what was found of the users that were looked for. Returns the names of those that are gone or changed. */
  #take(lookedFor: readonly string[], found: readonly StoredDevice[]): readonly string[] {
    const before = lookedFor.flatMap((name) => this.#users.get(name) ?? []);
    for (const { username, changedAt } of before) {
      if (this.#users.delete(username)) this.#changes -= BigInt(changedAt);
    }
    for (const device of found) {
      this.#users.set(device.username, device);
      this.#changes += BigInt(device.changedAt);
    }
    const isGone = (was: StoredDevice) => {
      const now = this.#users.get(was.username);
      return now?.changedAt !== was.changedAt && now?.secrets.sha256 !== was.secrets.sha256;
    };
    return before.filter(isGone).map(({ username }) => username);
  }
}
