/**
 * A network between a browser and the platform, which can change: datagrams go through it as through a NAT. Each source
 * that comes to its front has a socket of its own at the back.
 *
 *   browser ──► front │ back, another one after `move` ──► platform
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { AddressInfo } from 'node:net';

const HOST = '127.0.0.1';

/** A datagram to a port that has been closed is lost, as on any network; the system tells it of a socket here. */
const lost = (): void => undefined;

export class UdpRelay {
  readonly port: number;
  readonly #front: Socket;
  readonly #backs = new Map<number, Socket>();
  #platformPort = 0;
  #isCut = false;
  #carried = 0;
  #waiting: { readonly count: number; readonly resolve: () => void } | undefined;

  private constructor(front: Socket) {
    this.#front = front;
    this.port = (front.address() as AddressInfo).port;
    front.on('error', lost);
    front.on('message', (bytes, source) => {
      if (!this.#isCut) this.#back(source).send(bytes, this.#platformPort, HOST);
    });
  }

  static async open(): Promise<UdpRelay> {
    const front = createSocket('udp4');
    await new Promise<void>((resolve) => front.bind(0, HOST, resolve));
    return new UdpRelay(front);
  }

  #back(source: RemoteInfo): Socket {
    const known = this.#backs.get(source.port);
    if (known !== undefined) return known;
    const back = createSocket('udp4');
    back.on('error', lost);
    back.on('message', (bytes) => {
      if (this.#isCut) return;
      this.#front.send(bytes, source.port, source.address);
      if (++this.#carried === this.#waiting?.count) this.#waiting.resolve();
    });
    this.#backs.set(source.port, back);
    return back;
  }

  /** The answer with this relay in the place of the platform's port, which it leads to from now on. */
  lead(answer: string): string {
    const port = /^m=audio ([0-9]+)/m.exec(answer)?.[1] ?? '';
    this.#platformPort = Number(port);
    return answer.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), `${this.port}`);
  }

  /** What comes from the browser comes from other addresses from now on, as when a NAT has forgotten it. */
  move(): void {
    this.#closeBacks();
  }

  /** Waits until so many more datagrams of the platform have come through. */
  carries(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { count: this.#carried + count, resolve };
    });
  }

  /** Nothing goes through. */
  cut(): void {
    this.#isCut = true;
  }

  /** The network is back, and is another one. */
  mend(): void {
    this.move();
    this.#isCut = false;
  }

  #closeBacks(): void {
    for (const back of this.#backs.values()) back.close();
    this.#backs.clear();
  }

  close(): void {
    this.#closeBacks();
    this.#front.close();
  }
}
