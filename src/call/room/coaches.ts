/**
 * The coaches of a Room and whom each is heard by. The seat of a member is made anew when its call or the Room goes to
 * another node: its coaches are heard by it again, until the member leaves.
 */
export class Coaches {
  /** The member that hears it, by the coach. */
  readonly #coached = new Map<string, string>();

  /** A member has come into the mix, or has come again, as the coach of another one or of nobody. */
  enters(member: string, coached: string | undefined): void {
    if (coached === undefined) this.#coached.delete(member);
    else this.#coached.set(member, coached);
  }

  /** The coaches of a member. */
  of(sessionUuid: string): readonly string[] {
    return [...this.#coached].filter(([, coached]) => coached === sessionUuid).map(([coach]) => coach);
  }

  /** A member has left: it coaches nobody, and its coaches are heard by nobody, should it come back, too. */
  left(sessionUuid: string): void {
    for (const coach of [sessionUuid, ...this.of(sessionUuid)]) this.#coached.delete(coach);
  }
}
