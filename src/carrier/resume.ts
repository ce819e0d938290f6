/** Goes on with a call that another process had, over its trunk, or with the device that it is with. */
import type { LegSnapshot, ResumedLeg } from '../call/ports/leg.ts';
import type { Seal } from '../database/vault/seal.ts';
import type { TransportName } from '../sip/message/via.ts';
import type { AgentDriver } from './agent-driver.ts';
import { DEVICE_TRUNK } from './device/device-trunk.ts';
import { legBefore } from './leg/kept-key.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import { ResumedPhoneLeg } from './leg/resumed-leg.ts';
import type { Channels } from './trunk/channels.ts';
import { callCredentials, type Trunk } from './trunk/trunk.ts';

export interface ResumeOptions {
  readonly driver: AgentDriver;
  readonly channels: Pick<Channels, 'carryOn'>;
  readonly seal: Seal;
  isDraining(): boolean;
  named(trunk: string): Trunk | undefined;
  legOptions(trunk: Trunk, address: () => string, transport: TransportName, release: () => void): PhoneLegOptions;
}

/** Asks the far end to follow to this process. `ahead` is added to the CSeq. */
export async function resume(
  { driver, channels, seal, isDraining, named, legOptions }: ResumeOptions,
  snapshot: LegSnapshot,
  ahead: number,
  timeoutMs: number,
): Promise<ResumedLeg | { readonly failed: string; readonly asked: boolean }> {
  const trunk = snapshot.trunk === DEVICE_TRUNK.name ? DEVICE_TRUNK : named(snapshot.trunk);
  const { host, transport } = snapshot.call.peer;
  if (trunk === undefined || isDraining()) return { failed: 'the trunk is not here, or the node drains', asked: false };
  const release = trunk === DEVICE_TRUNK ? () => {} : channels.carryOn(trunk);
  const credentials = callCredentials(trunk, () => named(trunk.name));
  const call = driver.run((now) => driver.agent.resume(snapshot.call, ahead, credentials, now));
  if (call === undefined) {
    release();
    return { failed: 'too many calls', asked: false };
  }
  const options = { ...legOptions(trunk, () => host, transport, release), before: legBefore(snapshot, seal) };
  const leg = new ResumedPhoneLeg(options, call);
  driver.listen(call, (event) => leg.take(event));
  const failed = await leg.follow(timeoutMs);
  if (failed === '') return { leg, listen: (listener) => leg.listen(listener) };
  leg.leave();
  return { failed, asked: true };
}
