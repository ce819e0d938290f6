/** A server of files on loopback, and sources of them. */
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { Source } from '../../../src/media/source/source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';

export class FileServer {
  readonly files = new Map<string, Uint8Array<ArrayBuffer>>();
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => new Response(this.files.get(new URL(request.url).pathname)),
  });

  /** A source of the file of that path, which begins with a slash. */
  source(path: string): Source {
    return new Source(createOutbound(['127.0.0.0/8']), `http://127.0.0.1:${this.#server.port}${path}`, new HeldBytes());
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }
}
