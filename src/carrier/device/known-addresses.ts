/** The addresses that devices are registered from, and which users are, for as long as their contacts are bound. */
import { DEVICE_ADDRESSES_MAX, DEVICE_CONTACTS_MAX, DEVICES_MAX } from '../../limits.ts';
import type { Binding } from '../../sip/registrar.ts';

/** The place of a contact, and until when it is bound there. */
type Place = Pick<Binding, 'transport' | 'host' | 'port' | 'expiresAt'>;

export class KnownAddresses {
  /** The contacts of each user by their keys. Users and contacts that registered longest ago come first. */
  readonly #users = new Map<string, Map<string, Place>>();
  /** The users at each address, and until when they count, in milliseconds. */
  readonly #hosts = new Map<string, Map<string, number>>();

  /** A contact of a user is bound. */
  learn(username: string, { key, transport, host, port, expiresAt }: Place & Pick<Binding, 'key'>): void {
    const contacts = this.#users.get(username) ?? new Map<string, Place>();
    const before = contacts.get(key);
    contacts.delete(key);
    contacts.set(key, { transport, host, port, expiresAt });
    this.#users.delete(username);
    this.#users.set(username, contacts);
    if (before !== undefined) this.#settle(username, before.host);
    this.#settle(username, host);
    const [first] = contacts.keys();
    if (contacts.size > DEVICE_CONTACTS_MAX && first !== undefined) this.forget(username, first);
    const [user] = this.#users.keys();
    if (this.#users.size > DEVICES_MAX && user !== undefined) this.forgetUser(user);
    const [address] = this.#hosts.keys();
    if (this.#hosts.size > DEVICE_ADDRESSES_MAX && address !== undefined) this.#hosts.delete(address);
  }

  /** A contact of a user is bound no more. */
  forget(username: string, key: string): void {
    const contacts = this.#users.get(username);
    const contact = contacts?.get(key);
    if (contacts === undefined || contact === undefined) return;
    contacts.delete(key);
    if (contacts.size === 0) this.#users.delete(username);
    this.#settle(username, contact.host);
  }

  /** No contact of a user is bound any more. The keys of those that were are returned. */
  forgetUser(username: string): readonly string[] {
    const keys = [...(this.#users.get(username)?.keys() ?? [])];
    for (const key of keys) this.forget(username, key);
    return keys;
  }

  /** Whether any user is registered from an address. */
  has(address: string, now: number): boolean {
    const users = this.#hosts.get(address);
    for (const [username, until] of users ?? []) {
      if (until > now) return true;
      users?.delete(username);
    }
    if (users !== undefined) this.#hosts.delete(address);
    return false;
  }

  /** Whether that user is registered from an address. */
  hasUser(address: string, username: string, now: number): boolean {
    return (this.#hosts.get(address)?.get(username) ?? 0) > now;
  }

  /** The users with a contact at just that place. */
  usersAt(from: Omit<Place, 'expiresAt'>): readonly string[] {
    const isThere = (place: Place) => isFrom(place, from);
    return [...(this.#hosts.get(from.host)?.keys() ?? [])].filter((username) =>
      [...(this.#users.get(username)?.values() ?? [])].some(isThere),
    );
  }

  /** Writes down until when a user counts at an address. */
  #settle(username: string, address: string): void {
    const users = this.#hosts.get(address) ?? new Map<string, number>();
    const there = [...(this.#users.get(username)?.values() ?? [])].filter(({ host }) => host === address);
    if (there.length === 0) users.delete(username);
    else users.set(username, Math.max(...there.map(({ expiresAt }) => expiresAt)));
    this.#hosts.delete(address);
    if (users.size > 0) this.#hosts.set(address, users);
  }
}

/** Whether a contact is at just that place. */
export const isFrom = (contact: Omit<Place, 'expiresAt'>, { transport, host, port }: Omit<Place, 'expiresAt'>): boolean =>
  contact.transport === transport && contact.host === host && contact.port === port;
