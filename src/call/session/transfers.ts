/** Transfers of calls: to a host that the trunk permits, or to another call, of this node or another. */

import type { MayReach } from '../../destinations.ts';
import { type Problem, problems } from '../../problem.ts';
import type { Replaces } from '../../sip/message/replaces.ts';
import type { BotOrder } from '../ports/leg.ts';
import type { Answer, CommandContext, SessionCommand } from '../ports/sessions.ts';
import type { SessionActor } from './session-actor.ts';

/** What a transfer to a call needs to know of it. */
export interface Replacement {
  readonly referTo: string | undefined;
  readonly trunk: string | undefined;
}

/** The calls of other nodes. */
export interface CallsElsewhere {
  /** Has the node of a Session obey a bot. Resolves with the reason where the order is refused. */
  order(appUuid: string, sessionUuid: string, order: BotOrder, traceparent: string): Promise<string | undefined>;
  replacement(appUuid: string, sessionUuid: string): Promise<Replacement | 'unreachable' | undefined>;
  /** The live Session of the application whose call a Replaces names. Undefined where no node that answers has it. */
  named(appUuid: string, replaces: Replaces): Promise<string | undefined>;
}

export interface TransferOptions {
  /** The calls of other nodes; undefined where there are none. */
  readonly elsewhere?: CallsElsewhere | undefined;
  /** Tells which numbers an application may reach. */
  reachOf(appUuid: string): Promise<MayReach>;
}

/** The calls of this node by their Sessions. */
interface CallsHere {
  get(sessionUuid: string): TransferParty | undefined;
  values(): Iterable<TransferParty>;
}

/** What a transfer asks of a Session. */
export type TransferParty = Pick<SessionActor, 'state' | 'transfers' | 'refusal' | 'command'>;

/** Whether a Session is an answered phone call of the application. */
const isAnsweredCall = ({ state }: TransferParty, appUuid: string): boolean =>
  state.appUuid === appUuid && state.phase === 'answered' && state.type !== 'websocket' && state.type !== 'webrtc';

export class Transfers {
  readonly #here: CallsHere;
  readonly #options: TransferOptions;

  constructor(here: CallsHere, options: TransferOptions) {
    this.#here = here;
    this.#options = options;
  }

  /** Resolves the target of a transfer: a host that the trunk permits, or a call on the same trunk (RFC 3891). */
  transfer(
    actor: TransferParty,
    command: Extract<SessionCommand, { type: 'transfer' }>,
    context: CommandContext,
  ): Promise<Answer | Problem> | Problem {
    const refused = actor.refusal(command.type);
    if (refused !== undefined) return refused;
    const { target } = command;
    const { transfers } = actor;
    if ('uri' in target && transfers?.permits(target.uri) !== true)
      return problems.forbidden('Transfers to that host are not permitted');
    if (!('sessionUuid' in target)) return this.#transferOut(actor, command, context);
    const other = this.#here.get(target.sessionUuid);
    if (other === undefined && this.#options.elsewhere !== undefined)
      return this.#transferElsewhere(actor, command, target.sessionUuid, context);
    if (other === actor) return problems.conflict('A Session cannot be transferred to itself');
    if (other === undefined || !isAnsweredCall(other, context.appUuid)) return problems.notFound('Session');
    const referTo = other.transfers?.replacement();
    if (referTo === undefined || other.transfers?.trunk !== transfers?.trunk)
      return problems.conflict('The two Sessions are not on the same trunk');
    return actor.command({ ...command, target: { referTo } }, context);
  }

  /** A transfer to a number or a URI, which the application has to be permitted to reach. */
  async #transferOut(
    actor: TransferParty,
    command: Extract<SessionCommand, { type: 'transfer' }>,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const { target } = command;
    const dialled = 'number' in target ? target.number : 'uri' in target ? actor.transfers?.dialled(target.uri) : undefined;
    if (dialled !== undefined && !(await this.#options.reachOf(context.appUuid))(dialled)) return problems.destination();
    return actor.command(command, context);
  }

  /** The other call is on another node, which tells the Refer-To that replaces it. */
  async #transferElsewhere(
    actor: TransferParty,
    command: Extract<SessionCommand, { type: 'transfer' }>,
    sessionUuid: string,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const other = await this.#options.elsewhere?.replacement(context.appUuid, sessionUuid);
    if (other === undefined) return problems.notFound('Session');
    if (other === 'unreachable') return problems.nodeAway('the other call');
    if (other.referTo === undefined || other.trunk !== actor.transfers?.trunk)
      return problems.conflict('The two Sessions are not on the same trunk');
    return actor.command({ ...command, target: { referTo: other.referTo } }, context);
  }

  /**
   * What another node needs to transfer a call to one of this node. Undefined: it is no answered phone call of the
   * application.
   */
  replacement(appUuid: string, sessionUuid: string): Replacement | undefined {
    const actor = this.#here.get(sessionUuid);
    if (actor === undefined || !isAnsweredCall(actor, appUuid)) return undefined;
    return { referTo: actor.transfers?.replacement(), trunk: actor.transfers?.trunk };
  }

  /**
   * The live Session of the application, on this node, whose call a Replaces names. All are looked at: 10,000 take less
   * than a millisecond, and a far end may ask once in a call (491 meanwhile).
   */
  named(appUuid: string, replaces: Replaces): string | undefined {
    for (const party of this.#here.values()) {
      const { state } = party;
      const isLive = state.appUuid === appUuid && state.phase !== 'ended';
      if (isLive && party.transfers?.isNamedBy(replaces) === true) return state.sessionUuid;
    }
    return undefined;
  }

  /** The same for a REFER in the call of `sessionUuid`, on any node. A call is not transferred to itself. */
  async requested(appUuid: string, sessionUuid: string, replaces: Replaces): Promise<string | undefined> {
    const found = this.named(appUuid, replaces) ?? (await this.#options.elsewhere?.named(appUuid, replaces));
    return found === sessionUuid ? undefined : found;
  }
}
