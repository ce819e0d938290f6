/** The bounds of a cluster: signs of life, moves of calls, and messages between nodes. Import them from limits.ts. */

/** Each node raises its beat and reads all others this often. */
export const NODE_BEAT_MS = 1_000;
/** A node without a beat for this long is a suspect: nothing is placed there. */
export const NODE_SUSPECT_MS = 3_000;
/** A node whose own readings were further apart than this buries nobody for a while. */
export const NODE_POLL_GAP_MAX_MS = 2_500;
/** What a buried node still had under way in the database is over by then: what it left is looked for again, twice. */
export const NODE_LEFT_LOOK_MS = 5_000;
/** A node that was declared dead hangs up its calls, and ends after this. */
export const NODE_DEAD_GRACE_MS = 1_500;
/** Leftovers of dead nodes are looked for this often, in case who buried them died too. */
export const NODE_SWEEP_MS = 60_000;
/** Rows that a statement may have taken, which the database did not answer, are looked for this often. */
export const ADOPTION_LOOK_MS = 1_000;
/** Nodes that are asked for and not known, as those that were declared dead are. */
export const NODE_STRANGERS_MAX = 1_000;
export const NODE_LABELS_MAX = 32;
/** A token for a streaming body between nodes, and how many may be out. */
export const NODE_TOKEN_MS = 30_000;
export const NODE_TOKENS_MAX = 10_000;
/** The silence on a connection to another node after which it is asked whether that is still there. */
export const PEER_KEEPALIVE_MS = 10_000;
/** The answer of another node to a body that was handed on. */
export const NODE_ANSWER_MAX_BYTES = 64 * 1024;
/** A lease on work that one node does: how long it lasts without renewal, and how often it is renewed. */
export const NODE_LEASE_MS = 4_000;
export const NODE_LEASE_RENEW_MS = 1_000;
export const NODE_DRAIN_MAX_SEC = 86_400;
/** A node counts as full with so many legs (bench/media-legs), or with an event loop that is so late. */
export const NODE_LEGS_FULL = 2_000;
export const NODE_LOOP_LAG_FULL_MS = 200;
export const NODE_LOOP_LOOK_MS = 500;
/** A command that is not answered by then has an unknown outcome; the owner refuses it from a little earlier on. */
export const NODE_COMMAND_TIMEOUT_MS = 2_000;
export const NODE_COMMAND_MARGIN_MS = 250;
/** The same for commands that open audio sources before they are admitted (`SOURCE_ADMISSION_MS`). */
export const NODE_SLOW_COMMAND_TIMEOUT_MS = 22_000;
export const NODE_RETRY_AFTER_SEC = 2;

/** Sessions and Rooms whose node is remembered, so that a command for them needs no look into the database. */
export const NODE_PLACES_MAX = 20_000;
export const NODE_PING_TIMEOUT_MS = 500;

/** The home of a trunk's channels is asked again so long after it could not be reached, while a node comes or goes. */
export const CHANNEL_ASK_AGAIN_MS = 250;
/** A call asks so often for a channel where others are given back during each question. Then it goes without. */
export const CHANNEL_ASKED_MAX = 10;
/** A node asks the others so often whether they answer over NATS; so many misses in a row put one out of reach. */
export const NODE_REACH_LOOK_MS = 10_000;
export const NODE_REACH_MISSES = 2;
/** A node that does not tell its settings is asked for them so often. */
export const NODE_SETTINGS_ASKS = 3;
/** Clocks of two nodes that differ by more are told. Receivers refuse signatures that are 5 minutes old. */
export const NODE_CLOCKS_APART_MS = 5_000;
/** A node that has not reached NATS for so long after its start says so. */
export const NATS_FIRST_MS = 3_000;
/** The other node's clock, as a ping told it, is good for so long. */
export const NODE_OFFSET_KEPT_MS = 30_000;
/** Numbers of messages and operations that were seen, so that none is taken twice. */
export const NODE_NONCES_MAX = 50_000;
/** A message older than this is dropped, whatever it asks for. */
export const NODE_MESSAGE_AGE_MAX_MS = 30_000;
/** A hand-over of a call: the far end has so long to follow, and the Session's node to commit after it. */
export const MOVE_PREPARED_MS = 4_000;
/**
 * A call that is handed over or taken over, and whose far end has answered nothing for so long, is waited for beside
 * those that go at a time.
 */
export const FAR_END_QUIET_MS = 500;
/**
 * Calls that are handed over at a time, more once half of them are; how often others are looked for, and when one that
 * failed is tried again.
 */
export const MOVES_MAX = 20;
export const MOVE_LOOK_MS = 500;
export const MOVE_RETRY_MS = 5_000;
export const MOVE_RETRY_MAX_MS = 160_000;
/** A call whose process was lost goes on at the next one, unless it has changed hands so often. */
export const OWN_CALL_EPOCH_MAX = 8;
/** A start waits so long at most for the calls that go on before it takes commands. */
export const OWN_CALLS_WAIT_MS = 2_000;
/** Calls of a lost node that one node takes over at a time; it asks for more when half of them are. */
export const TAKEOVERS_MAX = 50;
/** A node that ends gives those with members in its Rooms so long to take them. */
export const ROOM_BEQUEST_MS = 2_000;
/** A message about a seat in a Room of another node has no answer after so long. */
export const SEAT_ASK_TIMEOUT_MS = 800;
/** Notes about one member between its node and the home of its Room; past it the seat is given up. */
export const SEAT_NOTES_MAX = 256;
/** While so many notes wait, as with NATS away, bots are told no more of what happens in the Room. */
export const SEAT_NEWS_MAX = SEAT_NOTES_MAX / 2;
/** A note without an answer is sent again after so long. */
export const SEAT_NOTE_RETRY_MS = 250;
/** The home of a Room asks so often whether its members on other nodes are still there. */
export const SEAT_CHECK_MS = 2_000;
/** A home that has sent nothing and answered nothing for so long is replaced. */
export const HOME_SILENT_MS = 1_500;
/** A pipe on which nothing has come for so long, although its home answers, is made anew. */
export const HOME_PIPE_MS = 2_000;
/** The log says that nothing comes through pipes from a node, at most this often for each node. */
export const UNHEARD_SAID_EVERY_MS = 60_000;
/** The time between two looks at a home that is silent. */
export const HOME_LOOK_MS = 250;
/** A command to join a Room that moves to its first member's node looks so often, so far apart, whether it is there. */
export const ROOM_MOVING_LOOKS = 10;
export const ROOM_MOVING_LOOK_MS = 100;
/** A home is looked for so often, SEAT_NOTE_RETRY_MS apart; then the members have left. */
export const HOME_SEARCH_TRIES = 40;
/** A node that does not know a Room, although its row names that node, may be opening it for so many tries. */
export const HOME_TRUSTED_TRIES = 8;
/** Applications, keys and trunks that were changed on another node are read again at least this often. */
export const NODE_CACHE_MS = 5_000;
