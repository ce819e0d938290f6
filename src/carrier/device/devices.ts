/**
 * The devices as the carrier meets them: it asks them who they are (digest), takes their registrations, and knows where
 * they are.
 *
 *   REGISTER, INVITE of a device user → challenge (stateless) → again with an answer → accepted
 */

import { Shares } from '../../bounds/shares.ts';
import { DEVICE_REALM, type Device, type DeviceDirectory } from '../../call/ports/devices.ts';
import { hexHash } from '../../hash.ts';
import {
  DEVICE_CALLS,
  DEVICE_CHALLENGES_MAX,
  DEVICE_CHALLENGES_PER_SOURCE,
  DEVICE_CONTACTS_MAX,
  DEVICE_GUESSES_MAX,
  DEVICE_PATH_MAX_CHARS,
  DEVICE_PATHS_MAX,
  DEVICE_REGISTERS_MAX,
  DEVICE_REGISTERS_RESERVE,
  DEVICE_REGISTERS_RESERVED_OF_APP,
  SIP_REFUSED_SOURCES_MAX,
  SIP_REGISTER_MIN_SEC,
  SIP_RETRY_AFTER_SEC,
} from '../../limits.ts';
import { isReliable, type Peer, type Place } from '../../sip/flow.ts';
import { unsupportedTags } from '../../sip/message/capability.ts';
import { type DigestSecrets, DigestServer } from '../../sip/message/digest-server.ts';
import type { SipRequest } from '../../sip/message/message.ts';
import { parseNameAddress, parseUri, tagOf } from '../../sip/message/uri.ts';
import { RefusalLimit } from '../../sip/refusal-limit.ts';
import { type Binding, contactFields, type HeldBinding, type RegisterOutcome, register } from '../../sip/registrar.ts';
import { sourceOf } from '../../sip/source.ts';
import type { ServerTransaction } from '../../sip/transaction/server.ts';
import type { Screened } from '../../sip/user-agent.ts';
import { systemEntropy } from '../entropy.ts';
import type { Refusals, Why } from '../refusals.ts';
import { DeviceCallLimit } from './device-call-limit.ts';
import { contactPeerOf, peerOf } from './device-trunk.ts';
import { GuessLimit } from './guess-limit.ts';
import { isFrom, KnownAddresses } from './known-addresses.ts';
import { LastPlaces } from './last-places.ts';

const WRONG: Why = {
  reason: 'The password of the device is wrong',
  remedy: 'Set the same password at the device and with PUT /operator/v1/apps/{app_uuid}/devices/{username}',
};
const UNKNOWN: Why = {
  reason: 'No device has that user name',
  remedy: 'Set it up with PUT /operator/v1/apps/{app_uuid}/devices/{username}, or correct the user name at the device',
};
const GUESSING: Why = {
  reason: 'Too many wrong passwords came from the source; it is not answered for up to a minute',
  remedy: 'If it is a device of yours, correct its password',
};

const CALLING: Why = {
  reason: 'The device, or all devices of its application, begin more calls than are taken',
  remedy: `Look at what the device does (${DEVICE_CALLS.refill} calls a second are the most), or set another password for it`,
};

/** Why a REGISTER of a device is refused once its sender is known, by the status of its answer. */
const NOT_BOUND: Readonly<Record<Exclude<RegisterOutcome['status'], 200>, Why>> = {
  400: {
    reason: 'The REGISTER of the device cannot be read',
    remedy:
      `Look at its Contact, CSeq and Path header fields (${DEVICE_PATHS_MAX} values of Path and ${DEVICE_PATH_MAX_CHARS} ` +
      'characters are the most), and update the firmware of the device, or of the proxy before it',
  },
  403: {
    reason: `The device user has ${DEVICE_CONTACTS_MAX} contacts, which is the most`,
    remedy:
      'Contacts of a phone that restarted without signing off, and sends no +sip.instance, stay until they expire: set a ' +
      'shorter registration at the device (60 s or more), or set another password with PUT /operator/v1/apps/{app_uuid}/devices/{username} to unbind all',
  },
  423: {
    reason: `The device asked to be registered for less than ${SIP_REGISTER_MIN_SEC} s`,
    remedy: 'Set a longer registration at the device, if it does not ask again with one by itself',
  },
  500: {
    reason: 'The REGISTER of the device is older than one that has come already',
    remedy: 'None if it comes once. A device whose CSeq begins anew has to take another Call-ID',
  },
};

interface DevicesOptions {
  readonly directory: DeviceDirectory;
  readonly refusals: Refusals;
  /** A message authentication code of a text, under a key of this process. */
  code(text: string): string;
  now(): number;
  /** Whether the operator has named an address as that of a proxy before devices. */
  isProxy(address: string): boolean;
  /** Whether a connection of this process to the place of a contact is up. */
  isConnected(place: Place): boolean;
  /** A contact that was reached at one place is reached at another one. */
  onMoved(from: Place, to: Peer): void;
  /** A user registers from there as after a restart. */
  onRestarted(place: Place, username: string): void;
  /** The contacts of a user have changed. `removed` are keys. */
  onBound(username: string, stored: readonly Binding[], removed: readonly string[]): void;
}

export class Devices {
  readonly #options: DevicesOptions;
  readonly #digest: DigestServer;
  /**
   * The secret of unknown users. Their answers are checked against it, so that one takes as long as that of a known
   * user. It is random: with one that could be guessed a right answer would tell that there is no such user.
   */
  readonly #nobody: DigestSecrets;
  /** Challenges to devices, and those to names that no device has: these take none from a device at their address. */
  readonly #challenges = new RefusalLimit(DEVICE_CHALLENGES_PER_SOURCE, DEVICE_CHALLENGES_MAX);
  readonly #challengesOfNobody = new RefusalLimit(DEVICE_CHALLENGES_PER_SOURCE, DEVICE_CHALLENGES_MAX);
  /** The wrong passwords of each address, and those of each source for each device. */
  readonly #guesses = new GuessLimit(SIP_REFUSED_SOURCES_MAX);
  readonly #guessesOf = new GuessLimit(DEVICE_GUESSES_MAX);
  readonly #calls = new DeviceCallLimit();
  readonly #known = new KnownAddresses();
  readonly #places = new LastPlaces();
  /** The registrations of each application that are worked on or wait. */
  readonly #registering = new Shares({
    all: DEVICE_REGISTERS_MAX,
    ofApp: DEVICE_REGISTERS_MAX,
    reserve: DEVICE_REGISTERS_RESERVE,
    reservedOfApp: DEVICE_REGISTERS_RESERVED_OF_APP,
  });
  /** The last registration of each user that is worked on. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(options: DevicesOptions) {
    this.#options = options;
    const { token } = systemEntropy();
    this.#digest = new DigestServer(DEVICE_REALM, hexHash, (text) => options.code(text), token);
    this.#nobody = { md5: token(), sha256: token() };
  }

  /** The device that an INVITE is from, which `screen` has let pass. */
  callerOf(request: SipRequest): Device | undefined {
    return this.#options.directory.find(userOf(request, 'from'));
  }

  /** Whether a device is registered from that address, or it is that of a proxy which the operator has named. */
  isAt(address: string): boolean {
    return this.#options.isProxy(address) || this.#known.has(address, this.#options.now());
  }

  /** A contact is bound: its address counts as known meanwhile. */
  learn(username: string, binding: Binding): void {
    this.#known.learn(username, binding);
  }

  /** No contact of a user is bound any more. The keys of those that were are returned. */
  forget(username: string): readonly string[] {
    return this.#known.forgetUser(username);
  }

  /**
   * Decides about a request from outside of all calls, or from an address that is not that of its call. Undefined when
   * it is no device's.
   */
  screen(request: SipRequest, source: Peer): Screened | undefined {
    const { directory } = this.#options;
    const { method } = request;
    if (directory.size === 0) return undefined;
    if (method !== 'REGISTER' && method !== 'INVITE') return this.isAt(source.host) ? 'accept' : undefined;
    const username = userOf(request, method === 'REGISTER' ? 'to' : 'from');
    const device = directory.find(username);
    // A far end within a call may be anyone, and the address of its number the name of a device by chance.
    if (device === undefined && (method === 'INVITE' || tagOf(request.headers.get('to')) !== undefined)) return undefined;
    return this.#authenticate(request, source, username, device);
  }

  /**
   * Decides about a request within a call from an address that nobody is known at: a phone whose public address has
   * changed hangs up from there, or refreshes, before it registers again. Undefined when it is no device's.
   */
  screenMoved(request: SipRequest, source: Peer): Screened | undefined {
    // These two are never challenged (RFC 3261 §22.1).
    if (request.method === 'ACK' || request.method === 'CANCEL') return undefined;
    const device = this.#options.directory.find(userOf(request, 'from'));
    if (device === undefined || tagOf(request.headers.get('to')) === undefined) return undefined;
    return this.#authenticate(request, source, device.username, device);
  }

  /** Takes the REGISTER of a device that `screen` has let pass. False where it is no device's. */
  register(transaction: ServerTransaction, respond: (work: (now: number) => void) => void): boolean {
    const username = userOf(transaction.request, 'to');
    const device = this.#options.directory.find(username);
    if (device === undefined) return false;
    const { headers } = transaction.request;
    const required = [...unsupportedTags(headers), ...unsupportedTags(headers, 'proxy-require')];
    const unknown = new Set(required.filter((tag) => tag.toLowerCase() !== 'path'));
    if (unknown.size > 0) {
      const response = transaction.make(420);
      response.headers.add('unsupported', [...unknown].join(', '));
      transaction.send(response);
      return true;
    }
    if (!this.#registering.take(device.appUuid)) {
      respond(() => unavailable(transaction));
      return true;
    }
    this.#inTurn(
      device,
      () => this.#bind(transaction, device, respond),
      () => respond(() => unavailable(transaction)),
    );
    return true;
  }

  /**
   * A connection is closed: whoever was registered over it is not reached there any more. Beyond half the limit of
   * registrations, and while the database is away, a binding is left to expire.
   */
  lost(from: Pick<Peer, 'transport' | 'host' | 'port'>): void {
    for (const username of this.#known.usersAt(from)) {
      const device = this.#options.directory.find(username);
      if (device === undefined || this.#registering.size >= DEVICE_REGISTERS_MAX / 2) continue;
      this.#registering.add(device.appUuid);
      this.#inTurn(
        device,
        () => this.#unbind(device, from),
        () => {},
      );
    }
  }

  /** Works on a registration of a user, or on the end of one, which has a place. */
  #inTurn({ username, appUuid }: Device, work: () => Promise<void>, failed: () => void): void {
    // One after the other for a user: they would wait for each other in the database, and hold its connections.
    const turn = (this.#turns.get(username) ?? Promise.resolve())
      .then(work)
      .catch(failed)
      .finally(() => {
        this.#registering.give(appUuid);
        if (this.#turns.get(username) === turn) this.#turns.delete(username);
      });
    this.#turns.set(username, turn);
  }

  async #unbind(device: Device, from: Pick<Peer, 'transport' | 'host' | 'port'>): Promise<void> {
    const { username } = device;
    const listening = (await this.#options.directory.bindings(username)).filter((binding) => isFrom(binding, from));
    for (const contact of listening.flatMap((binding) => contactPeerOf(binding) ?? [])) this.#options.onMoved(from, contact);
    // A phone that takes connections at its Contact is called there (RFC 3261), also by one that it closes itself; and
    // a proxy serves many, for none of whom there is anything to do.
    const isGone = (binding: Binding) => isFrom(binding, from) && contactPeerOf(binding) === undefined;
    if (!listening.some(isGone)) return;
    const outcome = await this.#options.directory.change(device, (bindings) => {
      // A phone that always connects from one port may have registered at another node before this end was noticed.
      const lost = bindings.filter((binding) => binding.holder !== 'elsewhere' && isGone(binding));
      const bound = bindings.filter((binding) => !lost.includes(binding));
      const removed = lost.map(({ key }) => key);
      return { status: 200, bound, stored: [], removed };
    });
    if (outcome.status === 200) this.#changed(username, [], outcome.removed);
  }

  #changed(username: string, stored: readonly Binding[], removed: readonly string[]): void {
    for (const key of removed) this.#known.forget(username, key);
    for (const binding of stored) {
      this.learn(username, binding);
      const { moved, isShared, hasRestarted } = this.#places.learn(username, binding);
      // Its calls are where it was, or at its Contact since the connection there broke.
      for (const from of moved === undefined ? [] : [moved, contactPeerOf({ ...binding, ...moved })]) {
        // The calls of others are at the proxy that this device was behind. They move where a connection has broken.
        const stays = isShared && (from?.transport === 'udp' || (from !== undefined && this.#options.isConnected(from)));
        if (from !== undefined && !stays) this.#options.onMoved(from, peerOf(binding));
      }
      if (hasRestarted) this.#options.onRestarted(binding, username);
    }
    this.#options.onBound(username, stored, removed);
  }

  async #bind(transaction: ServerTransaction, device: Device, respond: (work: (now: number) => void) => void): Promise<void> {
    const { request, source } = transaction;
    const { username } = device;
    const { directory } = this.#options;
    const { now, isConnected } = this.#options;
    // A connection that is closed is never opened again: its far end was a port that the device used once.
    const isLost = (binding: HeldBinding) =>
      binding.transport !== 'udp' &&
      binding.path === '' &&
      (binding.holder === 'nobody' || (binding.holder === 'here' && !isConnected(binding)));
    const outcome = request.headers.has('contact')
      ? await directory.change(device, (bound) => register(request, bound, source, now(), isLost))
      : register(request, await directory.bindings(username), source, now());
    if (outcome.status !== 200) {
      this.#options.refusals.ofKnown(request, source, outcome.status, NOT_BOUND[outcome.status], now(), username);
      const response = transaction.make(outcome.status);
      if (outcome.status === 423) response.headers.add('min-expires', String(SIP_REGISTER_MIN_SEC));
      respond(() => transaction.send(response));
      return;
    }
    this.#changed(username, outcome.stored, outcome.removed);
    respond((now) => {
      const response = transaction.make(200);
      for (const [name, value] of contactFields(outcome, now)) response.headers.add(name, value);
      for (const path of request.headers.fields('path')) response.headers.add('path', path);
      response.headers.add('supported', 'path');
      transaction.send(response);
    });
  }

  #authenticate(request: SipRequest, source: Peer, username: string, device: Device | undefined): Screened {
    const { refusals } = this.#options;
    const now = this.#options.now();
    const isAnswer = request.headers.has('authorization');
    if (isAnswer && this.#isGuessing(source.host, device, now)) {
      refusals.record(request, source, 401, GUESSING, now, device?.username);
      return 'ignore';
    }
    const verdict = this.#digest.check(request, username, device?.secrets ?? this.#nobody, source.host, now);
    if (verdict === 'right' && device !== undefined) return this.#admitted(request, source, device, now);
    if (verdict === 'wrong') {
      this.#guesses.count(source.host, now);
      this.#guessesOf.count(pairOf(source.host, device), now);
      refusals.record(request, source, 401, device === undefined ? UNKNOWN : WRONG, now, device?.username);
    }
    // A connection proves the address of its sender, who does not repeat a request, and would wait half a minute for an
    // answer. The connection itself bounds how much is asked.
    const challenges = device === undefined ? this.#challengesOfNobody : this.#challenges;
    if (!isReliable(source.transport) && !challenges.allow(source.host, now, device?.username)) return 'ignore';
    const userAgent = request.headers.get('user-agent');
    return { challenge: this.#digest.challenges(source.host, verdict === 'stale', now, userAgent) };
  }

  /** Decides about a request of a device that is known by its password: it may begin so many calls. */
  #admitted(request: SipRequest, source: Peer, device: Device, now: number): Screened {
    const isCall = request.method === 'INVITE' && tagOf(request.headers.get('to')) === undefined;
    const busySec = isCall ? this.#calls.take(device, now) : 0;
    if (busySec === 0) return 'accept';
    this.#options.refusals.ofKnown(request, source, 503, CALLING, now, device.username);
    return { busySec };
  }

  /**
   * Whether an address has used up its guesses. Where devices are registered from it, as behind one NAT, each name has
   * guesses of its own, and a device that is registered from there is always listened to.
   */
  #isGuessing(host: string, device: Device | undefined, now: number): boolean {
    if (device !== undefined && this.#known.hasUser(host, device.username, now)) return false;
    return (this.#guesses.isOver(host, now) && !this.isAt(host)) || this.#guessesOf.isOver(pairOf(host, device), now);
  }
}

/**
 * A source (an IPv4 address or an IPv6 /64) and the device that it asks for. All unknown names are one, so that they do
 * not crowd out the others.
 */
const pairOf = (host: string, device: Device | undefined): string => `${sourceOf(host)} ${device?.username ?? ''}`;

/** The user part of To or From, unescaped. */
function userOf(request: SipRequest, name: 'from' | 'to'): string {
  const address = parseNameAddress(request.headers.get(name) ?? '');
  return address === undefined ? '' : (parseUri(address.uri)?.user ?? '');
}

function unavailable(transaction: ServerTransaction): void {
  const response = transaction.make(503);
  response.headers.add('retry-after', String(SIP_RETRY_AFTER_SEC));
  transaction.send(response);
}
