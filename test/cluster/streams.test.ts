/** Streaming bodies through another node: the same bytes, held back by whoever takes them. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { eventually, natsInstalled, TestCluster, type TestNode } from './harness.ts';

describe.skipIf(!natsInstalled || !sippInstalled)('through another node', () => {
  let cluster: TestCluster;
  let app: Credentials;
  let sessionUuid = '';
  const receiver = new Receiver();
  const running: LiveCalls[] = [];

  const node = (at: number): TestNode => {
    const found = cluster.nodes[at];
    if (found === undefined) throw new Error('no such node');
    return found;
  };
  const post = (at: number, path: string, body: unknown) =>
    node(at).platform.api(app, 'POST', `/v1/sessions/${sessionUuid}${path}`, body);
  /** The same URL at another node. */
  const at = (n: number, url: unknown): string => {
    const { pathname, search } = new URL(String(url));
    return node(n).platform.url + pathname + search;
  };
  /** Sends a body, and again where the other node was too busy to be reached: nothing was taken of it then. */
  const push = async (url: string, body: () => BodyInit): Promise<Response> => {
    for (;;) {
      const response = await fetch(url, { method: 'POST', headers: pushHeaders(), body: body() });
      if (response.status !== 503 || !(await response.clone().text()).includes('cannot be reached')) return response;
    }
  };
  const pushHeaders = () => ({
    authorization: `Bearer ${app.appUuid}:${app.apiKey}`,
    'content-type': 'application/octet-stream',
  });
  const bytesOf = async (url: string, init?: RequestInit) => {
    const response = await fetch(url, init);
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
  };

  beforeAll(async () => {
    cluster = await TestCluster.start(2, { WEBHOOK_RETRY_SCALE: '0.1', NODE_BURIAL_SEC: '3' });
    app = await node(0).platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await node(0).platform.trunk('127.0.0.1:9');
    const calls = await callsTo(node(0).platform, app, receiver, 1);
    running.push(calls);
    sessionUuid = calls.sessions[0] ?? '';
  }, 60_000);

  afterAll(async () => {
    for (const { sipp } of running) sipp.stop();
    await cluster?.stop();
    await receiver.stop();
  });

  test('a push is taken at the pace at which it is heard, once', async () => {
    const seconds = 5;
    const { body } = await post(1, '/playback/play', {
      type: 'push',
      media_format: { encoding: 'pcm_s16le', sample_rate: 8000 },
    });
    const { url } = JSON.parse(JSON.stringify(body)).ingest;
    const started = performance.now();
    const slice = new Uint8Array(1600);
    const audio = () => {
      let sent = 0;
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          if (sent >= seconds * 10) controller.close();
          else controller.enqueue(slice);
          sent += 1;
        },
      });
    };
    const taken = await push(at(1, url), audio);
    expect([taken.status, await taken.json()]).toEqual([
      200,
      { operation_uuid: body.operation_uuid, bytes_received: seconds * 16_000 },
    ]);
    // Two seconds are kept ahead, so the last byte is taken that long before it is heard, and no sooner.
    expect(performance.now() - started).toBeGreaterThan((seconds - 3.5) * 1000);
    const again = await push(at(1, url), () => slice);
    expect(again.status).toBe(409);
    const ended = await receiver.event('playback.ended', sessionUuid);
    expect(ended.body).toMatchObject({ operation_uuid: body.operation_uuid });
    expect((await push(at(1, url).replace(/[0-9a-f]{4}$/, '0000'), () => slice)).status).toBe(404);
  }, 30_000);

  test('a recording is heard while it grows, and fetched when it is finished, with ranges', async () => {
    const made = await post(1, '/recordings', { direction: 'both', channels: 'mono', include_gaps: true });
    const { recording_uuid: recordingUuid } = made.body;
    await post(1, '/playback/play', { type: 'silence' });
    const available = await receiver.event('recording.became_available', sessionUuid);
    const pull = available.body.pull_url ?? available.body.media_url;
    const growing = bytesOf(at(1, pull));
    await Bun.sleep(1_000);
    await post(1, `/recordings/${recordingUuid}/stop`, {});
    await receiver.event('recording.ended', sessionUuid);
    const heard = await growing;
    expect(heard.status).toBe(200);
    const own = await bytesOf(at(0, pull));
    const other = await bytesOf(at(1, pull));
    expect([own.status, other.status]).toEqual([200, 200]);
    expect(own.bytes.length).toBeGreaterThan(8_000);
    expect(other.bytes.equals(own.bytes)).toBe(true);
    expect(other.headers.get('etag')).toBe(own.headers.get('etag'));
    // The sizes in the header are told at the end only.
    expect(heard.bytes.subarray(44).equals(own.bytes.subarray(44))).toBe(true);
    const part = { headers: { range: 'bytes=100-199' } };
    const [ranged, direct] = [await bytesOf(at(1, pull), part), await bytesOf(at(0, pull), part)];
    expect([ranged.status, ranged.headers.get('content-range')]).toEqual([206, direct.headers.get('content-range')]);
    expect(ranged.bytes.equals(direct.bytes)).toBe(true);
    expect((await bytesOf(`${at(1, pull)}0`)).status).toBe(403);
    expect((await bytesOf(`${node(1).platform.url}/internal/v1/stream`)).status).toBe(404);

    // Its node is killed: the recording is not lost, and away until its DATA_DIR is back.
    await node(0).platform.kill();
    running[0]?.sipp.stop();
    await eventually(async () => (await bytesOf(at(1, pull))).status === 503, 'the node to be missed');
    await node(0).platform.start();
    await eventually(async () => (await bytesOf(at(1, pull))).status === 200, 'the recording to be back');
    expect((await bytesOf(at(1, pull))).bytes.equals(own.bytes)).toBe(true);
  }, 60_000);
});
