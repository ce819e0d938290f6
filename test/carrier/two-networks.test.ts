/** A machine with two networks, and a path that takes less than we send: what a far end is told and gets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { natInstalled } from '../support/nat.ts';
import { TwoNetworks } from '../support/two-networks.ts';

const module = (name: string) => JSON.stringify(join(import.meta.dir, '../../src/carrier/socket', name));
const FAR = '203.0.113.2';

describe.skipIf(!natInstalled)('a machine with two networks', () => {
  let networks: TwoNetworks;
  beforeAll(() => {
    networks = TwoNetworks.open();
  });
  afterAll(() => networks?.[Symbol.dispose]());

  test('tells each far end the address that packets to it leave from', async () => {
    const told = await networks.script(
      'machine',
      `const { ownAddress } = await import(${module('own-address.ts')});
      const ports = [{ transport: 'udp', host: '0.0.0.0', port: 5060 }];
      for (const host of ['${FAR}', '10.9.0.7', '127.0.0.1', 'sip.example.com'])
        console.log(ownAddress(ports, [], { transport: 'udp', host, port: 5060, flow: 0 }).host);`,
    );
    expect(told.split('\n')).toEqual(['198.18.0.1', '10.9.0.1', '127.0.0.1', '10.9.0.1']);
  }, 20_000);

  test('reaches a far end by a long message over a path that is narrower, where nobody says so', async () => {
    const echo = networks.script(
      'far',
      `await Bun.udpSocket({ hostname: '${FAR}', port: 5060, socket: {
        data(socket, bytes, port, host) {
          socket.send(String(bytes.length), port, host);
          setTimeout(() => process.exit(0), 100);
        },
      }});`,
    );
    const heard = networks.script(
      'machine',
      `const { openDatagramSocket } = await import(${module('datagram.ts')});
      const socket = await openDatagramSocket('0.0.0.0', 0, () => true, ({ bytes }) => {
        console.log(new TextDecoder().decode(bytes));
        process.exit(0);
      });
      setInterval(() => socket.send(new Uint8Array(1400), '${FAR}', 5060), 50);`,
    );
    expect(await heard).toBe('1400');
    await echo;
  }, 30_000);

  test('sends to one far end while another refuses each datagram', async () => {
    const refused = await networks.script(
      'machine',
      `const { openDatagramSocket } = await import(${module('datagram.ts')});
      const socket = await openDatagramSocket('0.0.0.0', 0, () => true, () => {});
      let refused = 0;
      for (let round = 0; round < 20; round++) {
        socket.send(new Uint8Array(9), '198.18.0.2', 9);
        // The refusal is on its way while this turn of the event loop goes on.
        for (const since = performance.now(); performance.now() - since < 5; );
        if (!socket.send(new Uint8Array(9), '${FAR}', 5060)) refused++;
      }
      console.log(refused);
      process.exit(0);`,
    );
    expect(refused).toBe('0');
  }, 20_000);

  test('takes a connection to a carrier for dead when nothing is acknowledged for ten seconds', async () => {
    const far = networks.script(
      'far',
      `import { createServer } from 'node:net';
      createServer((socket) => socket.on('error', () => {}).once('data', () => socket.write('hello'))).listen(5060, '${FAR}');
      setTimeout(() => process.exit(0), 14_000);`,
    );
    const told = await networks.script(
      'machine',
      `import { createConnection } from 'node:net';
      const { Connection } = await import(${module('connection.ts')});
      const { systemClock } = await import(${module('../../clock.ts')});
      const nothing = () => {};
      const open = () => {
        const socket = createConnection({ host: '${FAR}', port: 5060 });
        const connection = new Connection({
          flow: 1, transport: 'tcp', socket, host: '${FAR}', port: 5060, kind: 'outbound', clock: systemClock(),
          onMessage: nothing, onBacklog: nothing, isKnown: () => true, onKnown: nothing, onClosed: nothing,
          onRefused: () => setTimeout(open, 50),
        });
        socket.once('data', () => {
          process.stdin.once('data', () => connection.write(Buffer.from('OPTIONS'), (why) => {
            console.log(why);
            process.exit(0);
          }));
          console.log('up');
        });
        connection.write(Buffer.from('INVITE'), nothing);
      };
      open();`,
      (machine) => {
        networks.forgetConnections();
        machine.stdin?.write('go');
      },
    );
    expect(told.split('\n')).toEqual(['up', 'lost']);
    await far;
  }, 60_000);
});
