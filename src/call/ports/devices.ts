/** SIP devices: the users that register with this platform, as the carrier sees them. */
import type { DigestSecrets } from '../../sip/message/digest-server.ts';
import type { Binding, HeldBinding, RegisterOutcome } from '../../sip/registrar.ts';

export type { Binding };

/** The realm of all devices: it is part of the hashes that are stored, so it never changes. */
export const DEVICE_REALM = 'sidetone';

/** Whether a dialled target is a device user, not a number. */
export const isDevice = (to: string): boolean => to.startsWith('sip:');

/** One device user. */
export interface Device {
  readonly username: string;
  readonly appUuid: string;
  readonly secrets: DigestSecrets;
}

/** The device users and their contacts. Contacts are read from the database, since any node may have stored them. */
export interface DeviceDirectory {
  /** The number of device users. */
  readonly size: number;
  find(username: string): Device | undefined;
  /** The contacts of a user, those that have expired perhaps among them. Rejects where the database is away. */
  bindings(username: string): Promise<readonly Binding[]>;
  /**
   * Changes the contacts of a device as `decide` says of those that are bound. Nobody else changes them meanwhile, on
   * any node. Rejects where the database is away, and where the device has another password by now or is gone.
   */
  change(device: Device, decide: (bound: readonly HeldBinding[]) => RegisterOutcome): Promise<RegisterOutcome>;
}

/** No devices, for a carrier that takes none. */
export const NO_DEVICES: DeviceDirectory = {
  size: 0,
  find: () => undefined,
  bindings: async () => [],
  change: async (_, decide) => decide([]),
};
