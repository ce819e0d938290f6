/** One UDP socket for SIP. */
import { isIP } from 'node:net';
import { SIP_DATAGRAM_QUEUE_MAX } from '../limits.ts';

export interface DatagramSocket {
  readonly host: string;
  readonly port: number;
  readonly family: 4 | 6;
  /** False when the system refused the datagram at once (no route, bad address). */
  send(bytes: Uint8Array, host: string, port: number): boolean;
  close(): void;
}

interface Datagram {
  readonly bytes: Uint8Array;
  readonly host: string;
  readonly port: number;
}

/** Binds; rejects when the address is taken. A datagram that finds the send buffer full waits its turn, up to a bound; then the oldest is lost. */
export async function openDatagramSocket(
  host: string,
  port: number,
  onDatagram: (bytes: Uint8Array, host: string, port: number) => void,
): Promise<DatagramSocket> {
  const waiting: Datagram[] = [];
  const socket = await Bun.udpSocket({
    hostname: host,
    port,
    socket: {
      data(_socket, data, fromPort, fromHost) {
        onDatagram(data, fromHost.startsWith('::ffff:') ? fromHost.slice(7) : fromHost, fromPort);
      },
      drain(open) {
        for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
          try {
            if (!open.send(next.bytes, next.port, next.host)) return;
          } catch {
            // Lost, as any datagram may be.
          }
          waiting.shift();
        }
      },
      error() {
        // An ICMP error names no transaction; the transaction's timer notices.
      },
    },
  });
  return {
    host,
    port: socket.port,
    family: isIP(host) === 6 ? 6 : 4,
    send(bytes, toHost, toPort) {
      if (socket.closed) return false;
      try {
        if (waiting.length === 0 && socket.send(bytes, toPort, toHost)) return true;
      } catch {
        return false;
      }
      if (waiting.length >= SIP_DATAGRAM_QUEUE_MAX) waiting.shift();
      waiting.push({ bytes, host: toHost, port: toPort });
      return true;
    },
    close() {
      waiting.length = 0;
      socket.close();
    },
  };
}
