import { afterAll, describe, expect, test } from 'bun:test';
import net from 'node:net';
import { connector } from '../../src/outbound/connect.ts';
import type { OutboundRequest } from '../../src/outbound/outbound.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { mayReach, mayUsePort, parseCidr } from '../../src/outbound/screen.ts';
import fc from '../support/fast-check.ts';
import { failureOf } from './failure-of.ts';

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

const serve = (handler: (request: Request) => Response | Promise<Response>): string => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: handler });
  closers.push(() => server.stop(true));
  return `http://127.0.0.1:${server.port}`;
};

/** A TCP server that answers whatever it is sent with `reply`. */
const raw = async (reply: string): Promise<string> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(reply));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
};

const get = (url: string, more: Partial<OutboundRequest> = {}): OutboundRequest => ({
  url,
  method: 'GET',
  headers: {},
  signal: AbortSignal.timeout(5000),
  ...more,
});

const local = createOutbound(['127.0.0.0/8', '::1']);
const open = createOutbound([]);

describe('outbound connections', () => {
  test('a private address is rejected in each way it can be written', async () => {
    const urls = [
      'http://127.0.0.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://[::1]/',
      'http://[::ffff:10.0.0.1]/',
      'http://[::127.0.0.1]/',
      'http://[::7f00:1]/',
      'http://[64:ff9b::127.0.0.1]/',
      'http://[64:ff9b:1::a00:1]/',
      'http://[::ffff:0:127.0.0.1]/',
      'http://[2002:7f00:1::]/',
      'http://[2001:0:7f00:1::]/',
      'http://[100::1]/',
      'http://[2001:db8::1]/',
      'http://[3fff::1]/',
      'http://[5f00::1]/',
      'http://[4000::1]/',
      'http://[::]/',
      'http://[ff02::1]/',
      'http://[fec0::1]/',
      'http://10.1.2.3/',
      'http://192.168.0.1/',
      'http://172.16.0.1/',
      'http://169.254.169.254/latest',
      'http://100.64.0.1/',
      'http://0.0.0.0/',
      'http://[fd00::1]/',
      'http://[fe80::1]/',
      'http://224.0.0.1/',
    ];
    for (const url of urls) expect([url, await failureOf(open.fetch(get(url)))]).toEqual([url, 'rejected']);
  });

  test('no IPv6 address reaches an IPv4 address that is hidden in it, and public ones are reached', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.constantFrom('::', '64:ff9b::', '64:ff9b:1::', '::ffff:0:', '2001::'), (ipv4, prefix) => {
        expect(mayReach(`${prefix}${ipv4}`, [])).toBe(false);
      }),
    );
    for (const address of [
      '2606:4700:4700::1111',
      '2a00:1450:4001:81b::200e',
      '2001:4860:4860::8888',
      '2400:cb00::1',
      '93.184.216.34',
    ])
      expect([address, mayReach(address, [])]).toEqual([address, true]);
  });

  test('a name with one private address among public ones is rejected', async () => {
    const mixed = createOutbound([], async () => ['93.184.216.34', '10.0.0.1']);
    expect(await failureOf(mixed.fetch(get('http://example.test/')))).toBe('rejected');
  });

  test('the connection goes to the address that was screened, with the name in Host', async () => {
    const url = new URL(serve((request) => new Response(request.headers.get('host'))));
    let lookups = 0;
    const rebinding = createOutbound(['127.0.0.0/8'], async () => (lookups++ === 0 ? ['127.0.0.1'] : ['10.0.0.1']));
    const response = await rebinding.fetch(get(`http://example.test:${url.port}/`));
    expect(await new Response(response.body).text()).toBe(`example.test:${url.port}`);
    expect(lookups).toBe(1);
  });

  test('userinfo, other schemes and ports of other protocols are rejected', async () => {
    for (const url of [
      'http://u:p@127.0.0.1/',
      'http://u@127.0.0.1/',
      'http://:p@127.0.0.1/',
      'ftp://127.0.0.1/',
      'file:///etc/passwd',
      'http://127.0.0.1:25/',
      'nonsense',
    ]) {
      expect([url, await failureOf(local.fetch(get(url)))]).toEqual([url, 'rejected']);
    }
  });

  test('a body is not unpacked, whatever its coding: it would be of any size', async () => {
    const packed = Bun.gzipSync(Buffer.alloc(100_000));
    const url = serve(() => new Response(packed, { headers: { 'content-encoding': 'gzip' } }));
    const { body } = await local.fetch(get(url));
    expect(await new Response(body).bytes()).toEqual(new Uint8Array(packed));
  });

  test('a redirect is returned as it is', async () => {
    const url = serve(() => new Response(null, { status: 302, headers: { location: 'http://10.0.0.1/' } }));
    expect((await local.fetch(get(url))).status).toBe(302);
  });

  test.each([
    ['a length that is none', '200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['two lengths', '200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a coding that nobody knows', '200 OK\r\nTransfer-Encoding: other\r\n\r\nab'],
    ['another protocol that nobody asked for', '101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'],
    ['a header that is too long', `200 OK\r\nX: ${'a'.repeat(4 * 2 ** 20)}\r\n\r\n`],
  ])('an answer of %s is told as broken, not as a server that is not there', async (_, answer) => {
    expect(await failureOf(local.fetch(get(await raw(`HTTP/1.1 ${answer}`))))).toBe('invalid_response');
  });

  test('a name with addresses of both versions is reached over IPv6 where nobody is there over IPv4', async () => {
    const server = Bun.serve({ port: 0, hostname: '::1', fetch: (request) => new Response(request.body) });
    closers.push(() => server.stop(true));
    const both = async () => ['127.8.9.10', '::1'];
    const outbound = createOutbound(['127.0.0.0/8', '::1'], both);
    const url = `http://both.test:${server.port}/`;
    const { body } = await outbound.fetch(get(url, { method: 'POST', body: 'sent once' }));
    expect(await new Response(body).text()).toBe('sent once');
    const limits = { headers: {}, redirects: 0, connectTimeoutMs: 5000, responseTimeoutMs: 5000 };
    const heard = await outbound.get({ url, ...limits });
    expect(heard.status).toBe(200);
    heard.body.close();
    const to = { hostname: 'both.test', port: server.port ?? 0, tls: false, timeoutMs: 5000 };
    (await connector(['127.0.0.0/8', '::1'], both)(to)).destroy();
    server.stop(true);
    expect(await failureOf(outbound.fetch(get(url)))).toBe('unreachable');
  });

  test('each failure has its name', async () => {
    expect(await failureOf(local.fetch(get(await raw('ICY 200 OK\r\n\r\nabc'))))).toBe('invalid_response');
    expect(await failureOf(local.fetch(get((await raw('nothing')).replace('http', 'https'))))).toBe('tls');
    const gone = net.createServer().listen(0, '127.0.0.1');
    const address = gone.address();
    gone.close();
    expect(await failureOf(local.fetch(get(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`)))).toBe(
      'unreachable',
    );
    const slow = serve(() => new Promise<Response>(() => {}));
    expect(await failureOf(local.fetch(get(slow, { signal: AbortSignal.timeout(50) })))).toBe('timeout');
    const nowhere = createOutbound([], () => Promise.reject(new Error('ENOTFOUND')));
    expect(await failureOf(nowhere.fetch(get('http://nowhere.test/')))).toBe('dns');
    const empty = createOutbound([], async () => []);
    expect(await failureOf(empty.fetch(get('http://empty.test/')))).toBe('dns');
    const stuck = createOutbound([], () => new Promise(() => {}));
    expect(await failureOf(stuck.fetch(get('http://stuck.test/', { signal: AbortSignal.timeout(50) })))).toBe('timeout');
  });

  test('a request that closes its connection takes no idle one of another request, which its server may close just then', async () => {
    const connections: number[] = [];
    const server = net.createServer((socket) => {
      const at = connections.push(0) - 1;
      socket.on('error', () => {});
      socket.on('data', () => {
        connections[at] = (connections[at] ?? 0) + 1;
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
    const requests: readonly Record<string, string>[] = [{}, {}, { connection: 'close' }];
    for (const headers of requests) await new Response((await local.fetch(get(url, { headers }))).body).text();
    expect(connections).toEqual([2, 1]);
  });
});

describe('the screen', () => {
  test('blocks that are allowed are reached although private, others are not', () => {
    const allow = [parseCidr('10.1.0.0/16'), parseCidr('::1')].filter((cidr) => cidr !== undefined);
    expect(
      ['10.1.2.3', '::ffff:10.1.2.3', '::1', '8.8.8.8', '10.2.0.1', 'fd00::1', 'x'].map((address) => mayReach(address, allow)),
    ).toEqual([true, true, true, true, false, false, false]);
  });
  test('ports are 1 to 65535 without those of other protocols', () => {
    expect([0, 1, 22, 80, 443, 8080, 65535, 65536].map(mayUsePort)).toEqual([false, false, false, true, true, true, true, false]);
  });
});
