/** Stops the platform in the reverse order in which it was composed: calls first, then what they stand on. */

import { withTimeLimit } from '../bounds/time-limit.ts';
import { RECORDING_LAST_MS, RELAY_LAST_MS, ROOM_BEQUEST_MS, SESSION_TEARDOWN_MS, SHUTDOWN_LAST_MS } from '../limits.ts';
import type { Platform } from './compose.ts';
import type { HttpListener } from './listen.ts';

/**
 * Drains and closes everything: live calls get `SHUTDOWN_GRACE_SEC`, then end by the system; their recordings are
 * finished and their last webhooks delivered, each within a limit. While the database is away each limit is reached, so
 * the whole has one as well: what is left then is taken up by the next start, as after a crash.
 */
export async function shutDown(platform: Platform, listener: HttpListener): Promise<void> {
  const { settings, clock, log } = platform;
  const most = settings.shutdownGraceSec * 1000 + SHUTDOWN_LAST_MS;
  const late = () => log.error({}, 'the stop took too long, as while the database is away: the next start takes up the rest');
  await withTimeLimit(closeAll(platform, listener), most, late, clock);
  // A payment provider has 30 s to answer, and what it says then is known to nobody else.
  await platform.charges.close();
}

async function closeAll(platform: Platform, listener: HttpListener): Promise<void> {
  const { settings, sessions, rooms, relay, carrier, media, messages, charges, recordings, rings, storage, store, history } =
    platform;
  platform.drain.last();
  carrier.drain();
  // Other nodes of a cluster place nothing here any more. A database that is away hinders no stop.
  store.nodes.drain(store.nodes.nodeId, settings.shutdownGraceSec, 'as_ordered').catch(() => {});
  await sessions.drain(settings.shutdownGraceSec * 1000, SESSION_TEARDOWN_MS);
  // A database that is away has not taken their ends. Nobody would tell the far ends later: their dialogs end here.
  for (const actor of sessions.all()) actor.hangUp();
  await rooms.stopRecordings(RECORDING_LAST_MS);
  await rooms.bequeath(ROOM_BEQUEST_MS);
  // Each message that is submitted has webhooks of its own: with many that wait, those would have no last one.
  await messages.close();
  await relay.deliverLast(RELAY_LAST_MS);
  await listener.stop();
  await charges.close();
  await Promise.all([relay.stop(), carrier.close()]);
  await media.close();
  recordings.close();
  await rings?.close();
  await storage?.close();
  await history?.close();
  await platform.tracing?.close();
  platform.cluster?.stop();
  // Others take over what may be left at once, and need not wait for a beat.
  await store.nodes.leave().catch(() => {});
  await platform.cluster?.close();
  await store.close();
}
