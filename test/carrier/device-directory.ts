/** A directory of devices in memory: alice, of the application `app`. */
import type { Device, DeviceDirectory } from '../../src/call/ports/devices.ts';
import { hexHash } from '../../src/hash.ts';
import { digestSecrets } from '../../src/sip/message/digest-server.ts';
import type { Binding, HeldBinding, RegisterOutcome } from '../../src/sip/registrar.ts';

export class Alice implements DeviceDirectory {
  readonly size = 1;
  bound: readonly Binding[] = [];
  /** The process whose connections those are. */
  holder: HeldBinding['holder'] = 'here';
  find = (username: string) =>
    username === 'alice'
      ? { username, appUuid: 'app', secrets: digestSecrets(hexHash, username, 'sidetone', "alice's secret") }
      : undefined;
  bindings = async () => this.bound;
  change = async (_: Device, decide: (bound: readonly HeldBinding[]) => RegisterOutcome) => {
    const outcome = decide(this.bound.map((each) => ({ ...each, holder: this.holder })));
    if (outcome.status === 200) this.bound = outcome.bound;
    return outcome;
  };
}

/** A directory in memory of several users of the application `app`. */
export class SeveralUsers implements DeviceDirectory {
  readonly bound = new Map<string, readonly Binding[]>();
  readonly #names: ReadonlySet<string>;
  constructor(...names: readonly string[]) {
    this.#names = new Set(names);
  }
  get size() {
    return this.#names.size;
  }
  find(username: string) {
    const secrets = digestSecrets(hexHash, username, 'sidetone', `${username}'s secret`);
    return this.#names.has(username) ? { username, appUuid: 'app', secrets } : undefined;
  }
  bindings = async (username: string) => this.bound.get(username) ?? [];
  change = async ({ username }: Device, decide: (bound: readonly HeldBinding[]) => RegisterOutcome) => {
    const outcome = decide((await this.bindings(username)).map((each) => ({ ...each, holder: 'here' })));
    if (outcome.status === 200) this.bound.set(username, outcome.bound);
    return outcome;
  };
}
