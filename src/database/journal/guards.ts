/** The guards of a flush: a row of it is written only if the Session or the Room of its change was. */

/** The identifiers of that Session and that Room. */
export interface Guards {
  readonly guard: string | null;
  readonly room_guard: string | null;
}

/** The condition of the rows named `row` that what they depend on was written. */
export type Guarding = (row: string) => string;

/** The guards alone, of a change that has them. */
export const guardsOf = ({ guard, room_guard }: Guards): Guards => ({ guard, room_guard });
