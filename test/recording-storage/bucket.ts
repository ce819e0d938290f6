/**
 * An object store to keep recordings in: `s3rver` in a process of its own, and in front of it a proxy that counts, and
 * fails as it is told. The proxy also does what s3rver leaves out: it checks signatures, hashes and the order of parts,
 * knows which multipart uploads there are, and gives them up. And it serves the first byte alone: s3rver takes a last
 * byte of 0 for none, and sends the whole object.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { givenSignature, signatureOf } from './signature.ts';

const START = `
const S3rver = require('s3rver');
new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: process.argv[1], configureBuckets: [{ name: 'calls' }] })
  .run().then(({ port }) => console.log(port));
process.stdin.resume().on('end', () => process.exit());
`;

export interface Seen {
  readonly method: string;
  /** Below the bucket, with its query. */
  readonly target: string;
  /** `head`, `get`, `put`, `delete`, `create`, `part 3`, `complete`, `abort`, `bucket`. */
  readonly what: string;
  readonly bytes: number;
}

/**
 * Before it reaches the store: an answer of its own, or a broken connection. `lose`: the store does it, and its answer
 * is lost.
 */
export type Mischief =
  | {
      readonly status: number;
      readonly body?: string | Buffer;
      readonly location?: string;
      readonly range?: string;
      readonly coding?: string;
    }
  | 'reset'
  | 'lose'
  | 'hang'
  | undefined;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly answer: Buffer;
}

export class Bucket {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #upstream: number;
  readonly #proxy: Server;
  readonly #uploads = new Set<string>();
  readonly #watchers: { ready: () => boolean; resolve: () => void }[] = [];
  /** Every request that came, in order, failed ones too. */
  readonly seen: Seen[] = [];
  /** A promise holds the request up. */
  misbehave: (seen: Seen) => Mischief | Promise<Mischief> = () => undefined;

  private constructor(child: ChildProcess, folder: string, upstream: number) {
    this.#child = child;
    this.#folder = folder;
    this.#upstream = upstream;
    this.#proxy = createServer((incoming, outgoing) => {
      this.#serve(incoming, outgoing).catch(() => incoming.socket.destroy());
    });
  }

  static async start(): Promise<Bucket> {
    const folder = await mkdtemp(join(tmpdir(), 'sidetone-bucket-'));
    const child = spawn('node', ['-e', START, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    const bucket = new Bucket(child, folder, Number(String(line).trim()));
    bucket.#proxy.listen(0, '127.0.0.1');
    await once(bucket.#proxy, 'listening');
    return bucket;
  }

  /** Settings of a storage in it. */
  settings(prefix: string) {
    return { kind: 's3', bucket: 'calls', prefix, endpoint: this.endpoint, ...CREDENTIALS } as const;
  }

  get endpoint(): string {
    const address = this.#proxy.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  }

  /** The address of the store without the proxy. */
  get direct(): string {
    return `http://127.0.0.1:${this.#upstream}`;
  }

  /** The object as it lies in the store, or undefined when there is none. */
  async object(key: string): Promise<Buffer | undefined> {
    return readFile(join(this.#folder, 'calls', `${key}._S3rver_object`)).catch(() => undefined);
  }

  /** The operator deletes the bucket, and makes it again. */
  async loseBucket(): Promise<void> {
    await rename(join(this.#folder, 'calls'), join(this.#folder, 'lost'));
  }

  async bringBucketBack(): Promise<void> {
    await rename(join(this.#folder, 'lost'), join(this.#folder, 'calls'));
  }

  /** What was asked for, by its kind. */
  asked(what: RegExp): string[] {
    return this.seen.map((seen) => seen.what).filter((each) => what.test(each));
  }

  /** The store forgets all unfinished uploads, as its lifecycle rules may have it. */
  forgetUploads(): void {
    this.#uploads.clear();
  }

  get uploads(): number {
    return this.#uploads.size;
  }

  /** Resolves as soon as it is so after a request; the test's own time is the limit. */
  async until(ready: () => boolean): Promise<void> {
    if (ready()) return;
    await new Promise<void>((resolve) => this.#watchers.push({ ready, resolve }));
  }

  clear(): void {
    this.seen.length = 0;
    this.misbehave = () => undefined;
  }

  async stop(): Promise<void> {
    this.#proxy.closeAllConnections();
    this.#proxy.close();
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = '', url = '' } = incoming;
    const uploadId = new URL(url, this.direct).searchParams.get('uploadId');
    const seen = { method, target: url.replace(/^\/calls\/?/, ''), what: kindOf(method, url), bytes: body.length };
    this.seen.push(seen);
    const mischief = (await this.misbehave(seen)) ?? refusal(incoming, body);
    if (mischief === 'reset') incoming.socket.destroy();
    else if (typeof mischief === 'object') {
      const { status, body: text = '', location, range, coding } = mischief;
      const headers = {
        ...{ 'content-type': 'application/xml', 'content-length': Buffer.byteLength(text) },
        ...(location === undefined ? {} : { location }),
        ...(range === undefined ? {} : { 'content-range': range }),
        ...(coding === undefined ? {} : { 'content-encoding': coding }),
      };
      outgoing.writeHead(status, headers).end(text);
    } else if (mischief === undefined || mischief === 'lose') {
      await this.#answer(seen, uploadId, incoming, body, mischief === 'lose' ? undefined : outgoing);
      if (mischief === 'lose') incoming.socket.destroy();
    }
    for (const watcher of this.#watchers.filter(({ ready }) => ready())) {
      this.#watchers.splice(this.#watchers.indexOf(watcher), 1);
      watcher.resolve();
    }
  }

  /** What s3rver has not, else its own answer. */
  async #answer(
    { what }: Seen,
    uploadId: string | null,
    incoming: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse | undefined,
  ): Promise<void> {
    if (uploadId !== null && !this.#uploads.has(uploadId)) {
      outgoing?.writeHead(404, { 'content-type': 'application/xml' }).end('<Error><Code>NoSuchUpload</Code></Error>');
      return;
    }
    if (what === 'abort' && uploadId !== null) {
      this.#uploads.delete(uploadId);
      outgoing?.writeHead(204).end();
      return;
    }
    const { status, headers, answer } = firstByteAlone(incoming, await this.#forward(incoming, body));
    const created = what === 'create' ? /<UploadId>([^<]+)</.exec(answer.toString('latin1'))?.[1] : undefined;
    if (created !== undefined) this.#uploads.add(created);
    if (what === 'complete' && status === 200 && uploadId !== null) this.#uploads.delete(uploadId);
    outgoing?.writeHead(status, headers).end(answer);
  }

  async #forward(incoming: IncomingMessage, body: Buffer): Promise<Answer> {
    const { method, url, headers } = incoming;
    const onward = request({ host: '127.0.0.1', port: this.#upstream, method, path: url, headers, agent: false });
    onward.end(body);
    const [response] = (await once(onward, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return { status: response.statusCode ?? 500, headers: response.headers, answer: Buffer.concat(chunks) };
  }
}

export const CREDENTIALS = { region: 'us-east-1', accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' } as const;

/** What a store says to a request that is not signed right, has another body than was signed, or parts in disorder. */
function refusal({ method = '', url = '', headers }: IncomingMessage, body: Buffer): Mischief {
  const request = { method, url, headers };
  const said = headers['x-amz-content-sha256'];
  if (givenSignature(request) !== signatureOf(request, CREDENTIALS.secretAccessKey))
    return { status: 403, body: '<Error><Code>SignatureDoesNotMatch</Code></Error>' };
  if (said !== 'UNSIGNED-PAYLOAD' && said !== createHash('sha256').update(body).digest('hex'))
    return { status: 400, body: '<Error><Code>XAmzContentSHA256Mismatch</Code></Error>' };
  const parts = [...body.toString('latin1').matchAll(/<PartNumber>([0-9]+)<\/PartNumber>/g)].map(([, number]) => Number(number));
  if (kindOf(method, url) === 'complete' && parts.some((number, at) => number <= (parts[at - 1] ?? 0)))
    return { status: 400, body: '<Error><Code>InvalidPartOrder</Code></Error>' };
  return undefined;
}

/** The answer to a request for bytes 0 to 0, cut to what was asked for. */
function firstByteAlone(asked: IncomingMessage, given: Answer): Answer {
  if (given.status !== 206 || asked.headers.range !== 'bytes=0-0') return given;
  const size = given.headers['content-range']?.split('/')[1];
  const headers = { ...given.headers, 'content-length': '1', 'content-range': `bytes 0-0/${size}` };
  return { ...given, headers, answer: given.answer.subarray(0, 1) };
}

function kindOf(method: string, url: string): string {
  const { pathname, searchParams } = new URL(url, 'http://store');
  if (/^\/calls\/?$/.test(pathname)) return 'bucket';
  const part = searchParams.get('partNumber');
  if (part !== null) return `part ${part}`;
  if (searchParams.has('uploads')) return 'create';
  if (searchParams.has('uploadId')) return method === 'DELETE' ? 'abort' : 'complete';
  return method.toLowerCase();
}
