/**
 * Streaming bodies between nodes, over HTTP. The node that has the object gives out a token over NATS: random, valid
 * for 30 s, for one object and one request. Bytes are passed on as they come, held back by whoever takes them.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import {
  PEER_STREAM_PATH,
  PEER_TOKEN_HEADER,
  type PeerResponse,
  type PeerStreams,
  type StreamObject,
} from '../../call/ports/peer-streams.ts';
import type { Answer } from '../../call/ports/sessions.ts';
import type { Clock } from '../../clock.ts';
import {
  NODE_COMMAND_TIMEOUT_MS,
  NODE_PING_TIMEOUT_MS,
  NODE_TOKEN_MS,
  NODE_TOKENS_MAX,
  PEER_KEEPALIVE_MS,
  SOURCE_CONNECT_MS,
} from '../../limits.ts';
import { httpGet } from '../../outbound/http-get.ts';
import { type Problem, problems } from '../../problem.ts';
import type { Bus } from '../bus/bus.ts';
import type { Members } from '../membership/members.ts';
import { postBody } from './post-body.ts';

/** The last group of a node's id is that of the ingests it makes. */
const TAG_AT = 24;
/** What a player may ask of the audio, and nothing else of its request. */
const PASSED_ON = ['range', 'if-range', 'if-match', 'if-none-match'];

export interface StreamsOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  readonly members: Pick<Members, 'rows' | 'get' | 'isSuspect'>;
  readonly nodeId: string;
  readonly clock: Clock;
}

export class Streams implements PeerStreams {
  readonly #options: StreamsOptions;
  readonly #tokens = new Map<string, { readonly object: StreamObject; readonly until: number }>();

  constructor(options: StreamsOptions) {
    this.#options = options;
    options.bus.answer('stream', (body) => (isObject(body) ? { token: this.#issue(body.object) } : {}));
  }

  nodeOfIngest(ingestUuid: string): string | undefined {
    const tag = ingestUuid.slice(TAG_AT);
    return this.#options.members.rows.find(({ nodeId }) => nodeId !== this.#options.nodeId && nodeId.endsWith(tag))?.nodeId;
  }

  nodeOfVolume(volumeId: string): string | undefined {
    const { members, nodeId } = this.#options;
    return members.rows.find((row) => row.nodeId !== nodeId && row.volumeId === volumeId)?.nodeId;
  }

  async send(nodeId: string, object: StreamObject, request: Request): Promise<Answer | Problem> {
    const target = await this.#target(nodeId, object);
    if (target === undefined) return problems.nodeAway('this call');
    const socket = await reach(target.host, target.port).catch(() => undefined);
    if (socket === undefined) return problems.nodeAway('this call');
    return await postBody(
      socket,
      { host: target.authority, path: PEER_STREAM_PATH, headers: { [PEER_TOKEN_HEADER]: target.token } },
      request.body,
    );
  }

  async get(nodeId: string, object: StreamObject, headers: Headers): Promise<PeerResponse | undefined> {
    const target = await this.#target(nodeId, object);
    if (target === undefined) return undefined;
    const asked = PASSED_ON.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    try {
      const response = await httpGet(
        {
          url: `http://${target.authority}${PEER_STREAM_PATH}`,
          headers: { ...Object.fromEntries(asked), [PEER_TOKEN_HEADER]: target.token },
          connectTimeoutMs: SOURCE_CONNECT_MS,
          responseTimeoutMs: NODE_COMMAND_TIMEOUT_MS * 5,
          redirects: 0,
        },
        () => reach(target.host, target.port),
        (text) => new URL(text),
      );
      return {
        status: response.status,
        headers: response.headers,
        next: () => response.body.read(),
        close: () => response.body.close(),
      };
    } catch {
      return undefined;
    }
  }

  redeem(request: Request): StreamObject | undefined {
    const token = request.headers.get(PEER_TOKEN_HEADER) ?? '';
    const found = this.#tokens.get(token);
    this.#tokens.delete(token);
    return found !== undefined && found.until > this.#options.clock.now() ? found.object : undefined;
  }

  #issue(object: StreamObject): string {
    const now = this.#options.clock.now();
    for (const [token, { until }] of this.#tokens) {
      if (until > now && this.#tokens.size < NODE_TOKENS_MAX) break;
      this.#tokens.delete(token);
    }
    const token = randomBytes(32).toString('base64url');
    this.#tokens.set(token, { object, until: now + NODE_TOKEN_MS });
    return token;
  }

  async #target(nodeId: string, object: StreamObject) {
    const { bus, members } = this.#options;
    const row = members.get(nodeId);
    if (row === undefined || members.isSuspect(nodeId)) return undefined;
    const { outcome, body } = {
      body: undefined,
      ...(await bus.ask(nodeId, 'stream', { object }, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS)),
    };
    if (outcome !== 'answered' || typeof body !== 'object' || body === null || !('token' in body)) return undefined;
    const { host, httpPort: port } = row;
    return { host, port, authority: `${host.includes(':') ? `[${host}]` : host}:${port}`, token: String(body.token) };
  }
}

/** A connection to another node. Rejects when there is none in time. */
function reach(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => socket.destroy(new Error('no connection in time')), SOURCE_CONNECT_MS);
    socket.once('error', reject);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', reject);
      // A machine that vanishes says nothing: its connection is found dead within a minute or so.
      socket.setKeepAlive(true, PEER_KEEPALIVE_MS);
      resolve(socket);
    });
    socket.once('close', () => clearTimeout(timer));
  });
}

const isObject = (body: unknown): body is { readonly object: StreamObject } =>
  typeof body === 'object' && body !== null && 'object' in body && typeof body.object === 'object';
