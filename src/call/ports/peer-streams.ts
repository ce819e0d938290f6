/** Bodies that go on from node to node as they come, and are never kept whole: a push, and the audio of a recording. */
import type { Problem } from '../../problem.ts';
import type { Answer } from './sessions.ts';

/** The object that a token of another node opens, once. */
export type StreamObject =
  | { readonly kind: 'ingest'; readonly appUuid: string; readonly ingestUuid: string }
  | { readonly kind: 'media'; readonly recordingUuid: string; readonly as: 'pull' | 'live' };

/** A response of another node, read only as fast as it is asked for. */
export interface PeerResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Resolves with undefined at the end of the body. Rejects when the connection breaks. */
  next(): Promise<Uint8Array | undefined>;
  close(): void;
}

export interface PeerStreams {
  /** The other node that made a push, by the name of its ingest. */
  nodeOfIngest(ingestUuid: string): string | undefined;
  /** Hands a body on. A problem where the node cannot be reached. */
  send(nodeId: string, object: StreamObject, request: Request): Promise<Answer | Problem>;
  /** The live node that has a volume; undefined: the volume is away. */
  nodeOfVolume(volumeId: string): string | undefined;
  /** The result is undefined when the node cannot be reached. */
  get(nodeId: string, object: StreamObject, headers: Headers): Promise<PeerResponse | undefined>;
  /** The object that a request of another node may have, if its token is one of ours. The token is spent. */
  redeem(request: Request): StreamObject | undefined;
}

/** The path of requests between nodes. It takes no credentials but the token. */
export const PEER_STREAM_PATH = '/internal/v1/stream';
export const PEER_TOKEN_HEADER = 'x-sidetone-node-token';
