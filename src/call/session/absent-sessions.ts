/** Sessions that are not here, by their rows: they ended less than 24 h ago, or are on their way between two nodes. */
import type { Clock } from '../../clock.ts';
import type { FoundSession } from '../../database/call/sessions.ts';
import { type Journal, StoreUnavailable } from '../../database/journal/journal.ts';
import { ENDED_SESSION_KEPT_SEC } from '../../limits.ts';
import { afterEnd } from '../../machine/session/after-end.ts';
import { type Problem, problems } from '../../problem.ts';
import { COMMAND_RETRY_SEC } from '../mailbox.ts';
import type { Answer, CommandContext, SessionCommand } from '../ports/sessions.ts';
import { storedAnswer } from '../step-change.ts';

interface AbsentSessionsOptions {
  readonly records: { find(appUuid: string, sessionUuid: string): Promise<FoundSession | undefined> };
  readonly journal: Journal;
  readonly clock: Clock;
}

export class AbsentSessions {
  readonly #options: AbsentSessionsOptions;

  constructor(options: AbsentSessionsOptions) {
    this.#options = options;
  }

  /** Tells whether the application has such a Session, of which a command of this type may be asked. */
  async has(appUuid: string, sessionUuid: string, command: SessionCommand['type']): Promise<boolean> {
    const row = await this.#find(appUuid, sessionUuid);
    return row !== undefined && (row.endedAt === undefined || afterEnd(row, command) !== 'not_found');
  }

  /** Answers a command: a hangup of a Session that has ended is done already. */
  async command(sessionUuid: string, command: SessionCommand, context: CommandContext): Promise<Answer | Problem> {
    const row = await this.#find(context.appUuid, sessionUuid);
    if (row === undefined) return problems.notFound('Session');
    if (row.endedAt === undefined) return problems.callMoved();
    const outcome = afterEnd(row, command.type);
    if (outcome === 'not_found') return problems.notFound('Session');
    if (outcome === 'conflict') return problems.conflict('Session has already ended');
    const answer = { status: 202, body: { operation_uuid: context.operationUuid, status: 'completed', already_ended: true } };
    const stored = storedAnswer(context, answer);
    if (stored === undefined) return answer;
    try {
      await this.#options.journal.commit({ events: [], answer: stored });
    } catch (error) {
      if (error instanceof StoreUnavailable) return problems.unavailable('The database is away.', COMMAND_RETRY_SEC);
      throw error;
    }
    return answer;
  }

  /** Its row, unless it ended so long ago that it is told of no more. */
  async #find(appUuid: string, sessionUuid: string): Promise<FoundSession | undefined> {
    const row = await this.#options.records.find(appUuid, sessionUuid);
    const keptUntil = (row?.endedAt ?? Infinity) + ENDED_SESSION_KEPT_SEC * 1000;
    return keptUntil > this.#options.clock.now() ? row : undefined;
  }
}
