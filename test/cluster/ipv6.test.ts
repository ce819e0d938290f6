/** A node at an address of IPv6. */
import { afterEach, expect, test } from 'bun:test';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { natsInstalled, OPERATOR_TOKEN, TestCluster } from './harness.ts';

const hasIPv6 = networkInterfaces().lo?.some(({ family }) => family === 'IPv6') === true;

let cluster: TestCluster | undefined;
afterEach(() => cluster?.stop());

test.skipIf(!natsInstalled || !hasIPv6)(
  'is told with its address in brackets, from which its port is seen',
  async () => {
    cluster = await TestCluster.start(1, { HTTP_HOST: '::', NODE_HOST: '::1', SIP_LISTEN: 'udp:[::1]:0' });
    const { platform } = cluster.node(0);
    const { body } = await platform.operator('GET', '/nodes');
    expect(body.nodes).toEqual([expect.objectContaining({ http_host: '::1', sip: expect.stringMatching(/^\[::1\]:\d+$/) })]);
    const tool = join(import.meta.dir, '../../bin/sidetone');
    const program = Bun.spawn(['node', tool, 'nodes', 'list', '--url', platform.url], {
      env: { PATH: process.env.PATH ?? '', OPERATOR_TOKEN },
      stdout: 'pipe',
    });
    expect(await new Response(program.stdout).text()).toMatch(/ \[::1\]:\d+ /);
  },
  60_000,
);
