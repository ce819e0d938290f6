/**
 * One SMPP 3.4 connection: frames, sequence numbers, timers. The codec is node-smpp's; its own session is not used,
 * because it keeps the callbacks of a lost connection for ever and goes deaf after a malformed PDU.
 */
import { connect, type Socket } from 'node:net';
import smpp from 'smpp';
import type { Clock } from '../clock.ts';
import {
  SMPP_CONNECT_TIMEOUT_MS,
  SMPP_ENQUIRE_LINK_MS,
  SMPP_LAST_RESPONSES_MS,
  SMPP_PDU_MAX_BYTES,
  SMPP_RESPONSE_TIMEOUT_MS,
  SMPP_TURN_MAX_PDUS,
  SMPP_WRITE_BUFFER_MAX_BYTES,
} from '../limits.ts';
import { HEADER_BYTES, isAnswered, type Pdu, readPdu, refusalOfFrame } from './smpp-pdu.ts';
import { ESME_RX_P_APPN } from './smpp-status.ts';

const NACK = 'generic_nack';

/** No response: `sent` tells whether the request may have reached the far end. */
export class SmppLost extends Error {
  override readonly name = 'SmppLost';
  readonly sent: boolean;
  constructor(sent: boolean, reason: string) {
    super(reason);
    this.sent = sent;
  }
}

interface Pending {
  readonly command: string;
  readonly resolve: (pdu: Pdu) => void;
  readonly reject: (error: SmppLost) => void;
  readonly cancelTimer: () => void;
}

interface SmppConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** A request of the far end; its answer is sent with `answer`. */
  readonly onRequest: (pdu: Pdu) => void;
  /** The far end is about to end the connection: it answers what it has, and takes nothing more. */
  readonly onLeaving: () => void;
  /** The connection calls it once, whatever the cause. */
  readonly onClose: (reason: string) => void;
}

export class SmppConnection {
  readonly #options: SmppConnectionOptions;
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  #held: Buffer = Buffer.alloc(0);
  #sequence = 0;
  /** The PDUs that are held wait for the next turn of the event loop. */
  #waiting = false;
  #open = false;
  #closed = false;
  #cancelEnquiry: (() => void) | undefined;
  /** The far end's unbind, which is answered when all our requests have been. */
  #unbind: Pdu | undefined;
  #cancelUnbind: (() => void) | undefined;

  /** Begins to connect; `onOpen` when there is a connection. */
  constructor(options: SmppConnectionOptions, onOpen: () => void) {
    this.#options = options;
    const { clock } = options;
    const cancelTimer = clock.at(clock.now() + SMPP_CONNECT_TIMEOUT_MS, () => this.close('connect timeout'));
    this.#socket = connect({ host: options.host, port: options.port, noDelay: true });
    this.#socket.on('connect', () => {
      cancelTimer();
      if (this.#closed) return;
      this.#open = true;
      this.#enquire();
      onOpen();
    });
    this.#socket.on('data', (bytes) => this.#read(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes));
    this.#socket.on('error', (error) => this.close('code' in error ? String(error.code) : 'network error'));
    this.#socket.on('close', () => {
      cancelTimer();
      this.close('closed by the far end');
    });
  }

  /** Sends a request and resolves with its response, whatever its status. Rejects with `SmppLost`. */
  request(command: string, fields: Readonly<Record<string, unknown>>): Promise<Pdu> {
    return new Promise((resolve, reject) => {
      if (
        !this.#open ||
        this.#closed ||
        this.#unbind !== undefined ||
        this.#socket.writableLength > SMPP_WRITE_BUFFER_MAX_BYTES
      ) {
        reject(new SmppLost(false, 'not connected'));
        return;
      }
      this.#sequence = this.#sequence >= 0x7fff_ffff ? 1 : this.#sequence + 1;
      const number = this.#sequence;
      const bytes = new smpp.PDU(command, { ...fields, sequence_number: number }).toBuffer();
      const { clock } = this.#options;
      const cancelTimer = clock.at(clock.now() + SMPP_RESPONSE_TIMEOUT_MS, () => {
        this.#pending.delete(number);
        reject(new SmppLost(true, 'no response in time'));
        // A far end that leaves a request unanswered is not to be trusted with the next.
        this.close('no response in time');
      });
      this.#pending.set(number, { command, resolve, reject, cancelTimer });
      this.#socket.write(bytes);
    });
  }

  /** Answers a request of the far end. */
  answer(request: Pdu, fields: Readonly<Record<string, unknown>> = {}): void {
    if (!this.#closed) this.#send(request.response(fields).toBuffer());
  }

  #send(response: Buffer): void {
    if (this.#socket.writableLength > SMPP_WRITE_BUFFER_MAX_BYTES) this.close('the far end does not read');
    else this.#socket.write(response);
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelEnquiry?.();
    this.#cancelUnbind?.();
    this.#socket.destroy();
    for (const { reject, cancelTimer } of this.#pending.values()) {
      cancelTimer();
      reject(new SmppLost(true, reason));
    }
    this.#pending.clear();
    this.#options.onClose(reason);
  }

  #enquire(): void {
    const { clock } = this.#options;
    this.#cancelEnquiry = clock.at(clock.now() + SMPP_ENQUIRE_LINK_MS, () => {
      this.request('enquire_link', {}).then(
        () => {
          if (!this.#closed) this.#enquire();
        },
        () => {},
      );
    });
  }

  #read(bytes: Buffer): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    if (!this.#waiting) this.#work();
  }

  /**
   * Takes the PDUs that are whole, but no more in one turn of the event loop than its budget; until the next the socket
   * is not read.
   */
  #work(): void {
    for (let taken = 0; taken < SMPP_TURN_MAX_PDUS; taken++) {
      const frame = this.#frame();
      if (frame === undefined) {
        this.#socket.resume();
        return;
      }
      const pdu = readPdu(frame);
      if (pdu === undefined) this.#refuse(frame);
      else this.#take(pdu);
    }
    this.#waiting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#waiting = false;
      this.#work();
    });
  }

  /** The next PDU that is whole. Closes the connection where the length of one cannot be. */
  #frame(): Buffer | undefined {
    if (this.#closed || this.#held.length < 4) return undefined;
    const length = this.#held.readUInt32BE(0);
    if (length < HEADER_BYTES || length > SMPP_PDU_MAX_BYTES) {
      this.close('a PDU of a length that cannot be');
      return undefined;
    }
    if (this.#held.length < length) return undefined;
    const frame = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return frame;
  }

  /**
   * Refuses a request that cannot be read, for good: the SMSC would send it again after each bind, and whatever is
   * under way would be lost with the connection each time. A response of which nothing is known ends the connection.
   */
  #refuse(frame: Buffer): void {
    const refusal = refusalOfFrame(frame, ESME_RX_P_APPN);
    if (refusal === undefined) this.close('a malformed PDU');
    else this.#send(refusal);
  }

  #take(pdu: Pdu): void {
    if (pdu.isResponse() || pdu.command === NACK) this.#takeResponse(pdu);
    else if (pdu.command === 'enquire_link') this.answer(pdu);
    else if (pdu.command === 'unbind') {
      const { clock } = this.#options;
      this.#unbind = pdu;
      this.#cancelUnbind?.();
      this.#cancelUnbind = clock.at(clock.now() + SMPP_LAST_RESPONSES_MS, () => this.#leave());
      this.#options.onLeaving();
      if (this.#pending.size === 0) this.#leave();
    } else if (isAnswered(pdu)) this.#options.onRequest(pdu);
  }

  /** Gives a response to its request. One that is none to it ends the connection. */
  #takeResponse(pdu: Pdu): void {
    const pending = this.#pending.get(pdu.sequence_number);
    if (pending !== undefined) {
      if (!tellsOf(pending.command, pdu)) {
        this.close('a response that is none to its request');
        return;
      }
      this.#pending.delete(pdu.sequence_number);
      pending.cancelTimer();
      pending.resolve(pdu);
    }
    if (this.#pending.size === 0) this.#leave();
  }

  /** Ends the connection where the far end has asked for it. */
  #leave(): void {
    if (this.#unbind === undefined) return;
    this.answer(this.#unbind);
    this.close('unbound by the far end');
  }
}

/**
 * Whether a response tells what became of its request. One to another command, or a refusal without a reason, does not,
 * and its status 0 would be taken for a success. Any is a sign of life.
 */
const tellsOf = (command: string, response: Pdu): boolean =>
  command === 'enquire_link' ||
  (response.command === NACK ? response.command_status !== 0 : response.command === `${command}_resp`);
