/**
 * The members of Rooms while nothing is broken: each is known where its Room is mixed, heard there as it was ordered,
 * and hears it. What is under way is no fault: only what two looks find, some seconds apart, is one.
 */
import type { SessionActor } from '../../src/call/session/session-actor.ts';
import type { Tables } from './database/tables.ts';
import { type Pipes, SimulatedPipe } from './pipe.ts';
import type { Process } from './process.ts';
import { LegSound, SimulatedRoom } from './sound.ts';

export class Seats {
  readonly #tables: Tables;
  readonly #pipes: Pipes;
  #before = new Set<string>();

  constructor(tables: Tables, pipes: Pipes) {
    this.#tables = tables;
    this.#pipes = pipes;
  }

  /** What is wrong now, and was so at the look before. */
  look(processes: readonly Process[]): readonly string[] {
    const found = new Set(processes.flatMap((process) => [...this.#members(process, processes), ...this.#ghosts(process)]));
    const again = [...found].filter((each) => this.#before.has(each));
    this.#before = found;
    return again;
  }

  #members({ running }: Process, processes: readonly Process[]): readonly string[] {
    return [...(running?.sessions.all() ?? [])].flatMap((actor) => {
      const wrong = this.#wrong(actor, processes);
      return wrong === undefined ? [] : [`${actor.state.sessionUuid} ${wrong}`];
    });
  }

  /** What is wrong with the seat of a Session. */
  #wrong({ state, audio }: SessionActor, processes: readonly Process[]): string | undefined {
    const { membership, seat: reserved, sessionUuid, phase, closedAt } = state;
    if (phase === 'ended' || closedAt !== undefined) return undefined;
    if (reserved !== undefined) return this.#lacks(reserved.roomId, sessionUuid, processes);
    if (membership === undefined) return undefined;
    const { roomId, muted } = membership;
    const row = this.#tables.rooms.get(roomId);
    if (row === undefined || row.deleted_at !== null) return `is a member of the Room ${roomId}, which is gone`;
    if (row.deleting) return undefined;
    if (membership.phase === 'joining') return `joins the Room ${roomId} for ever`;
    const home = processes.find(({ nodeId }) => nodeId === row.node_id)?.running?.rooms.find(roomId);
    if (home === undefined) return `is a member of the Room ${roomId}, which nobody mixes`;
    if (!home.joined.includes(sessionUuid)) return `is a member of the Room ${roomId}, and not known there`;
    const seat = audio instanceof LegSound && home.media instanceof SimulatedRoom ? this.#seat(audio, home.media) : undefined;
    if (seat === undefined) return `is a member of the Room ${roomId}, and not heard there`;
    return seat.isMuted === muted ? undefined : `is ${muted ? '' : 'not '}muted, and the Room ${roomId} mixes it otherwise`;
  }

  /** What is wrong with the place in a Room that is kept for a Session which is not answered yet. */
  #lacks(roomId: string, sessionUuid: string, processes: readonly Process[]): string | undefined {
    const row = this.#tables.rooms.get(roomId);
    const home = processes.find(({ nodeId }) => nodeId === row?.node_id)?.running?.rooms.find(roomId);
    return home === undefined || home.state.phase !== 'open' || home.has(sessionUuid)
      ? undefined
      : `was dialled into the Room ${roomId}, and has no place there`;
  }

  /** The sound by which a leg sits in the mix of a Room: its own, or the far end of its pipe. */
  #seat(sound: LegSound, mix: SimulatedRoom): LegSound | undefined {
    if (sound.room === mix) return sound;
    for (const member of sound.room?.members ?? []) {
      const other = member instanceof SimulatedPipe ? this.#pipes.get(member.other?.port ?? 0) : undefined;
      if (member instanceof SimulatedPipe && other?.room === mix && other.other?.port === member.end.port) return other;
    }
    return undefined;
  }

  /** The members of a process's Rooms that are none by their rows. */
  #ghosts({ nodeId, running }: Process): readonly string[] {
    return (running?.rooms.live() ?? []).flatMap(({ roomId, members }) => {
      if (this.#tables.rooms.get(roomId)?.node_id !== nodeId) return [`${roomId} is mixed by ${nodeId}, and not its own`];
      return members
        .filter(({ sessionUuid }) => {
          const row = this.#tables.sessions.get(sessionUuid);
          return row === undefined || row.ended_at !== null || row.room_id !== roomId;
        })
        .map(({ sessionUuid }) => `${sessionUuid} has a place in the Room ${roomId}, and is no member`);
    });
  }
}
