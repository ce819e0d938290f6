import { connect, createServer } from 'node:net';

export interface RefusedPort {
  readonly port: number;
  close(): void;
}

/**
 * A TCP port of 127.0.0.1 at which connections are refused until it is closed. A connection to elsewhere has it as its
 * own, so no other program can come to listen there.
 */
export async function refusedPort(): Promise<RefusedPort> {
  const elsewhere = createServer((socket) => socket.on('error', () => {}));
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const address = elsewhere.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const connection = connect(address.port, '127.0.0.1');
  connection.on('error', () => {});
  await new Promise<void>((resolve) => connection.once('connect', () => resolve()));
  if (connection.localPort === undefined) throw new Error('the connection has no port');
  return {
    port: connection.localPort,
    close() {
      connection.destroy();
      elsewhere.close();
    },
  };
}
