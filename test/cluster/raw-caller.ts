/**
 * A caller that is written by hand: one UDP socket for SIP and one for RTP on loopback. It answers what comes within
 * its dialog as a far end does (RFC 3261 §12.2.2: a CSeq that is not higher than the last gets 500), follows the
 * Contact and the session description of a re-INVITE, and says a tone all the while.
 */
import { createSocket, type Socket } from 'node:dgram';
import { RtpPeer } from '../support/rtp-peer.ts';
import { Speaker } from '../support/speaker.ts';

const field = (message: string, name: string): string => new RegExp(`^${name}: ([^\\r]*)`, 'im').exec(message)?.[1] ?? '';

let made = 0;

/** The call was refused. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the call was refused with ${status}`);
    this.status = status;
  }
}

export class RawCaller {
  readonly heard: string[] = [];
  readonly ear: RtpPeer;
  readonly speaker: Speaker;
  readonly callId = `raw-${process.pid}-${++made}`;
  readonly #socket: Socket;
  /** The port that requests within the dialog go to: that of the last Contact. */
  #port: number;
  #to: string;
  #cseq = 1;
  /** The highest CSeq of the far end. */
  #farNumber = 0;
  #branches = 0;
  #waiting: (() => void)[] = [];
  /** The port that audio is sent to. */
  #rtpPort = 9;
  /** What was answered to each request of the far end, as `METHOD CSeq status`. */
  readonly answered: string[] = [];
  /**
   * The answer to a request within the dialog, as `488 Not Acceptable Here`; it has no description. Undefined: the
   * request is answered as by a far end.
   */
  refusal: ((request: string) => string | undefined) | undefined;
  /** It answers nothing. */
  isDeaf = false;

  private constructor(socket: Socket, ear: RtpPeer, hz: number, port: number, number: string) {
    this.#socket = socket;
    this.ear = ear;
    this.#port = port;
    this.#to = `<sip:${number}@x>`;
    const caller = this;
    // The speaker sends to the source of what is heard: here to where the description says.
    this.speaker = new Speaker(
      {
        get source() {
          return { address: '127.0.0.1', port: caller.#rtpPort };
        },
        send: (to: number, packet: Uint8Array) => ear.send(to, packet),
      },
      hz,
    );
    socket.on('message', (data) => this.#hear(data.toString()));
  }

  /**
   * Calls a node, and resolves when the call is answered; rejects with `Refused`. `address` is that of the node's SIP
   * over UDP.
   */
  static async call(address: string, number: string, hz: number): Promise<RawCaller> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    const caller = new RawCaller(socket, await RtpPeer.open(), hz, Number(address.split(':')[1]), number);
    caller.#request('INVITE', 1, caller.#port, caller.#description());
    const last = () => caller.heard.find((message) => /^SIP\/2\.0 [2-6]/.test(message) && isOf(message, 1, 'INVITE'));
    await caller.until(() => last() !== undefined, 'the answer', 20_000);
    const answer = last() ?? '';
    const status = Number(answer.split(' ')[1]);
    if (status !== 200) {
      caller.close();
      throw new Refused(status);
    }
    caller.#to = field(answer, 'To');
    caller.#follow(answer);
    caller.#request('ACK', 1, caller.#port);
    return caller;
  }

  /** Sends a request within the dialog, to a port or to where the dialog leads. Resolves with the status. */
  async ask(method: string, port = this.#port, to = this.#to): Promise<number> {
    const number = ++this.#cseq;
    this.#request(method, number, port, '', to);
    const found = () => this.heard.findLast((message) => message.startsWith('SIP/2.0 ') && isOf(message, number, method));
    await this.until(() => found() !== undefined, `an answer to ${method}`);
    return Number(found()?.split(' ')[1]);
  }

  async until(holds: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`waited for ${what}; heard ${this.heard.length} messages`)), timeoutMs);
    const look = () => (holds() ? resolve() : void this.#waiting.push(look));
    look();
    await promise.finally(() => clearTimeout(timer));
  }

  close(): void {
    this.speaker.stop();
    this.#socket.close();
    this.ear.close();
  }

  get #own(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  #description(): string {
    const lines = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', `m=audio ${this.ear.port} RTP/AVP 0`];
    return [...lines, ''].join('\r\n');
  }

  #request(method: string, number: number, port: number, body = '', to = this.#to): void {
    const type = body === '' ? '' : 'Content-Type: application/sdp\r\n';
    this.#socket.send(
      `${method} sip:sidetone@127.0.0.1:${port} SIP/2.0\r\nVia: SIP/2.0/UDP ${this.#own};branch=z9hG4bK${this.callId}${++this.#branches};rport\r\n` +
        `From: <sip:+15550199@x>;tag=${this.callId}\r\nTo: ${to}\r\nCall-ID: ${this.callId}\r\nCSeq: ${number} ${method}\r\n` +
        `Max-Forwards: 70\r\nContact: <sip:x@${this.#own}>\r\n${type}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      port,
      '127.0.0.1',
    );
  }

  #hear(message: string): void {
    this.heard.push(message);
    if (!message.startsWith('SIP/2.0 ') && !this.isDeaf) this.#answer(message);
    for (const look of this.#waiting.splice(0)) look();
  }

  /** The Contact and the audio of a description that was taken. */
  #follow(message: string): void {
    this.#port = Number(/sip:[^>]*:(\d+)/.exec(field(message, 'Contact'))?.[1] ?? this.#port);
    this.#rtpPort = Number(/^m=audio (\d+)/m.exec(message)?.[1] ?? this.#rtpPort);
  }

  #answer(request: string): void {
    const [method = ''] = request.split(' ');
    const number = Number(field(request, 'CSeq').split(' ')[0]);
    if (method === 'ACK') return;
    const isLate = number <= this.#farNumber;
    const refused = isLate ? '500 Server Internal Error' : this.refusal?.(request);
    const status = refused ?? '200 OK';
    this.#farNumber = Math.max(this.#farNumber, number);
    this.answered.push(`${method} ${number} ${status.slice(0, 3)}`);
    const body = method === 'INVITE' && refused === undefined ? this.#description() : '';
    if (method === 'INVITE' && refused === undefined) this.#follow(request);
    const via = [...request.matchAll(/^Via: [^\r]*/gim)].map(([line]) => `${line}\r\n`).join('');
    const port = Number(/^Via: SIP\/2\.0\/UDP [^;]*:(\d+)/im.exec(request)?.[1] ?? this.#port);
    this.#socket.send(
      `SIP/2.0 ${status}\r\n${via}From: ${field(request, 'From')}\r\nTo: ${field(request, 'To')}\r\nCall-ID: ${this.callId}\r\n` +
        `CSeq: ${field(request, 'CSeq')}\r\nContact: <sip:x@${this.#own}>\r\n${body === '' ? '' : 'Content-Type: application/sdp\r\n'}` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      port,
      '127.0.0.1',
    );
  }
}

const isOf = (message: string, number: number, method: string): boolean => field(message, 'CSeq') === `${number} ${method}`;
