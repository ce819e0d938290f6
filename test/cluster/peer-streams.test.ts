/** Bodies that go on from node to node: the tokens for them over a bus of calls, the bodies over HTTP. */
import { afterEach, expect, test } from 'bun:test';
import { PEER_STREAM_PATH, PEER_TOKEN_HEADER, type StreamObject } from '../../src/call/ports/peer-streams.ts';
import { Streams, type StreamsOptions } from '../../src/cluster/peer/streams.ts';
import { NODE_TOKEN_MS, NODE_TOKENS_MAX } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

const RECORDING: StreamObject = { kind: 'media', recordingUuid: 'recording', as: 'live' };
const AWAY = expect.objectContaining({ status: 503, message: expect.stringContaining('cannot be reached') });

let server: ReturnType<typeof Bun.serve> | undefined;
afterEach(() => server?.stop(true));

/** Node `a`, which has nothing, and `b`, which serves each request as the test says. */
function nodes(
  serve: (request: Request, b: Streams, clock: VirtualClock) => Response | Promise<Response>,
  hostname = '127.0.0.1',
) {
  const clock = new VirtualClock();
  const answers = new Map<string, Parameters<StreamsOptions['bus']['answer']>[1]>();
  const suspects: string[] = [];
  const fetch = (request: Request): Response | Promise<Response> => serve(request, b, clock);
  server = Bun.serve({ port: 0, hostname, fetch });
  const row = { host: hostname, httpPort: server.port ?? 0, volumeId: 'volume' };
  const rows = ['node-a', 'node-b', 'node-c'].map((nodeId) => nodeRow(nodeId, row));
  const node = (nodeId: string) =>
    new Streams({
      bus: {
        answer: (kind, answer) => void answers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body) => {
          const answer = answers.get(`${to} ${kind}`);
          return answer === undefined ? { outcome: 'not_delivered' } : { outcome: 'answered', body: await answer(body, nodeId) };
        },
      },
      members: { rows, get: (id) => rows.find((each) => each.nodeId === id), isSuspect: (id) => suspects.includes(id) },
      nodeId,
      clock,
    });
  const [a, b] = [node('node-a'), node('node-b')];
  return { a, b, suspects, answers };
}
const asking = (body: BodyInit | null = null) => new Request('http://a/', { method: 'POST', body });

test('What another node has is opened by a token, once, and nothing of the request goes there but the part that it asks for', async () => {
  const asked: unknown[] = [];
  const { a } = nodes((request, b) => {
    asked.push([b.redeem(request), b.redeem(request), request.headers.get('range'), request.headers.get('authorization')]);
    return new Response('audio', { status: 206, headers: { 'content-range': 'bytes 0-4/9' } });
  });
  const response = await a.get('node-b', RECORDING, new Headers({ range: 'bytes=0-4', authorization: 'Bearer secret' }));
  expect([response?.status, response?.headers.get('content-range')]).toEqual([206, 'bytes 0-4/9']);
  expect(Buffer.from((await response?.next()) ?? []).toString()).toBe('audio');
  expect(await response?.next()).toBeUndefined();
  expect(asked).toEqual([[RECORDING, undefined, 'bytes=0-4', null]]);
});

test('A body goes to the node that has asked for it, and its answer comes back', async () => {
  const { a } = nodes(async (request, b) => Response.json({ object: b.redeem(request), took: await request.text() }));
  const ingest: StreamObject = { kind: 'ingest', appUuid: 'app', ingestUuid: 'ingest' };
  expect(await a.send('node-b', ingest, asking('samples'))).toEqual({ status: 200, body: { object: ingest, took: 'samples' } });
});

test('A node is asked by the name and the port that it has, also where that is an address of IPv6', async () => {
  for (const [hostname, host] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '[::1]'],
  ] as const) {
    const { a } = nodes(({ url }) => Response.json({ url }), hostname);
    const url = `http://${host}:${server?.port}${PEER_STREAM_PATH}`;
    const got = await a.get('node-b', RECORDING, new Headers());
    expect(JSON.parse(Buffer.from((await got?.next()) ?? []).toString())).toEqual({ url });
    expect(await a.send('node-b', RECORDING, asking())).toEqual({ status: 200, body: { url } });
    await server?.stop(true);
  }
});

test('A token opens nothing after thirty seconds, and neither does one that nobody gave out', async () => {
  const { a } = nodes(async (request, b, clock) => {
    await clock.advance(NODE_TOKEN_MS);
    return Response.json(b.redeem(request) ?? null);
  });
  expect(await a.send('node-b', RECORDING, asking())).toMatchObject({ body: null });
  const guess = new Request('http://a/', { headers: { [PEER_TOKEN_HEADER]: 'guess' } });
  expect([a.redeem(guess), a.redeem(asking())]).toEqual([undefined, undefined]);
});

test('Of too many tokens at once the oldest is forgotten', async () => {
  const { b, answers } = nodes(() => new Response());
  const tokens: string[] = [];
  const give = async () =>
    tokens.push(JSON.parse(JSON.stringify(await answers.get('node-b stream')?.({ object: RECORDING }, ''))).token);
  const opens = (at: number) => b.redeem(new Request('http://a/', { headers: { [PEER_TOKEN_HEADER]: tokens.at(at) ?? '' } }));
  for (let n = 0; n <= NODE_TOKENS_MAX; n++) await give();
  expect([opens(0), opens(1), opens(-1)]).toEqual([undefined, RECORDING, RECORDING]);
});

test('A node that is unknown, suspect, of another release or not listening is away', async () => {
  const { a, suspects, answers } = nodes(() => new Response());
  const reached = async (nodeId: string) => [
    await a.send(nodeId, RECORDING, asking()),
    await a.get(nodeId, RECORDING, new Headers()),
  ];
  for (const nodeId of ['node-c', 'node-d']) expect(await reached(nodeId)).toEqual([AWAY, undefined]);
  suspects.push('node-b');
  expect(await reached('node-b')).toEqual([AWAY, undefined]);
  suspects.pop();
  for (const body of [{}, null, 'token']) {
    answers.set('node-c stream', () => body);
    expect(await reached('node-c')).toEqual([AWAY, undefined]);
  }
  await server?.stop(true);
  expect(await reached('node-b')).toEqual([AWAY, undefined]);
});

test('A node never takes itself for the other one that made a push or has a volume', () => {
  const { a, b } = nodes(() => new Response());
  const ingest = `${'0'.repeat(24)}-b`;
  expect([a.nodeOfIngest(ingest), b.nodeOfIngest(ingest), a.nodeOfIngest(`${'0'.repeat(24)}-z`)]).toEqual([
    'node-b',
    undefined,
    undefined,
  ]);
  expect([a.nodeOfVolume('volume'), b.nodeOfVolume('volume'), a.nodeOfVolume('other')]).toEqual(['node-b', 'node-a', undefined]);
});
