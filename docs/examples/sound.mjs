// The sounds of the other programs here: tones, where a real application has a voice and music, and how they are served. Copy it
// along with the program that uses it.
import { createHash } from 'node:crypto';

const RATE = 8000;

/** The samples of a tone: `hz`, so many seconds. */
export const tone = (hz, seconds) =>
  Array.from({ length: Math.round(seconds * RATE) }, (_, at) => Math.round(6000 * Math.sin((2 * Math.PI * hz * at) / RATE)));

/** The samples of silence. */
export const silence = (seconds) => new Array(Math.round(seconds * RATE)).fill(0);

/**
 * Answers a request for a sound with a WAV (8 kHz, 16-bit, mono) of these samples. By its ETag the platform downloads and decodes
 * what many callers hear once, and by max-age it does not ask again for an hour. Serve your own files so.
 */
export function sendSound(request, response, samples) {
  const wav = Buffer.alloc(44 + samples.length * 2);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE, 24);
  wav.writeUInt32LE(RATE * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(samples.length * 2, 40);
  for (const [at, sample] of samples.entries()) wav.writeInt16LE(sample, 44 + at * 2);
  const etag = `"${createHash('sha256').update(wav).digest('hex').slice(0, 16)}"`;
  const fields = { 'content-type': 'audio/wav', 'cache-control': 'max-age=3600', etag };
  if (request.headers['if-none-match'] === etag) response.writeHead(304, fields).end();
  else response.writeHead(200, { ...fields, 'content-length': wav.length }).end(wav);
}
