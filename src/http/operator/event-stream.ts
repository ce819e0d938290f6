/**
 * The event log as server-sent events (WHATWG HTML §9.2): what is in it after `Last-Event-ID`, then what is added. A
 * stream reads the log only as fast as its reader takes it, so it holds one page of events at most.
 */
import type { Clock } from '../../clock.ts';
import type { EventTail } from '../../database/event/event-tail.ts';
import type { EventLog, LoggedEvent } from '../../database/event/events.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import {
  EVENT_STREAM_BEHIND_MAX_BYTES,
  EVENT_STREAM_COMMENT_MS,
  EVENT_STREAM_PAGE_BYTES,
  EVENT_STREAM_PAGE_EVENTS,
  EVENT_STREAMS_MAX,
} from '../../limits.ts';

/** The header fields that a delivery of an event would have now. */
export type SignEvent = (appUuid: string, webhookId: string, body: string) => Promise<Readonly<Record<string, string>>>;

export interface EventStreamsOptions {
  readonly events: Pick<EventLog, 'list'>;
  readonly tail: EventTail;
  readonly clock: Clock;
  readonly sign: SignEvent;
}

export interface StreamRequest {
  readonly appUuid: string | undefined;
  /** The position that the reader has already. Undefined: it wants what is new from now on. */
  readonly after: number | undefined;
  /** Whether each event comes with the header fields of its delivery. */
  readonly signed: boolean;
  /** Whether its reader may go on. It is asked every EVENT_STREAM_COMMENT_MS; with false the stream ends. */
  isStillAdmitted(): Promise<boolean>;
}

const ENCODER = new TextEncoder();

export class EventStreams {
  readonly #options: EventStreamsOptions;
  #open = 0;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open;
  }

  /** The body of a new stream, or undefined when there are EVENT_STREAMS_MAX. Rejects when the log cannot be read. */
  async open(request: StreamRequest): Promise<ReadableStream<Uint8Array> | undefined> {
    if (this.#open >= EVENT_STREAMS_MAX) return undefined;
    this.#open += 1;
    try {
      const { tail } = this.#options;
      const bounds = request.after === undefined ? undefined : await tail.bounds();
      // The stream follows in the same turn: else the tail could move on in between, and the stream would not be told.
      const end = await tail.position();
      const lostBefore = request.after === undefined ? undefined : lostBetween(request.after, end, bounds);
      const stream = new EventStream(this.#options, request, end, () => {
        this.#open -= 1;
      });
      return stream.body(lostBefore);
    } catch (error) {
      this.#open -= 1;
      throw error;
    }
  }
}

/**
 * The position up to which a reader that has `after` has missed events. Undefined where it can go on. A position that
 * was never given is of another log, as after a restored backup: such a reader goes on from the end.
 */
function lostBetween(
  after: number,
  end: number,
  bounds: { readonly first: number; readonly last: number } | undefined,
): number | undefined {
  const { first, last } = bounds ?? { first: 1, last: 0 };
  if (after > Math.max(end, last)) return end;
  return after + 1 < first ? first - 1 : undefined;
}

class EventStream {
  readonly #options: EventStreamsOptions;
  readonly #request: StreamRequest;
  readonly #closed: () => void;
  readonly #unfollow: () => void;
  /** The last position that was given, and the one up to which the log is complete. */
  #position: number;
  #end: number;
  /** Bytes that were added to the log while the reader has not taken what it was given. */
  #behind = 0;
  #wanted = false;
  #admittedUntil: number;
  #over = false;
  #wake: () => void = () => {};
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(options: EventStreamsOptions, request: StreamRequest, end: number, closed: () => void) {
    this.#options = options;
    this.#request = request;
    this.#closed = closed;
    this.#end = end;
    this.#position = request.after ?? end;
    this.#admittedUntil = options.clock.now() + EVENT_STREAM_COMMENT_MS;
    const grown = (position: number, bytes: number) => {
      this.#end = position;
      if (!this.#wanted) this.#behind += bytes;
      if (this.#behind > EVENT_STREAM_BEHIND_MAX_BYTES) this.#abort();
      this.#wake();
    };
    // A reader whose log became another one comes back with an id that was never given there, and is told so.
    this.#unfollow = options.tail.follow(grown, () => this.#abort());
  }

  /** `lostBefore`: events up to that position are gone from the log, and the reader is told so. */
  body(lostBefore: number | undefined): ReadableStream<Uint8Array> {
    // A reader that comes back before its first event has an id to go on from.
    let first = `: events\nid: ${this.#position}\n\n`;
    if (lostBefore !== undefined) {
      this.#position = lostBefore;
      first = `: events\n\nid: ${lostBefore}\nevent: gap\ndata: {}\n\n`;
    }
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: async (controller) => {
          this.#wanted = true;
          this.#behind = 0;
          const text = first === '' ? await this.#next() : first;
          first = '';
          this.#wanted = false;
          if (this.#over) return;
          if (await this.#isAdmitted()) controller.enqueue(ENCODER.encode(text));
          else this.#abort();
        },
        cancel: () => this.#close(),
      },
      { highWaterMark: 0 },
    );
  }

  /** The next page of events, or a comment when none has come by the time of the next look at the credentials. */
  async #next(): Promise<string> {
    const { clock, events } = this.#options;
    const until = this.#admittedUntil;
    while (!this.#over) {
      const end = this.#end;
      if (this.#position < end) {
        const page = await this.#read(events, end);
        if (page !== '') return page;
        continue;
      }
      if (clock.now() >= until) return ': nothing new\n\n';
      await this.#news(until);
    }
    return '';
  }

  /** Asks for its reader's credentials again once EVENT_STREAM_COMMENT_MS have passed. A database away ends it, too. */
  async #isAdmitted(): Promise<boolean> {
    const now = this.#options.clock.now();
    if (now < this.#admittedUntil) return true;
    this.#admittedUntil = now + EVENT_STREAM_COMMENT_MS;
    return await this.#request.isStillAdmitted().catch(() => false);
  }

  async #read(events: Pick<EventLog, 'list'>, end: number): Promise<string> {
    const { appUuid } = this.#request;
    try {
      const page: readonly LoggedEvent[] = await events.list({
        appUuid,
        sessionUuid: undefined,
        status: undefined,
        after: this.#position,
        limit: EVENT_STREAM_PAGE_EVENTS,
        maxBytes: EVENT_STREAM_PAGE_BYTES,
      });
      const ready = page.filter(({ eventId }) => eventId <= end);
      const text = (await Promise.all(ready.map((event) => this.#text(event)))).join('');
      // A page with fewer events than it might have may have ended at its bytes.
      this.#position = ready.at(-1)?.eventId ?? end;
      return text;
    } catch {
      // The database is away: the reader comes back with its last id.
      this.#abort();
      return '';
    }
  }

  async #text({ eventId, name, appUuid, webhookId, body }: LoggedEvent): Promise<string> {
    const data = this.#request.signed
      ? JSON.stringify({ webhook_id: webhookId, headers: await this.#signed(appUuid, webhookId, body), body })
      : `{"webhook_id":${JSON.stringify(webhookId)},${body.slice(1)}`;
    return `id: ${eventId}\nevent: ${name}\ndata: ${data}\n\n`;
  }

  /** An event whose application has no secret that opens is not signed, and keeps no other from its reader. */
  #signed(...event: Parameters<SignEvent>): ReturnType<SignEvent> {
    return this.#options.sign(...event).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) throw error;
      return {};
    });
  }

  #news(until: number): Promise<void> {
    return new Promise((resolve) => {
      const disarm = this.#options.clock.at(until, resolve);
      this.#wake = () => {
        disarm();
        resolve();
      };
    });
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#unfollow();
    this.#closed();
    this.#wake();
  }

  /** The reader is too far behind, or the log cannot be read: the connection breaks off. */
  #abort(): void {
    if (this.#over) return;
    this.#close();
    this.#controller?.error(undefined);
  }
}
