/**
 * A POST whose body is passed on as it comes: a chunk is read of it only when the socket has taken the one before, so
 * that whoever sends it is held back by whoever takes it (RFC 9112 §7.1).
 */
import type { Socket } from 'node:net';
import { Pieces } from '../../bounds/pieces.ts';
import type { Answer } from '../../call/ports/sessions.ts';
import { INGEST_PIECE_LEAST_BYTES, NODE_ANSWER_MAX_BYTES, NODE_RETRY_AFTER_SEC } from '../../limits.ts';
import { BodyReader, framingOf, headEnd, parseHead } from '../../outbound/http-response.ts';
import { type Problem, problems } from '../../problem.ts';

export interface PostTo {
  /** The value of `Host`: a name or an address, with its port. */
  readonly host: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The other node's answer, or a problem. Never rejects; the socket is closed, by this side alone: one that answers
 * before the body is whole and closes would reset the connection, and its answer could be lost (RFC 9112 §9.6).
 */
export async function postBody(socket: Socket, to: PostTo, body: ReadableStream<Uint8Array> | null): Promise<Answer | Problem> {
  const lines = Object.entries(to.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on('error', () => {});
  const answer = responseOf(socket);
  socket.write(
    `POST ${to.path} HTTP/1.1\r\nhost: ${to.host}\r\ncontent-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n${lines.join('')}\r\n`,
  );
  const reader = body?.getReader();
  const pieces = new Pieces(INGEST_PIECE_LEAST_BYTES);
  let isAnswered = false;
  void answer.then(() => {
    isAnswered = true;
    // The other node takes no more: what is left of the body is nobody's.
    reader?.cancel().catch(() => {});
  });
  try {
    for (;;) {
      const next = await reader?.read();
      if (isAnswered || next === undefined || next.done) break;
      if (!pieces.take(next.value)) {
        reader?.cancel().catch(() => {});
        socket.destroy();
        return problems.tooManyPieces();
      }
      if (next.value.length > 0) await write(socket, next.value);
    }
  } catch {
    if (!isAnswered) {
      socket.destroy();
      return problems.invalid('body: ended before it was complete');
    }
  }
  if (!isAnswered) socket.write('0\r\n\r\n');
  const said = await answer;
  socket.destroy();
  return said ?? problems.unavailable('The node of this call was lost. See Retry-After header.', NODE_RETRY_AFTER_SEC);
}

/** One chunk, and room for the next. */
async function write(socket: Socket, chunk: Uint8Array): Promise<void> {
  socket.write(`${chunk.length.toString(16)}\r\n`);
  socket.write(chunk);
  if (socket.write('\r\n') || socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });
}

/** The response, once it is whole. Undefined: the connection ended before. */
function responseOf(socket: Socket): Promise<Answer | Problem | undefined> {
  const { promise, resolve } = Promise.withResolvers<Answer | Problem | undefined>();
  let held = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    const parsed = held.length > NODE_ANSWER_MAX_BYTES ? 'broken' : parse(held);
    if (parsed === 'broken') resolve(undefined);
    else if (parsed !== undefined) resolve(parsed);
  });
  socket.once('close', () => resolve(undefined));
  return promise;
}

function parse(bytes: Buffer): Answer | Problem | 'broken' | undefined {
  try {
    const end = headEnd(bytes);
    if (end === undefined) return undefined;
    const head = parseHead(bytes.subarray(0, end));
    const reader = new BodyReader(framingOf(head));
    const parts = reader.take(bytes.subarray(end));
    if (!reader.ended) return undefined;
    const body = JSON.parse(Buffer.concat(parts).toString('utf8'));
    return head.status < 300 ? { status: head.status, body } : { problem: body.code, status: head.status, message: body.message };
  } catch {
    return 'broken';
  }
}
