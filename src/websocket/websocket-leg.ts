/**
 * The leg of a `websocket` Session: an application's WebSocket server as the far end of a call (interface, Sessions;
 * contract §2).
 */
import type { TurnBudget } from '../bounds/turn-budget.ts';
import type { Leg, LegListener, RoomNews, WebSocketOptions } from '../call/ports/leg.ts';
import type { Clock } from '../clock.ts';
import type { HangupBy, HangupCause } from '../event/hangup.ts';
import type { WebSocketClosed, WebSocketError, WebSocketFailure } from '../event/websocket-event.ts';
import type { LegAudio, MediaNotice } from '../media/engine.ts';
import type { StreamLeg, StreamLegOptions } from '../media/leg/stream.ts';
import { isToldByEnd } from '../notice/signal.ts';
import type { Connect } from '../outbound/connect.ts';
import { WebSocketConnection } from './connection.ts';
import { ControlledAudio, SUBPROTOCOL } from './control.ts';
import { type Dialect, type DialectOptions, RawAudio } from './dialect.ts';
import { PassedMarks } from './passed-marks.ts';
import { TwilioMedia } from './twilio.ts';

const TWILIO = 'twilio';

export interface WebSocketLegOptions extends WebSocketOptions {
  readonly connect: Connect;
  readonly clock: Clock;
  readonly media: StreamMedia;
  /** The turns of the event loop in which marks that have passed are told. */
  readonly markTurns: TurnBudget;
}

/** The media engine as this door needs it. */
interface StreamMedia {
  /** Opens a leg, or resolves with undefined when no worker is alive. */
  openStreamLeg(options: StreamLegOptions, notify: (notice: MediaNotice) => void): Promise<StreamLeg | undefined>;
}

export class WebSocketLeg implements Leg {
  readonly #options: WebSocketLegOptions;
  readonly #connection: WebSocketConnection;
  readonly #marks: PassedMarks;
  #audio: StreamLeg | undefined;
  #dialect: Dialect | undefined;
  #closing = false;
  #over = false;

  constructor(options: WebSocketLegOptions) {
    this.#options = options;
    const { sessionUuid, appUuid, traceparent, connect, clock, subprotocol, connectTimeoutMs, markTurns: turns } = options;
    this.#marks = new PassedMarks({ appUuid, turns, tell: (name) => this.#dialect?.played(name) });
    this.#connection = new WebSocketConnection({
      url: new URL(options.url),
      appUuid,
      headers: { ...options.headers, traceparent, 'X-Session-Uuid': sessionUuid },
      // Twilio offers none, and a server written for it may refuse one.
      subprotocol: subprotocol === TWILIO ? undefined : subprotocol,
      connectTimeoutMs,
      connect,
      clock,
      onOpen: (agreed) => this.#opened(agreed),
      onFailed: (reason, error) => {
        const cause = causeOf(error);
        const end = { cause, by: failedBy(reason, cause), description: 'The WebSocket could not be opened' };
        this.#end({ type: 'leg.failed', reason, error, end });
      },
      onBinary: (bytes) => this.#dialect?.binary(bytes) ?? true,
      onText: (text) => this.#dialect?.text(text) ?? true,
      readsText: () => this.#dialect?.readsText ?? false,
      onClosed: (reason, closeCode) => this.#end({ type: 'leg.disconnected', reason, closeCode, end: endOf(reason) }),
    });
  }

  /** The audio first, so that nothing of what the server says at once is lost; then the connection. */
  start(): void {
    void this.#start();
  }

  async #start(): Promise<void> {
    const { fromSession, toSession, media } = this.#options;
    const audio = await media.openStreamLeg(
      {
        fromSession,
        toSession,
        onFrame: (frame) => this.#dialect?.frame(frame),
        onRoom: () => this.#connection.resume(),
        onPlayed: (durationMs) => this.#say({ type: 'leg.played', durationMs }),
        onMark: (name) => this.#marks.add(name),
      },
      (notice) => {
        if (!this.#closing || !isToldByEnd(notice)) this.#say({ type: 'leg.media', notice });
      },
    );
    if (this.#closing) {
      void audio?.close();
      return;
    }
    if (audio === undefined) {
      const end = { cause: 'failed', by: 'system', description: 'No media worker is available' } as const;
      this.#end({ type: 'leg.failed', reason: 'connection_precondition_failed', error: 'internal', end });
      return;
    }
    this.#audio = audio;
    await this.#connection.open();
  }

  #opened(agreed: string): void {
    const { sessionUuid, appUuid, fromSession, toSession, subprotocol, parameters, phoneSessionUuid } = this.#options;
    const options: DialectOptions = {
      sessionUuid,
      appUuid,
      fromSession,
      toSession,
      parameters,
      phoneSessionUuid,
      order: (order) => this.#options.order(order),
      send: (text) => this.#connection.sendText(text),
      sendBinary: (bytes) => void this.#connection.send(bytes),
      write: (bytes) => this.#audio?.write(bytes) ?? true,
      clear: () => this.#audio?.clear(),
      pause: (on) => this.#audio?.pause(on),
      mark: (name) => this.#audio?.mark(name) ?? false,
    };
    const Speaks = subprotocol === TWILIO ? TwilioMedia : agreed === SUBPROTOCOL ? ControlledAudio : RawAudio;
    this.#dialect = new Speaks(options);
    this.#dialect.start();
    const spoken = subprotocol === TWILIO ? TWILIO : agreed;
    this.#say(spoken === '' ? { type: 'leg.connected' } : { type: 'leg.connected', subprotocol: spoken });
  }

  #say(signal: Parameters<LegListener>[0]): void {
    // A recording is finished when the leg is gone.
    const isRecording = signal.type === 'leg.media' && 'recordingUuid' in signal.notice;
    if (!this.#over || isRecording) this.#options.listener(signal);
  }

  /** The last signal, once; the audio is given back first, so that its last notices come before. */
  #end(signal: Parameters<LegListener>[0]): void {
    if (this.#closing) return;
    const audio = this.#audio;
    this.#audio = undefined;
    this.#closing = true;
    this.#marks.drop();
    const tell = () => {
      this.#say(signal);
      this.#over = true;
    };
    if (audio === undefined) tell();
    else audio.close().then(tell, tell);
  }

  hear(news: RoomNews): void {
    this.#dialect?.hear(news);
  }

  hangup(): void {
    const wasOpen = this.#connection.isOpen;
    if (wasOpen) this.#dialect?.stop();
    this.#connection.close();
    if (wasOpen) return;
    this.#end({ type: 'leg.ended', end: { cause: 'cancelled', by: 'caller', description: 'Given up before it was connected' } });
  }

  get audio(): LegAudio | undefined {
    return this.#audio;
  }

  // A WebSocket does not ring and is not answered: its machine never asks for these.
  ring(): void {}
  startEarlyMedia(): void {}
  answer(): void {}
  reject(): void {
    this.hangup();
  }
  cancel(): void {
    this.hangup();
  }
}

const causeOf = (error: WebSocketError): HangupCause =>
  error === 'timeout'
    ? 'timeout'
    : error === 'http_4xx' || error === 'policy'
      ? 'rejected'
      : error === 'internal'
        ? 'failed'
        : 'carrier_unreachable';

/** Tells who ended what could not be opened: our own rules and limits of time, the way to the server, or its answer. */
function failedBy(reason: WebSocketFailure, cause: HangupCause): HangupBy {
  if (cause === 'timeout' || reason === 'connection_precondition_failed') return 'system';
  return cause === 'carrier_unreachable' ? 'network' : 'callee';
}

const CLOSED: Readonly<Record<WebSocketClosed, readonly [HangupCause, HangupBy, string]>> = {
  remote_closed: ['completed', 'callee', 'The WebSocket server closed the connection'],
  local_closed: ['completed', 'caller', 'The connection was closed'],
  keepalive_timeout: ['failed', 'system', 'The WebSocket server did not answer pings'],
  protocol_error: ['failed', 'callee', 'The WebSocket server broke the protocol'],
  network_error: ['failed', 'network', 'The connection was lost'],
};

function endOf(reason: WebSocketClosed) {
  const [cause, by, description] = CLOSED[reason];
  return { cause, by, description };
}
