/** One UDP socket for SIP. */
import { codeOf } from '../../error-facts.ts';
import { SIP_DATAGRAM_QUEUE_MAX, SIP_RECEIVE_BUFFER_BYTES } from '../../limits.ts';
import { native } from '../../media/native.ts';
import { type Datagram, DatagramQueue } from './datagram-queue.ts';

export interface DatagramSocket {
  readonly host: string;
  readonly port: number;
  /** Sends a datagram. Returns false when the system refused it at once (no route, bad address). */
  send(bytes: Uint8Array, host: string, port: number): boolean;
  /** The datagrams that were lost because too many waited to be worked on, here or in the buffer of the system. */
  lost(): number;
  close(): void;
}

/**
 * Binds a socket. `onDatagram` is called for each datagram that `admits` lets in by its source, and that finds a place
 * in the queue. Rejects when the address is taken. A datagram waits while the send buffer is full; when
 * SIP_DATAGRAM_QUEUE_MAX wait, the oldest is lost.
 */
export async function openDatagramSocket(
  host: string,
  port: number,
  admits: (host: string) => boolean,
  onDatagram: (datagram: Datagram) => void,
): Promise<DatagramSocket> {
  const queue = new DatagramQueue(onDatagram);
  const waiting: Datagram[] = [];
  const socket = await Bun.udpSocket({
    hostname: host,
    port,
    socket: {
      data(_socket, bytes, fromPort, fromHost) {
        const from = fromHost.startsWith('::ffff:') ? fromHost.slice(7) : fromHost;
        if (admits(from)) queue.add({ bytes, host: from, port: fromPort });
      },
      drain(open) {
        for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
          const { bytes, host: toHost, port: toPort } = next;
          if (attempt(() => open.send(bytes, toPort, toHost)) === 'full') return;
          waiting.shift();
        }
      },
      error() {
        // An ICMP error names no transaction; the transaction's timer notices.
      },
    },
  });
  const fd = descriptorOf(socket);
  if (fd !== undefined) {
    native.receiveBuffer(fd, SIP_RECEIVE_BUFFER_BYTES);
    // A response may be longer than a path takes (RFC 3261 §18.1.1 shortens requests only). With "don't fragment" it is
    // lost at each try where a firewall drops the ICMP message that would tell us.
    native.mayFragment(fd);
  }
  let dropped = 0;
  return {
    host,
    port: socket.port,
    send(bytes, toHost, toPort) {
      if (socket.closed) return false;
      if (waiting.length === 0) {
        const outcome = attempt(() => socket.send(bytes, toPort, toHost));
        if (outcome !== 'full') return outcome === 'sent';
      }
      if (waiting.length >= SIP_DATAGRAM_QUEUE_MAX) waiting.shift();
      waiting.push({ bytes, host: toHost, port: toPort });
      return true;
    },
    lost() {
      if (fd !== undefined && !socket.closed) dropped = native.datagramsDropped(fd);
      return queue.lost + dropped;
    },
    close() {
      waiting.length = 0;
      socket.close();
    },
  };
}

/** The descriptor of a socket of the runtime, which has it and does not declare it. */
const descriptorOf = (socket: object): number | undefined =>
  'fd' in socket && typeof socket.fd === 'number' && socket.fd >= 0 ? socket.fd : undefined;

/**
 * An ICMP message about an earlier datagram, perhaps to another peer, leaves its error on the socket: ECONNREFUSED,
 * EHOSTUNREACH, ENOPROTOOPT, EACCES over IPv6, and more. The next try is free of it.
 */
const TRIES = 4;

function attempt(send: () => boolean): 'sent' | 'full' | 'refused' {
  for (let tries = 1; ; tries++) {
    try {
      return send() ? 'sent' : 'full';
    } catch (error) {
      // Refused each time: nobody is there yet. The transaction's retransmissions will find out.
      if (tries >= TRIES) return codeOf(error) === 'ECONNREFUSED' ? 'sent' : 'refused';
    }
  }
}
