/** The operator API of the platform that is examined. */

/** A platform whose database hangs waits 5 s for it, for each of three queries at most, and then says so. */
const TIMEOUT_MS = 20_000;

/** Serves a request, over the network or within the process. */
export type Ask = (request: Request) => Promise<Response>;

/** A platform runs there, and does not take our token. */
export class NotAdmitted extends Error {}

/** What is there answers otherwise than a platform that works, or not in time. The message says what. */
export class Unexpected extends Error {}

/** The operator API of the platform that runs with these settings. */
export class OperatorApi {
  readonly #origin: string;
  readonly #token: string;
  readonly #ask: Ask;

  constructor(origin: string, token: string, ask: Ask = fetch) {
    this.#origin = origin;
    this.#token = token;
    this.#ask = ask;
  }

  /**
   * What the platform tells under that path. Rejects when nobody is there. Throws NotAdmitted when it does not know us,
   * and Unexpected when no answer of a platform that works comes in time.
   */
  async get(path: string): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#asked(path, 'GET');
    if (response.status === 400 || response.status === 401) throw new NotAdmitted(`${path} was answered with ${response.status}`);
    if (!response.ok && path.startsWith('/operator'))
      throw new Unexpected(`${path} was answered with ${response.status}: ${await messageOf(response)}`);
    const body: unknown = await response.json().catch(() => undefined);
    if (!isObject(body)) throw new Unexpected(`${path} was answered with ${response.status} and no object of JSON`);
    return { ...body };
  }

  /** Asks the platform to do something without a body. Rejects as `get` does, without looking at the answer. */
  async post(path: string): Promise<void> {
    const response = await this.#asked(path, 'POST');
    await response.arrayBuffer();
  }

  async #asked(path: string, method: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}` };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      return await this.#ask(new Request(`${this.#origin}${path}`, { method, headers, signal }));
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError')
        throw new Unexpected(`${path} was not answered within ${TIMEOUT_MS / 1000} s`);
      throw error;
    }
  }

  /**
   * A list that the platform tells under that path. Throws Unexpected where there is none, or where an element lacks
   * one of the fields `has`: a server of another kind answers with JSON too.
   */
  async list<T extends object>(path: string, field: string, has: readonly (keyof T & string)[]): Promise<readonly T[]> {
    const items = (await this.get(path))[field];
    const isItem = (item: unknown): item is T => isObject(item) && has.every((name) => (item[name] ?? undefined) !== undefined);
    if (!Array.isArray(items) || !items.every(isItem))
      throw new Unexpected(`${path} was answered without the ${field} of a platform`);
    return items;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What the platform says of a request that failed. */
async function messageOf(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined);
  return isObject(body) && typeof body.message === 'string' ? body.message : 'no word of a platform';
}
