/** A tool of the MCP server: what it takes, and what it tells. */
import type { Problem } from '../../problem.ts';
import type { Shape } from '../shape/shape.ts';
import { inBody } from '../shape/shape.ts';
import { typesLoaded } from '../shape/type.ts';

/** Whoever uses the tools: an application, or the operator. */
export interface ToolUser {
  /** `""`: the operator. */
  readonly appUuid: string;
  readonly mayOnlyRead: boolean;
  /** The credentials that came, for requests that are made with them. */
  readonly authorization: string;
}

/** What a tool tells: sentences of the platform, and records that others wrote parts of. */
export interface Told {
  readonly said: readonly string[];
  readonly records?: unknown;
}

interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Changes something: it is there with `MCP_WRITE=on` only. */
  readonly acts?: boolean;
}

export interface Tool extends ToolFacts {
  /** The shape of its arguments. */
  readonly shape: { readonly schema: object };
  /** Validates the arguments and runs. */
  run(given: unknown, user: ToolUser): Promise<Told | Problem>;
}

/** A tool whose arguments have that shape. */
export const tool = <B>(facts: ToolFacts, shape: Shape<B>, run: (given: B, user: ToolUser) => Promise<Told | Problem>): Tool => ({
  ...facts,
  shape,
  async run(given, user) {
    await typesLoaded();
    const checked = inBody(shape, given, 400);
    return 'problem' in checked ? checked.problem : await run(checked.value, user);
  },
});
