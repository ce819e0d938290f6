/**
 * What a simulation reached: situations of a cluster that a fault may hide in. They are read off the statements that
 * the nodes ask of the database, and the rows as they are afterwards, so that the product is not asked.
 */
import type { Executed } from './database/simulated-database.ts';
import type { EventRecord, Tables } from './database/tables.ts';

export const SITUATIONS = [
  'cluster',
  /** A member joined a Room that another node mixes. */
  'joined away',
  'pipe opened',
  /** An empty Room was given up to the node of its next member. */
  'room given up',
  /** A node asked for a Room whose home it took for lost, and whether it got it. */
  'home searched',
  'room seized',
  /** A Room of a node that was declared dead was opened by another one. */
  'room adopted',
  /** A member on a node that lives went on in a Room whose home was lost. */
  'member re-seated',
  /** The call of a member went on at another node: handed over by a drain, or taken from a node that was lost. */
  'member handed over',
  'member taken over',
] as const;

export type Situation = (typeof SITUATIONS)[number];

const SEIZE = 'UPDATE rooms SET node_id = $1, epoch = $4';
const SETTLE = 'UPDATE rooms SET node_id = $1, epoch = epoch';
const ADOPT = 'UPDATE rooms AS r';
const HAND_OVER = 'UPDATE sessions SET node_id = $1, epoch = $4';
const TAKE_OVER = 'UPDATE sessions SET node_id = $1, epoch = epoch';

export class Reached {
  readonly #tables: Tables;
  readonly #situations = new Set<Situation>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** What was reached, in the order of `SITUATIONS`. */
  get situations(): readonly Situation[] {
    return SITUATIONS.filter((each) => this.#situations.has(each));
  }

  add(situation: Situation, is = true): void {
    if (is) this.#situations.add(situation);
  }

  executed(statements: readonly Executed[]): void {
    for (const statement of statements) if (statement.text.startsWith('UPDATE ')) this.#updated(statement);
  }

  #updated({ text, parameters, rows }: Executed): void {
    const isMember = rows.some((row) => typeof row.room_id === 'string' && row.room_id !== '');
    if (text.startsWith(SEIZE)) {
      this.add('home searched');
      this.add('room seized', rows.length > 0);
    }
    if (text.startsWith(SETTLE)) this.add('room given up', rows.length > 0);
    if (text.startsWith(ADOPT)) this.add('room adopted', rows.length > 0);
    // A node that raises its own epoch hands nothing over.
    if (text.startsWith(HAND_OVER)) this.add('member handed over', isMember && parameters[0] !== parameters[2]);
    if (text.startsWith(TAKE_OVER)) this.add('member taken over', isMember);
    if (text.startsWith(SEIZE) || text.startsWith(ADOPT))
      for (const row of rows) this.add('member re-seated', this.#hasLivingMember(String(row.room_id), String(parameters[0])));
  }

  #hasLivingMember(roomId: string, home: string): boolean {
    return [...this.#tables.sessions.values()].some(
      ({ room_id: room, node_id: node, ended_at: endedAt }) =>
        room === roomId && endedAt === null && node !== home && this.#tables.isAlive(node),
    );
  }

  emitted({ name, session_uuid: session, lanes }: EventRecord): void {
    if (name !== 'room.member.joined' || session === null) return;
    const lane = lanes.find((each) => each.startsWith('room:'))?.slice('room:'.length) ?? '';
    const home = this.#tables.rooms.get(lane)?.node_id;
    this.add('joined away', home !== undefined && home !== this.#tables.sessions.get(session)?.node_id);
  }
}
