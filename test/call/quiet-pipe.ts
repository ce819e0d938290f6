/** A pipe to a Room at another node, and the sound of the member that has it, which do nothing. */
import { type LegAudio, type MediaPipe, NO_COUNTERS } from '../../src/media/engine.ts';
import { quietRoom } from './quiet-room.ts';

export const END = { host: '127.0.0.1', port: 10_000, ssrc: 1 };
const member = { join() {}, leave() {}, setMuted() {}, coach() {}, setVolume: () => true };
export const pipe: MediaPipe = {
  end: END,
  ...member,
  connect() {},
  counters: async () => NO_COUNTERS,
  close: async () => NO_COUNTERS,
};
const { play, stopPlayback, controlPlayback, record } = quietRoom;
export const audio: LegAudio = { ...member, play, stopPlayback, controlPlayback, record, pipeCodec: 'PCMU' };
