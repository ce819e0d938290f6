/**
 * A screened TCP or TLS connection: the name is resolved, its addresses are screened, and the socket goes to the
 * address that was screened.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { withTimeLimit } from '../bounds/time-limit.ts';
import { atFirstThatConnects } from './either-version.ts';
import { OutboundError, type OutboundFailure } from './outbound.ts';
import { type Resolver, resolveScreened, systemResolver } from './resolve.ts';
import { type Cidr, parseCidr } from './screen.ts';

export interface ConnectRequest {
  /** The host as it stands in a URL: an IPv6 address comes in brackets. */
  readonly hostname: string;
  /** What the connection is for, which rests between look-ups (`LookUpRests`). Absent: the platform itself. */
  readonly owner?: string;
  /** Any port. Whoever asks by HTTP has refused those of other protocols (`safe-fetch.ts`). */
  readonly port: number;
  /** The certificate is checked against `hostname`. */
  readonly tls: boolean;
  /** Milliseconds from the call to the end of the handshake, the lookup included. */
  readonly timeoutMs: number;
  /** Ends the attempt; the socket, once it is handed over, is the caller's. */
  readonly signal?: AbortSignal;
}

export type Connect = (request: ConnectRequest) => Promise<Socket>;

/** Makes `safeConnect` with the configuration's `OUTBOUND_ALLOW`. */
export function connector(allow: readonly string[], resolver: Resolver = systemResolver): Connect {
  const cidrs = allow.map(parseCidr).filter((cidr) => cidr !== undefined);
  return (request) => safeConnect(request, cidrs, resolver);
}

/** Opens a socket, paused. Rejects with `OutboundError` only: rejected, dns, timeout, unreachable, tls. */
export async function safeConnect(request: ConnectRequest, allow: readonly Cidr[], resolver: Resolver): Promise<Socket> {
  const started = performance.now();
  const addresses = await withTimeLimit(
    Promise.resolve(resolveScreened(request.hostname, request.owner ?? '', allow, resolver)),
    request.timeoutMs,
    () => {
      throw new OutboundError('timeout', 'the name was not resolved in time');
    },
  );
  const isUnconnected = (error: unknown) => error instanceof OutboundError && error.failure === 'unreachable';
  const open = async (address: string) => {
    if (request.signal?.aborted === true) throw new OutboundError('timeout', 'given up');
    return await opened(request, address, Math.max(1, request.timeoutMs - (performance.now() - started)));
  };
  return await atFirstThatConnects(addresses, open, isUnconnected);
}

function opened(request: ConnectRequest, address: string, timeoutMs: number): Promise<Socket> {
  const { hostname, port, tls, signal } = request;
  return new Promise((resolve, reject) => {
    const socket: Socket = tls
      ? connectTls({
          host: address,
          port,
          ...(isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { servername: hostname } : {}),
          ALPNProtocols: ['http/1.1'],
        })
      : connectTcp({ host: address, port });
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      socket.removeListener('error', fail);
    };
    const refuse = (error: OutboundError) => {
      done();
      socket.on('error', () => {}); // a destroyed socket may still say why
      socket.destroy();
      reject(error);
    };
    const fail = (error: Error & { code?: string }) =>
      refuse(new OutboundError(connectFailure(error.code ?? '', tls), error.code ?? 'the connection failed'));
    const giveUp = () => refuse(new OutboundError('timeout', 'no connection in time'));
    const timer = setTimeout(giveUp, timeoutMs);
    signal?.addEventListener('abort', giveUp, { once: true });
    socket.once('error', fail);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      done();
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}

const UNREACHABLE = /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EPIPE|ENETDOWN|EHOSTDOWN)$/;

function connectFailure(code: string, tls: boolean): OutboundFailure {
  if (code === 'ETIMEDOUT') return 'timeout';
  if (UNREACHABLE.test(code)) return 'unreachable';
  return tls ? 'tls' : 'unreachable';
}
