/**
 * The devices as the composition root keeps them for the carrier: all users in memory, their contacts in the database.
 */
import type { Device, DeviceDirectory } from '../call/ports/devices.ts';
import type { DeviceStore } from '../database/device/devices.ts';

export class DeviceUsers implements DeviceDirectory {
  readonly #store: DeviceStore;
  #users: ReadonlyMap<string, Device> = new Map();
  #version = '';

  constructor(store: DeviceStore) {
    this.#store = store;
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
   * Reads the users again where any of them has changed, here or on another node. Resolves with the names of those that
   * are gone or have another password: their contacts are bound no more.
   */
  async reload(): Promise<readonly string[]> {
    const version = await this.#store.version();
    if (version === this.#version) return [];
    const before = [...this.#users.values()];
    this.#users = new Map((await this.#store.all()).map((device) => [device.username, device]));
    this.#version = version;
    return before
      .filter(({ username, secrets }) => this.#users.get(username)?.secrets.sha256 !== secrets.sha256)
      .map(({ username }) => username);
  }
}
