/**
 * The place that each contact of a device was bound at last. Calls follow the device when it registers again from
 * elsewhere: over a new connection after the one before broke, or from another port of its NAT.
 */
import { DEVICE_ADDRESSES_MAX } from '../../limits.ts';
import { isAt, type Place } from '../../sip/flow.ts';
import type { Binding } from '../../sip/registrar.ts';

export class LastPlaces {
  /** The place of each contact, and the Call-ID that bound it. Those that were bound longest ago come first. */
  readonly #places = new Map<string, Place & Pick<Binding, 'callId' | 'path'>>();

  /**
   * A contact is bound there. `moved` is the place before if it was another one, and the device's: another device may
   * have the same Contact, and be bound by it when this one is not any more. One that takes another Call-ID than before
   * has perhaps restarted (RFC 3261 §10.2). `isShared`: one of the places is a proxy's, where others are too.
   */
  learn(
    username: string,
    binding: Binding,
  ): { readonly moved?: Place; readonly isShared: boolean; readonly hasRestarted: boolean } {
    const { transport, host, port, key: contact, callId, instance, regId, path } = binding;
    const key = `${username} ${instance === '' ? contact : `${instance} ${regId}`}`;
    const before = this.#places.get(key);
    const isShared = path !== '' || (before !== undefined && before.path !== '');
    this.#places.delete(key);
    this.#places.set(key, { transport, host, port, callId, path });
    const [oldest] = this.#places.keys();
    if (this.#places.size > DEVICE_ADDRESSES_MAX && oldest !== undefined) this.#places.delete(oldest);
    if (before === undefined || !(instance !== '' || before.callId === callId || before.host === host))
      return { isShared, hasRestarted: false };
    return { ...(isAt(before, binding) ? {} : { moved: before }), isShared, hasRestarted: before.callId !== callId };
  }
}
