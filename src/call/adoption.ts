/** Takes over what other processes left, also where the answer of the database was lost: then it is this node's, unknown. */
export class Adoption<Row> {
  readonly #records: { adopt(): Promise<readonly Row[]>; mine(): Promise<readonly Row[]> };
  /** An adoption was begun and not answered. */
  #isUnsure = false;

  constructor(records: { adopt(): Promise<readonly Row[]>; mine(): Promise<readonly Row[]> }) {
    this.#records = records;
  }

  /** Takes a single row some other way. Where that is not answered, the next `take` looks for it. */
  async one<T>(taking: Promise<T>): Promise<T> {
    try {
      return await taking;
    } catch (error) {
      this.#isUnsure = true;
      throw error;
    }
  }

  /** Returns the rows that are this node's now; some of them may be known to it. Rejects while the database is away. */
  async take(): Promise<readonly Row[]> {
    const wasUnsure = this.#isUnsure;
    this.#isUnsure = true;
    const adopted = await this.#records.adopt();
    const rows = wasUnsure ? await this.#records.mine() : adopted;
    this.#isUnsure = false;
    return rows;
  }
}
