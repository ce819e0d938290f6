import { afterAll, describe, expect, test } from 'bun:test';
import { createServer, type Socket } from 'node:net';
import { HTTP_BODY_TURN_MAX_BYTES } from '../../src/limits.ts';
import type { ConnectRequest } from '../../src/outbound/connect.ts';
import { type GetRequest, type GetResponse, httpGet } from '../../src/outbound/http-get.ts';
import { BodyReader, framingOf, headEnd, parseHead } from '../../src/outbound/http-response.ts';
import { OutboundError, type OutboundFailure } from '../../src/outbound/outbound.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import fc from '../support/fast-check.ts';
import { refusedPort } from '../support/refused-port.ts';
import { failureOf } from './failure-of.ts';

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

/** A TCP server; each connection is handed over once its request is here. */
async function answering(answer: (socket: Socket, request: string) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (request) => answer(socket, request.toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
}

const local = createOutbound(['127.0.0.0/8']);
const ask = (url: string, more: Partial<GetRequest> = {}): Promise<GetResponse> =>
  local.get({ url, headers: {}, connectTimeoutMs: 2_000, responseTimeoutMs: 2_000, redirects: 2, ...more });

async function whole(response: GetResponse): Promise<string> {
  const parts: Uint8Array[] = [];
  for (let part = await response.body.read(); part !== undefined; part = await response.body.read()) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe('a GET for audio', () => {
  const bodies: readonly (readonly [string, string, string, string])[] = [
    ['by its length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more', 'hello', 'length'],
    [
      'in chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n',
      'hello',
      'chunked',
    ],
    ['until the connection closes', 'HTTP/1.0 200 OK\r\n\r\nhello', 'hello', 'close'],
    ['from a streaming server of old', 'ICY 200 OK\r\nicy-name: x\r\nicy-metaint: 16\r\n\r\nhello', 'hello', 'close'],
    [
      'after an interim response, with bare line feeds',
      'HTTP/1.1 100 Continue\n\nHTTP/1.1 200\nContent-Length: 5\n\nhello',
      'hello',
      'length',
    ],
  ];
  for (const [how, answer, body, framing] of bodies) {
    for (const size of [1, 7, 10_000]) {
      test(`reads a body ${how}, in pieces of ${size}`, async () => {
        const url = await answering((socket) => {
          for (let at = 0; at < answer.length; at += size) socket.write(answer.slice(at, at + size));
          socket.end();
        });
        const response = await ask(url);
        expect([response.status, response.framing, await whole(response)]).toEqual([200, framing as 'length', body]);
      });
    }
  }

  test('asks for the resource as it is, by the name in the URL', async () => {
    let asked = '';
    const url = await answering((socket, request) => {
      asked = request;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
    await whole(await ask(`${url}a b?c=ü`, { headers: { accept: 'audio/*' } }));
    expect(asked).toBe(
      `GET /a%20b?c=%C3%BC HTTP/1.1\r\nhost: ${new URL(url).host}\r\nuser-agent: Sidetone\r\naccept-encoding: identity\r\naccept: audio/*\r\nconnection: close\r\n\r\n`,
    );
  });

  test('names each way in which it goes wrong', async () => {
    const says = (text: string) => answering((socket) => socket.end(text));
    const rows: readonly (readonly [string, Promise<string>, OutboundFailure])[] = [
      ['no HTTP', says('SSH-2.0-OpenSSH\r\n'), 'invalid_response'],
      ['a head cut short', says('HTTP/1.1 200 OK\r\nContent-Le'), 'invalid_response'],
      ['a head without end', says(`HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(10_000)}`), 'invalid_response'],
      ['two lengths', says('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'), 'invalid_response'],
      ['nothing', says(''), 'unreachable'],
      ['a redirect inward', says('HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n'), 'rejected'],
      ['a redirect to another scheme', says('HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\n\r\n'), 'rejected'],
    ];
    for (const [name, url, expected] of rows) expect([name, await failureOf(ask(await url))]).toEqual([name, expected]);
    const round = await answering((socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n'));
    expect(await failureOf(ask(round))).toBe('rejected');
    const told = await ask(round).catch((error: unknown) => (error instanceof OutboundError ? error.status : error));
    expect(told).toBe(302);
    const mute = await answering(() => {});
    expect(await failureOf(ask(mute, { responseTimeoutMs: 30 }))).toBe('timeout');
    expect(await failureOf(ask('http://10.0.0.1/'))).toBe('rejected');
    expect(await failureOf(ask('http://127.0.0.1:25/'))).toBe('rejected');
    const refused = await refusedPort();
    closers.push(refused.close);
    for (const scheme of ['http', 'https'])
      expect(await failureOf(ask(`${scheme}://127.0.0.1:${refused.port}/`))).toBe('unreachable');
    const plain = await answering((socket) => socket.write('nothing of TLS'));
    expect(await failureOf(ask(plain.replace('http:', 'https:')))).toBe('tls');
    const stuck = createOutbound([], () => new Promise(() => {}));
    const never = stuck.get({
      url: 'http://stuck.test/',
      headers: {},
      connectTimeoutMs: 30,
      responseTimeoutMs: 5_000,
      redirects: 0,
    });
    expect(await failureOf(never)).toBe('timeout');
  });

  test('a body may take longer than its connection and its head may', async () => {
    const url = await answering((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nso');
      setTimeout(() => socket.end('ft'), 150);
    });
    expect(await whole(await ask(url, { connectTimeoutMs: 100, responseTimeoutMs: 100 }))).toBe('soft');
  });

  test('a length is told once, and not at all where it does not count', async () => {
    const lengthOf = async (fields: string, body: string) => {
      const response = await ask(await answering((socket) => socket.end(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n${body}`)));
      return [await whole(response), response.headers.get('content-length')];
    };
    expect(await lengthOf('Content-Length: 2\r\nContent-Length: 2', 'ok')).toEqual(['ok', '2']);
    expect(await lengthOf('Content-Length: 9\r\nTransfer-Encoding: chunked', '2\r\nok\r\n0\r\n\r\n')).toEqual(['ok', null]);
  });

  test('interim responses without an end are no answer, and hold nobody up', async () => {
    const many = 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(20_000);
    const url = await answering((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(many));
      };
      socket.on('drain', more);
      more();
    });
    expect(await failureOf(ask(url))).toBe('invalid_response');
  });

  test('a body that breaks off is an error, and so is a chunk that is none', async () => {
    for (const answer of [
      'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel',
    ]) {
      const url = await answering((socket) => socket.end(answer));
      expect(await failureOf(ask(url).then(whole))).toBe('unreachable');
    }
    const reset = await answering((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\nhello', () => socket.resetAndDestroy());
    });
    expect(await failureOf(ask(reset).then(whole))).toBe('unreachable');
    const url = await answering((socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'));
    expect(await failureOf(ask(url).then(whole))).toBe('invalid_response');
  });

  test('follows redirects, and resolves and screens each hop anew: a name that changes its answer gains nothing', async () => {
    const there = await answering((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    const here = await answering((socket) => socket.end(`HTTP/1.1 307 Go\r\nLocation: ${there}\r\n\r\n`));
    const response = await ask(here);
    expect([response.url, await whole(response)]).toEqual([there, 'ok']);
    let lookups = 0;
    const rebinding = createOutbound(['127.0.0.0/8'], async () => (lookups++ === 0 ? ['127.0.0.1'] : ['10.0.0.1']));
    const { port } = new URL(await answering((socket) => socket.end(`HTTP/1.1 302 Go\r\nLocation: /again\r\n\r\n`)));
    const url = `http://changes.test:${port}/`;
    expect(
      await failureOf(rebinding.get({ url, headers: {}, connectTimeoutMs: 2_000, responseTimeoutMs: 2_000, redirects: 5 })),
    ).toBe('rejected');
    expect(lookups).toBe(2);
  });

  test('follows a redirect to a name that its server does not encode', async () => {
    const names = ['/שיר €.wav', Buffer.from('/f\xfcr?\xfc', 'latin1'), '/end'];
    const asked: string[] = [];
    const url = await answering((socket, request) => {
      asked.push(request.split(' ')[1] ?? '');
      const name = names[asked.length - 1];
      if (name === undefined) socket.end('HTTP/1.1 200 OK\r\n\r\n');
      else socket.end(Buffer.concat([Buffer.from('HTTP/1.1 302 Go\r\nLocation: '), Buffer.from(name), Buffer.from('\r\n\r\n')]));
    });
    (await ask(url, { redirects: 3 })).body.close();
    expect(asked).toEqual(['/', '/%D7%A9%D7%99%D7%A8%20%E2%82%AC.wav', '/f%FCr?%FC', '/end']);
  });

  test('sends the validator of a server back as it came', async () => {
    const asked: string[] = [];
    const url = await answering((socket, request) => {
      asked.push(request);
      socket.end('HTTP/1.1 200 OK\r\nETag: "שיר"\r\n\r\n');
    });
    const first = await ask(url);
    first.body.close();
    (await ask(url, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })).body.close();
    expect(asked[1]).toContain('if-none-match: "שיר"\r\n');
  });

  test('follows so many redirects as it is told, and only what is one', async () => {
    const page = 'HTTP/1.1 200 OK\r\nLocation: /elsewhere\r\nContent-Length: 2\r\n\r\nok';
    const url = await answering((socket, request) => {
      const [, left = '0', status = '302'] = /^GET \/([0-9])\/([0-9]+)/.exec(request) ?? [];
      if (left === '0') socket.end(page);
      else socket.end(`HTTP/1.1 ${status} Go\r\nLocation: /${Number(left) - 1}/${status}\r\n\r\n`);
    });
    for (const status of [301, 302, 303, 307, 308]) {
      expect(await whole(await ask(`${url}2/${status}`))).toBe('ok');
      expect(await failureOf(ask(`${url}3/${status}`))).toBe('rejected');
    }
    for (const status of [300, 304, 305]) expect((await ask(`${url}1/${status}`)).status).toBe(status);
    const nowhere = await answering((socket) => socket.end('HTTP/1.1 302 Go\r\nContent-Length: 2\r\n\r\nhm'));
    expect(await whole(await ask(nowhere))).toBe('hm');
  });

  test('waits for no server to close, and leaves no connection open', async () => {
    for (const [answer, ends] of [
      ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'none'],
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', 'none'],
      ['HTTP/1.1 302 Go\r\nLocation: http://10.0.0.1/\r\n\r\n', 'rejected'],
      ['SSH-2.0-OpenSSH\r\n', 'invalid_response'],
    ] as const) {
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      const url = await answering((socket) => {
        socket.on('close', () => resolve());
        socket.write(answer);
      });
      expect(await failureOf(ask(url).then(whole))).toBe(ends);
      await closed;
    }
  });

  test('ends when it is given up, before the head and within the body, and closes the connection', async () => {
    for (const answer of ['HTTP/1.1 200', 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello']) {
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      const abort = new AbortController();
      const url = await answering((socket) => {
        socket.on('close', () => resolve());
        socket.write(answer, () => abort.abort());
      });
      expect(await failureOf(ask(url, { signal: abort.signal }).then(whole))).toBe('timeout');
      await closed;
    }
  });

  test('ends at once when it is given up while its name is looked up, or while it connects', async () => {
    for (const when of ['lookup', 'handshake']) {
      const abort = new AbortController();
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      // It says nothing, so that a TLS handshake with it never ends.
      const { port } = new URL(
        await answering((socket) => {
          socket.on('close', () => resolve());
          abort.abort();
        }),
      );
      const outbound = createOutbound(['127.0.0.0/8'], async () => {
        if (when === 'lookup') abort.abort();
        return ['127.0.0.1'];
      });
      const terms = { headers: {}, connectTimeoutMs: 600_000, responseTimeoutMs: 1, redirects: 0, signal: abort.signal };
      expect(await failureOf(outbound.get({ url: `https://late.test:${port}/`, ...terms }))).toBe('timeout');
      if (when === 'handshake') await closed;
    }
  });

  test('goes to the port of the URL, or to that of its scheme', async () => {
    const asked: unknown[] = [];
    const connect = ({ hostname, port, tls }: ConnectRequest) => {
      asked.push([hostname, port, tls]);
      return Promise.reject(new OutboundError('unreachable', 'not here'));
    };
    const terms = { headers: {}, connectTimeoutMs: 1, responseTimeoutMs: 1, redirects: 0 };
    for (const url of ['http://a.test/', 'https://a.test/', 'http://a.test:8080/', 'https://[::1]:80/'])
      expect(await failureOf(httpGet({ url, ...terms }, connect, (text) => new URL(text)))).toBe('unreachable');
    expect(asked).toEqual([
      ['a.test', 80, false],
      ['a.test', 443, true],
      ['a.test', 8080, false],
      ['[::1]', 80, true],
    ]);
  });

  test('holds the far end back while nobody reads, and lets it go when it is closed', async () => {
    const big = Buffer.alloc(1024 * 1024);
    let written = 0;
    let closed: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const url = await answering((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const pump = () => {
        while (written < 200 && socket.write(big)) written++;
        written++;
      };
      socket.on('drain', pump);
      socket.on('close', () => closed());
      pump();
    });
    const response = await ask(url);
    expect((await response.body.read())?.length).toBeGreaterThan(0);
    const before = process.memoryUsage().rss;
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    expect(written).toBeLessThan(100);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    const pending = failureOf(
      response.body
        .read()
        .then(() => response.body.read())
        .then(() => new Promise(() => {})),
    );
    response.body.close();
    response.body.close();
    await gone;
    expect(await Promise.race([pending, Promise.resolve('still reading')])).not.toBe('none');
  });
});

describe('a response in pieces', () => {
  test('is the same however it is cut', () => {
    const bytes = (text: string) => new TextEncoder().encode(text);
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        (parts, cuts) => {
          const body = parts.join('');
          const text = `${parts.map((part) => `${bytes(part).length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`;
          const wire = bytes(text);
          const reader = new BodyReader({ by: 'chunked' });
          const out: Uint8Array[] = [];
          for (let at = 0, turn = 0; at < wire.length; turn++) {
            const size = cuts[turn % cuts.length] ?? 1;
            out.push(...reader.take(wire.subarray(at, at + size)));
            at += size;
          }
          expect(Buffer.concat(out).toString()).toBe(Buffer.from(bytes(body)).toString());
          expect(reader.ended).toBe(true);
        },
      ),
    );
  });

  test('whose head is random bytes never throws anything but its own error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        const bytes = new Uint8Array([...new TextEncoder().encode('HTTP/1.1 200 OK\r\n'), ...noise, 13, 10, 13, 10]);
        try {
          framingOf(parseHead(bytes.subarray(0, headEnd(bytes))));
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).name).toBe('MalformedResponse');
        }
      }),
    );
  });
});

describe('a body of tiny chunks', () => {
  test('is unpacked in turns, so that one sender does not hold up the others', async () => {
    const chunks = Buffer.from('1\r\nx\r\n'.repeat(100_000));
    const url = await answering((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.write(chunks);
      socket.end('0\r\n\r\n');
    });
    const { body } = await ask(url);
    let turns = 0;
    let reading = true;
    const turn = () => {
      turns++;
      if (reading) setImmediate(turn);
    };
    setImmediate(turn);
    const inTurn = new Map<number, number>();
    let bytes = 0;
    for (let part = await body.read(); part !== undefined; part = await body.read()) {
      bytes += part.length;
      inTurn.set(turns, (inTurn.get(turns) ?? 0) + part.length);
    }
    reading = false;
    expect(bytes).toBe(100_000);
    // A byte of body is six on the wire. A second piece in a turn is that of the socket's next bytes.
    expect(Math.max(...inTurn.values())).toBeLessThanOrEqual((2 * HTTP_BODY_TURN_MAX_BYTES) / 6 + 1);
  });
});
