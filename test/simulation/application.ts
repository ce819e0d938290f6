/** The application: it sends commands over HTTP, again where it gets no answer, and keeps its books. */
import type { Books } from './books.ts';
import { type Command, callCommand, connectBot, dial, type Known, roomCommand, sendMessage } from './commands.ts';
import type { Action, Sending } from './plan.ts';
import type { Process } from './process.ts';
import type { Random } from './random.ts';
import type { Delivery } from './receiver.ts';
import type { Scheduler } from './scheduler.ts';
import { API_KEY, APP_UUID } from './settings.ts';

export interface ApplicationOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly books: Books;
  /** The processes that serve requests now. */
  serving(): readonly Process[];
  tell(line: string): void;
  onBreach(breach: string): void;
  /** A command was answered by a success: what it did must be durable by now. */
  onAdmitted(body: Readonly<Record<string, unknown>>): void;
}

interface CallKnown {
  session: string | undefined;
  recording: string | undefined;
}

interface Request {
  readonly command: Command;
  readonly key: string | undefined;
  readonly then: (body: Readonly<Record<string, unknown>>) => void;
  /** Its outcome is in the books. A copy that was sent beside it is not put down again. */
  isDone: boolean;
}

/** The times that a keyed request is sent again, and the pause before, in milliseconds. */
const TRIES = 12;
const PAUSE_MS = 700;
const LOOK_MS = 1_000;

/** Statuses of a correct answer. Whatever else comes is a fault of the platform. */
const EXPECTED = new Set([200, 201, 202, 204, 400, 402, 403, 404, 409, 422, 429, 502, 503, 529]);

export class Application {
  readonly #options: ApplicationOptions;
  readonly #calls = new Map<number, CallKnown>();
  readonly #rooms = new Map<number, string>();
  readonly #everyRoom = new Set<string>();
  readonly #references = new Map<string, { card?: string; cvv?: string }>();
  #keys = 0;
  #open = 0;

  constructor(options: ApplicationOptions) {
    this.#options = options;
  }

  /** A call came in, as the application hears by `session.created`. */
  incoming(call: number, session: string | undefined): void {
    this.#call(call).session = session;
    if (session !== undefined)
      this.#options.books.admitted({ what: 'the Session', field: 'session_uuid', value: session, events: /^session\.ended$/ });
  }

  act(action: Action): void {
    switch (action.do) {
      case 'dial': {
        const keep = (body: Readonly<Record<string, unknown>>) => this.#begun(action.call, body);
        const state = this.#state(action.sending);
        const room = action.room === undefined ? undefined : this.#rooms.get(action.room);
        this.#send(dial(`+1555${String(action.call).padStart(4, '0')}`, state, room, action.detects), action.sending, keep);
        break;
      }
      case 'bot': {
        const room = action.room === undefined ? undefined : this.#rooms.get(action.room);
        const command = connectBot(`wss://bot.invalid/${action.call}`, this.#state(action.sending), room);
        this.#send(command, action.sending, (body) => this.#begun(action.call, body));
        break;
      }
      case 'call_command': {
        const known = this.#known(action.call, action.room);
        const command = known === undefined ? undefined : callCommand(action.command, known);
        const keep = ({ recording_uuid: uuid }: Readonly<Record<string, unknown>>) => {
          if (typeof uuid === 'string') this.#call(action.call).recording = uuid;
        };
        if (command !== undefined) this.#send(command, action.sending, keep);
        break;
      }
      case 'room_command': {
        const command = roomCommand(action.command, this.#rooms.get(action.room));
        const keep = ({ room_id: room }: Readonly<Record<string, unknown>>) => {
          if (action.command === 'create_room' && typeof room === 'string') this.#rooms.set(action.room, room);
        };
        if (command !== undefined) this.#send(command, action.sending, keep);
        break;
      }
      case 'message':
        this.#send(sendMessage(), action.sending, () => {});
        break;
    }
  }

  /** The application has what it wanted: it deletes its Rooms, and hangs up. */
  leave(): void {
    const surely: Sending = { isKeyed: true, isDoubled: false };
    for (const room of this.#everyRoom) this.#send({ method: 'DELETE', path: `/api/v1/rooms/${room}` }, surely, () => {});
    for (const { session } of this.#calls.values())
      if (session !== undefined) this.#send({ method: 'DELETE', path: `/v1/sessions/${session}` }, surely, () => {});
  }

  /** Requests that are not answered yet, or may still be sent again. */
  get open(): number {
    return this.#open;
  }

  /** A webhook was received: rooms and references of cards are known by it. */
  heard({ body }: Delivery): void {
    const { event, room_id: room, session_uuid: session, card_uuid: card, cvv_uuid: cvv } = JSON.parse(body);
    if (event === 'room.created') this.#everyRoom.add(room);
    if (typeof card === 'string') this.#references.set(session, { ...this.#references.get(session), card });
    if (typeof cvv === 'string') this.#references.set(session, { ...this.#references.get(session), cvv });
  }

  #call(number: number): CallKnown {
    const known = this.#calls.get(number) ?? { session: undefined, recording: undefined };
    this.#calls.set(number, known);
    return known;
  }

  #begun(number: number, { session_uuid: session }: Readonly<Record<string, unknown>>): void {
    if (typeof session === 'string') this.#call(number).session = session;
  }

  #known(call: number, room: number): Known | undefined {
    const { session, recording } = this.#call(call);
    if (session === undefined) return undefined;
    const { card, cvv } = this.#references.get(session) ?? {};
    return { session, recording, room: this.#rooms.get(room), card, cvv };
  }

  /** A name for what a command makes, by which a double is seen where it had a key. */
  #state({ isKeyed }: Sending): string {
    return `${isKeyed ? 'keyed' : 'open'} ${this.#keys + 1}`;
  }

  #send(command: Command, { isKeyed, isDoubled }: Sending, then: Request['then']): void {
    this.#keys += 1;
    const key = isKeyed && command.method !== 'GET' ? `key-${this.#keys}` : undefined;
    const request: Request = { command, key, then, isDone: false };
    this.#try(request, 0);
    if (isDoubled && key !== undefined) this.#try(request, 0);
  }

  #try(request: Request, tries: number): void {
    const { scheduler, random, serving, tell } = this.#options;
    let isAgain = false;
    const again = () => {
      if (isAgain || request.key === undefined || tries >= TRIES || request.isDone) return;
      isAgain = true;
      this.#open += 1;
      scheduler.after(PAUSE_MS * random.between(0.5, 1 + tries), () => {
        this.#open -= 1;
        this.#try(request, tries + 1);
      });
    };
    const process = random.pick(serving());
    if (process === undefined) {
      again();
      return;
    }
    const { method, path, body } = request.command;
    tell(`${process.place} ← ${method} ${path}${request.key === undefined ? '' : ` (${request.key})`}`);
    scheduler.after(random.between(0.2, 10), () => {
      const app = process.running?.app();
      if (app === undefined) {
        again();
        return;
      }
      const asked = new Request(`http://simulated.invalid${path}`, {
        method,
        headers: {
          authorization: `Bearer ${APP_UUID}:${API_KEY}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(request.key === undefined ? {} : { 'idempotency-key': request.key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      this.#open += 1;
      let isUnderWay = true;
      const end = () => {
        if (isUnderWay) this.#open -= 1;
        isUnderWay = false;
      };
      process.pass(() => {
        if (!process.isAlive) return;
        void app
          .fetch(asked)
          .then(async (response) => this.#answered(request, process, response.status, await response.text(), again, end));
      });
      this.#watch(request, process, again, end);
    });
  }

  /** A process that dies closes its connections: the request is sent again. */
  #watch(request: Request, process: Process, again: () => void, end: () => void): void {
    this.#options.scheduler.after(LOOK_MS, () => {
      if (process.isAlive && !request.isDone) {
        this.#watch(request, process, again, end);
        return;
      }
      end();
      again();
    });
  }

  #answered(request: Request, process: Process, status: number, text: string, again: () => void, end: () => void): void {
    const { scheduler, random, tell, onBreach, books, onAdmitted } = this.#options;
    if (!process.isAlive) return;
    const { method, path, follows } = request.command;
    tell(`${process.place} → ${status} ${method} ${path}${status >= 400 ? ` ${text.slice(0, 160)}` : ''}`);
    if (!EXPECTED.has(status)) onBreach(`${method} ${path} was answered ${status}: ${text.slice(0, 300)}`);
    const body: Readonly<Record<string, unknown>> = text === '' ? {} : JSON.parse(text);
    if (status < 300) onAdmitted(body);
    scheduler.after(random.between(0.2, 10), () => {
      if (!process.isAlive) return;
      end();
      if (status === 503 || status === 429 || /in progress/.test(String(body.message))) {
        again();
        return;
      }
      if (request.isDone) return;
      request.isDone = true;
      if (status >= 300) return;
      for (const each of follows?.(body) ?? []) books.admitted(each);
      request.then(body);
    });
  }
}
