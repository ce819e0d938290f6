/** One SIP listening socket, from `SIP_LISTEN`. */
export interface SipListen {
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly host: string;
  readonly port: number;
}

/** Every setting of the contract's §1 table, checked. */
export interface Config {
  readonly http: { readonly host: string; readonly port: number };
  readonly publicUrl: string;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly databaseDriver: 'postgres' | 'neon';
  readonly sip: {
    readonly listen: readonly SipListen[];
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
    /** Address in Via, Contact and SDP; undefined: the listen address. */
    readonly advertise: string | undefined;
  };
  readonly rtp: { readonly host: string; readonly firstPort: number; readonly lastPort: number };
  readonly mediaWorkers: number;
  readonly operatorToken: string;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  /** CIDRs that may be reached although private; loopback is already added on a loopback `HTTP_HOST`. */
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
  readonly paymentProvider: 'sandbox' | 'nedarim_plus' | 'off';
  readonly smsProvider: { readonly kind: 'sandbox' | 'off' } | { readonly kind: 'smpp'; readonly url: string };
  readonly natsUrl: string | undefined;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';
  readonly orphanTimeoutSec: number;
  readonly recordingLivenessSec: number;
  readonly webhookTimeoutSec: number;
  readonly webhookRetryScale: number;
  readonly paymentReferenceTtlSec: number;
  readonly mediaTimeoutSec: number;
  readonly shutdownGraceSec: number;
}
