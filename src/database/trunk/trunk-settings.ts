/** The settings of a trunk beyond its address. */

/**
 * What a trunk does beyond its address, in the words of the operator API (docs/operations/carriers.md). It is
 * stored as one document, because it is written and read whole. An absent field has its default.
 */
export interface TrunkSettings {
  readonly country_code?: string;
  readonly inbound_format?: 'auto' | 'e164' | 'national';
  readonly outbound_format?: 'plus_e164' | 'e164' | 'national' | 'international_00';
  readonly outbound_prefix?: string;
  readonly auth_username?: string;
  readonly from_user?: string;
  readonly from_domain?: string;
  /** `sip:host[:port][;transport=udp|tcp|tls]`. */
  readonly outbound_proxy?: string;
  readonly contact_user?: string;
  /** Our host in Via and Contact, where it is another than the address in SDP. */
  readonly contact_host?: string;
  /** Whether URIs with numbers that we send say `user=phone`. */
  readonly user_phone?: boolean;
  readonly identity?: 'none' | 'pai' | 'ppi' | 'rpid';
  readonly trust_identity?: boolean;
  /** Whether calls from the carrier have to prove the user name and password of the trunk. */
  readonly inbound_auth?: boolean;
  /** Whether audio is encrypted with keys in SDP (SDES). Absent means off. */
  readonly srtp?: 'off' | 'optional' | 'required';
  /** Whether the keys may go over UDP and TCP too. */
  readonly srtp_without_tls?: boolean;
  readonly session_timer?: 'on' | 'off';
  /** INVITEs a second. */
  readonly max_cps?: number;
  readonly priority?: number;
  readonly weight?: number;
  /** The applications that may dial through it. Absent means all. */
  readonly apps?: readonly string[];
  readonly follow_redirects?: boolean;
  /** The hosts that a transfer by `sip:` URI may name. Absent means any. */
  readonly transfer_hosts?: readonly string[];
  readonly advertise?: string;
  /** The labels of the nodes that may use it. Absent means all. */
  readonly nodes?: readonly string[];
  /** PEM text: the authorities that may have signed the carrier's certificate, and our own certificate. */
  readonly tls?: { readonly ca?: string; readonly cert?: string };
}
