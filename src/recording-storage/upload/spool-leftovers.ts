/** Finds what a former process left in the folder of recordings for the object store. */
import { opendir } from 'node:fs/promises';
import { sizeOf } from '../file/local-file.ts';
import type { RecordingFolder } from '../file/recording-folder.ts';
import { isWholeWav } from './spool-file.ts';

const NAME = /^([A-Za-z0-9_-]{1,64})\.(wav|upload)$/;

/**
 * The names of recordings whose files are whole, and of uploads that were begun for a file that is gone. Files that
 * still say "growing" are not told: who wrote them mends them first. One that cannot be looked at holds up no other:
 * `onError` is told of it.
 */
export async function* spoolLeftovers(
  folder: RecordingFolder,
  onError: (recordingUuid: string, error: unknown) => void,
): AsyncGenerator<string> {
  for await (const entry of await opendir(folder.path)) {
    const [, recordingUuid, kind] = NAME.exec(entry.name) ?? [];
    if (recordingUuid === undefined) continue;
    const wav = folder.wav(recordingUuid);
    const isLeft = kind === 'wav' ? isWholeWav(wav) : sizeOf(wav).then((bytes) => bytes === undefined);
    const failed = (error: unknown) => {
      onError(recordingUuid, error);
      return false;
    };
    if (await isLeft.catch(failed)) yield recordingUuid;
  }
}
