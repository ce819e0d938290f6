/** The terms of playlists whose files come from that outbound, and nothing of which was opened before. */
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import type { PlaylistTerms } from '../../../src/media/playback/playlist.ts';
import { SharedSounds } from '../../../src/media/playback/shared-sounds.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import type { AudioOutbound } from '../../../src/media/source/opening.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { SourceTurns } from '../../../src/media/source/source-turns.ts';

/** The thread of the decoders starts with the first one, which nothing of an opened playlist needs. */
export const playlistTerms = (outbound: AudioOutbound): PlaylistTerms => ({
  outbound,
  held: new HeldBytes(),
  contents: new SharedContents(),
  turns: new SourceTurns(),
  sounds: new SharedSounds(new DecoderThread(silentLog)),
});
