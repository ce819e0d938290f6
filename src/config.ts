import type { Destinations } from './destinations.ts';

/** One SIP listening socket, from `SIP_LISTEN`. */
export interface SipListen {
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly host: string;
  readonly port: number;
}

/** Every setting of the contract's §1 table, checked. */
export interface Config {
  readonly http: { readonly host: string; readonly port: number };
  /** Origin of the URLs handed out; undefined: the address that is bound. */
  readonly publicUrl: string | undefined;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly databaseDriver: 'postgres' | 'neon';
  readonly sip: {
    readonly listen: readonly SipListen[];
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
    /** Addresses in Via, Contact and SDP, one of each IP version at most. Empty: the listen addresses. */
    readonly advertise: readonly string[];
  };
  readonly rtp: { readonly host: string; readonly firstPort: number; readonly lastPort: number };
  /** The address at which browsers are reached, or undefined where they are not. */
  readonly webrtc:
    | {
        readonly host: string;
        /** 0: the system's choice. */
        readonly port: number;
        /** Nobody asked for it: the platform starts also where the port is taken. */
        readonly isDefault: boolean;
        /** The addresses in candidates. */
        readonly advertise: readonly string[];
      }
    | undefined;
  readonly mediaWorkers: number;
  /** The most live Sessions of one application at this node, 1 to 50,000. */
  readonly appSessionsMax: number;
  /** The numbers that every application may reach at most. */
  readonly destinations: Destinations;
  /** The most recordings of one application that are under way at this node, 1 to 10,000. */
  readonly appRecordingsMax: number;
  /** The most that one application keeps in recordings, in GB (10⁹ bytes), at all nodes. 0: no bound. */
  readonly appRecordingMaxGb: number;
  readonly operatorToken: string;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  /** The key before it, 32 bytes: a process alone seals anew what is sealed under that, and its URLs stay good. */
  readonly masterKeyBefore: Uint8Array | undefined;
  /** CIDRs that may be reached although private. Loopback is added on a loopback `HTTP_HOST`, unless forbidden. */
  readonly outboundAllow: readonly string[];
  readonly recordings:
    | { readonly kind: 'file' }
    | {
        readonly kind: 's3';
        readonly bucket: string;
        readonly prefix: string;
        readonly endpoint: string;
        readonly region: string;
        readonly accessKeyId: string;
        readonly secretAccessKey: string;
      }
    | { readonly kind: 'off' };
  readonly recordingUrlTtlSec: number;
  readonly recordingRetentionDays: number;
  readonly paymentProvider:
    | { readonly kind: 'sandbox' | 'off' }
    | {
        readonly kind: 'nedarim_plus';
        readonly url: string;
        /** `ApiValid` of each terminal; `''` names the one for all others. */
        readonly apiValid: ReadonlyMap<string, string>;
        readonly clientName: string;
      };
  readonly smsProvider:
    | { readonly kind: 'sandbox' | 'off' }
    | {
        readonly kind: 'smpp';
        readonly host: string;
        readonly port: number;
        readonly systemId: string;
        readonly password: string;
        readonly systemType: string;
        /** Messages submitted and not answered at the same time. */
        readonly window: number;
        /** The most `submit_sm` a second, or undefined where the SMSC sets no limit. */
        readonly ratePerSec?: number | undefined;
        /**
         * The way a long message travels: in segments with a header, or whole in the optional parameter
         * `message_payload`.
         */
        readonly longMessages: 'udh' | 'payload';
      };
  /** Days for which ended calls and their timelines are kept. 0 keeps none. */
  readonly callHistoryDays: number;
  /** What is kept of SIP messages in a call's timeline: start line and header fields, the body too, or nothing. */
  readonly sipTrace: 'headers' | 'full' | 'off';
  /** Names of `X-` header fields that are never kept, in lower case. */
  readonly sipTraceHide: readonly string[];
  /** CIDRs of the SIP proxies that devices register through. */
  readonly sipDeviceProxies: readonly string[];
  /** Refused requests a minute after which an address is banned (0: never), and for how many seconds. */
  readonly sipBan: { readonly after: number; readonly sec: number };
  /** A second operator token that may only read. Undefined when there is none. */
  readonly operatorReadToken: string | undefined;
  /** Assistants that speak MCP may dial, hang up and replay events. */
  readonly mcpWrite: boolean;
  /** The base URL of an OpenTelemetry collector; undefined: nothing is traced. */
  readonly otlpEndpoint: string | undefined;
  /** The servers that carry the messages between nodes; undefined: this process owns its database alone. */
  readonly natsUrls: readonly string[] | undefined;
  readonly node: {
    /** The address at which other nodes reach this one. */
    readonly host: string;
    /** What trunks may ask for (`nodes` of a trunk). */
    readonly labels: readonly string[];
    /** Seconds without a beat after which a node is declared dead. */
    readonly burialSec: number;
    /** Whether calls of a node that is lost go on at another one. */
    readonly takesOver: boolean;
  };
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';
  readonly orphanTimeoutSec: number;
  readonly recordingLivenessSec: number;
  readonly webhookTimeoutSec: number;
  readonly webhookRetryScale: number;
  readonly paymentReferenceTtlSec: number;
  readonly mediaTimeoutSec: number;
  readonly shutdownGraceSec: number;
}
