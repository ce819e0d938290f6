/** The text of a playlist, read whole within its limit. */
import { PLAYLIST_MAX_BYTES } from '../../limits.ts';
import { Refusal } from './opening.ts';

/** Reads a body to its end and closes it. Rejects with `Refusal` where it is longer than a playlist may be. */
export async function readText(
  body: { next(): Promise<Uint8Array | undefined>; close(): void },
  head = new Uint8Array(0),
): Promise<string> {
  const parts: Uint8Array[] = [head];
  let bytes = head.length;
  try {
    for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
      bytes += chunk.length;
      if (bytes > PLAYLIST_MAX_BYTES) throw new Refusal('rejected', false, 200);
      parts.push(chunk);
    }
  } finally {
    body.close();
  }
  return new TextDecoder().decode(Buffer.concat(parts));
}
