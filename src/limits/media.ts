/** The bounds of playback sources and of recordings that are kept. Import them from limits.ts. */

// Playback sources (contract §3).
export const SOURCE_MAX_BYTES = 100 * 1024 * 1024;
/**
 * A seek in a WAV asks for the rest from the place on where it saves so many bytes, and so much earlier, until the
 * resampler has settled.
 */
export const WAV_JUMP_LEAST_BYTES = 256 * 1024;
export const WAV_JUMP_LEAD_MS = 500;
export const SOURCE_REDIRECTS_MAX = 5;
export const SOURCE_CONNECT_MS = 5_000;
export const SOURCE_FIRST_BYTE_MS = 10_000;
/**
 * A source that sends nothing more for this long while it is waited for is gone. It is longer than
 * `ROOM_PLAYBACK_CONFIRM_MS`, so that a playback which never began is told as `playback_timeout`.
 */
export const SOURCE_STALL_MS = 12_000;
/**
 * A source that has sent fewer bytes than this while it was waited for that long is gone, too: the leanest audio, Opus
 * that leaves pauses out, has more.
 */
export const SOURCE_LEAST_BYTES = 1_024;
export const SOURCE_LEAST_MS = 30_000;
/** The rest of a download that broke off is asked for again once so many bytes of it have come. */
export const SOURCE_RESUME_LEAST_BYTES = 4 * 1024;
/** The time from the request to the first audio of every source of a playlist. */
export const SOURCE_ADMISSION_MS = 20_000;
/** Bytes kept while the first audio of a source is looked for: parts of a WAV before its data, pictures included. */
export const SOURCE_HEAD_MAX_BYTES = 16 * 1024 * 1024;
/** Bytes of tags before the first audio; they are not kept. */
export const SOURCE_TAGS_MAX_BYTES = 64 * 1024 * 1024;
/** A playlist as a source (M3U, PLS, HLS): its text, its entries, and playlists within playlists. */
export const PLAYLIST_MAX_BYTES = 1024 * 1024;
/** Lines of such a text: an HLS stream has fewer than ten for each of its segments. */
export const PLAYLIST_LINES_MAX = 20_000;
export const PLAYLIST_ENTRIES_MAX = 1_000;
/** A longer name in such a text is left out. Signed URLs have 2,000. */
export const PLAYLIST_NAME_MAX_CHARS = 4_096;
export const PLAYLIST_DEPTH_MAX = 3;
/** Segments of an HLS stream with an end: seven hours of 6 s, which are read in 6 ms. */
export const HLS_SEGMENTS_MAX = 4_000;
/** Segments of an HLS stream that fail one after the other before it has failed. */
export const HLS_FAILURES_MAX = 3;
/**
 * The next segment is asked for after a pause where one has fewer bytes. They are heard for so short a time that
 * thousands of them would be asked for as fast as their server answers. 64 bytes are a frame of MPEG audio.
 */
export const HLS_TINY_BYTES = 512;
export const HLS_TINY_PAUSE_MS = 250;
/** Segments before the end at which a live HLS stream begins (RFC 8216 §6.3.3). */
export const HLS_LIVE_SEGMENTS = 3;
/** A source no larger than this is kept in memory whole; a larger one is streamed, or fetched again at its turn. */
export const SOURCE_HELD_MAX_BYTES = 256 * 1024;
/** Pieces in which such a source comes are joined up to this: a byte that is kept alone costs a hundred. */
export const SOURCE_BLOCK_BYTES = 4 * 1024;
/** So much of a head is read without asking whether there is room; what most sources take. */
export const SOURCE_HEAD_FREE_BYTES = 64 * 1024;
/** Sources of one playlist that are opened at once. */
export const SOURCES_OPENING_MAX = 16;
/**
 * Playlists and streams of one application that are opened at once at a node; that wait for their turn, past which one
 * is refused; and the connections of those that are opened. What is heard has connections of its own.
 */
export const PLAYLISTS_OF_APP_OPENING_MAX = 256;
export const PLAYLISTS_OF_APP_WAITING_MAX = 2_000;
export const SOURCE_CONNECTIONS_OF_APP_OPENING_MAX = 512;
/** Connections to sources that are begun in one turn of the event loop: 2 ms, with what comes of them. */
export const SOURCES_BEGUN_A_TURN_MAX = 4;
/** A small source that is not here whole so long after it was admitted is fetched at its turn. */
export const SOURCE_FILL_MAX_MS = 10_000;
/** All held sources of a node, and those of one application; past it they are fetched again instead. */
export const SOURCE_HELD_TOTAL_MAX_BYTES = 256 * 1024 * 1024;
export const SOURCE_HELD_OF_APP_MAX_BYTES = 192 * 1024 * 1024;
/**
 * Files that playbacks share, with their validators: those that are read, and those kept for the next time they are
 * asked for; those of them that one application brought; and the largest one. A later file of a playlist of more than
 * `SOURCE_HELD_MAX_BYTES` is shared at its turn, because it may never be heard.
 */
export const SOURCE_CACHE_MAX_BYTES = 64 * 1024 * 1024;
export const SOURCE_CACHE_OF_APP_MAX_BYTES = 48 * 1024 * 1024;
export const SOURCE_CACHE_MAX_ENTRIES = 10_000;
export const SOURCE_SHARED_MAX_BYTES = 16 * 1024 * 1024;
/** Characters of the validators of such a file and of the URL behind its redirects. */
export const SOURCE_IDENTITY_MAX_CHARS = 4 * 1024;
/** A server that says for how long a file is fresh is asked again after so long in any case. */
export const SOURCE_FRESH_MAX_SEC = 86_400;
/** The sounds of shared files, which playbacks share, and the part of them that may be of files of one application. */
export const SOUNDS_MAX_BYTES = 64 * 1024 * 1024;
export const SOUNDS_OF_APP_SHARE = 0.75;
/**
 * Compressed bytes given to a decoder at once, at first and at most: half a second and two of MP3 at 64 kbit/s; and the
 * sound that is enough for one step. More costs memory for each that plays, less costs turns.
 */
export const DECODE_STEP_BYTES = 4 * 1024;
export const DECODE_STEP_MAX_BYTES = 16 * 1024;
export const DECODE_PIECE_MS = 1_500;
/** Sound of many decoders is told together, but not of more steps than end within this time. */
export const DECODE_TOLD_MS = 20;
/** The longest step of a decoder. A thread that answers nothing for so long is stuck, and is replaced. */
export const DECODE_STEP_MAX_MS = 10_000;
/** The sound of one pass through a playlist that is repeated from memory, at most. */
export const LOOP_KEPT_MS = 2_000;
/** PCM fed ahead of what is heard: of files, and of live sources. */
export const PLAYER_AHEAD_MS = 4_000;
export const LIVE_AHEAD_MS = 2_000;
/** Audio of a push that is read ahead of what is heard; the sender is held back at the sum (contract §3: 2 s). */
export const PUSH_QUEUE_MS = 400;
export const PUSH_AHEAD_MS = 1_500;
/** Pieces of its body beyond BODY_PIECES_MAX have so many bytes on average: 2 ms of mu-law. */
export const INGEST_PIECE_LEAST_BYTES = 16;
/** A push whose body has not begun by then is over, and one whose body says nothing for this long (contract §3). */
export const INGEST_START_MS = 60_000;
export const INGEST_IDLE_MS = 30_000;
/** Ingest URLs that are told as expired or used; past it the oldest of who has the most is forgotten and 404. */
export const INGESTS_REMEMBERED_MAX = 20_000;
/** A live stream that is late keeps this much to go on with; what is older is left out. */
export const LIVE_KEEP_MS = 300;
/** How long the sound before what is left out is led over to what follows. */
export const LIVE_LEAD_MS = 5;
/** Silence for want of audio that is made up for, at most. */
export const LIVE_OWED_MAX_MS = 600_000;
/**
 * Waits before each new connection of a live stream that broke; after as many it has failed. Audio of `LIVE_HEALTHY_MS`
 * starts the count anew.
 */
export const LIVE_RECONNECT_MS = [250, 500, 1_000, 2_000, 4_000] as const;
export const LIVE_HEALTHY_MS = 10_000;
/** Bytes of a live stream without any sound in them, after which its connection is given up. */
export const LIVE_SILENT_MAX_BYTES = 16 * 1024 * 1024;
/** Bytes between two pieces of ICY metadata, as a server may say it: 8,192 mostly. One by one they cost 30 ns each. */
export const ICY_INTERVAL_MIN_BYTES = 64;
export const ICY_INTERVAL_MAX_BYTES = 1024 * 1024;
/**
 * Decoders open at once; a playback past it fails as `internal_error`. One application may have all of these places;
 * then some more are left for those that have few.
 */
export const DECODER_SHARES = { all: 4_000, ofApp: 4_000, reserve: 400, reservedOfApp: 16 };
/** Decoders of libraries among them (all but WAV), whose memory is up to 17 MiB each. */
export const LIBRARY_DECODER_SHARES = { all: 1_000, ofApp: 1_000, reserve: 100, reservedOfApp: 4 };
/** Times one decoder is begun anew behind damage; then the rest of its source is given up. */
export const DECODER_RESTARTS_MAX = 100;
/** A logical stream of Ogg with less sound than this is short; and how many of them may follow each other. */
export const DECODER_SHORT_MS = 250;
export const DECODER_SHORT_STREAMS_MAX = 8;
/**
 * Samples that one step of a decoder may make: 2,000 s at 8 kHz. Packed silence makes 400 s of 4 KiB; more is an
 * attack.
 */
export const DECODE_STEP_MAX_SAMPLES = 16_000_000;
/**
 * Samples of all channels, at the rate of the source, that one step may be made of: half a second of work. 16 KiB of
 * silence in FLAC or Vorbis, as encoders write it, are up to 30,000,000.
 */
export const DECODE_STEP_MAX_SOURCE_SAMPLES = 32_000_000;
/** The longest packet of an Ogg stream: comments may hold a picture. */
export const OGG_PACKET_MAX_BYTES = 16 * 1024 * 1024;
/** The longest FLAC frame that is waited for: 65,535 samples of 32 bits in eight channels, uncompressed. */
export const FLAC_FRAME_MAX_BYTES = 2 * 1024 * 1024 + 64;

/** The pause between two looks at `/etc/resolv.conf` and at `/etc/hosts`. */
export const NAME_SERVERS_LOOK_MS = 1_000;
/** Addresses of a name in one IP version that are taken. */
export const NAME_ADDRESSES_MAX = 64;
/**
 * The rest between two look-ups for one owner (`LookUpRests`), for each address more than these in an answer: reading
 * it takes a twenty-fifth of that. A look-up that would wait for longer than the latter fails.
 */
export const LOOK_UP_REST_OF_ADDRESS_MS = 0.1;
export const LOOK_UP_REST_MAX_MS = 10_000;
/** Suffixes of `search` in `/etc/resolv.conf` that are tried, and the most that `ndots` counts for (resolv.conf(5)). */
export const NAME_SUFFIXES_MAX = 6;
export const NAME_DOTS_MAX = 15;

// GET for audio, over our own HTTP/1.
export const HTTP_RESPONSE_HEAD_MAX_BYTES = 32 * 1024;
/** Interim responses (1xx) before an answer. They may come 30,000 in one read, each with a head to be parsed. */
export const HTTP_INTERIM_RESPONSES_MAX = 16;
/** Bytes of a chunked body that are unpacked in one turn of the event loop: 2,700 chunks of one byte, 1 ms. */
export const HTTP_BODY_TURN_MAX_BYTES = 16 * 1024;
export const HTTP_CHUNK_LINE_MAX_BYTES = 8 * 1024;

// Recordings: where they are kept.
/** Free on the disk of `DATA_DIR`; with less no recording begins. */
export const RECORDING_DISK_FREE_MIN_BYTES = 256 * 1024 * 1024;
/** The time for which an answer of `admits` holds. */
export const RECORDING_ADMISSION_CACHE_MS = 1_000;
/**
 * Recordings under way at a node, which have a descriptor and a ring each. A further one is 503 with `Retry-After`. One
 * application has `APP_RECORDINGS_MAX` of them; one with fewer than 16 finds a place where others took all.
 */
export const RECORDINGS_UNDER_WAY_MAX = 10_000;
export const RECORDINGS_OF_APP_DEFAULT = 5_000;
export const RECORDINGS_RESERVE = 1_000;
export const RECORDINGS_RESERVED_OF_APP = 16;
/** How often it is counted what applications keep in recordings, and how many are measured between two statements. */
export const KEPT_LOOK_MS = 60_000;
export const KEPT_MEASURED_AT_ONCE = 500;
/** Rows that are added up by one statement, a tenth of a second, and how many such statements a count takes at most. */
export const KEPT_PAGE_ROWS = 100_000;
export const KEPT_MAX_PAGES = 1_000;
/** Bytes read of a recording's file at once for who downloads it. */
export const RECORDING_READ_SLICE_BYTES = 64 * 1024;
/**
 * Files that wait for the object store, growing ones included; past either no recording begins. A reserve is kept
 * beyond both for applications that have little of it.
 */
export const SPOOL_MAX_BYTES = 16 * 1024 * 1024 * 1024;
export const SPOOL_MAX_FILES = 100_000;
export const SPOOL_RESERVE_BYTES = 2 * 1024 * 1024 * 1024;
export const SPOOL_RESERVE_FILES = 10_000;
export const SPOOL_RESERVED_OF_APP_BYTES = 256 * 1024 * 1024;
export const SPOOL_RESERVED_OF_APP_FILES = 1_000;
/** Files that a former process left whose applications are asked for by one statement. */
export const SPOOL_LEFT_AT_ONCE = 100;
/** S3 takes parts of 5 MiB or more and 10,000 of them: a WAV of 4 GiB is 512 of these. */
export const OBJECT_PART_BYTES = 8 * 1024 * 1024;
/** Read of a spool file at once while a part is hashed. */
export const OBJECT_PART_SLICE_BYTES = 256 * 1024;
/** Uploads under way, each with one part in memory. */
export const OBJECT_UPLOADS_MAX = 4;
/** The pause between two looks at growing files for a full part, and at set-back uploads for their time. */
export const OBJECT_SWEEP_MS = 10_000;
/** Between two attempts while the store is away, doubling from the first to the second. */
export const OBJECT_RETRY_MIN_MS = 1_000;
export const OBJECT_RETRY_MAX_MS = 60_000;
/** The longest pause before an upload is tried again that the store refuses while it takes others. */
export const OBJECT_SET_BACK_MAX_MS = 600_000;
/** The same trouble with the store is logged again after this. */
export const OBJECT_COMPLAINT_MS = 600_000;
/**
 * The longest time for a request without a large body, for one with such a body (longer at each attempt, so that a slow
 * line gets through), and for the joining of parts.
 */
export const OBJECT_REQUEST_MAX_MS = 15_000;
export const OBJECT_PART_MIN_MS = 60_000;
/** So long the removal of a recording waits for the step of its upload that is under way. */
export const OBJECT_STEP_WAIT_MS = 15_000;
export const OBJECT_PART_MAX_MS = 600_000;
export const OBJECT_COMPLETE_MAX_MS = 300_000;
/** An answer in XML. */
export const OBJECT_ANSWER_MAX_BYTES = 64 * 1024;
/** Bytes of one ranged GET, growing from the first to the second; one is read ahead. */
export const OBJECT_READ_MIN_BYTES = 256 * 1024;
export const OBJECT_READ_MAX_BYTES = 1024 * 1024;
/** Tries of a request that someone waits for. */
export const OBJECT_TRIES_MAX = 3;
export const OBJECT_TRY_PAUSE_MS = 200;
/**
 * Requests of readers to the object store that are under way at once, of the 256 that Bun allows a process unless it is
 * told otherwise: looks for a recording, and slices of what is streamed. An application that waits for a look so long,
 * or with so many, is told 503 with `Retry-After`. Each stream has one slice under way, so that their places
 * (`LISTENER_SHARES`) bound what waits.
 */
export const OBJECT_LOOK_SHARES = { all: 32, ofApp: 24, reserve: 16, reservedOfApp: 2, waitingOfApp: 1_000 };
export const OBJECT_LOOK_WAIT_MS = 15_000;
export const OBJECT_STREAM_SHARES = { all: 64, ofApp: 48, reserve: 16, reservedOfApp: 2, waitingOfApp: Number.POSITIVE_INFINITY };
/** The size of the ledger beside a spool file, which describes its upload. */
export const OBJECT_LEDGER_MAX_BYTES = 4 * 1024 * 1024;

// Recordings: who listens to them (interface, Recording media URLs).
/**
 * The pause between two looks at a file that someone waits for. While it is followed it is written every 64 ms; 1,000
 * listeners to 1,000 of them cost a sixth of a core.
 */
export const GROWING_FILE_POLL_MS = 160;
/** A recording whose file is not there by then is 503 with `Retry-After`. */
export const GROWING_FILE_WAIT_MS = 5_000;
/**
 * Responses that are fed by this process: altogether, of the recordings of one application, and of one recording. A
 * further one is 503 with `Retry-After`. An application with fewer than 16 finds a place where others took all.
 */
export const LISTENER_SHARES = { all: 2_000, ofApp: 1_000, reserve: 500, reservedOfApp: 16 };
export const LISTENERS_OF_ONE_MAX = 500;
/**
 * A listener that takes nothing for this long, while there is something to take, is cut off; how often that is looked
 * at.
 */
export const LISTENER_STALL_MAX_MS = 60_000;
export const LISTENER_SWEEP_MS = 5_000;
/**
 * Readers of finished recordings that the system sends from a file, which cost a connection and a descriptor each. A
 * further one is 503 with `Retry-After`. An application with fewer than 16 finds a place where others took all.
 */
export const FILE_READER_SHARES = { all: 5_000, ofApp: 2_500, reserve: 1_000, reservedOfApp: 16 };
/** How often readers are looked through at most for such that are done, and how often in any case. */
export const FILE_READERS_LOOK_MS = 50;
export const FILE_READERS_SWEEP_MS = 1_000;
export const MEDIA_RETRY_AFTER_SEC = 5;

// Recordings: what an object store has and is kept here too, since only a file is sent with its `Content-Length`
// (contract §5).
export const OBJECT_CACHE_MAX_BYTES = 1024 * 1024 * 1024;
export const OBJECT_CACHE_MAX_FILES = 10_000;
/** Free on the disk; with less the cache gives way, before it costs a recording its admission. */
export const OBJECT_CACHE_DISK_FREE_MIN_BYTES = 2 * RECORDING_DISK_FREE_MIN_BYTES;
/** A recording no larger than this is fetched when someone asks for it; a larger one is streamed. */
export const OBJECT_CACHE_FETCH_MAX_BYTES = 64 * 1024 * 1024;
/**
 * Fetched at once, each with three slices in memory, and in reserve for applications that have none under way; waiting
 * for their turn, of one application, past which one is streamed; and the longest that one may take.
 */
export const OBJECT_CACHE_FETCHES_MAX = 4;
export const OBJECT_CACHE_FETCHES_RESERVE = 2;
export const OBJECT_CACHE_FETCHES_OF_APP_WAITING_MAX = 64;
export const OBJECT_CACHE_FETCH_MAX_MS = 120_000;
/**
 * The longest wait for a file to be fetched. After it the recording is streamed to the one who asked, while it is
 * fetched for the next.
 */
export const OBJECT_CACHE_WAIT_MS = 10_000;
/** The time from the finding of a file to its opening by the server. It is not evicted in between. */
export const OBJECT_CACHE_HOLD_MS = 5_000;

// WebRTC.
/** Live Sessions of one token. */
export const WEBRTC_SESSIONS_PER_TOKEN_MAX = 10;
/** Tokens of an application that have not expired; one more is refused with 409. */
export const WEBRTC_TOKENS_PER_APP_MAX = 10_000;
/** How long an expired token still ends and changes the calls that were begun with it. No call lasts longer. */
export const WEBRTC_TOKEN_KEPT_MS = 24 * 3_600_000;
export const WEBRTC_TOKEN_MIN_SEC = 60;
export const WEBRTC_TOKEN_MAX_SEC = 86_400;
export const WEBRTC_TOKEN_DEFAULT_SEC = 3_600;
export const WEBRTC_NO_ROOM_RETRY_SEC = 5;
/** The port of WebRTC where HTTP is not on loopback, which is that of STUN. */
export const WEBRTC_DEFAULT_PORT = 3478;
/** Addresses that browsers are offered. */
/** ICE sessions of a call that are remembered: a restart whose answer was lost leaves the one before in use. */
export const WEBRTC_ICE_SESSIONS_MAX = 64;
export const WEBRTC_HOSTS_MAX = 8;
