/** The other nodes of a cluster as the HTTP door and the heart see them. A process alone has none. */
import type { Problem } from '../../problem.ts';
import type { BucketName } from '../rate/buckets.ts';
import type { Answer } from './sessions.ts';

/** What a request is about, which decides the node that serves it. */
export type Whose =
  | { readonly kind: 'session'; readonly sessionUuid: string }
  | { readonly kind: 'room'; readonly roomId: string }
  /** A Session joins or leaves a Room: the Session's node serves it, or the Room's where there is no such Session. */
  | { readonly kind: 'member'; readonly sessionUuid: string; readonly roomId: string }
  /** A Session is made: near another Session or Room, or wherever there is room. */
  | {
      readonly kind: 'new';
      readonly near: readonly string[];
      readonly trunk: string | undefined;
      readonly isPhone: boolean;
      /** The user name of the device that is dialled. */
      readonly device?: string | undefined;
    };

/** An admitted request on its way to the node that serves it. Card digits are in none. */
export interface Operation {
  readonly method: string;
  /** The path of the route, as Hono writes it. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  readonly path: string;
  /** The query with its `?`, or `""`. */
  readonly query: string;
  readonly body: unknown;
  readonly appUuid: string;
  readonly operationUuid: string;
  readonly traceparent: string;
  /** The Idempotency-Key that the asking node marked. */
  readonly key?: { readonly key: string; readonly fingerprint: string };
}

export type Forwarded =
  | { readonly outcome: 'answered'; readonly answer: Answer }
  | { readonly outcome: 'refused'; readonly problem: Problem }
  /** The node has it no more, or takes nothing new: whoever asks looks once more. */
  | { readonly outcome: 'moved' }
  /** Nobody got it: it did not happen and will not. */
  | { readonly outcome: 'not_delivered' }
  /** It may have happened; it will not happen any more from now on. */
  | { readonly outcome: 'unknown' };

export interface Peers {
  /**
   * The other node that serves the request. Undefined: this one does, or nobody has such an object. `tried`: nodes that
   * were told before; they have it no more, take nothing new, or cannot be reached.
   */
  nodeOf(whose: Whose, appUuid: string, tried: readonly string[]): Promise<string | undefined>;
  /** `isSlow`: the request opens audio sources before it is admitted. */
  forward(nodeId: string, operation: Operation, isSlow: boolean): Promise<Forwarded>;
  /**
   * Takes tokens of buckets that the whole cluster shares: a Room's where one is named, else those of that application
   * or browser's token. Returns how to give them back, or the seconds until there is one of each.
   */
  take(owner: string, buckets: readonly BucketName[], roomId?: string): Promise<(() => void) | number>;
}
