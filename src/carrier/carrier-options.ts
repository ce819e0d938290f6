/** What the carrier is given, and what it gives to the composition root. */
import type { DeviceDirectory } from '../call/ports/devices.ts';
import type { Dialer, DialOptions, IncomingCall } from '../call/ports/leg.ts';
import type { OtherDialogs, OwnDialogs } from '../call/ports/other-dialogs.ts';
import type { CarrierReadings } from '../call/ports/trunks.ts';
import type { Clock } from '../clock.ts';
import type { SipListen } from '../config.ts';
import type { Seal } from '../database/vault/seal.ts';
import type { Log } from '../log.ts';
import type { MediaEngine } from '../media/engine.ts';
import type { Peer } from '../sip/flow.ts';
import type { Binding } from '../sip/registrar.ts';
import type { BanTerms } from './ban-list.ts';
import type { BoundPort } from './socket/listener.ts';
import type { SharedChannels } from './trunk/channels.ts';
import type { Trunk } from './trunk/trunk.ts';
import type { TrunkBinding } from './trunk/trunk-monitor.ts';
import type { SharedTurns } from './trunk/turns.ts';

export interface CarrierOptions {
  readonly listen: readonly SipListen[];
  /**
   * The certificate of the `tls` listeners. `caFile` holds authorities that trunks may be signed by, beside the
   * system's own.
   */
  readonly tls?: { readonly certFile?: string; readonly keyFile?: string; readonly caFile?: string };
  /** Our addresses in Via, Contact and SDP, one of each IP version at most. Absent: those that are bound. */
  readonly advertise?: readonly string[];
  /** The labels of this node, of which a trunk may ask for one. Absent: this process is alone, and uses every trunk. */
  readonly labels?: readonly string[] | undefined;
  /** The channels that the nodes of a cluster share; absent where this process has them all. */
  readonly sharedChannels?: SharedChannels | undefined;
  /** The turns of INVITEs that the nodes of a cluster share; absent where this process has them all. */
  readonly sharedTurns?: SharedTurns | undefined;
  /** The dialogs of other nodes; absent where there are none. */
  readonly otherDialogs?: OtherDialogs | undefined;
  /** Whether this node is the one that registers the trunk of that name. Absent: it registers all. */
  readonly registers?: (trunk: string) => boolean;
  /** The registration that another node has made of that trunk. Undefined where none has. */
  readonly registeredElsewhere?: (trunk: string) => TrunkBinding | undefined;
  /** The address that RTP ports are bound to. It tells their IP version, which is both for `::`. Absent: IPv4. */
  readonly rtpHost?: string;
  readonly media: Pick<MediaEngine, 'openRtpLeg' | 'load' | 'ready' | 'srtpSuites' | 'codecs'>;
  /** Seals the keys of audio under MASTER_KEY, for those who go on with a call. */
  readonly seal: Seal;
  readonly clock: Clock;
  readonly log: Log;
  /** When addresses of nobody that we know are banned. Absent: never. */
  readonly ban?: BanTerms;
  /** CIDRs of the proxies that devices register through. */
  readonly deviceProxies?: readonly string[];
  /** The device users. Absent where none may register. */
  readonly devices?: DeviceDirectory;
  /** The trunks at this moment. After a change, call `trunksChanged`. */
  trunks(): readonly Trunk[];
  /**
   * Takes a call for an application. 100 has been sent, and audio can be agreed on. It must end in an order to the
   * call's leg.
   */
  onInvite(call: IncomingCall & { readonly trunk: string }): unknown;
  /** Is told each SIP message, for the timelines of calls. */
  trace?(direction: 'in' | 'out', bytes: Uint8Array, peer: Peer): void;
  /** The application that a number is assigned to. A rejection of the promise answers the call with 503. */
  numberOwner(e164: string): Promise<string | undefined>;
}

export interface Carrier extends Dialer, CarrierReadings, OwnDialogs {
  /** Reserves a channel and makes the leg. Nothing is sent before its `start`. */
  dial(options: DialOptions): ReturnType<Dialer['dial']>;
  /** The channels that this node holds of trunks whose channels it shares with others, by trunk. */
  channelsHeld(): Readonly<Record<string, number>>;
  /** The trunks that this node has registered, each with the end of its binding in milliseconds since the epoch. */
  registrations(): Readonly<Record<string, TrunkBinding>>;
  /** Whether the sockets are up and the carrier is not closed. */
  ready(): boolean;
  /**
   * `trunksDown`: trunks that do not answer, or that this node should have registered and has not. `datagramsLost` and
   * `callsLate` (refused) since the start: because too many came at once.
   */
  load(): {
    readonly dialogs: number;
    readonly transactions: number;
    readonly trunksDown: number;
    readonly datagramsLost: number;
    readonly callsLate: number;
  };
  /** Addresses that are banned now, and bans since the start. */
  bans(): { readonly now: number; readonly total: number };
  /** `set`: trunks that the operator set up, also as they were. They are registered at once where that has failed. */
  trunksChanged(...set: readonly string[]): void;
  /** Refuses new calls with 503 from now on, or no longer. Calls that are up go on. */
  drain(on?: boolean): void;
  /** The trunks that this node may register have changed. */
  registrationsChanged(): void;
  /** The contacts of devices that are bound as the carrier starts, so that their addresses are known. */
  devicesBound(bound: readonly { readonly username: string; readonly binding: Binding }[]): void;
  /** The contacts of these users are bound no more: they are gone, or have another password. */
  devicesGone(usernames: readonly string[]): void;
  /** Reads the TLS certificate anew, for connections from now on. */
  reloadCertificate(): void;
  /** Closes the sockets. It does not hang up calls that are still up: the Sessions do that before. */
  close(): Promise<void>;
  ports(): readonly BoundPort[];
}
