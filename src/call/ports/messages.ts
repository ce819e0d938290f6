/** Short messages as the doors see them. */

import type { MessageQuery } from '../../database/messages.ts';
import type { MessageState } from '../../machine/message/message.ts';
import type { Problem } from '../../problem.ts';
import type { Answer, CommandContext } from './sessions.ts';

export interface MessageRequest {
  /** E.164, both. */
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

export interface Messages {
  /** 403 where the application may not send from that number, 503 where no provider is configured. */
  send(request: MessageRequest, context: CommandContext): Promise<Answer | Problem>;
  get(appUuid: string, messageUuid: string): Promise<MessageState | undefined>;
  list(appUuid: string, query: MessageQuery): Promise<readonly MessageState[] | Problem>;
}
