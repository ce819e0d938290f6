/**
 * A SIP peer that is written by hand: a UDP or TCP socket on loopback, messages as text. An INVITE that comes a second
 * time, octet by octet, is a retransmission (RFC 3261 17.1.1.2): the peer was not quick enough. It is heard once.
 */
import { createSocket } from 'node:dgram';
import { createConnection, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { formatHostPort } from '../../src/sip/message/uri.ts';
import type { Platform } from '../support/platform.ts';

export const AUDIO = 'm=audio 6000 RTP/AVP 0';
export const sdp = (...lines: string[]) =>
  ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', ...(lines.length > 0 ? lines : [AUDIO]), ''].join(
    '\r\n',
  );

export interface RequestParts {
  readonly id?: string;
  readonly scheme?: 'sip' | 'sips';
  readonly number?: string;
  readonly cseq?: number;
  readonly from?: string;
  readonly to?: string;
  readonly contact?: string;
  readonly fields?: string;
  readonly type?: string;
  readonly body?: string;
}

let branches = 0;

/** The value of a header field in a message. */
export const field = (message: string, name: string): string => new RegExp(`^${name}: ([^\\r]*)`, 'im').exec(message)?.[1] ?? '';
export const bodyOf = (message: string): string => message.slice(message.indexOf('\r\n\r\n') + 4);

export class RawPeer {
  readonly heard: string[] = [];
  readonly host: string;
  readonly port: number;
  readonly transport: 'UDP' | 'TCP' | 'TLS';
  readonly send: (message: string) => void;
  readonly close: () => void;
  closed = false;
  readonly #invites = new Set<string>();
  #waiting: { readonly pattern: RegExp; readonly resolve: (message: string) => void }[] = [];

  private constructor(
    transport: 'UDP' | 'TCP' | 'TLS',
    port: number,
    send: (message: string) => void,
    close: () => void,
    listen: (hear: (message: string) => void, over: () => void) => void,
    host = '127.0.0.1',
  ) {
    this.transport = transport;
    this.host = host;
    this.port = port;
    this.send = send;
    this.close = close;
    listen(
      (message) => this.#hear(message),
      () => {
        this.closed = true;
      },
    );
  }

  /** The carrier of a platform: the far end of the trunk that it gets. */
  static async carrierOf(platform: Platform): Promise<RawPeer> {
    const peer = await RawPeer.udp(platform.sipUdpPort);
    await platform.trunk(`127.0.0.1:${peer.port}`);
    return peer;
  }

  /** A peer over UDP, from a loopback address of its own, which may be `::1`. */
  static async udp(to: number, host = '127.0.0.1'): Promise<RawPeer> {
    const isSix = host.includes(':');
    const socket = createSocket(isSix ? 'udp6' : 'udp4');
    await new Promise<void>((resolve) => socket.bind(0, host, resolve));
    const listen = (hear: (message: string) => void) => socket.on('message', (data) => hear(data.toString()));
    const send = (message: string) => socket.send(message, to, isSix ? '::1' : '127.0.0.1');
    return new RawPeer('UDP', socket.address().port, send, () => socket.close(), listen, host);
  }

  /** A peer over TCP, from a loopback address of its own, which may be `::1`. */
  static async tcp(to: number, host = '127.0.0.1'): Promise<RawPeer> {
    const socket = createConnection({ host: host.includes(':') ? '::1' : '127.0.0.1', port: to, localAddress: host });
    socket.on('error', () => {});
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    return RawPeer.#over('TCP', socket, host);
  }

  /** A peer over TLS on loopback, to whom any certificate is right. */
  static async tls(to: number): Promise<RawPeer> {
    const socket = connect({ host: '127.0.0.1', port: to, rejectUnauthorized: false });
    socket.on('error', () => {});
    await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()));
    return RawPeer.#over('TLS', socket, '127.0.0.1');
  }

  static #over(transport: 'TCP' | 'TLS', socket: Socket, host: string): RawPeer {
    const listen = (hear: (message: string) => void, over: () => void) => {
      let text = '';
      socket.on('data', (data) => {
        text += data.toString();
        for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
          const whole = end + 4 + Number(field(text.slice(0, end + 4), 'Content-Length') || 0);
          if (text.length < whole) return;
          hear(text.slice(0, whole));
          text = text.slice(whole);
        }
      });
      socket.on('close', over);
    };
    return new RawPeer(
      transport,
      socket.localPort ?? 0,
      (message) => void socket.write(message),
      () => socket.destroy(),
      listen,
      host,
    );
  }

  /** Its address and port as a URI has them. */
  get place(): string {
    return formatHostPort(this.host, this.port);
  }

  request(method: string, parts: RequestParts = {}): string {
    const { scheme = 'sip' } = parts;
    const { id = 'raw', number = '+15550002', cseq = 1, body = '' } = parts;
    const type = body === '' ? '' : `Content-Type: ${parts.type ?? 'application/sdp'}\r\n`;
    return (
      `${method} ${scheme}:${number}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/${this.transport} ${this.place};branch=z9hG4bK${id}${++branches};rport\r\n` +
      `From: ${parts.from ?? `<sip:+15550199@x>;tag=${id}`}\r\nTo: ${parts.to ?? `<sip:${number}@x>`}\r\nCall-ID: ${id}\r\nCSeq: ${cseq} ${method}\r\n` +
      `Max-Forwards: 70\r\nContact: ${parts.contact ?? `<sip:x@${this.place}>`}\r\n${parts.fields ?? ''}${type}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    );
  }

  /** A response to a request that was heard, with `tag` in To. */
  respond(request: string, status: string, more: { tag?: string; fields?: string; body?: string } = {}): void {
    const { tag = 'raw', fields = '', body = '' } = more;
    const to = field(request, 'To');
    const via = [...request.matchAll(/^Via: [^\r]*/gim)].map(([line]) => `${line}\r\n`).join('');
    const type = body === '' ? '' : 'Content-Type: application/sdp\r\n';
    const contact = fields.includes('Contact:') ? '' : `Contact: <sip:x@${this.place}>\r\n`;
    this.send(
      `SIP/2.0 ${status}\r\n${via}From: ${field(request, 'From')}\r\nTo: ${to.includes('tag=') ? to : `${to};tag=${tag}`}\r\n` +
        `Call-ID: ${field(request, 'Call-ID')}\r\nCSeq: ${field(request, 'CSeq')}\r\n${contact}` +
        `${fields}${type}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }

  /** The first message that matches, heard already or to come. It is not given again. */
  async until(pattern: RegExp, timeoutMs = 8_000): Promise<string> {
    const at = this.heard.findIndex((message) => pattern.test(message));
    if (at >= 0) return this.heard.splice(at, 1)[0] ?? '';
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const timer = setTimeout(
      () => reject(new Error(`no ${pattern} among ${this.heard.map((each) => each.split('\r\n')[0]).join(', ')}`)),
      timeoutMs,
    );
    this.#waiting.push({ pattern, resolve });
    return promise.finally(() => clearTimeout(timer));
  }

  #hear(message: string): void {
    if (message.startsWith('INVITE ')) {
      if (this.#invites.has(message)) return;
      this.#invites.add(message);
    }
    const at = this.#waiting.findIndex(({ pattern }) => pattern.test(message));
    if (at < 0) this.heard.push(message);
    else this.#waiting.splice(at, 1)[0]?.resolve(message);
  }
}
