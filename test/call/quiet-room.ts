/** The sound of a Room in which nothing is heard. */
import type { MediaRoom } from '../../src/media/engine.ts';

export const quietRoom: MediaRoom = {
  number: 1,
  setVoiceActivity() {},
  play() {},
  stopPlayback() {},
  controlPlayback() {},
  setPlaybackVolume() {},
  playMusic() {},
  stopMusic() {},
  record: () => ({ mask() {}, unmask() {}, stop() {} }),
  close: async () => {},
};
