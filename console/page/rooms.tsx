/** The Rooms of this node: who is in each, and who talks. */
import { useEffect, useState } from 'preact/hooks';
import { DIRECTIONS } from '../call/words.ts';
import { AppName, useApps } from '../part/apps.tsx';
import { CallLink, Empty, Problem, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { ask, queryOf } from '../platform/api.ts';
import { useLoaded, whileLoading } from '../platform/live.ts';
import type { App, Call, Room } from '../platform/types.ts';

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
        <p class="quiet small" role="status">
          {data === undefined ? whileLoading(error) : `${data.rooms.length} on this node`}
        </p>
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
const PAGE_CALLS = 500;
/** Members beyond so many live calls are told by their Sessions alone. */
const MOST_PAGES = 4;

/** The calls of the members, by their Sessions. They are asked for when a member is there that is not known yet. */
function useMembers(rooms: readonly Room[]): ReadonlyMap<string, Call> {
  const [calls, setCalls] = useState<ReadonlyMap<string, Call>>(new Map());
  const unknown = rooms
    .flatMap(({ members }) => members.map(({ session_uuid: uuid }) => uuid))
    .filter((uuid) => !calls.has(uuid))
    .join(' ');
  useEffect(() => {
    if (unknown === '') return;
    const controller = new AbortController();
    // A page without them lacks the numbers and no more, and the next member that joins asks again.
    liveCalls(unknown.split(' '), controller.signal).then(
      (found) => setCalls((before) => new Map([...before, ...found])),
      () => {},
    );
    return () => controller.abort();
  }, [unknown]);
  return calls;
}

/** The live calls, newest first, as far as the wanted ones are among them. */
async function liveCalls(wanted: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Call>> {
  const found = new Map<string, Call>();
  let after = '';
  for (let page = 0; page < MOST_PAGES && !wanted.every((uuid) => found.has(uuid)); page++) {
    const query = queryOf({ state: 'live', limit: PAGE_CALLS, after });
    const answer = await ask<{ sessions: readonly Call[]; after: string }>('GET', `/sessions${query}`, undefined, signal);
    for (const call of answer.sessions) found.set(call.session_uuid, call);
    after = answer.after;
    if (after === '') break;
  }
  return found;
}

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
