/** `bin/sidetone drain` against a platform that does not tell its Sessions at once. */
import { expect, test } from 'bun:test';
import { join } from 'node:path';

const TOOL = join(import.meta.dir, '../../bin/sidetone');

test('drain waits on where the platform has an error or tells nothing: its calls are there all the same', async () => {
  const sessions = (count: number) => new Response(`sidetone_sessions ${count}\n`);
  const answers = [sessions(1), new Response('busy', { status: 503 }), new Response(''), sessions(1), sessions(0), sessions(0)];
  await using platform = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url, method }) {
      if (url.endsWith('/metrics')) return answers.shift() ?? sessions(99);
      return Response.json(method === 'POST' ? {} : { nodes: [{ node_id: 'one', http_host: '127.0.0.1', http_port: 1 }] });
    },
  });
  const program = Bun.spawn(['node', TOOL, 'drain', '--url', `http://127.0.0.1:${platform.port}`], {
    env: { PATH: process.env.PATH ?? '', OPERATOR_TOKEN: 'a-token-of-the-operator' },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const told = await new Response(program.stdout).text();
  expect([await program.exited, told.trim().split('\n')]).toEqual([
    0,
    ['1 Sessions are left', 'no answer; asking again', '1 Sessions are left', 'drained'],
  ]);
}, 30_000);

test('drain finds the node that it asks among several, whatever its environment says', async () => {
  const orders: string[] = [];
  await using platform = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url, method }) {
      if (url.endsWith('/metrics')) return new Response('sidetone_sessions 0\n');
      if (method === 'POST') orders.push(new URL(url).pathname);
      const node = { http_host: '10.0.0.1', http_port: 8080, here: false };
      return Response.json({
        nodes: [
          { ...node, node_id: 'one' },
          { ...node, node_id: 'two', here: true, http_host: '10.0.0.2' },
        ],
      });
    },
  });
  const program = Bun.spawn(['node', TOOL, 'drain', '--url', `http://127.0.0.1:${platform.port}`], {
    env: { PATH: process.env.PATH ?? '', OPERATOR_TOKEN: 'a-token-of-the-operator', NODE_HOST: '10.0.0.1', HTTP_PORT: '8080' },
    stderr: 'pipe',
  });
  expect([await new Response(program.stderr).text(), await program.exited, orders]).toEqual([
    '',
    0,
    ['/operator/v1/nodes/two/drain'],
  ]);
}, 30_000);
