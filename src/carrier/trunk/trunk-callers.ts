/**
 * Who calls over trunks: the trunk that a call comes over, where several have its address, and whether its sender has
 * proved to be that carrier (`inbound_auth`).
 *
 *   INVITE of a trunk that wants proof → challenge (stateless) → again with an answer → accepted
 */
import { hexHash } from '../../hash.ts';
import { SIP_REFUSED_SOURCES_MAX, SIP_UNANSWERED, TRUNKS_MAX } from '../../limits.ts';
import type { Peer } from '../../sip/flow.ts';
import { DigestServer, type DigestVerdict, digestSecrets } from '../../sip/message/digest-server.ts';
import type { SipRequest } from '../../sip/message/message.ts';
import { tagOf } from '../../sip/message/uri.ts';
import { sourceOf } from '../../sip/source.ts';
import type { Screened } from '../../sip/user-agent.ts';
import { GuessLimit } from '../device/guess-limit.ts';
import { systemEntropy } from '../entropy.ts';
import type { Refusals, Why } from '../refusals.ts';
import { Accounts } from './accounts.ts';
import type { Loopback } from './loopback.ts';
import { type Trunk, trunkCredentials } from './trunk.ts';
import type { TrunkAddresses } from './trunk-addresses.ts';

/** The realm of our challenges to carriers. */
const REALM = 'sidetone';

/** Carriers look at the first challenge only (Kamailio, SIPp), and give up where it is not MD5. */
const ORDER = ['MD5', 'SHA-256'] as const;

const WRONG: Why = {
  reason: 'The carrier does not answer the challenge with the user name and password of the trunk',
  remedy: 'Set the same at the carrier and at the trunk (auth_username, else username; password), or inbound_auth to false',
};
const GUESSING: Why = {
  reason: 'Too many wrong passwords of the trunk came from the source; its calls are refused for up to a minute',
  remedy: WRONG.remedy,
};
/** Anybody in the range would be taken for the carrier without it. */
const NO_PASSWORD: Why = {
  reason: 'The trunk has inbound_auth, and no password that opens under MASTER_KEY',
  remedy: 'Set the password of the trunk again, or inbound_auth to false',
};

interface TrunkCallersOptions {
  readonly addresses: Pick<TrunkAddresses, 'trunksOf'>;
  readonly loopback: Pick<Loopback, 'trunkOf'>;
  readonly refusals: Refusals;
  trunks(): readonly Trunk[];
  /** A message authentication code of a text, under a key of this process. */
  code(text: string): string;
  now(): number;
}

export class TrunkCallers {
  readonly #options: TrunkCallersOptions;
  readonly #digest: DigestServer;
  /** The wrong passwords of each source for each trunk. */
  readonly #guesses = new GuessLimit(SIP_REFUSED_SOURCES_MAX);
  /** The challenges over each trunk since the last right answer: of as many names as there may be trunks. */
  readonly #unanswered = new Map<string, { readonly count: number; readonly since: number }>();
  /** The trunks that share addresses, by the list of their names, of which a change of trunks makes another. */
  readonly #sharing = new WeakMap<readonly string[], Accounts>();

  constructor(options: TrunkCallersOptions) {
    this.#options = options;
    this.#digest = new DigestServer(REALM, hexHash, (text) => options.code(text), systemEntropy().token, ORDER);
  }

  /** The trunk of an address: of several that have its range, the first. */
  at(address: string): Trunk | undefined {
    return this.named(this.#options.addresses.trunksOf(address)[0]);
  }

  /** The trunk that a request came over. Undefined when it came over none. */
  of(request: SipRequest, address: string): Trunk | undefined {
    const loopback = this.#options.loopback.trunkOf(request.headers);
    if (loopback !== undefined) return this.named(loopback);
    return this.isShared(address) ? this.#accounts(address).meant(request.uri) : this.at(address);
  }

  /** Whether several trunks have the range of an address. */
  isShared(address: string): boolean {
    return this.#options.addresses.trunksOf(address).length > 1;
  }

  named(name: string | undefined): Trunk | undefined {
    return name === undefined ? undefined : this.#options.trunks().find((trunk) => trunk.name === name);
  }

  /** Decides about a request from the address of a trunk, outside of all calls. */
  screen(request: SipRequest, source: Peer): Screened {
    if (request.method !== 'INVITE' || tagOf(request.headers.get('to')) !== undefined) return 'accept';
    const trunk = this.of(request, source.host);
    if (trunk?.settings.inbound_auth !== true) return 'accept';
    const { refusals } = this.#options;
    const now = this.#options.now();
    const credentials = trunkCredentials(trunk);
    if (credentials === undefined) {
      refusals.record(request, source, 403, NO_PASSWORD, now);
      return 'refuse';
    }
    const guesser = `${sourceOf(source.host)} ${trunk.name}`;
    if (this.#guesses.isOver(guesser, now)) {
      refusals.record(request, source, 403, GUESSING, now);
      return 'refuse';
    }
    const { username, password } = credentials;
    const secrets = digestSecrets(hexHash, username, REALM, password);
    const verdict = this.#digest.check(request, username, secrets, source.host, now);
    const isUnanswered = this.#isUnanswered(trunk, verdict, now);
    if (verdict === 'right') return 'accept';
    if (verdict === 'wrong') this.#guesses.count(guesser, now);
    if (verdict === 'wrong' || isUnanswered) refusals.record(request, source, 401, WRONG, now);
    const userAgent = request.headers.get('user-agent');
    return { challenge: this.#digest.challenges(source.host, verdict === 'stale', now, userAgent) };
  }

  /**
   * Whether the challenges over a trunk have had no right answer for long, as where its carrier knows no digest. Each
   * call begins with one that has no answer yet, which is no refusal.
   */
  #isUnanswered({ name }: Trunk, verdict: DigestVerdict, now: number): boolean {
    if (verdict === 'right') {
      this.#unanswered.delete(name);
      return false;
    }
    const { count, since } = this.#unanswered.get(name) ?? { count: 0, since: now };
    this.#unanswered.set(name, { count: count + 1, since });
    const [oldest] = this.#unanswered.keys();
    if (this.#unanswered.size > TRUNKS_MAX && oldest !== undefined) this.#unanswered.delete(oldest);
    return count >= SIP_UNANSWERED.challenges && now - since >= SIP_UNANSWERED.ms;
  }

  #accounts(address: string): Accounts {
    const names = this.#options.addresses.trunksOf(address);
    const known = this.#sharing.get(names);
    if (known !== undefined) return known;
    const sharing = new Set(names);
    const accounts = new Accounts(this.#options.trunks().filter(({ name }) => sharing.has(name)));
    this.#sharing.set(names, accounts);
    return accounts;
  }
}
