/** Connections that the platform opens: no far end has it open them all. */
import { expect, test } from 'bun:test';
import { createServer, type Server, type Socket } from 'node:net';
import { Streams } from '../../src/carrier/socket/stream.ts';
import { systemClock } from '../../src/clock.ts';
import { SIP_OUTBOUND_CONNECTIONS_PER_HOST } from '../../src/limits.ts';

async function listening(host: string) {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { host, port: typeof address === 'object' ? (address?.port ?? 0) : 0, sockets, close };
}

test('So many are opened to one address, others are reached all the same, and one that is closed makes room', async () => {
  const lost = Promise.withResolvers<void>();
  const streams = new Streams(0, {
    ...{ clock: systemClock(), tls: {}, tlsOf: () => undefined, isKnown: () => true, isBanned: () => false },
    ...{ onMessage: () => {}, onRefused: () => {}, onLost: () => lost.resolve() },
  });
  const [device, carrier] = await Promise.all([listening('127.0.0.5'), listening('127.0.0.8')]);
  const refused: string[] = [];
  /** Sends over a connection of its own, and tells whether one was opened. */
  const isOpened = (identity: string, { host, port }: typeof device): boolean => {
    const before = streams.size;
    const target = { transport: 'tcp', flow: 0, host, port, name: host, identity, opens: true } as const;
    streams.send(target, new Uint8Array([13, 10]), () => void refused.push(identity));
    return streams.size > before;
  };
  try {
    const asked = Array.from({ length: SIP_OUTBOUND_CONNECTIONS_PER_HOST + 2 }, (_, at) => `${at}`);
    expect(asked.filter((identity) => isOpened(identity, device))).toHaveLength(SIP_OUTBOUND_CONNECTIONS_PER_HOST);
    expect(refused).toEqual(asked.slice(-2));
    expect(isOpened('', carrier)).toBe(true);
    await Promise.all(
      [device, carrier].map(async ({ sockets }) => {
        while (sockets.length === 0) await new Promise(setImmediate);
      }),
    );
    device.sockets[0]?.destroy();
    await lost.promise;
    expect(isOpened('again', device)).toBe(true);
  } finally {
    await streams.close();
    device.close();
    carrier.close();
  }
});
