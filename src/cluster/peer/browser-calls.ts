/**
 * Calls from browsers in a cluster: the URL of a call is the cluster's, so that a PATCH or DELETE may come to any node.
 * It goes to the node that has the call, with a deadline, as a command does. A token has so many live calls in all.
 */
import type {
  BrowserCalls,
  OwnBrowserCalls,
  WebrtcToken,
  WhipChange,
  WhipCreated,
  WhipPatched,
} from '../../call/ports/webrtc.ts';
import type { Clock } from '../../clock.ts';
import { NODE_COMMAND_MARGIN_MS, NODE_COMMAND_TIMEOUT_MS, NODE_PING_TIMEOUT_MS } from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Bus } from '../bus/bus.ts';

const KIND = 'whip';
const LIVE = 'whip_live';

interface SharedBrowserCallsOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  readonly nodeId: string;
  readonly clock: Clock;
  /** The calls of this node. */
  readonly here: OwnBrowserCalls;
  /** The other nodes, but those that do not answer. */
  others(): readonly string[];
  /** The node of a live Session of the application. */
  owner(appUuid: string, sessionUuid: string): Promise<string | undefined>;
}

/** What is asked of the node that has a call. Without a change it is hung up. */
interface Question {
  readonly token: WebrtcToken;
  readonly sessionUuid: string;
  readonly change?: Omit<WhipChange, 'body'> & { readonly body: string };
}
type Reply = { readonly patched: WhipPatched | null } | { readonly wasThere: boolean } | { readonly problem: Problem };

export class SharedBrowserCalls implements BrowserCalls {
  readonly #options: SharedBrowserCallsOptions;

  constructor(options: SharedBrowserCallsOptions) {
    this.#options = options;
    const { bus, clock } = options;
    bus.answer(KIND, async (body) =>
      isQuestion(body) && clock.now() < body.until ? await this.#answer(body) : { problem: problems.nodeAway('this call') },
    );
    bus.answer(LIVE, (body) => (isLiveQuestion(body) ? { live: options.here.liveOf(body.tokenId) } : {}));
  }

  create(token: WebrtcToken, offer: Uint8Array): Promise<WhipCreated | Problem> {
    return this.#options.here.create(token, offer, () => this.#liveElsewhere(token.tokenId));
  }

  /** How many live calls a token has at the other nodes. One that does not answer counts as one without any. */
  async #liveElsewhere(tokenId: string): Promise<number> {
    const { bus, others } = this.#options;
    const asked = others().map(async (nodeId) => {
      const result = await bus.ask(nodeId, LIVE, { tokenId }, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
      return result.outcome === 'answered' && isLive(result.body) ? result.body.live : 0;
    });
    return (await Promise.all(asked)).reduce((sum, live) => sum + live, 0);
  }

  async patch(token: WebrtcToken, sessionUuid: string, change: WhipChange): Promise<WhipPatched | Problem> {
    const owner = await this.#elsewhere(token, sessionUuid);
    if (owner === undefined) return this.#options.here.patch(token, sessionUuid, change);
    const body = Buffer.from(change.body).toString('base64');
    const reply = await this.#ask(owner, { token, sessionUuid, change: { ...change, body } });
    if ('problem' in reply) return reply.problem;
    return 'patched' in reply ? (reply.patched ?? undefined) : problems.nodeAway('this call');
  }

  async hangUp(token: WebrtcToken, sessionUuid: string): Promise<boolean | Problem> {
    const owner = await this.#elsewhere(token, sessionUuid);
    if (owner === undefined) return this.#options.here.hangUp(token, sessionUuid);
    const reply = await this.#ask(owner, { token, sessionUuid });
    if ('problem' in reply) return reply.problem;
    return 'wasThere' in reply ? reply.wasThere : problems.nodeAway('this call');
  }

  /** The other node that has the Session. Undefined: this one has it, or none. */
  async #elsewhere({ appUuid }: WebrtcToken, sessionUuid: string): Promise<string | undefined> {
    const { owner, nodeId } = this.#options;
    const node = await owner(appUuid, sessionUuid);
    return node === nodeId ? undefined : node;
  }

  async #ask(nodeId: string, question: Question): Promise<Reply> {
    const { bus } = this.#options;
    const timeLeft = NODE_COMMAND_TIMEOUT_MS - NODE_COMMAND_MARGIN_MS;
    const result = await bus.ask(nodeId, KIND, question, NODE_COMMAND_TIMEOUT_MS, timeLeft);
    return result.outcome === 'answered' && isReply(result.body) ? result.body : { problem: problems.nodeAway('this call') };
  }

  async #answer({ token, sessionUuid, change }: Question): Promise<Reply> {
    const { here } = this.#options;
    if (change === undefined) {
      const done = await here.hangUp(token, sessionUuid);
      return isProblem(done) ? { problem: done } : { wasThere: done };
    }
    const body = new Uint8Array(Buffer.from(change.body, 'base64'));
    const done = await here.patch(token, sessionUuid, { ...change, body });
    return isProblem(done) ? { problem: done } : { patched: done ?? null };
  }
}

// What comes here is under the cluster's own key; these say what another release may have changed.
const isQuestion = (body: unknown): body is Question & { readonly until: number } =>
  typeof body === 'object' &&
  body !== null &&
  'token' in body &&
  'sessionUuid' in body &&
  'until' in body &&
  typeof body.until === 'number';
const isReply = (body: unknown): body is Reply =>
  typeof body === 'object' && body !== null && ('patched' in body || 'wasThere' in body || 'problem' in body);
const isLiveQuestion = (body: unknown): body is { readonly tokenId: string } =>
  typeof body === 'object' && body !== null && 'tokenId' in body && typeof body.tokenId === 'string';
const isLive = (body: unknown): body is { readonly live: number } =>
  typeof body === 'object' && body !== null && 'live' in body && typeof body.live === 'number';
