/** The reader of the event stream that `bin/sidetone listen` has, where the platform stops to say anything. */
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Said = (line: string) => void;
type Source = (api: object, path: string, signal: AbortSignal, said: Said, ms: number) => AsyncGenerator<{ readonly id: string }>;
const CLI = join(import.meta.dir, '../../bin/cli');
const { eventSource }: { eventSource: Source } = await import(join(CLI, 'event-source.mjs'));
const { operatorApi }: { operatorApi(given: object): object } = await import(join(CLI, 'operator-api.mjs'));

const folder = mkdtempSync(join(tmpdir(), 'sidetone-source-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('A stream that falls silent without an end is asked for anew, from where it was; one that begins silent is an error.', async () => {
  const asked: (string | null)[] = [];
  const silent = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('id: 7\nevent: session.ended\ndata: {}\n\n'));
    },
  });
  await using platform = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url, headers }) {
      const type = { headers: { 'content-type': 'text/event-stream' } };
      if (url.endsWith('/nothing')) return new Promise<Response>(() => {});
      asked.push(headers.get('last-event-id'));
      return new Response(asked.length === 1 ? silent : 'id: 8\nevent: session.ended\ndata: {}\n\n', type);
    },
  });
  writeFileSync(join(folder, 'operator.token'), 'a-token-of-the-operator');
  const api = operatorApi({ url: `http://127.0.0.1:${platform.port}`, 'data-dir': folder });
  const abort = new AbortController();
  const said: string[] = [];
  const got: unknown[] = [];
  for await (const { id } of eventSource(api, '/events/stream', abort.signal, (line) => said.push(line), 50)) {
    got.push(id);
    if (got.length === 2) abort.abort();
  }
  expect([got, asked]).toEqual([
    ['7', '8'],
    [null, '7'],
  ]);
  expect(said).toEqual(['the connection was lost (nothing came for 0.05 s); trying again', 'connected again']);
  const first = eventSource(api, '/nothing', new AbortController().signal, () => {}, 50).next();
  await expect(first).rejects.toThrow(/no answer from .* \(none in time\); is the platform running\?/);
}, 20_000);
