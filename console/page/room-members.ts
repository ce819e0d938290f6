/** The calls of those who are in the Rooms, as far as they are known. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, queryOf } from '../platform/api.ts';
import type { Call, Room } from '../platform/types.ts';

const PAGE_CALLS = 500;
/** Members beyond so many live calls are told by their Sessions alone. */
const MOST_PAGES = 4;

/**
 * The calls of the members, by their Sessions. They are asked for when a member is there that is not known yet. Of what
 * the platform tells only the members are kept, so that a page that is left open does not come to hold all calls.
 */
export function useMembers(rooms: readonly Room[]): ReadonlyMap<string, Call> {
  const [calls, setCalls] = useState<ReadonlyMap<string, Call>>(new Map());
  const members = rooms.flatMap((room) => room.members.map(({ session_uuid: uuid }) => uuid));
  const present = useRef(members);
  present.current = members;
  const unknown = members.filter((uuid) => !calls.has(uuid)).join(' ');
  useEffect(() => {
    if (unknown === '') return;
    const controller = new AbortController();
    // A page without them lacks the numbers and no more, and the next member that joins asks again.
    liveCalls(unknown.split(' '), controller.signal).then(
      (found) => setCalls((before) => ofMembers(present.current, found, before)),
      () => {},
    );
    return () => controller.abort();
  }, [unknown]);
  return calls;
}

/** The calls of the members that are known, by what was found now or before. */
export function ofMembers(
  members: readonly string[],
  found: ReadonlyMap<string, Call>,
  before: ReadonlyMap<string, Call>,
): ReadonlyMap<string, Call> {
  const calls = members.flatMap((uuid) => found.get(uuid) ?? before.get(uuid) ?? []);
  return new Map(calls.map((call) => [call.session_uuid, call]));
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
