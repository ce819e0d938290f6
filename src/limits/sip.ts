/** The limits of SIP, SDP and phone legs. Import them from limits.ts. */

// SIP. RFC 3261 table 4: the estimates every transaction timer is built from.
export const SIP_T1_MS = 500;
export const SIP_T2_MS = 4_000;
export const SIP_T4_MS = 5_000;
/**
 * RFC 3261 §16.6: an INVITE client transaction that only ever hears provisional responses; the ring timeout normally
 * ends it long before.
 */
export const SIP_PROCEEDING_MAX_MS = 700_000;
/** RFC 3261 §13.3.1.1: a call that is not answered is told so as often, or a proxy cancels it after three minutes. */
export const SIP_PROVISIONAL_REPEAT_MS = 60_000;
/** A longer request goes over TCP where the trunk has it (RFC 3261 §18.1.1: the path's MTU is not known). */
export const SIP_UDP_REQUEST_MAX_BYTES = 1_300;
/** Start line and header fields of one message; past it a datagram is dropped and a stream closed. */
export const SIP_HEAD_MAX_BYTES = 32 * 1024;
export const SIP_BODY_MAX_BYTES = 64 * 1024;
export const SIP_HEADER_MAX_FIELDS = 256;
/**
 * Client and server transactions of one user agent, each; past it a request is answered 503 without state, and our own
 * fails. This share of them is for requests within calls.
 */
export const SIP_TRANSACTIONS_MAX = 60_000;
export const SIP_TRANSACTIONS_OF_CALLS = 0.1;
/**
 * Requests within one call whose answers are kept for when they come again: of more than that, the first ones are
 * forgotten. Keys by INFO come 25 a second at most.
 */
export const SIP_TRANSACTIONS_OF_CALL_MAX = 256;
/** Calls of one user agent; an INVITE past it is answered 503. */
export const SIP_CALLS_MAX = 50_000;
/**
 * Answers a second to one source that belongs to no trunk, and to all such sources together. Further requests of theirs
 * are ignored.
 */
export const SIP_REFUSALS_PER_SOURCE = 5;
export const SIP_REFUSALS_MAX = 50;
/** Sources that the limit remembers; the one heard longest ago is forgotten first. */
export const SIP_REFUSED_SOURCES_MAX = 1_024;
/**
 * Refused requests that the operator can read. Repeats of one source are counted in one row; the oldest row is dropped.
 */
export const SIP_REFUSAL_ROWS_MAX = 200;
/** Characters of a URI in such a row. */
export const SIP_REFUSAL_URI_MAX_CHARS = 128;
/** Parts of one multipart body. */
export const SIP_BODY_PARTS_MAX = 16;
/** Early dialogs that one forked INVITE may open; a provisional response of a further branch is ignored. */
export const SIP_FORKS_MAX = 16;
/** Route set of one dialog; a longer Record-Route is refused. */
export const SIP_ROUTES_MAX = 32;
/** Characters of all values of a Service-Route together; a longer one is ignored. */
export const SIP_SERVICE_ROUTE_MAX_CHARS = 512;
/** Reliable provisional responses that wait for the PRACK of the one before (RFC 3262 §3). */
export const SIP_RELIABLE_QUEUE_MAX = 8;
/** Challenges of one realm that one request answers before the next counts as a refusal; and the realms it answers. */
export const SIP_CHALLENGES_MAX = 2;
export const SIP_REALMS_MAX = 4;
/** RFC 4028: what we propose, and the least we accept. */
export const SIP_SESSION_EXPIRES_SEC = 1_800;
export const SIP_MIN_SE_SEC = 90;
/** Answering a 422, a 491 or an auth challenge again and again ends here. */
export const SIP_RETRIES_MAX = 4;
export const SIP_REGISTER_EXPIRES_SEC = 300;
export const SIP_REGISTER_RETRY_SEC = 30;
/** A registrar that refuses is asked again after a pause that doubles up to this. */
export const SIP_REGISTER_REFUSED_MAX_SEC = 600;
/**
 * The next address of the registrar is tried after so long without any response: all SIP_TARGETS_MAX have been asked
 * before a binding expires that is refreshed 30 s ahead.
 */
export const SIP_REGISTER_SILENT_MS = 4_000;
/** A stop waits so long for registrars to take the bindings of trunks back. */
export const SIP_UNREGISTER_MAX_MS = 1_000;
/** A router before us forgets a mapping after some 30 s without a packet, and with it the way of calls to us. */
export const SIP_PROBE_INTERVAL_SEC = 25;
/** `Retry-After` of a 503: draining, or without the database. */
export const SIP_RETRY_AFTER_SEC = 5;
/** Stream connections that others have opened to us; a further one is closed at once. */
export const SIP_INBOUND_CONNECTIONS_MAX = 10_000;
/**
 * Inbound connections of one address that belongs to a trunk, and of one that does not; and of all that do not: the
 * rest is kept for trunks.
 */
export const SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS = 1_000;
export const SIP_INBOUND_CONNECTIONS_PER_STRANGER = 16;
export const SIP_INBOUND_CONNECTIONS_OF_STRANGERS = 500;
/**
 * TLS handshakes a second of one address that belongs to no trunk and no registered device, and of all such. A further
 * one is closed before it begins, since each takes 0.3 ms of the main thread.
 */
export const SIP_TLS_HANDSHAKES_PER_STRANGER = 20;
export const SIP_TLS_HANDSHAKES_OF_STRANGERS = 200;
/** Stream connections that we have opened, and those to one IPv4 address or IPv6 /64: a device has us open some. */
export const SIP_OUTBOUND_CONNECTIONS_MAX = 2_000;
export const SIP_OUTBOUND_CONNECTIONS_PER_HOST = 64;
/**
 * The first message or keepalive of an inbound connection must be whole by then; each further one too, where its
 * address is neither a trunk's nor a registered device's.
 */
export const SIP_FIRST_MESSAGE_MS = 10_000;
/** Messages and keepalives of one connection of a stranger in so long; one more closes the connection. */
export const SIP_STRANGER_MESSAGES_MAX = 100;
/**
 * Messages of one stream connection, and of all together, that are worked on in one turn of the event loop; as many
 * datagrams of one socket. Connections have their shares again while less than SIP_TURN_MS has passed.
 */
export const SIP_CONNECTION_TURN_MESSAGES = 8;
export const SIP_TURN_MESSAGES = 64;
export const SIP_TURN_MS = 2;
/**
 * Datagrams of one source that wait for their turn, and of all together; past it a further one is lost, as the network
 * would lose it. An INVITE is lost where SIP_INVITES_WAITING_PER_SOURCE of its source wait already: the rest is for
 * what belongs to calls that have begun.
 */
export const SIP_INVITES_WAITING_PER_SOURCE = 256;
export const SIP_DATAGRAMS_WAITING_PER_SOURCE = 1_024;
export const SIP_DATAGRAMS_WAITING_MAX = 4_096;
/**
 * A connection on which each read has brought so many bytes for so long has more to say than is worked on. New calls
 * from it are refused at once (503) then: each would else wait behind all others, with the ACKs and BYEs of calls that
 * are up, until none of them is in time. Far ends try elsewhere after some 4 s without an answer, as we do
 * (SIP_TRUNK_SILENT_MS); what has waited is younger. At 400 calls a second a turn of 40 ms brings as much.
 */
export const SIP_FULL_READ_BYTES = 32 * 1024;
export const SIP_LATE_MS = 4_000;
/** Messages of one connection that are watched until something comes back; the oldest one is watched no longer. */
export const SIP_CONNECTION_UNANSWERED_MAX = 256;
/** Bytes waiting to be written to one connection; past it the connection is closed. */
export const SIP_WRITE_BUFFER_MAX_BYTES = 1024 * 1024;
export const SIP_CONNECT_TIMEOUT_MS = 5_000;
/** The time between two lines of the log about a far end that no connection to comes up, for the same reason. */
export const SIP_CONNECTION_COMPLAINT_MS = 600_000;
/**
 * The same where UDP is left to try: the connection is for a request that is too long for UDP. It must be short beside
 * SIP_TRUNK_SILENT_MS, and leaves time for one lost SYN.
 */
export const SIP_CONNECT_FALLBACK_MS = 1_500;
/** A peer that took no such connection is sent its long requests over UDP for so long; and how many are remembered. */
export const SIP_NO_TCP_MS = 300_000;
export const SIP_NO_TCP_MAX = 1_000;
/**
 * A connection that is idle this long is asked for a sign of life (RFC 5626 §3.5.1), and closed after so many idle
 * periods in a row. One that others opened is closed without being asked, unless a device is registered over it: that
 * one is asked, and kept, while it is bound.
 */
export const SIP_CONNECTION_IDLE_MS = 100_000;
export const SIP_CONNECTION_IDLE_PERIODS_MAX = 6;
/**
 * A device answers a request by then, if only with 100, over the connection that it has registered over; else the
 * connection is taken for dead (RFC 5626 §4.4.1 waits as long for the answer to a ping).
 */
export const SIP_FLOW_REPLY_MS = 10_000;
/** A connection that we have opened ends when its far end acknowledges nothing for so long: TCP itself takes 15 min. */
export const SIP_UNACKNOWLEDGED_MS = 10_000;
/** Datagrams waiting for room in one UDP socket's send buffer; past it the oldest is dropped, as the network would. */
export const SIP_DATAGRAM_QUEUE_MAX = 4_096;
/**
 * What a UDP socket asks the system to hold for it while script is busy: 3,000 datagrams of a call. The usual 208 KiB
 * are full with 170.
 */
export const SIP_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** Resolved names kept, and for how long. */
export const SIP_RESOLVED_MAX = 1_000;
export const SIP_RESOLVED_TTL_MS = 30_000;
export const SIP_RESOLVE_TIMEOUT_MS = 4_000;
/** The application of a called number must be known within this; then the call is answered 503. */
export const SIP_LOOKUP_TIMEOUT_MS = 5_000;
/** A dial whose turn on its trunk is further away is refused (529). */
export const SIP_PACE_WAIT_MAX_MS = 2_000;
/**
 * An application that dialled over a trunk within this time has a share of the turns ahead. It is longer than the
 * `Retry-After` of a refused dial.
 */
export const PACE_ASKED_LATELY_MS = 15_000;
/** A trunk that failed is tried last for so long. */
export const SIP_TRUNK_FAILED_MS = 30_000;
/** The next trunk is tried after so long without any response, not even a 100. */
export const SIP_TRUNK_SILENT_MS = 4_000;
/** Calls of one trunk when it sets no `max_channels`. */
export const SIP_TRUNK_CHANNELS_DEFAULT = 10_000;
/** Header fields an application may add to a dial, and their size. */
export const SIP_EXTRA_HEADERS_MAX = 20;
export const SIP_EXTRA_HEADER_MAX_CHARS = 1_024;

/** Header fields of the far end that an event tells, and the characters of each value. */
export const SIP_FACT_HEADERS_MAX = 20;
export const SIP_FACT_MAX_CHARS = 512;

/** A REFER of the far end is open so long, and its target may have so many characters. */
export const SIP_REFER_OPEN_MS = 60_000;
export const SIP_REFER_TARGET_MAX_CHARS = 1_024;

/** The far end hangs up by itself within so long of a completed transfer; we do after it. */
export const TRANSFERRED_HANGUP_MS = 10_000;
export const TRANSFER_TIMEOUT_MIN_SEC = 5;
export const TRANSFER_TIMEOUT_MAX_SEC = 120;
export const TRANSFER_TIMEOUT_DEFAULT_SEC = 30;
export const TRANSFER_URI_MAX_CHARS = 256;

/** Digits in one string, its keys in milliseconds, and the strings that wait behind the one that is being sent. */
export const DTMF_SEND_MAX_DIGITS = 64;
export const DTMF_SEND_MIN_MS = 40;
export const DTMF_SEND_MAX_MS = 1_000;
export const DTMF_SEND_DEFAULT_MS = 100;
export const DTMF_SENDS_WAITING_MAX = 8;

/** How long answering machine detection listens for a verdict. */
export const MACHINE_DETECTION_MIN_MS = 1_000;
export const MACHINE_DETECTION_MAX_MS = 30_000;
export const MACHINE_DETECTION_DEFAULT_MS = 5_000;
/** The longest greeting whose end is waited for, as in native/kernel/answer/answer_detector.cc. */
export const MACHINE_GREETING_MAX_MS = 120_000;
/** A media plane that has said nothing so long after its time says nothing any more. */
export const MACHINE_DETECTION_GRACE_MS = 2_000;

/** The files of the SIP certificate are looked at so often. */
export const SIP_TLS_WATCH_MS = 5_000;

/**
 * Addresses of one domain that a call or a registration is tried at. Where it has several SRV records, each has an
 * equal share.
 */
export const SIP_TARGETS_MAX = 8;

// SDP.
export const SDP_MAX_BYTES = 16 * 1024;
/** The names in a session description must be resolved by then; else it has no usable address. */
export const SDP_RESOLVE_TIMEOUT_MS = 2_000;
export const SDP_MEDIA_MAX = 64;
/** Lines with keys that are read of one stream (RFC 4568). */
export const SDP_CRYPTO_MAX = 16;
export const SDP_PAYLOADS_MAX = 64;

// A phone leg. Signals kept until someone listens; and how long the media plane may take to give the ports back.
export const SIP_LEG_SIGNALS_MAX = 64;
export const SIP_LEG_CLOSE_MS = 2_000;
/** Keys of a call that are taken by INFO at once, and a second, as the media plane does with those in the audio. */
export const INFO_KEYS_AT_ONCE = 256;
export const INFO_KEYS_PER_SEC = 25;
/** A key by INFO that gives no duration, and the longest one believed. */
export const DTMF_DURATION_DEFAULT_MS = 100;
export const DTMF_DURATION_MAX_MS = 60_000;
/**
 * A key whose release has not come by then is not waited for any longer: the timers of a collection go on. The media
 * plane itself ends an event 200 ms after its last packet, so this is for a far end that never ceases to send one.
 */
export const DTMF_PRESS_MAX_MS = 30_000;
/** Keys sent as telephone-events (RFC 4733) after which a leg no longer listens for keys in its audio. */
export const SIP_LEG_EVENT_KEYS = 3;

/** How long a nonce for a device is good, in milliseconds. */
export const SIP_NONCE_LIFE_MS = 300_000;
/** Nonces whose use is remembered. Beyond it the one used longest ago is forgotten. */
export const SIP_NONCES_MAX = 50_000;
/** The shortest and the longest time that a contact of a device is bound for, in seconds. */
export const SIP_REGISTER_MIN_SEC = 60;
export const SIP_REGISTER_MAX_SEC = 3_600;
/**
 * The same over TCP and TLS. A phone whose connection breaks, as all do at a restart, is not reached before it
 * registers again, and linphone 5.1 waits with that until its contact expires.
 */
export const SIP_REGISTER_STREAM_MAX_SEC = 900;
/** Contacts of one device user. A further one is refused with 403. */
export const DEVICE_CONTACTS_MAX = 10;
/** Devices of the platform. */
export const DEVICES_MAX = 100_000;
/** Contacts of all users that a start reads by one statement: 20 ms. */
export const DEVICE_BINDINGS_PAGE_ROWS = 5_000;
/** Devices on a page of their list. */
export const DEVICE_LIST_MAX_ITEMS = 1_000;
/** Characters of a device's password. */
export const DEVICE_PASSWORD_MAX_CHARS = 128;
/** The longest URI of a contact. */
export const DEVICE_URI_MAX_CHARS = 512;
/** The longest `+sip.instance` of a device. A urn:uuid has 47 characters with its brackets. */
export const DEVICE_INSTANCE_MAX_CHARS = 128;
/** Values of a device's Path, the proxies before it, and the characters of all. More are refused with 400. */
export const DEVICE_PATHS_MAX = 8;
export const DEVICE_PATH_MAX_CHARS = 1_024;
/** Addresses of devices that are known. Beyond it the one that registered longest ago counts as a stranger's. */
export const DEVICE_ADDRESSES_MAX = 100_000;
/**
 * Registrations that are worked on or wait, many to a transaction. A further one is answered 503. One application may
 * have all of these places; then some more are left for those that have few.
 */
export const DEVICE_REGISTERS_MAX = 2_000;
export const DEVICE_REGISTERS_RESERVE = 500;
export const DEVICE_REGISTERS_RESERVED_OF_APP = 50;
/**
 * Challenges for devices over UDP, a second: for each device at a source and for all devices; as many for unknown names
 * at a source and at all of them. Beyond it a request is ignored, and its sender repeats it.
 */
export const DEVICE_CHALLENGES_PER_SOURCE = 20;
export const DEVICE_CHALLENGES_MAX = 1_000;
/** Calls that one device, and all devices of an application, begin at a node: at once, and a second after that. */
export const DEVICE_CALLS = { capacity: 40, refill: 10 } as const;
export const DEVICE_CALLS_OF_APP = { capacity: 200, refill: 50 } as const;
/** Wrong passwords from one source, a minute: requests of devices from it are ignored beyond it. */
export const SIP_GUESSES_A_MINUTE = 10;
/** So many challenges over a trunk, for so long, without a right answer are told as refusals of its calls. */
export const SIP_UNANSWERED = { challenges: 3, ms: 32_000 } as const;
/** Pairs of a source and a device whose wrong passwords are remembered. Beyond it the oldest one is forgotten. */
export const DEVICE_GUESSES_MAX = 10_000;
/**
 * Milliseconds from the INVITE on that a contact which says nothing at all is waited for, where another one of its user
 * has refused the call. A phone that is on answers within one, and an INVITE is sent four times within five.
 */
export const DEVICE_SILENT_MS = 5_000;
/**
 * Milliseconds without a packet of audio after which a phone that has registered as after a restart is asked whether it
 * knows its call.
 */
export const DEVICE_RESTARTED_MS = 2_000;
/** Milliseconds between two pings of a device over UDP, which keep the way through its NAT open as well. */
export const DEVICE_PING_MS = 25_000;
/** Pings that are sent in one turn of the event loop: 2 ms. */
export const DEVICE_PINGS_A_TURN = 40;
/** The longest ban of an address by its datagrams, in seconds: the address may be forged. */
export const SIP_BAN_UDP_MAX_SEC = 60;
/** Addresses that are banned at once. Beyond it the ban that began longest ago is over. */
export const SIP_BANS_MAX = 10_000;
/** Two keys that come by INFO and in the audio within this time are one; so many wait for their twins. */
export const SIP_TWIN_KEY_MS = 700;
export const SIP_TWIN_KEYS_MAX = 8;
/** Header values of each kind that are kept as they were parsed. A call has about ten, each asked for several times. */
export const SIP_PARSED_REMEMBERED_MAX = 2_048;
/** Requests within dialogs of other nodes that are being asked about; past it they are 481. */
export const SIP_STRAYS_MAX = 100;
/** The CSeq of the next node's requests is so much higher, times the epoch (RFC 3261 §12.2.2 allows gaps). */
export const MOVE_CSEQ_STEP = 1_000;
