/** Requests to the platform: credentials, idempotency keys, time limits, retries, and problems as errors. */

export interface SidetoneOptions {
  /** The address of the platform: `https://voice.example.com`, with the path before it where a proxy adds one. */
  readonly baseUrl: string;
  readonly appUuid: string;
  readonly apiKey: string;
  /** Milliseconds that one attempt may take. 30,000 unless told. */
  readonly timeoutMs?: number;
  /** Attempts after the first one. 3 unless told. */
  readonly maxRetries?: number;
  /** The `fetch` to use; the runtime's own unless told. */
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  /** A key of your own. Without one each command gets a new one, so that a retry is never carried out twice. */
  readonly idempotencyKey?: string;
  /** The `operation_uuid` that the answer and the events will name. */
  readonly operationId?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Sent extends RequestOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, unknown>>;
}

/** 409: what came of the attempt before, whose answer was lost, is not known yet. */
const RETRY_STATUS = new Set([409, 429, 503, 529]);
const RETRY_LONGEST_MS = 60_000;

/**
 * A problem that the platform answered with, or an answer that is none of a platform's (`code` is `unknown`). Branch on
 * `code`; `message` is for people and may change.
 */
export class SidetoneError extends Error {
  override readonly name = 'SidetoneError';
  readonly status: number;
  readonly code: string;
  /** Why an audio source could not be opened (502). */
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  /** Names a bug of the platform in its log (500). */
  readonly supportId: string | undefined;
  /** Seconds after which it may be tried again. */
  readonly retryAfter: number | undefined;

  constructor(status: number, body: Readonly<Record<string, unknown>>, retryAfter: number | undefined) {
    super(typeof body.message === 'string' ? body.message : `the platform answered with ${status}`);
    this.status = status;
    this.code = typeof body.code === 'string' ? body.code : 'unknown';
    this.detail = typeof body.detail === 'object' && body.detail !== null ? { ...body.detail } : undefined;
    this.supportId = typeof body.support_id === 'string' ? body.support_id : undefined;
    this.retryAfter = retryAfter;
  }
}

/** The items of a list, or of a page of it. `after` asks for the next page; it is empty or absent on the last. */
interface Page<T> {
  readonly items: readonly T[];
  readonly after?: string;
}

/**
 * A list that can be awaited or gone through one by one. It is asked for when it is first needed. Of a list that comes
 * in pages (one with `after`), awaiting gives the first page, and going through it asks for the next ones.
 */
export class Listing<T> implements AsyncIterable<T>, PromiseLike<readonly T[]> {
  readonly #load: (after?: string) => Promise<Page<T>>;
  #first: Promise<Page<T>> | undefined;

  constructor(load: (after?: string) => Promise<Page<T>>) {
    this.#load = load;
  }

  // biome-ignore lint/suspicious/noThenProperty: a listing is awaited like a promise.
  then<A = readonly T[], B = never>(
    fulfilled?: ((items: readonly T[]) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#firstPage()
      .then(({ items }) => items)
      .then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let { items, after } = await this.#firstPage();
    yield* items;
    while (after !== undefined && after !== '') {
      ({ items, after } = await this.#load(after));
      yield* items;
    }
  }

  #firstPage(): Promise<Page<T>> {
    this.#first ??= this.#load();
    return this.#first;
  }
}

export class Transport {
  readonly #options: SidetoneOptions;
  readonly #baseUrl: string;

  /** Throws TypeError for an address that is none, and for a missing credential: an environment variable that is not set. */
  constructor(options: SidetoneOptions) {
    const { baseUrl, appUuid, apiKey } = options;
    if (!/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl))
      throw new TypeError(`baseUrl must be an http or https URL, not ${JSON.stringify(baseUrl)}`);
    for (const [name, value] of Object.entries({ appUuid, apiKey })) {
      if (typeof value !== 'string' || value === '') throw new TypeError(`${name} is missing`);
      // The end of a line, as a file with a key has, is what no header may carry.
      if (!/^[\x21-\x7e]+$/.test(value)) throw new TypeError(`${name} has a space, an end of a line or a character beyond ASCII`);
    }
    this.#options = options;
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  /** Sends a request and resolves with the body of its answer. Rejects with a SidetoneError for a problem. */
  async request<T>(method: string, path: string, { body, query, ...options }: Sent = {}): Promise<T> {
    const url = new URL(this.#baseUrl + path);
    for (const [name, value] of Object.entries(query ?? {}))
      for (const each of Array.isArray(value) ? value : [value])
        if (each !== undefined) url.searchParams.append(name, String(each));
    const isCommand = method !== 'GET';
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#options.appUuid}:${this.#options.apiKey}`,
      'user-agent': 'sidetone-typescript/0.1',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(isCommand ? { 'idempotency-key': options.idempotencyKey ?? crypto.randomUUID() } : {}),
      ...(options.operationId === undefined ? {} : { 'operation-id': options.operationId }),
    };
    // A POST that follows a redirect becomes a GET, which answers something else.
    const init: RequestInit = {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const { maxRetries = 3 } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#attempt<T>(url, init, options);
      if ('value' in outcome) return outcome.value;
      const { error } = outcome;
      // Each command carries a key, so that what may have been carried out is not carried out again.
      const isTransient =
        error instanceof SidetoneError
          ? RETRY_STATUS.has(error.status) && error.retryAfter !== undefined
          : options.signal?.aborted !== true;
      if (!isTransient || attempt >= maxRetries) throw error;
      const after = error instanceof SidetoneError ? (error.retryAfter ?? 1) * 1000 : 200;
      // Nobody knows how long: an outage, or a command that is still under way.
      const isOpen = !(error instanceof SidetoneError) || error.status === 409;
      const wait = isOpen ? after * 2 ** attempt : after;
      await pause(Math.min(wait, RETRY_LONGEST_MS), options.signal);
    }
  }

  /** Sends a request whose answer has a list in that field. Rejects with a SidetoneError where it has none. */
  async list<T extends object>(field: string & keyof T, method: string, path: string, sent: Sent = {}): Promise<T> {
    const answer = await this.request<T | undefined>(method, path, sent);
    if (answer !== undefined && Array.isArray(answer[field])) return answer;
    throw new SidetoneError(200, { message: `200 without ${field}: baseUrl leads to something else` }, undefined);
  }

  async #attempt<T>(
    url: URL,
    init: RequestInit,
    options: RequestOptions,
  ): Promise<{ readonly value: T } | { readonly error: unknown }> {
    const limit = AbortSignal.timeout(options.timeoutMs ?? this.#options.timeoutMs ?? 30_000);
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
    try {
      const response = await (this.#options.fetch ?? fetch)(url, { ...init, signal });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
      const answer = isJson ? objectOf(text) : undefined;
      const message = strangeAnswer(response, text === '' || answer !== undefined);
      if (message !== undefined) return { error: new SidetoneError(response.status, { message }, undefined) };
      if (response.ok) return { value: answer };
      return { error: new SidetoneError(response.status, answer ?? {}, secondsOf(response.headers.get('retry-after'))) };
    } catch (error) {
      return { error };
    }
  }
}

/** `Retry-After` in seconds: a number of them, or a date, as a proxy may say it (RFC 9110 §10.2.3). */
function secondsOf(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  const at = /^[A-Z][a-z]+, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

/** The object that a JSON text has, as every answer of a platform that has a body, or undefined. */
function objectOf(text: string) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What is wrong with an answer that is none of a platform's, or undefined. Browsers hide where a redirect leads to. */
function strangeAnswer({ ok, status, type, headers }: Response, isOurs: boolean): string | undefined {
  if (type === 'opaqueredirect' || (status >= 300 && status < 400))
    return `redirected to ${headers.get('location') ?? 'another address'}: set baseUrl to where the platform is`;
  return ok && !isOurs ? `${status} without JSON: baseUrl leads to something else` : undefined;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
    // The event of a signal that is aborted already does not come again.
    if (signal?.aborted === true) abort();
  });
}
