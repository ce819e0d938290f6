/**
 * Many secure collections: `npm run bench -- collections [collections]` (1000). Random valid cards keyed in by RFC 4733
 * and by tones, some cut off at a random digit by a cancel, a hang-up or a kill -9; then every number is looked for in
 * all that was written, sent and said, and in the memory of the process, and every key's tone in the recordings that
 * ran all the while.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow } from '../test/support/files-below.ts';
import { Keypad, keysIn } from '../test/support/keypad.ts';
import { Platform } from '../test/support/platform.ts';
import { randomCard } from '../test/support/random-card.ts';
import { Receiver } from '../test/support/receiver.ts';
import { RtpPeer } from '../test/support/rtp-peer.ts';
import { type Sipp, sipp } from '../test/support/sipp.ts';

const wanted = Number(process.argv[2] ?? 1000);
/** A call admits four collections at once. */
const PER_CALL = 4;
const CALLS_A_ROUND = 20;
/** Part of a number this long is looked for too. */
const PART = 9;

const receiver = new Receiver();
const platform = await Platform.start({ LOG_LEVEL: 'trace', RTP_PORTS: '20000-39999' });
const app = await platform.application(receiver.url, '+15550002');
receiver.secrets.set(app.appUuid, app.webhookSecret);
await platform.trunk('127.0.0.1:9');

const secrets: string[] = [];
const recordings: string[] = [];
let said = '';
let admitted = 0;
let collected = 0;

interface Caller {
  readonly sessionUuid: string;
  readonly ear: RtpPeer;
  readonly keypad: Keypad;
  readonly peer: Sipp;
}

async function call(at: number, round: number): Promise<Caller> {
  const did = `+1555${String(round * CALLS_A_ROUND + at).padStart(6, '0')}`;
  await platform.operator('PUT', `/numbers/${encodeURIComponent(did)}`, { app_uuid: app.appUuid });
  const ear = await RtpPeer.open();
  const number = did;
  const peer = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, number, keys: { rtp_port: String(ear.port) } });
  const find = () => receiver.events.find(({ event, body }) => event === 'session.created' && body.did === did);
  await receiver.until(() => find() !== undefined, 'a call');
  const sessionUuid = String(find()?.body.session_uuid);
  await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
  await receiver.event('session.answered', sessionUuid);
  await ear.until(() => ear.source !== undefined, 'audio');
  return { sessionUuid, ear, keypad: new Keypad(ear), peer };
}

const results = (sessionUuid: string) => receiver.of(sessionUuid).filter(({ event }) => event === 'payment.card.collected');

async function collections(caller: Caller): Promise<void> {
  const { sessionUuid, keypad } = caller;
  const path = `/v1/sessions/${sessionUuid}/payment/card/collect`;
  const recording = { direction: 'both', channels: 'mono', include_gaps: true };
  const made = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/recordings`, recording);
  recordings.push(String(made.body.recording_uuid));
  // A key that may be heard: it shows that the others would be.
  await keypad.dial('5');
  for (let at = 0; at < PER_CALL; at++) {
    const card = randomCard();
    const answer = await platform.api(app, 'POST', path, {});
    said += JSON.stringify(answer.body);
    if (answer.status !== 202) throw new Error(`a collection was refused: ${answer.status}`);
    admitted++;
    const cut = at < 2 ? card.length : 1 + Math.floor(Math.random() * (card.length - 1));
    const keys = at < 2 ? `${card}#` : card.slice(0, cut);
    // Tones first: an event just before a tone of the same key would be taken for its other half.
    if (at === 0) await keypad.dial(keys);
    else keypad.press(keys);
    secrets.push(card.slice(0, cut));
    if (at === 2) {
      await Bun.sleep(Math.random() * 100);
      await platform.api(app, 'DELETE', path);
    }
    // The last is left to the hang-up or the kill.
    if (at < 3) await receiver.until(() => results(sessionUuid).length === at + 1, `result ${at} of a call`, 40_000);
  }
}

/** Nine digits in a row of every secret, as a set: one pass over the bytes finds them all. */
const parts = () => new Set(secrets.filter((secret) => secret.length >= PART).map((secret) => secret.slice(0, PART)));

function hits(bytes: Buffer, wantedParts: ReadonlySet<string>): number {
  let found = 0;
  for (const [digits] of bytes.toString('latin1').matchAll(/[0-9]{9,}/g))
    for (let at = 0; at + PART <= digits.length; at++) if (wantedParts.has(digits.slice(at, at + PART))) found++;
  return found;
}

const CHUNK = 1024 * 1024;
const ZEROS = Buffer.alloc(CHUNK);
function memoryHits(wantedParts: ReadonlySet<string>): { readonly found: number; readonly mib: number } {
  const memory = openSync(`/proc/${platform.pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK);
  let found = 0;
  let bytes = 0;
  for (const line of readFileSync(`/proc/${platform.pid}/maps`, 'utf8').split('\n')) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    for (let at = Number.parseInt(from ?? '0', 16); at < Number.parseInt(to ?? '0', 16); at += CHUNK) {
      let read = 0;
      try {
        read = readSync(memory, chunk, 0, Math.min(CHUNK, Number.parseInt(to ?? '0', 16) - at), at);
      } catch {
        break;
      }
      // What was never touched reads as zeros.
      if (chunk.subarray(0, read).equals(ZEROS.subarray(0, read))) continue;
      bytes += read;
      found += hits(chunk.subarray(0, read), wantedParts);
    }
  }
  closeSync(memory);
  return { found, mib: Math.round(bytes / 1024 / 1024) };
}

const started = performance.now();
const rounds = Math.ceil(wanted / (CALLS_A_ROUND * PER_CALL));
let inMemory = 0;
let mib = 0;
for (let round = 0; round < rounds; round++) {
  const callers = await Promise.all(Array.from({ length: CALLS_A_ROUND }, (_, at) => call(at, round)));
  await Promise.all(callers.map(collections));
  for (const { sessionUuid } of callers.slice(0, CALLS_A_ROUND / 2))
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
  const last = round === rounds - 1;
  if (last && process.platform === 'linux') {
    const memory = memoryHits(parts());
    inMemory = memory.found;
    mib = memory.mib;
  }
  said += platform.output;
  await platform.kill();
  for (const { peer, ear } of callers) {
    peer.stop();
    ear.close();
  }
  await platform.start();
  for (const { sessionUuid } of callers) await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
  await receiver.until(
    () => callers.every(({ sessionUuid }) => results(sessionUuid).length === PER_CALL),
    'every result',
    60_000,
  );
}
const all = receiver.events.filter(({ event }) => event === 'payment.card.collected');
collected = all.filter(({ body }) => body.status === 'collected').length;
for (let after = 0; ; ) {
  const page = await platform.operator('GET', `/events?app_uuid=${app.appUuid}&after=${after}`);
  const text = JSON.stringify(page.body);
  said += text;
  const numbers = [...text.matchAll(/"event_id":(\d+)/g)].map(([, id]) => Number(id));
  if (numbers.length === 0) break;
  after = Math.max(...numbers);
}
said += platform.output + JSON.stringify(receiver.events.map(({ body }) => body));
const looked = parts();
const keysOf = (recording: string): string => {
  const wav = readFileSync(join(platform.dataDir, 'recordings', `${recording}.wav`));
  const pcm = new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length));
  return keysIn(Float32Array.from(pcm, (sample) => sample / 32_768));
};
const toned = recordings.map(keysOf);
let bytes = 0;
const inFiles = [...filesBelow(platform.dataDir)].map(([path, content]) => {
  bytes += content.length;
  return [path, hits(content, looked)] as const;
});
console.log({
  collections: admitted,
  results: all.length,
  collected,
  failed: Object.fromEntries(
    Map.groupBy(
      all.filter(({ body }) => body.status === 'failed'),
      ({ body }) => String(body.reason),
    )
      .entries()
      .map(([reason, each]) => [reason, each.length]),
  ),
  keys_told: receiver.count('dtmf.received'),
  numbers_looked_for: looked.size,
  found_in_files: inFiles.filter(([, found]) => found > 0),
  found_in_what_was_said: hits(Buffer.from(said), looked),
  found_in_memory: inMemory,
  mib_of_files: Math.round(bytes / 1024 / 1024),
  mib_of_memory: mib,
  recordings: toned.length,
  recordings_with_the_key_that_may_be_heard: toned.filter((keys) => keys === '5').length,
  recordings_with_others: toned.filter((keys) => keys !== '5' && keys !== '').length,
  bad_signatures: receiver.badSignatures,
  seconds: Math.round((performance.now() - started) / 1000),
});
await platform.stop();
await receiver.stop();
