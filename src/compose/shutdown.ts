/** Stops the platform in the reverse order in which it was composed: calls first, then what they stand on. */

import { RECORDING_LAST_MS, RELAY_LAST_MS, ROOM_BEQUEST_MS, SESSION_TEARDOWN_MS } from '../limits.ts';
import type { Platform } from './compose.ts';
import type { HttpListener } from './listen.ts';

/**
 * Drains and closes everything: live calls get `SHUTDOWN_GRACE_SEC`, then end by the system; their recordings are
 * finished and their last webhooks delivered, each within a limit.
 */
export async function shutDown(platform: Platform, listener: HttpListener): Promise<void> {
  const { settings, sessions, rooms, relay, carrier, media, messages, charges, recordings, rings, storage, store, history } =
    platform;
  platform.drain.last();
  carrier.drain();
  // Other nodes of a cluster place nothing here any more. A database that is away hinders no stop.
  store.nodes.drain(store.nodes.nodeId, settings.shutdownGraceSec, 'wait').catch(() => {});
  await sessions.drain(settings.shutdownGraceSec * 1000, SESSION_TEARDOWN_MS);
  await rooms.stopRecordings(RECORDING_LAST_MS);
  await rooms.bequeath(ROOM_BEQUEST_MS);
  await relay.deliverLast(RELAY_LAST_MS);
  await listener.stop();
  await Promise.all([messages.close(), charges.close()]);
  await relay.stop();
  await carrier.close();
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
