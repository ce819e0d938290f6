/** Every bound of the platform that is not an environment variable, with its unit at the end of the name. */
export * from './limits/cluster.ts';
export * from './limits/media.ts';
export * from './limits/message.ts';
export * from './limits/sip.ts';
export * from './limits/store.ts';

/** A SIGINT this long after the one that began the draining ends the process at once. */
export const SECOND_INTERRUPT_MS = 1_000;
// Interface, Limits.
export const BODY_MAX_BYTES = 1024 * 1024;
/**
 * Part of a too large body that is still read before its 413. A client that writes its whole body before it reads, as
 * the fetch of Node does, would otherwise see a broken connection instead of the answer.
 */
export const BODY_DISCARDED_MAX_BYTES = 8 * 1024 * 1024;
export const COMMAND_BODY_MAX_BYTES = 64 * 1024;
/** Pieces that a chunked body may come in, and the bytes that each further one has, on average. Past it it is 400. */
export const BODY_PIECES_MAX = 1_024;
export const BODY_PIECE_LEAST_BYTES = 64;
/** Objects and arrays in each other, in bodies and in messages of WebSockets. */
export const JSON_DEPTH_MAX = 32;
/** Fields of an object, or items of a list, in a body. No shape takes as many. */
export const JSON_MEMBERS_MAX = 1_000;
/** Fields and items of a body altogether: as many are read in 2 ms, and those of a megabyte in 50. */
export const JSON_TOTAL_MEMBERS_MAX = 20_000;
export const LIST_MATCHED_MAX_ITEMS = 50_000;
export const LIST_DEFAULT_ITEMS = 1_000;
/**
 * Looks into the database for lists at once, of all applications; lists of one application that wait for its turn; the
 * pieces that a list is sent in, and the time that its reader may take.
 */
export const LISTS_AT_ONCE = 3;
export const LISTS_OF_APP_WAITING_MAX = 50;
export const LIST_PIECE_BYTES = 256 * 1024;
/** Items of a list that are worked on in one turn of the event loop: 2 ms. */
export const LIST_TURN_ITEMS = 500;
export const LIST_SEND_MAX_MS = 300_000;

// Contract §2, dial.
export const RING_TIMEOUT_MAX_SEC = 600;
export const CALL_DURATION_DEFAULT_SEC = 14_400;
export const CLIENT_STATE_MAX_CHARS = 1_024;

/** Operations of a Session or Room whose traces are known, so that their events continue them. */
export const TRACED_OPERATIONS_MAX = 64;

// An ended Session still answers terminal commands for this long (contract §2).
export const ENDED_SESSION_KEPT_SEC = 24 * 3600;

/**
 * Timelines of calls: entries of one call, entries and age of a part that is stored while the call goes on, the pause
 * between two flushes, the time in which a call's last messages still belong to it, and the parts that wait for the
 * database at most; past it the newest are dropped and counted.
 */
export const HISTORY_CALL_MAX_ENTRIES = 2_000;
export const HISTORY_PART_MAX_ENTRIES = 50;
export const HISTORY_PART_MS = 10_000;
export const HISTORY_FLUSH_MS = 1_000;
export const HISTORY_LATE_MS = 1_000;
export const HISTORY_WAITING_MAX_PARTS = 5_000;
/** How often it is said that parts wait for the database. */
export const HISTORY_SAID_EVERY_MS = 60_000;
/** Timelines stored by one statement: so many, and so many characters, which take 5 ms of the event loop. */
export const HISTORY_BATCH_MAX_PARTS = 500;
export const HISTORY_BATCH_MAX_CHARS = 256 * 1024;
/** SIP messages of one call that are kept, those of its BYE beyond them, and the characters of one. */
export const SIP_TRACE_MAX_MESSAGES = 100;
export const SIP_TRACE_END_MAX_MESSAGES = 8;
export const SIP_TRACE_MAX_CHARS = 4_096;
/** Calls whose first messages wait to be told which Session they belong to, how many of each, and for how long. */
export const SIP_TRACE_EARLY_MAX_MESSAGES = 6;
export const SIP_TRACE_UNBOUND_MAX_CALLS = 1_000;
export const SIP_TRACE_UNBOUND_MS = 10_000;
/** The pause between two readings of how a call sounds, and the age of the call from which on it grows. */
export const HISTORY_QUALITY_MS = 10_000;
export const HISTORY_QUALITY_FULL_MS = 1_800_000;
/** Items in a page of a list that is read page by page, where none is asked for, and calls in one at most. */
export const PAGE_DEFAULT_ITEMS = 100;
export const CALL_LIST_MAX_ITEMS = 1_000;
/** The looks at an event whose delivery is in the way of what the operator asks for, and the pause between two. */
export const EVENT_PENDING_LOOKS = 20;
export const EVENT_PENDING_LOOK_MS = 100;
/** Recordings in one page of an application's list. */
export const RECORDING_LIST_MAX_ITEMS = 1_000;
/** Bytes of a webhook's answer that are kept with the attempt. */
export const WEBHOOK_ANSWER_KEPT_BYTES = 2_048;

/**
 * The end of the event log: the pause between two looks at it, the shortest one, how long whoever asks for it waits for
 * transactions under way, and the events of one look.
 */
export const EVENT_TAIL_LOOK_MS = 1_000;
export const EVENT_TAIL_SPACING_MS = 50;
export const EVENT_TAIL_BEGIN_MS = 2_000;
/** A gap in the log waits so long for transactions under way: longer than one of ours may take (`QUERY_MAX_MS`). */
export const EVENT_TAIL_GAP_MS = 10_000;
export const EVENT_TAIL_BATCH_MAX_EVENTS = 1_000;
/** Streams of events: how many, one page of them, the silence before a comment is sent, and how far behind. */
export const EVENT_STREAMS_MAX = 32;
export const EVENT_STREAM_PAGE_EVENTS = 100;
export const EVENT_STREAM_PAGE_BYTES = 1024 * 1024;
export const EVENT_STREAM_COMMENT_MS = 5_000;
export const EVENT_STREAM_BEHIND_MAX_BYTES = 1024 * 1024;

/** The console: a session, a one-time login, and the body of a login. */
export const CONSOLE_SESSION_MS = 12 * 3600 * 1000;
export const CONSOLE_LOGIN_MS = 5 * 60 * 1000;
export const CONSOLE_LOGIN_BODY_MAX_BYTES = 4_096;

/** Lines of the log that wait for whoever reads it. What is said while so many wait is lost, and counted. */
export const LOG_WAITING_MAX_LINES = 10_000;

/** The metrics are made so many times at once and a second: it takes 5 ms, and anybody may ask. */
export const METRICS_AT_ONCE = 20;
export const METRICS_PER_SEC = 10;

/** MCP: the body of a message, messages at once, the characters of a result and of a text in it, its items. */
export const MCP_BODY_MAX_BYTES = 64 * 1024;
export const MCP_MESSAGES_MAX = 16;
/** The messages of one application at once, which leave some to the others and to the operator. */
export const MCP_MESSAGES_OF_APP_MAX = 8;
export const MCP_RESULT_MAX_CHARS = 60_000;
export const MCP_TEXT_MAX_CHARS = 1_000;
export const MCP_LIST_MAX_ITEMS = 50;

/** Pauses between tries to store what is a fact, doubling from the first to the second. */
export const STORE_RETRY_FIRST_MS = 100;
export const STORE_RETRY_LONGEST_MS = 2_000;
/** A stop waits so long for a database that is away to take an outcome of a charge or a short message. */
export const STORE_LAST_OUTCOME_MS = 10_000;
/**
 * Inputs waiting for one actor; past this the Session is ended as `failed`, which no caller can provoke at 20
 * commands/s.
 */
export const MAILBOX_MAX_INPUTS = 1_000;
/**
 * Inputs of Sessions and Rooms that are taken in one turn of the event loop, and changes whose ends are told in one:
 * 10 ms, where each has a call hung up.
 */
export const ACTOR_TURN_INPUTS = 32;
export const JOURNAL_TURN_CHANGES = 32;
/** While so many wait, as with the database away, a hold or speech that is over before it was told takes no place. */
export const MAILBOX_CROWDED_INPUTS = MAILBOX_MAX_INPUTS / 2;
/** A connection is closed after this between two requests, in the middle of one, and without an answer. */
export const HTTP_IDLE_TIMEOUT_SEC = 60;
/**
 * Requests of one connection that are answered in one turn of the event loop; after the last of them the connection is
 * closed.
 */
export const HTTP_PIPELINED_MAX = 16;
/**
 * Requests that are begun in one turn of the event loop: 10 ms. It is far below 1,024, the sockets that the runtime
 * reads at once: while as many are ready, it reads on and has no turn.
 */
export const HTTP_TURN_REQUESTS = 128;
/**
 * Wrong operator tokens from one address within the window; further ones are 429. Addresses that are remembered; past
 * it the oldest is forgotten.
 */
export const OPERATOR_GUESSES_MAX = 10;
export const OPERATOR_GUESS_WINDOW_MS = 60_000;
export const OPERATOR_GUESS_ADDRESSES_MAX = 10_000;
/** Characters of a caller's `tracestate` that are logged beside the platform's own trace. */
export const LINKED_TRACESTATE_MAX_CHARS = 512;
/** Traces of callers without a key that are logged at once and a second, and how often it is said that more came. */
export const LINKED_STRANGERS_AT_ONCE = 100;
export const LINKED_STRANGERS_PER_SEC = 10;
export const LINKED_STRANGERS_LOG_MS = 60_000;
/** Requests that came before all was up and wait for it; past it they are 503. */
export const HTTP_WAIT_FOR_START_MAX = 1_000;
/** How long a drain waits for calls it has ended to be confirmed: an actor's own wait and a little more. */
export const SESSION_TEARDOWN_MS = 6_000;
/** A stop may take so long beyond SHUTDOWN_GRACE_SEC; what is not done by then is left to the next start. */
export const SHUTDOWN_LAST_MS = 28_000;
/** Live Sessions of one node; a dial past it is 529, an INVITE 503. */
export const LIVE_SESSIONS_MAX = 50_000;

/**
 * Datagrams from addresses of no trunk that are parsed in one turn of the event loop; further ones are dropped unread.
 */
export const SIP_TURN_STRANGER_DATAGRAMS = 16;

// Media.
/** Notices a media worker takes from its plane at once; the rest follows in the same turn. */
export const MEDIA_NOTICES_A_TICK_MAX = 1_024;
/** How long a freed RTP port pair rests, in milliseconds (contract §2). */
export const RTP_PORT_REST_MS = 60_000;
/** How long it rests at least, in milliseconds, when no other pair is free (contract §2). */
export const RTP_PORT_LEAST_REST_MS = 2_000;
/** Port pairs tried for one leg, where other processes hold some, before it is given up. */
export const RTP_BIND_TRIES = 32;
/** The time between two lines of the log about ports that cannot be bound for the same reason. */
export const RTP_BIND_COMPLAINT_MS = 60_000;
/** A lost media worker is replaced no sooner than this after the last replacement, and so many times in a minute. */
export const MEDIA_RESTART_LEAST_MS = 1_000;
export const MEDIA_RESTARTS_A_MINUTE_MAX = 5;
/** A media worker that has not answered for this long at start, or told of a tick since, is not ready. */
export const MEDIA_WORKER_START_MS = 10_000;
export const MEDIA_WORKER_PULSE_MAX_MS = 5_000;
/** A thread asked to end that has not by then is ended from outside. */
export const THREAD_END_MS = 3_000;
/** A thread that has not ended so long after that hangs outside script, where nothing ends it but the process's end. */
export const THREAD_TERMINATE_MS = 1_000;
/** Threads that hang for ever; with so many no further one is started in their place. */
export const THREADS_STUCK_MAX = 16;

/** Audio that a stream leg takes ahead (contract §2), and marks that wait in it. */
export const STREAM_BUFFER_MAX_SEC = 60;
export const STREAM_MARKS_MAX = 1_000;
/** Marks that bots are told of in one turn of the event loop: 2 ms. */
export const STREAM_TURN_MARKS = 64;
/** Recordings of a leg or room that is gone are finished by then; one that is not has failed. */
export const RECORDING_FINISH_MS = 30_000;
/** What a lost media worker had queued for its files is written by then: several rounds of the writing thread. */
export const RECORDING_SETTLE_MS = 1_000;
/**
 * The audio in the ring of a recording that a crash left: four seconds at 48 kHz; a longer one is none of the
 * platform's.
 */
export const RECORDING_RING_MAX_BYTES = 384_000;
/** An engine that is closed waits so long for files that are being finished. */
export const RECORDING_CLOSE_MS = 5_000;

/** How long the row of a recording says that it was removed; as long as a URL can be valid. */
export const RECORDING_REMEMBERED_DAYS = 365;
/** Recordings that a crash left behind and that are mended at once at the next start. */
export const RECORDING_MENDS_MAX = 16;
/** Live recordings of one Session; a further one is 409. */
export const RECORDINGS_PER_SESSION_MAX = 32;
/**
 * `session.ended` and `room.deleted` wait so long for recordings that are being finished; they may follow it (contract
 * §2).
 */
export const RECORDING_LAST_MS = 5_000;

// Webhooks.
/** How long a relay may deliver without renewing; another takes over no sooner. */
export const RELAY_LEASE_MS = 4_000;
/** A lease that could not be renewed is asked for again this soon, or after a sixteenth of it. */
export const RELAY_LEASE_RETRY_MS = 1_000;
/**
 * A lease that has run out was seen so for this long before another takes it: where the database stood still, its
 * holder renews it first.
 */
export const RELAY_LEASE_SEEN_MS = 400;
/** A node that gets no wake-up polls this often, so that it is late by no more. */
export const RELAY_POLL_MS = 1_000;
/**
 * A process that has its database for itself takes the lease from nobody and hears of every event: it renews and polls
 * five times less often, which is half of its statements while nothing happens.
 */
export const RELAY_LONE_LEASE_MS = 20_000;
export const RELAY_LONE_POLL_MS = 5_000;
/** Committed events wait for an older transaction to end: look again this soon. */
export const RELAY_HELD_BACK_MS = 2;
export const RELAY_OUTAGE_PAUSE_MS = 500;
export const RELAY_PAGE_MAX_EVENTS = 2_000;
/**
 * Undelivered events in memory; past it an application keeps `RELAY_APP_LEAST_EVENTS`, and past twice as many
 * `RELAY_APP_FULL_EVENTS`. In these limits an event with a large body, such as one with a hundred URLs, counts as
 * several: once for each begun `RELAY_COUNTED_BYTES`.
 */
export const RELAY_MEMORY_MAX_EVENTS = 50_000;
export const RELAY_APP_MAX_EVENTS = 8_000;
export const RELAY_APP_LEAST_EVENTS = 100;
export const RELAY_APP_FULL_EVENTS = 20;
export const RELAY_COUNTED_BYTES = 4 * 1024;
export const RELAY_IN_FLIGHT_MAX = 1_000;
/**
 * Deliveries beyond that, for applications that have fewer than `APP_RESERVED_JOBS` under way: nobody's hanging
 * receiver holds up another's first event.
 */
export const RELAY_IN_FLIGHT_RESERVE_MAX = 1_000;
export const APP_RESERVED_JOBS = 4;
/** Deliveries that are begun in one turn of the event loop: 3 ms, with what comes of them. */
export const RELAY_TURN_DELIVERIES = 32;
/** How often an endpoint that answered 410 is looked at again, in case another node was told of the PATCH. */
export const RELAY_DISABLED_LOOK_MS = 30_000;
/** A drain waits so long for its last webhooks (SIGTERM). */
export const RELAY_LAST_MS = 5_000;
export const RELAY_LAST_LOOK_MS = 20;
/** Outcomes not yet written; past it no delivery is started. */
export const RELAY_SETTLING_MAX_EVENTS = 20_000;
export const SETTLE_BATCH_MAX_EVENTS = 1_000;
/** Outcomes of webhooks wait so long for others, and are written together. */
export const SETTLE_GATHER_MS = 20;
export const SETTLE_RETRY_MS = 250;
/** Tries of a relay that is being stopped to write its last outcomes. */
export const SETTLE_LAST_TRIES = 2;
/** Deliveries under way to one application. */
export const APP_WINDOW_MAX_JOBS = 64;
/** Deliveries under way to an application whose endpoint times out again and again. */
export const APP_WINDOW_LEAST_JOBS = 2;
/** A receiver's answer is read, and thrown away, up to here; then the connection is closed. */
export const WEBHOOK_ANSWER_MAX_BYTES = 64 * 1024;

// HTTP.
/** Token buckets in memory; past it the one unused for longest is forgotten, which by then is full. */
export const RATE_BUCKETS_MAX = 200_000;
/** Buckets that are full are forgotten as others are made, so many at once. */
export const RATE_BUCKETS_FORGOTTEN_AT_ONCE = 8;
export const AUTHORIZATION_MAX_CHARS = 1_024;
export const WEBHOOK_URL_MAX_CHARS = 2_048;
export const PLAYBACK_URLS_MAX = 100;
/** The longest call: past it is past the end of anything. */
export const PLAYBACK_POSITION_MAX_MS = 86_400_000;
export const PLAYBACK_URL_MAX_CHARS = 2_048;
export const BLOCKED_EVENTS_MAX = 100;
/** Beginnings of numbers in each of the two lists. */
export const DESTINATIONS_MAX = 500;
export const DRAINING_RETRY_SEC = 30;
export const UNAVAILABLE_RETRY_SEC = 1;
export const CALL_DURATION_MIN_SEC = 60;
export const CALL_DURATION_MAX_SEC = 86_400;
/**
 * What the server reads of a body at most: a push throughout the longest call, at 48 kHz and 16 bits. The limit of each
 * other route, which is answered in our format, is far below it.
 */
export const HTTP_BODY_CEILING_BYTES = CALL_DURATION_MAX_SEC * 48_000 * 2;
export const DISPLAY_NAME_MAX_CHARS = 128;
export const SIP_HEADERS_MAX = 20;
export const SIP_HEADER_MAX_CHARS = 255;
export const TRUNK_CIDRS_MAX = 100;
/** Settings of one trunk. */
export const TRUNK_APPS_MAX = 1_000;
export const TRUNK_HOSTS_MAX = 100;
/** Labels of nodes that one trunk names. */
export const TRUNK_NODES_MAX = 100;
export const TRUNK_CPS_MAX = 1_000;
export const TRUNK_PEM_MAX_CHARS = 65_536;

// DTMF collection (contract §3).
export const COLLECT_DIGITS_MAX = 128;
export const COLLECT_TIMEOUT_MAX_MS = 600_000;

// Rooms (interface, Limits; contract §4).
/** A Room playback whose start is not confirmed within this has failed. */
export const ROOM_PLAYBACK_CONFIRM_MS = 10_000;
/** `session.answered` of a dial into a Room waits so long for its `room.member.joined`. */
export const ROOM_SEAT_CONFIRM_MS = 1_000;
/** A Room whose members have not all left within this is deleted without them. */
export const ROOM_TEARDOWN_MS = 10_000;

// WebSocket Sessions (contract §2).
export const WEBSOCKET_CONNECT_DEFAULT_SEC = 10;
export const WEBSOCKET_PING_MS = 20_000;
/** Pings without an answer after which the far end is gone. */
export const WEBSOCKET_PINGS_MISSED_MAX = 2;
/** A message past this closes the connection (1009; contract §2), and so does one of more fragments. */
export const WEBSOCKET_MESSAGE_MAX_BYTES = 8 * 1024 * 1024;
export const WEBSOCKET_FRAGMENTS_MAX = 16 * 1024;
/**
 * Audio of one message is offered to the Session in slices of this size, so that a message may be longer than the
 * buffer.
 */
export const WEBSOCKET_SLICE_BYTES = 16 * 1024;
/** A text message past this closes the connection (1009). */
export const WEBSOCKET_TEXT_MAX_BYTES = 1024 * 1024;
/**
 * Audio that the far end does not read; past it frames are left out until it reads again, so that it hears now and not
 * then.
 */
export const WEBSOCKET_UNREAD_MAX_BYTES = 256 * 1024;
/** How long the far end has to answer our close frame. */
export const WEBSOCKET_CLOSE_WAIT_MS = 1_000;
/** Orders of one bot that are obeyed at a time; one more is answered with an error. */
export const BOT_ORDERS_MAX = 8;
export const BOT_PARAMETERS_MAX = 32;
export const BOT_PARAMETER_NAME_MAX_CHARS = 64;
export const BOT_PARAMETER_MAX_CHARS = 500;
/** Name of a mark of the subprotocol `sidetone.v1`. */
export const WEBSOCKET_MARK_MAX_CHARS = 256;
export const WEBSOCKET_CONNECT_MAX_SEC = 30;
export const WEBSOCKET_HEADERS_MAX = 20;
export const WEBSOCKET_HEADER_MAX_CHARS = 4_096;
export const WEBSOCKET_URL_MAX_CHARS = 2_048;

/** Spans that wait to be sent to the collector; more are lost. */
export const TRACE_QUEUE_MAX_SPANS = 8_192;
export const TRACE_BATCH_MS = 1_000;
export const TRACE_SEND_TIMEOUT_MS = 3_000;

/** Addresses of which the verdict is remembered: whether a URL may lead there, which trunk calls from there. */
export const ADDRESSES_REMEMBERED_MAX = 1_024;
/** URLs that are kept as they were parsed. */
export const URLS_REMEMBERED_MAX = 1_024;
