/** What the events of one Session may be, in the order in which they come (interface, Events). */

/** The body of an event, as it came. */
export type Body = Readonly<Record<string, unknown>>;

const PROGRESS: readonly string[] = ['session.ringing_started', 'session.early_media_started', 'session.answered'];
/** What may still come after the end: a recording that is finished late, and the outcome of a payment. */
const AFTER_END = /^(recording\.(became_available|ended|failed)|payment\.)/;
/** Events that are told once for each operation. */
const ONCE = new Set([
  'dtmf.sent',
  'digits.collected',
  'session.transfer.completed',
  'session.transfer.failed',
  'payment.card.collected',
  'payment.cvv.collected',
  'payment.charge.completed',
]);

export class SessionRules {
  #count = 0;
  #isEnded = false;
  #rank = 0;
  #isAnswered = false;
  #isConnected = false;
  #detection: 'none' | 'human' | 'machine' | 'over' = 'none';
  readonly #held = new Map<string, boolean>();
  readonly #playing = new Set<string>();
  readonly #played = new Set<string>();
  readonly #told = new Set<string>();
  readonly #rooms = new Set<string>();

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Takes the next event of the Session. Returns what is wrong with it, in words. */
  take(event: string, body: Body): readonly string[] {
    const wrong = [...this.#order(event), ...this.#own(event, body)];
    this.#count += 1;
    return wrong;
  }

  #order(event: string): readonly string[] {
    const wrong: string[] = [];
    if (this.#isEnded && !AFTER_END.test(event)) wrong.push(`${event} after session.ended`);
    if (event === 'session.created' && this.#count > 0) wrong.push('session.created is not the first event of its Session');
    const rank = PROGRESS.indexOf(event) + 1;
    if (rank > 0) {
      if (rank <= this.#rank) wrong.push(`${event} after ${PROGRESS[this.#rank - 1]}`);
      this.#rank = Math.max(rank, this.#rank);
    }
    return wrong;
  }

  #own(event: string, body: Body): readonly string[] {
    if (event.startsWith('playback.')) return this.#playback(event, body);
    if (event.startsWith('room.member.')) return this.#member(event, body);
    if (event.startsWith('websocket.')) return this.#webSocket(event);
    if (ONCE.has(event)) return this.#once(event, body);
    switch (event) {
      case 'session.answered':
        this.#isAnswered = true;
        return [];
      case 'session.held':
      case 'session.resumed': {
        const by = String(body.by ?? 'far_end');
        const isHeld = event === 'session.held';
        const wrong = (this.#held.get(by) ?? false) === isHeld ? [`${event} by ${by} twice`] : [];
        this.#held.set(by, isHeld);
        return wrong;
      }
      case 'session.machine_detection.completed':
        return this.#detected(body);
      case 'session.machine_greeting.ended': {
        const wrong = this.#detection === 'machine' ? [] : [`${event} without a machine that was told before`];
        this.#detection = 'over';
        return wrong;
      }
      case 'session.ended':
        return this.#end(body);
      default:
        return [];
    }
  }

  #detected(body: Body): readonly string[] {
    const wrong = [
      ...(this.#detection === 'none' ? [] : ['session.machine_detection.completed twice']),
      ...(this.#isAnswered ? [] : ['session.machine_detection.completed before session.answered']),
    ];
    this.#detection = body.result === 'machine' ? 'machine' : 'human';
    return wrong;
  }

  #playback(event: string, body: Body): readonly string[] {
    const operation = String(body.operation_uuid);
    if (event === 'playback.started') {
      const wrong =
        this.#playing.has(operation) || this.#played.has(operation) ? [`playback.started twice for ${operation}`] : [];
      this.#playing.add(operation);
      return wrong;
    }
    // A command that found nothing playing is told so under its own operation.
    if (body.reason === 'no_active_playback') return [];
    const wrong = this.#played.has(operation) ? [`${event} although the playback ${operation} was over`] : [];
    this.#playing.delete(operation);
    this.#played.add(operation);
    return wrong;
  }

  #member(event: string, body: Body): readonly string[] {
    const room = String(body.room_id);
    if (event === 'room.member.joined') {
      const wrong = this.#rooms.size > 0 ? ['room.member.joined while it is a member of a Room'] : [];
      this.#rooms.add(room);
      return wrong;
    }
    // A member that goes before its first mixed audio never joined by its events, and its leaving is told all the same.
    if (event === 'room.member.left') this.#rooms.delete(room);
    return [];
  }

  #webSocket(event: string): readonly string[] {
    const wrong: string[] = [];
    if (event === 'websocket.connected') {
      if (this.#isConnected) wrong.push('websocket.connected twice');
      this.#isConnected = true;
    } else if (event === 'websocket.failed' ? this.#isConnected : !this.#isConnected) {
      wrong.push(
        event === 'websocket.failed' ? 'websocket.failed after websocket.connected' : `${event} before websocket.connected`,
      );
    }
    return wrong;
  }

  #once(event: string, body: Body): readonly string[] {
    // A transfer has one outcome, whichever it is.
    const name = `${event.startsWith('session.transfer') ? 'session.transfer' : event} ${String(body.operation_uuid)}`;
    if (this.#told.has(name)) return [`${event} twice for the operation ${String(body.operation_uuid)}`];
    this.#told.add(name);
    return [];
  }

  #end(body: Body): readonly string[] {
    const wrong: string[] = [];
    if (this.#isEnded) wrong.push('session.ended twice');
    this.#isEnded = true;
    if (body.answered === true && !this.#isAnswered && !this.#isConnected)
      wrong.push('session.ended says answered, and no session.answered came');
    if (body.answered === false && body.duration_seconds !== 0) wrong.push('session.ended says not answered, and has a duration');
    for (const operation of this.#playing) wrong.push(`session.ended before the end of the playback ${operation}`);
    for (const room of this.#rooms) wrong.push(`session.ended before room.member.left of ${room}`);
    if (this.#detection === 'machine') wrong.push('session.ended before session.machine_greeting.ended');
    return wrong;
  }
}
