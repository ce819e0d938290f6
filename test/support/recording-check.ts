/** What is true of every recording that was admitted, once it is over: its events, their order, its file. */
import { expect } from 'bun:test';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Platform } from './platform.ts';
import type { Receiver } from './receiver.ts';

const HEADER_BYTES = 44;

export interface Admitted {
  readonly recordingUuid: string;
  /** The operation of its create. */
  readonly operationUuid: string;
  readonly owner: { readonly session_uuid: string } | { readonly room_id: string };
}

/** The recording of an answer with 202 to a create. */
export const admission = (owner: Admitted['owner'], body: Readonly<Record<string, unknown>>): Admitted => ({
  recordingUuid: String(body.recording_uuid),
  operationUuid: String(body.operation_uuid),
  owner,
});

/**
 * Checks each and that there are no others. Returns how long each is, in ms; those that were over before they could be
 * opened are left out.
 */
export async function checkRecordings(
  platform: Platform,
  receiver: Receiver,
  admitted: readonly Admitted[],
  seed = '',
): Promise<ReadonlyMap<string, number>> {
  const lengths = new Map<string, number>();
  const folder = join(platform.dataDir, 'recordings');
  const files = await readdir(folder);
  for (const { recordingUuid, operationUuid, owner } of admitted) {
    const about = `${recordingUuid} of ${JSON.stringify(owner)} ${seed}`;
    const lane = receiver.events.filter(({ body }) => Object.entries(owner).every(([name, value]) => body[name] === value));
    const own = lane.filter(({ body }) => body.recording_uuid === recordingUuid);
    const names = own.map(({ event }) => event);
    const count = (...of: string[]) => names.filter((name) => of.includes(name)).length;
    expect([count('recording.ended'), names.at(-1)], about).toEqual([1, 'recording.ended']);
    expect(count('recording.became_available', 'recording.failed'), about).toBeLessThan(2);
    for (const { body } of own) expect(body.operation_uuid, about).toBe(operationUuid);
    const over = lane.findIndex(({ event }) => event === 'session.ended' || event === 'room.deleted');
    if (over >= 0) expect(lane.slice(over).filter(({ body }) => body.recording_uuid === recordingUuid)).toEqual([]);
    const speech = names.filter((name) => name.startsWith('recording.speech.'));
    expect(speech, about).toEqual(speech.map((_, at) => `recording.speech.${at % 2 === 0 ? 'started' : 'ended'}`));

    const { duration, pull_url } = own.at(-1)?.body ?? {};
    const { pathname, search } = new URL(String(pull_url));
    const served = await fetch(`${platform.url}${pathname}${search}`);
    if (!files.includes(`${recordingUuid}.wav`)) {
      // Beside much other work its liveness may have run out before it was opened.
      const told = names.filter((name) => name !== 'recording.failed');
      expect([duration, served.status, told], about).toEqual([0, 404, ['recording.ended']]);
      continue;
    }
    const wav = Buffer.from(await served.arrayBuffer());
    expect(wav.equals(await readFile(join(folder, `${recordingUuid}.wav`))), about).toBe(true);
    expect([wav.readUInt32LE(4), wav.readUInt32LE(40)], about).toEqual([wav.length - 8, wav.length - HEADER_BYTES]);
    const lengthMs = ((wav.length - HEADER_BYTES) * 1000) / wav.readUInt32LE(28);
    expect(duration, about).toBe(Math.floor(lengthMs / 1000));
    lengths.set(recordingUuid, lengthMs);
  }
  const known = new Set(admitted.map(({ recordingUuid }) => recordingUuid));
  expect(files.filter((each) => !known.has(each.replace('.wav', '')))).toEqual([]);
  const told = receiver.events.flatMap(({ body }) => (body.recording_uuid === undefined ? [] : [String(body.recording_uuid)]));
  expect(told.filter((each) => !known.has(each))).toEqual([]);
  expect(await (await fetch(`${platform.url}/metrics`)).text()).toMatch(/^sidetone_recordings 0$/m);
  return lengths;
}

/** No descriptor of a recording is left open. */
export async function checkNothingOpen(platform: Platform): Promise<void> {
  const descriptors = await readdir(`/proc/${platform.pid}/fd`);
  const open = await Promise.all(descriptors.map((each) => readlink(`/proc/${platform.pid}/fd/${each}`).catch(() => '')));
  expect(open.filter((each) => each.includes('.wav'))).toEqual([]);
}
