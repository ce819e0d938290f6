/**
 * The emission contract (interface, Events), as a checker of what a receiver got: which event may follow which, and
 * what must come exactly once. It takes deliveries in the order of their receipt. A delivery that is repeated is no
 * breach (delivery is at least once), unless its bytes differ.
 */
import { MessageRules, RecordingRules, RoomRules } from './room-rules.ts';
import { type Body, SessionRules } from './session-rules.ts';

export class EmissionChecker {
  readonly #bodies = new Map<string, string>();
  readonly #sessions = new Map<string, SessionRules>();
  readonly #rooms = new Map<string, RoomRules>();
  readonly #recordings = new Map<string, RecordingRules>();
  readonly #messages = new Map<string, MessageRules>();
  #events = 0;

  /** Events so far, each counted once. */
  get events(): number {
    return this.#events;
  }

  /** Takes a delivery. Returns what is wrong with it, in words; nothing for a sample (`test: true`). */
  take(webhookId: string, text: string): readonly string[] {
    const wrong = /^evt_[0-9a-f-]{36}$/.test(webhookId) ? [] : [`the webhook id ${JSON.stringify(webhookId)} is not evt_<uuid>`];
    let body: Body;
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed !== 'object' || parsed === null) return [...wrong, 'the body is no object'];
      body = { ...parsed };
    } catch {
      return [...wrong, 'the body is no JSON'];
    }
    if (body.test === true) return wrong;
    const known = this.#bodies.get(`${String(body.aud)} ${webhookId}`);
    if (known !== undefined) return known === text ? wrong : [...wrong, `${webhookId} came again with other bytes`];
    this.#bodies.set(`${String(body.aud)} ${webhookId}`, text);
    this.#events += 1;
    return [...wrong, ...this.#form(body), ...this.#rules(String(body.event), body)];
  }

  /** What is missing when nothing more comes. */
  end(): readonly string[] {
    return [
      ...[...this.#sessions].filter(([, { isEnded }]) => !isEnded).map(([uuid]) => `session ${uuid}: no session.ended`),
      ...[...this.#recordings].filter(([, { isOpen }]) => isOpen).map(([uuid]) => `recording ${uuid}: no recording.ended`),
    ];
  }

  #form(body: Body): readonly string[] {
    const wrong: string[] = [];
    if (typeof body.aud !== 'string' || body.aud === '') wrong.push('aud is missing');
    if (typeof body.event !== 'string' || body.event === '') wrong.push('event is missing');
    if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/.test(String(body.timestamp)))
      wrong.push('timestamp is not RFC 3339 in UTC with three digits');
    return wrong;
  }

  #rules(event: string, body: Body): readonly string[] {
    const { session_uuid: session, room_id: room, recording_uuid: recording, message_uuid: message } = body;
    const about = (kind: string, id: unknown, wrong: readonly string[]) => wrong.map((each) => `${kind} ${String(id)}: ${each}`);
    return [
      ...(typeof session === 'string'
        ? about('session', session, of(this.#sessions, session, () => new SessionRules()).take(event, body))
        : []),
      ...(typeof room === 'string' ? about('room', room, of(this.#rooms, room, () => new RoomRules()).take(event, body)) : []),
      ...(typeof recording === 'string'
        ? about('recording', recording, of(this.#recordings, recording, () => new RecordingRules()).take(event))
        : []),
      ...(typeof message === 'string'
        ? about('message', message, of(this.#messages, message, () => new MessageRules()).take(event, body))
        : []),
    ];
  }
}

function of<T>(map: Map<string, T>, id: string, make: () => T): T {
  const known = map.get(id);
  if (known !== undefined) return known;
  const made = make();
  map.set(id, made);
  return made;
}
