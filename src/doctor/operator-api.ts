/** The operator API of the platform that is examined. */

const TIMEOUT_MS = 5_000;

/** Serves a request, over the network or within the process. */
export type Ask = (request: Request) => Promise<Response>;

/** A platform runs there, and does not take our token. */
export class NotAdmitted extends Error {}

/** What answers there says something else than a platform that works. The message says what. */
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
   * What the platform tells under that path. Rejects when nobody answers. Throws NotAdmitted when it does not know us,
   * and Unexpected when that is no answer of a platform that works.
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

  /** Asks the platform to do something without a body. Rejects when it does not answer. */
  async post(path: string): Promise<void> {
    const response = await this.#asked(path, 'POST');
    await response.arrayBuffer();
  }

  #asked(path: string, method: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}` };
    return this.#ask(new Request(`${this.#origin}${path}`, { method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) }));
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
