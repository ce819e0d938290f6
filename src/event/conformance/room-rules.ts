/** What the events of one Room, one recording and one message may be, in the order in which they come. */
import type { Body } from './session-rules.ts';

export class RoomRules {
  #count = 0;
  /** How it was deleted. After a `timeout` those who had not left by then leave late. */
  #deleted: 'closed' | 'timeout' | undefined;
  readonly #members = new Map<string, { isTalking: boolean }>();
  readonly #told = new Set<string>();

  take(event: string, body: Body): readonly string[] {
    const wrong: string[] = [];
    const isLate = this.#deleted === 'timeout' && this.#members.has(String(body.session_uuid));
    if (this.#deleted !== undefined && !isLate && !event.startsWith('recording.')) wrong.push(`${event} after room.deleted`);
    if (event === 'room.created' && this.#count > 0) wrong.push('room.created is not the first event of its Room');
    this.#count += 1;
    return [...wrong, ...this.#own(event, body)];
  }

  #own(event: string, body: Body): readonly string[] {
    const member = String(body.session_uuid);
    switch (event) {
      case 'room.deleted': {
        this.#deleted = body.reason === 'timeout' ? 'timeout' : 'closed';
        if (this.#deleted === 'timeout') return [];
        return [...this.#members.keys()].map((uuid) => `room.deleted before room.member.left of ${uuid}`);
      }
      case 'room.member.joined': {
        const wrong = this.#members.has(member) ? [`room.member.joined twice for ${member}`] : [];
        this.#members.set(member, { isTalking: false });
        return wrong;
      }
      case 'room.member.left': {
        const wrong =
          this.#members.get(member)?.isTalking === true ? [`room.member.left of ${member}, who is told to be talking`] : [];
        this.#members.delete(member);
        return wrong;
      }
      case 'room.member.voice_activity_changed': {
        const known = this.#members.get(member);
        if (known === undefined) return [`${event} of ${member}, who is no member`];
        const isTalking = body.talking === true;
        const wrong = known.isTalking === isTalking ? [`${event} of ${member} tells ${isTalking} twice`] : [];
        known.isTalking = isTalking;
        return wrong;
      }
      case 'room.playback.ended':
      case 'room.playback.failed':
        return this.#once('room.playback', event, body);
      case 'room.member.volume_changed':
      case 'room.member.volume_change_failed':
        return this.#once(`room.member.volume ${member}`, event, body);
      default:
        return [];
    }
  }

  #once(kind: string, event: string, body: Body): readonly string[] {
    const name = `${kind} ${String(body.operation_uuid)}`;
    if (this.#told.has(name)) return [`${event} twice for the operation ${String(body.operation_uuid)}`];
    this.#told.add(name);
    return [];
  }
}

export class RecordingRules {
  #begun: 'not' | 'available' | 'failed' = 'not';
  #isEnded = false;
  #isSpeaking = false;

  /** Whether its end is still to come. */
  get isOpen(): boolean {
    return this.#begun !== 'not' && !this.#isEnded;
  }

  take(event: string): readonly string[] {
    switch (event) {
      case 'recording.became_available':
      case 'recording.failed': {
        const wrong =
          this.#begun === 'not'
            ? []
            : [`${event}, and it had ${this.#begun === 'failed' ? 'failed' : 'become available'} before`];
        const late = this.#isEnded ? [`${event} after recording.ended`] : [];
        this.#begun = event === 'recording.failed' ? 'failed' : 'available';
        return [...wrong, ...late];
      }
      case 'recording.ended': {
        const wrong = this.#isEnded ? ['recording.ended twice'] : [];
        this.#isEnded = true;
        return wrong;
      }
      case 'recording.speech.started':
      case 'recording.speech.ended': {
        const isStart = event === 'recording.speech.started';
        const wrong = [
          ...(this.#isSpeaking === isStart ? [`${event} ${isStart ? 'twice' : 'before recording.speech.started'}`] : []),
          ...(this.#isEnded ? [`${event} after recording.ended`] : []),
        ];
        this.#isSpeaking = isStart;
        return wrong;
      }
      default:
        return [];
    }
  }
}

const STATUSES = ['queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed'];

export class MessageRules {
  #status = -1;
  #isReceived = false;

  /** What came from a telephone is told once. A status of what is sent only goes forward; the last three are ends. */
  take(event: string, body: Body): readonly string[] {
    if (event === 'message.received') {
      const wrong = this.#isReceived ? ['message.received twice'] : [];
      this.#isReceived = true;
      return wrong;
    }
    const status = STATUSES.indexOf(String(body.status));
    const wrong =
      status < 0
        ? [`message.status_changed has the unknown status ${String(body.status)}`]
        : status <= this.#status || this.#status >= STATUSES.indexOf('delivered')
          ? [`message.status_changed to ${STATUSES[status]} after ${STATUSES[this.#status]}`]
          : [];
    this.#status = Math.max(this.#status, status);
    return wrong;
  }
}
