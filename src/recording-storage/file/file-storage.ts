/** The storage of `RECORDINGS=file`: the local file is the recording. */
import type { Clock } from '../../clock.ts';
import type { RecordingStorage } from '../storage.ts';
import type { StorageLimits } from '../storage-limits.ts';
import { DiskSpace } from './disk-space.ts';
import { localFile } from './local-file.ts';
import type { RecordingFolder } from './recording-folder.ts';

export function fileStorage(folder: RecordingFolder, clock: Clock, limits: StorageLimits): RecordingStorage {
  const space = new DiskSpace(folder.path, clock, limits);
  return {
    path: (recordingUuid) => folder.wav(recordingUuid),
    admits: () => space.hasRoom(),
    begun() {},
    finished() {},
    open: async (recordingUuid) =>
      folder.knows(recordingUuid) ? localFile(recordingUuid, folder.wav(recordingUuid)) : undefined,
    async remove(recordingUuid) {
      if (!folder.knows(recordingUuid)) return;
      await folder.remove(folder.wav(recordingUuid));
      // Left by a time when recordings went to an object store.
      await folder.remove(folder.ledger(recordingUuid));
    },
    names: () => folder.names(),
    load: () => ({ waitingBytes: 0, waiting: 0 }),
    async close() {},
  };
}
