/** A directory of devices in memory: alice, of the application `app`. */
import type { Device, DeviceDirectory } from '../../src/call/ports/devices.ts';
import { hexHash } from '../../src/hash.ts';
import { digestSecrets } from '../../src/sip/message/digest-server.ts';
import type { Binding, HeldBinding, RegisterOutcome } from '../../src/sip/registrar.ts';

export class Alice implements DeviceDirectory {
  readonly size = 1;
  bound: readonly Binding[] = [];
  find = (username: string) =>
    username === 'alice'
      ? { username, appUuid: 'app', secrets: digestSecrets(hexHash, username, 'sidetone', "alice's secret") }
      : undefined;
  bindings = async () => this.bound;
  change = async (_: Device, decide: (bound: readonly HeldBinding[]) => RegisterOutcome) => {
    const outcome = decide(this.bound.map((each) => ({ ...each, holder: 'here' })));
    if (outcome.status === 200) this.bound = outcome.bound;
    return outcome;
  };
}
