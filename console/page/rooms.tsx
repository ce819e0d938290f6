/** The Rooms of this node: who is in each, and who talks. */
import { DIRECTIONS } from '../call/words.ts';
import { AppName, useApps } from '../part/apps.tsx';
import { CallLink, Count, Empty, Problem, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { ask } from '../platform/api.ts';
import { useLoaded, whileLoading } from '../platform/live.ts';
import type { App, Call, Room } from '../platform/types.ts';
import { useMembers } from './room-members.ts';

export function RoomsPage() {
  const { apps, error: appsError } = useApps();
  // Who talks is told by an event only where the Room wants it, so it is also asked for.
  const { data, error } = useLoaded('rooms', (signal) => ask<{ rooms: readonly Room[] }>('GET', '/rooms', undefined, signal), {
    on: ({ name }) => name.startsWith('room.') || name === 'session.ended',
    everyMs: 2000,
  });
  const calls = useMembers(data?.rooms ?? NONE);
  return (
    <>
      <div class="head">
        <h1>Rooms</h1>
        <Count of="rooms" isLoaded={data !== undefined}>
          {data === undefined ? whileLoading(error) : `${data.rooms.length} on this node`}
        </Count>
      </div>
      <Problem words={error || appsError} />
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
          <RoomCard key={room.room_id} room={room} apps={apps} calls={calls} />
        ))}
      </div>
    </>
  );
}

const NONE: readonly Room[] = [];

/** Who a member is: which way its call goes, and the number at the far end. */
function Who({ call }: { readonly call: Call | undefined }) {
  if (call === undefined) return null;
  const number = call.type === 'phone_out' ? call.did : call.caller_id;
  return (
    <>
      {DIRECTIONS[call.type] ?? call.type} <Foreign text={number} />{' '}
    </>
  );
}

const RoomCard = ({
  room,
  apps,
  calls,
}: {
  readonly room: Room;
  readonly apps: readonly App[];
  readonly calls: ReadonlyMap<string, Call>;
}) => (
  <section class="card" aria-labelledby={`room-${room.room_id}`}>
    <h2 id={`room-${room.room_id}`} class="mono">
      {room.room_id}
    </h2>
    <p class="quiet small">
      <AppName apps={apps} uuid={room.app_uuid} />, since <Time at={room.created_at} />
    </p>
    {room.members.length === 0 && <p class="quiet">Nobody is in it.</p>}
    <ul aria-label="Members">
      {room.members.map((member) => (
        <li key={member.session_uuid}>
          <CallLink uuid={member.session_uuid} /> <Who call={calls.get(member.session_uuid)} />
          {member.muted && <span class="badge warn">muted</span>}{' '}
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
