/** The connection to real nats-servers: one whose password is wrong for a while, and one of several that is away. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { natsTransport } from '../../src/cluster/bus/nats.ts';
import { refusedPort } from '../support/refused-port.ts';
import { eventually, natsInstalled, startNats } from './harness.ts';

describe.skipIf(!natsInstalled)('a node that NATS refuses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-nats-'));
  const configured = (password: string) =>
    writeFileSync(join(folder, 'nats.conf'), `authorization { user: "node", password: "${password}" }\n`);
  let server: Awaited<ReturnType<typeof startNats>>;
  const refusals = () => server.said().split('authentication error').length - 1;
  const set = (password: string) => {
    configured(password);
    server.child.kill('SIGHUP');
  };

  beforeAll(async () => {
    configured('another');
    server = await startNats('-c', join(folder, 'nats.conf'));
  });
  afterAll(() => {
    server?.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  test('tries until the password is put right, at its start and later', async () => {
    const changes: boolean[] = [];
    const connecting = natsTransport([`nats://node:right@127.0.0.1:${server.port}`])('a node', (isUp) => changes.push(isUp));
    await eventually(() => refusals() >= 3, 'three refusals');
    set('right');
    const transport = await connecting;
    const before = refusals();
    set('another');
    await eventually(() => refusals() >= before + 3, 'three more');
    expect(changes.at(-1)).toBe(false);
    set('right');
    await eventually(() => changes.at(-1) === true, 'the connection');
    const heard: string[] = [];
    transport.subscribe('subject', ({ text }) => heard.push(text));
    transport.publish('subject', 'text');
    await eventually(() => heard.length > 0, 'a message');
    expect(heard).toEqual(['text']);
    await transport.close();
  }, 30_000);
});

test.skipIf(!natsInstalled)(
  'nodes take a server of NATS that is there, and another one when that ends',
  async () => {
    const away = await refusedPort();
    const servers = await Promise.all([startNats(), startNats()]);
    const [first, second] = servers;
    const at = ({ port }: { readonly port: number }) => `nats://127.0.0.1:${port}`;
    try {
      // A client draws the server that it begins with: of eight, some begin with the first.
      const urls = [away, first, second].map(at);
      const nodes = await Promise.all(Array.from({ length: 8 }, () => natsTransport(urls)('a node', () => {})));
      first.child.kill('SIGKILL');
      const heard = new Set<number>();
      for (const [index, node] of nodes.entries()) node.subscribe('subject', () => heard.add(index));
      const writer = await natsTransport([at(second)])('a writer', () => {});
      await eventually(() => {
        writer.publish('subject', 'text');
        return heard.size === nodes.length;
      }, 'a message to each over the server that is left');
      await Promise.all([writer, ...nodes].map((each) => each.close()));
    } finally {
      away.close();
      for (const { child } of servers) child.kill('SIGKILL');
    }
  },
  30_000,
);

test.skipIf(!natsInstalled)(
  'A subject that the user of NATS may not have is told, and the connection stays',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sidetone-nats-'));
    const permissions = 'permissions: { publish: "may.>", subscribe: "may.>" }';
    writeFileSync(join(folder, 'nats.conf'), `authorization { users: [ { user: "node", password: "pw", ${permissions} } ] }\n`);
    const server = await startNats('-c', join(folder, 'nats.conf'));
    const changes: boolean[] = [];
    const denied: string[] = [];
    const heard: string[] = [];
    try {
      const open = natsTransport([`nats://node:pw@127.0.0.1:${server.port}`]);
      const transport = await open(
        'a node',
        (isUp) => changes.push(isUp),
        (subject) => denied.push(subject),
      );
      transport.subscribe('not.this', ({ text }) => heard.push(text));
      transport.publish('not.that', 'text');
      await eventually(() => denied.length === 2, 'both subjects');
      transport.subscribe('may.this', ({ text }) => heard.push(text));
      transport.publish('may.this', 'text');
      await eventually(() => heard.length > 0, 'a message');
      expect([denied.toSorted(), heard, changes]).toEqual([['not.that', 'not.this'], ['text'], []]);
      await transport.close();
    } finally {
      server.child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  },
  30_000,
);
