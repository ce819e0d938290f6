/**
 * The part of sdp-transform that is used here. It parses leniently, so every field may be missing and any number may be
 * text.
 */
declare module 'sdp-transform' {
  export interface ParsedConnection {
    readonly version?: number | string;
    readonly ip?: number | string;
  }
  export interface ParsedMedia {
    readonly type?: number | string;
    readonly port?: number | string;
    readonly protocol?: number | string;
    readonly payloads?: number | string;
    readonly connection?: ParsedConnection;
    readonly direction?: number | string;
    readonly ptime?: number | string;
    readonly maxptime?: number | string;
    readonly mid?: number | string;
    readonly rtcpMux?: string;
    readonly bundleOnly?: string;
    readonly sctpPort?: number | string;
    readonly iceUfrag?: number | string;
    readonly icePwd?: number | string;
    readonly setup?: string;
    readonly rtcp?: { readonly port?: number | string };
    readonly rtp: readonly {
      readonly payload?: number | string;
      readonly codec?: number | string;
      readonly rate?: number | string;
      readonly encoding?: number | string;
    }[];
    readonly fmtp: readonly { readonly payload?: number | string; readonly config?: number | string }[];
  }
  export interface ParsedDescription {
    readonly version?: number | string;
    readonly origin?: unknown;
    readonly connection?: ParsedConnection;
    readonly direction?: number | string;
    readonly icelite?: string;
    readonly iceUfrag?: number | string;
    readonly icePwd?: number | string;
    readonly setup?: string;
    readonly groups?: readonly { readonly type?: number | string; readonly mids?: number | string }[];
    readonly media: readonly ParsedMedia[];
  }
  export function parse(sdp: string): ParsedDescription;
}
