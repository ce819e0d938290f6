/**
 * How much each application keeps in recordings, in bytes: what the database knew at the last look, and what this
 * process knows since. The looks are far apart, so what ends in between counts here until a look that began after it.
 *
 *   under way here ──end──→ over since the look ──next look──→ in the database, with all that other nodes have
 */

interface Known {
  readonly appUuid: string;
  readonly bytes: number;
}

/** What was over when a look began: the database knows that when it answers. */
export type LookBegun = readonly string[];

export class KeptCount {
  #stored: ReadonlyMap<string, number> = new Map();
  readonly #underWay = new Map<string, Known>();
  readonly #over = new Map<string, Known>();
  /** The sum of both for each application. */
  readonly #here = new Map<string, number>();

  /** The bytes that the application keeps, as far as they are known. */
  of(appUuid: string): number {
    return (this.#stored.get(appUuid) ?? 0) + (this.#here.get(appUuid) ?? 0);
  }

  /** How many applications keep at least so many bytes. */
  countFrom(bytes: number): number {
    const apps = new Set([...this.#stored.keys(), ...this.#here.keys()]);
    return [...apps].filter((appUuid) => this.of(appUuid) >= bytes).length;
  }

  begin(recordingUuid: string, appUuid: string): void {
    this.#put(this.#underWay, recordingUuid, { appUuid, bytes: 0 });
  }

  underWay(): readonly string[] {
    return [...this.#underWay.keys()];
  }

  /** A recording was measured. One that neither is under way nor has just ended is the database's affair. */
  measured(recordingUuid: string, bytes: number): void {
    for (const all of [this.#underWay, this.#over]) {
      const known = all.get(recordingUuid);
      // A file only grows: a size that was read before its end, and comes after it, changes nothing.
      if (known !== undefined) this.#put(all, recordingUuid, { ...known, bytes: Math.max(known.bytes, bytes) });
    }
  }

  /** It is over, and the database has been told so. `bytes` undefined: as many as were measured last. */
  end(recordingUuid: string, bytes: number | undefined): void {
    const known = this.#underWay.get(recordingUuid);
    if (known === undefined) return;
    this.#drop(this.#underWay, recordingUuid);
    this.#put(this.#over, recordingUuid, { ...known, bytes: Math.max(known.bytes, bytes ?? 0) });
  }

  lookBegins(): LookBegun {
    return [...this.#over.keys()];
  }

  /** `stored` is what each application keeps, apart from recordings that are under way here. */
  lookEnds(begun: LookBegun, stored: ReadonlyMap<string, number>): void {
    for (const recordingUuid of begun) this.#drop(this.#over, recordingUuid);
    this.#stored = stored;
  }

  #put(all: Map<string, Known>, recordingUuid: string, known: Known): void {
    this.#drop(all, recordingUuid);
    all.set(recordingUuid, known);
    this.#add(known.appUuid, known.bytes);
  }

  #drop(all: Map<string, Known>, recordingUuid: string): void {
    const known = all.get(recordingUuid);
    if (known === undefined) return;
    all.delete(recordingUuid);
    this.#add(known.appUuid, -known.bytes);
  }

  #add(appUuid: string, bytes: number): void {
    const sum = (this.#here.get(appUuid) ?? 0) + bytes;
    if (sum > 0) this.#here.set(appUuid, sum);
    else this.#here.delete(appUuid);
  }
}
