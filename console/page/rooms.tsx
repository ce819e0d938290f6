/** The Rooms of this node: who is in each, and who talks. */
import { nameOf, useApps } from '../part/apps.tsx';
import { CallLink, Empty, Problem, Time } from '../part/parts.tsx';
import { ask } from '../platform/api.ts';
import { useLoaded } from '../platform/live.ts';
import type { App, Room } from '../platform/types.ts';

export function RoomsPage() {
  const apps = useApps();
  // Who talks is told by an event only where the Room wants it, so it is also asked for.
  const { data, error } = useLoaded('rooms', (signal) => ask<{ rooms: readonly Room[] }>('GET', '/rooms', undefined, signal), {
    on: ({ name }) => name.startsWith('room.') || name === 'session.ended',
    everyMs: 2000,
  });
  return (
    <>
      <div class="head">
        <h1>Rooms</h1>
        <p class="quiet small" role="status">
          {data === undefined ? 'Loading …' : `${data.rooms.length} on this node`}
        </p>
      </div>
      <Problem words={error} />
      {data?.rooms.length === 0 && (
        <Empty title="No Rooms">
          <p>
            A Room joins calls. An application makes one with <code>POST /api/v1/rooms</code> and adds members with{' '}
            <code>POST /api/v1/rooms/ROOM/members</code>. See the <a href="/docs/reference">API reference</a>.
          </p>
        </Empty>
      )}
      <div class="grid">
        {data?.rooms.map((room) => (
          <RoomCard key={room.room_id} room={room} apps={apps} />
        ))}
      </div>
    </>
  );
}

const RoomCard = ({ room, apps }: { readonly room: Room; readonly apps: readonly App[] }) => (
  <section class="card" aria-labelledby={`room-${room.room_id}`}>
    <h2 id={`room-${room.room_id}`} class="mono">
      {room.room_id}
    </h2>
    <p class="quiet small">
      {nameOf(apps, room.app_uuid)}, since <Time at={room.created_at} />
    </p>
    {room.members.length === 0 && <p class="quiet">Nobody is in it.</p>}
    <ul aria-label="Members">
      {room.members.map((member) => (
        <li key={member.session_uuid}>
          <CallLink uuid={member.session_uuid} /> {member.muted && <span class="badge warn">muted</span>}{' '}
          {member.talking && (
            <span class="badge good live">
              <span class="dot" aria-hidden="true" /> talks
            </span>
          )}
        </li>
      ))}
    </ul>
  </section>
);
