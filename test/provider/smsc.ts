/** A local SMSC: speaks SMPP 3.4 on a socket, keeps what it is given, sends receipts, and can misbehave. */
import { createServer, type Socket } from 'node:net';
import smpp from 'smpp';

export interface SubmitSm {
  readonly messageId: string;
  readonly from: string;
  readonly to: string;
  /** Type and plan of the source's number, then of the destination's (§5.2.5, §5.2.6). */
  readonly plans: readonly number[];
  readonly registeredDelivery: number;
  readonly dataCoding: number;
  readonly esmClass: number;
  readonly udh: Uint8Array | undefined;
  /** Octets after the header. */
  readonly octets: Uint8Array;
  readonly viaPayload: boolean;
}

/** What to do with a submission: `undefined` accepts it, `commandId` is that of a response with status 0. */
export type Misbehaviour = { readonly status: number } | { readonly commandId: number } | 'ignore' | 'drop' | undefined;

/** SMPP 3.4 §5.1.3, ESME_RALYBND. */
const ALREADY_BOUND = 0x05;
/** SMPP 3.4 §5.1.2.1. */
const UNBIND = 0x06;

let numbers = 1000;
/** Ids of one SMSC after the other: a real one does not begin again. */
const nextNumber = (): number => {
  numbers += 100_000;
  return numbers;
};

export class Smsc {
  readonly submissions: SubmitSm[] = [];
  /** Submissions seen, refused ones too. */
  attempts = 0;
  binds = 0;
  unbinds = 0;
  /** Clients that have answered an unbind of this SMSC. */
  unbindAnswers = 0;
  enquiries = 0;
  /** The number behind the last message id. */
  get lastNumber(): number {
    return this.#number;
  }
  /** Clients that are bound. */
  get bound(): number {
    return this.#bound.size;
  }
  /** Message ids as the response writes them. */
  idOf = (number: number): string => String(number);
  misbehave: (attempt: number) => Misbehaviour = () => undefined;
  bindStatus = 0;
  /** A client is asked to go in the same packet in which its bind is answered. */
  unbindsAtOnce = false;
  /** Submissions are taken at once, and answered when this has come. */
  answersAfter: Promise<unknown> | undefined;
  /** A second bind under a system_id is refused while the first is up. */
  permitsOneBind = false;
  readonly #server = createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<Socket>();
  readonly #acknowledged = new Map<number, (status: number) => void>();
  #waiting: { ready: () => boolean; resolve: () => void }[] = [];
  /** The bound clients, by system_id. */
  readonly #bound = new Map<string, Socket>();
  /**
   * What is submitted by anyone else goes on to whoever is bound as this, as a message from the telephone network
   * would.
   */
  relayTo: string | undefined;
  #number = nextNumber();
  #sequence = 0;

  static async open(port = 0): Promise<Smsc> {
    const smsc = new Smsc();
    await new Promise<void>((resolve) => smsc.#server.listen(port, '127.0.0.1', resolve));
    return smsc;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Resolves when `ready` holds after something happened here. */
  async until(ready: () => boolean, what: string): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`waited for ${what}; ${this.attempts} submissions came`)), 15_000);
    this.#waiting.push({ ready, resolve });
    await promise.finally(() => clearTimeout(timer));
  }

  /** Sends a `deliver_sm`, with more octets at its end; resolves with the status of its response. */
  deliver(fields: Readonly<Record<string, unknown>>, systemId = 'user', more = Buffer.alloc(0)): Promise<number> {
    const pdu = new smpp.PDU('deliver_sm', fields).toBuffer();
    return this.request(pdu.readUInt32BE(4), Buffer.concat([pdu.subarray(16), more]), systemId);
  }

  /** Sends a request; resolves with the status of its response. */
  request(commandId: number, body: Buffer, systemId = 'user'): Promise<number> {
    const socket = this.#bound.get(systemId);
    if (socket === undefined) return Promise.reject(new Error('nobody is bound'));
    const frame = this.frame(commandId, body);
    return new Promise((resolve) => {
      this.#acknowledged.set(this.#sequence, resolve);
      socket.write(frame);
    });
  }

  /** The octets of a request, with the next sequence number. */
  frame(commandId: number, body: Buffer): Buffer {
    this.#sequence++;
    const frame = Buffer.concat([Buffer.alloc(16), body]);
    frame.writeUInt32BE(frame.length, 0);
    frame.writeUInt32BE(commandId, 4);
    frame.writeUInt32BE(this.#sequence, 12);
    return frame;
  }

  /** The receipt most SMSCs send: text only. */
  receipt(to: string, id: string, stat = 'DELIVRD', err = '000'): Promise<number> {
    const text = `id:${id} sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:${stat} err:${err} text:`;
    return this.deliver({
      esm_class: 4,
      source_addr: to,
      destination_addr: '15550001',
      short_message: Buffer.from(text, 'latin1'),
    });
  }

  /** Cuts every connection, as a network would. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Asks the client to go, as an SMSC does before it is restarted. */
  unbind(): void {
    this.write(this.frame(UNBIND, Buffer.alloc(0)));
  }

  /** Asks the one of its clients to go that came first, though it may be bound no more. */
  unbindFirst(): void {
    const [first] = this.#sockets;
    first?.write(this.frame(UNBIND, Buffer.alloc(0)));
  }

  write(bytes: Uint8Array): void {
    this.#bound.get('user')?.write(bytes);
  }

  async close(): Promise<void> {
    this.drop();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let held: Buffer = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      held = Buffer.concat([held, typeof bytes === 'string' ? Buffer.from(bytes) : bytes]);
      while (held.length >= 4 && held.length >= held.readUInt32BE(0)) {
        const length = held.readUInt32BE(0);
        const pdu = smpp.PDU.fromBuffer(Buffer.from(held.subarray(0, length)));
        const raw = Buffer.from(held.subarray(0, length));
        held = held.subarray(length);
        if (pdu !== false) this.#take(socket, pdu, raw);
      }
      this.#waiting = this.#waiting.filter(({ ready, resolve }) => {
        if (!ready()) return true;
        resolve();
        return false;
      });
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#unbound(socket);
    });
  }

  #unbound(socket: Socket): void {
    for (const [systemId, bound] of this.#bound) if (bound === socket) this.#bound.delete(systemId);
  }

  #take(socket: Socket, pdu: InstanceType<typeof smpp.PDU>, raw: Buffer): void {
    const answer = (fields: Readonly<Record<string, unknown>>) => socket.write(pdu.response(fields).toBuffer());
    if (this.#acknowledged.has(pdu.sequence_number) && pdu.isResponse()) {
      this.#acknowledged.get(pdu.sequence_number)?.(pdu.command_status);
      this.#acknowledged.delete(pdu.sequence_number);
    } else if (pdu.command === 'unbind_resp') this.unbindAnswers++;
    else if (pdu.command === 'submit_sm') this.#submit(socket, raw, answer);
    else if (pdu.command === 'bind_transceiver') {
      this.binds++;
      const isSecond = this.permitsOneBind && this.#bound.has(String(pdu.system_id));
      const status = isSecond ? ALREADY_BOUND : this.bindStatus;
      if (status === 0) this.#bound.set(String(pdu.system_id), socket);
      const response = pdu.response({ command_status: status, system_id: 'smsc' }).toBuffer();
      socket.write(this.unbindsAtOnce ? Buffer.concat([response, this.frame(UNBIND, Buffer.alloc(0))]) : response);
    } else if (pdu.command === 'enquire_link') {
      this.enquiries++;
      answer({});
    } else if (pdu.command === 'unbind') {
      this.unbinds++;
      this.#unbound(socket);
      answer({});
    }
  }

  #submit(socket: Socket, raw: Buffer, answer: (fields: Readonly<Record<string, unknown>>) => void): void {
    this.attempts++;
    const wrong = this.misbehave(this.attempts);
    if (wrong === 'drop') socket.destroy();
    if (wrong === 'drop' || wrong === 'ignore') return;
    if (wrong !== undefined) {
      if ('status' in wrong) answer({ command_status: wrong.status });
      else {
        const response = this.frame(wrong.commandId, Buffer.alloc(0));
        raw.copy(response, 12, 12, 16);
        socket.write(response);
      }
      return;
    }
    const messageId = this.idOf(++this.#number);
    const submitted = { messageId, ...mandatoryFields(raw) };
    this.submissions.push(submitted);
    if (this.answersAfter === undefined) answer({ message_id: messageId });
    else void this.answersAfter.then(() => answer({ message_id: messageId }));
    if (this.relayTo !== undefined) void this.#relay(submitted, this.relayTo);
  }

  #relay({ from, to, dataCoding, esmClass, udh, octets }: SubmitSm, systemId: string): Promise<number> {
    const number = { source_addr_ton: 1, source_addr_npi: 1, dest_addr_ton: 1, dest_addr_npi: 1 };
    const message = Buffer.concat([udh ?? new Uint8Array(0), octets]);
    const fields = { ...number, source_addr: from, destination_addr: to, esm_class: esmClass, data_coding: dataCoding };
    return this.deliver(
      message.length > 254 ? { ...fields, message_payload: message } : { ...fields, short_message: message },
      systemId,
    );
  }
}

/** The fields of a `submit_sm` by SMPP 3.4 §4.4.1, read from the octets, not by the codec that the product uses. */
function mandatoryFields(raw: Buffer): Omit<SubmitSm, 'messageId'> {
  let at = 16;
  const text = (): string => {
    const end = raw.indexOf(0, at);
    const value = raw.toString('latin1', at, end);
    at = end + 1;
    return value;
  };
  const octet = (): number => raw[at++] ?? 0;
  text();
  const source = [octet(), octet()];
  const from = text();
  const destination = [octet(), octet()];
  const to = text();
  const esmClass = octet();
  at += 2;
  text();
  text();
  const registeredDelivery = octet();
  octet();
  const dataCoding = octet();
  octet();
  const length = octet();
  let message = new Uint8Array(raw.subarray(at, at + length));
  at += length;
  let viaPayload = false;
  while (at + 4 <= raw.length) {
    const tag = raw.readUInt16BE(at);
    const size = raw.readUInt16BE(at + 2);
    if (tag === 0x0424) {
      message = new Uint8Array(raw.subarray(at + 4, at + 4 + size));
      viaPayload = true;
    }
    at += 4 + size;
  }
  const header = (esmClass & 0x40) !== 0 ? (message[0] ?? 0) + 1 : 0;
  const udh = header === 0 ? undefined : message.subarray(0, header);
  const plans = [...source, ...destination];
  return { from, to, plans, registeredDelivery, dataCoding, esmClass, udh, octets: message.subarray(header), viaPayload };
}
