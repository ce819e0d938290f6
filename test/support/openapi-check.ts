/**
 * Holds an answer of the platform against its own OpenAPI document: the status has to be one of the operation's, the
 * media type and the telling header fields among the status's, the body of its schema.
 */
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** Header fields that say something of the answer: where an answer has one, the document names it. */
const TELLING = [
  'allow',
  'content-disposition',
  'content-range',
  'etag',
  'idempotent-replayed',
  'location',
  'retry-after',
  'traceparent',
  'www-authenticate',
];

interface Described {
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
  readonly $ref?: string;
}

/** An OpenAPI document, as far as it is read here. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: DescribedWebhook }>>;
  readonly components: {
    readonly parameters: Readonly<Record<string, { readonly name: string; readonly schema: object }>>;
    readonly responses: Readonly<Record<string, Described>>;
    readonly schemas: Readonly<Record<string, object>>;
  };
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Described>>;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>> };
}

/** An event: the schema of its body, and a sample. */
interface DescribedWebhook {
  readonly parameters: readonly { readonly $ref: string }[];
  readonly requestBody: {
    readonly content: {
      readonly 'application/json': { readonly schema: object; readonly example: Readonly<Record<string, unknown>> };
    };
  };
}

interface Path {
  readonly pattern: RegExp;
  readonly template: string;
  readonly operations: Readonly<Record<string, DescribedOperation>>;
}

export class OpenApiCheck {
  readonly #document: OpenApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #paths: readonly Path[];
  readonly #compiled = new Map<object, ValidateFunction>();
  /** `operationId status` of every answer that was held against the document. */
  readonly seen = new Set<string>();

  constructor(document: OpenApiDocument) {
    this.#document = document;
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({ $id: 'openapi', components: document.components });
    // A literal path comes before one with parameters, as it does in the router.
    this.#paths = Object.entries(document.paths)
      .map(([template, operations]) => ({ template, operations, pattern: patternOf(template) }))
      .sort((a, b) => a.template.split('{').length - b.template.split('{').length);
  }

  /** What is wrong with an answer, or undefined. Paths that the document does not have are not judged. */
  fault(
    method: string,
    path: string,
    { status, headers }: Pick<Response, 'status' | 'headers'>,
    body: string,
  ): string | undefined {
    const { pathname } = new URL(path, 'http://platform');
    const found = this.#paths.find(({ pattern }) => pattern.test(pathname));
    const operation = found?.operations[method.toLowerCase()];
    if (operation === undefined) return undefined;
    const name = `${operation.operationId} ${status}`;
    this.seen.add(name);
    const described = this.#resolved(operation.responses[String(status)]);
    if (described === undefined) return `${name}: the status is not documented (${body.slice(0, 200)})`;
    const told = Object.keys(described.headers ?? {}).map((each) => each.toLowerCase());
    const untold = TELLING.find((each) => headers.has(each) && !told.includes(each));
    if (untold !== undefined) return `${name}: has a field ${untold} that is not documented`;
    const mediaType = headers.get('content-type');
    const types = Object.keys(described.content ?? {});
    if (types.length === 0) return body === '' ? undefined : `${name}: has a body that is not documented`;
    const type = types.find((each) => mediaType?.startsWith(each) === true);
    if (type === undefined) return `${name}: ${mediaType} is not one of ${types.join(', ')}`;
    const schema = described.content?.[type]?.schema;
    if (type !== 'application/json' || schema === undefined) return undefined;
    const validate = this.#validator(schema);
    return validate(JSON.parse(body)) ? undefined : `${name}: ${this.#ajv.errorsText(validate.errors)} in ${body.slice(0, 500)}`;
  }

  #resolved(described: Described | undefined): Described | undefined {
    const name = described?.$ref?.split('/').at(-1);
    return name === undefined ? described : this.#document.components.responses[name];
  }

  #validator(schema: object): ValidateFunction {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/');
    const made = this.#ajv.compile(JSON.parse(text));
    this.#compiled.set(schema, made);
    return made;
  }
}

const patternOf = (template: string): RegExp =>
  new RegExp(`^${template.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{[a-z0-9_]+\}/g, '[^/]+')}$`);
