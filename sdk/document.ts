/** The OpenAPI document as the SDKs are written from it: the methods of each resource, and their schemas. */

export type Json = Readonly<Record<string, unknown>>;

interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly [string, ...string[]];
  readonly security: readonly Json[];
  readonly parameters: readonly { readonly name?: string; readonly in?: string; readonly schema?: Json }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, { readonly schema: Json }>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Json }>> }>>;
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly webhooks: Readonly<
    Record<
      string,
      { readonly post: { readonly requestBody: { readonly content: Readonly<Record<string, { readonly schema: Json }>> } } }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}

export interface Method {
  readonly resource: string;
  readonly name: string;
  readonly described: Described;
  readonly verb: string;
  readonly path: string;
  readonly parameters: readonly string[];
  readonly query: readonly { readonly name: string; readonly schema: Json }[];
  /** The schema of the body, when it takes one. */
  readonly body: Json | undefined;
  readonly isBodyRequired: boolean;
  /** The schema of the answer, or undefined for none. */
  readonly answer: Json | undefined;
}

/** The resource of each part of the reference, and the words that its methods need not repeat. */
const RESOURCES: Readonly<Record<string, readonly [resource: string, noun: RegExp]>> = {
  Sessions: ['sessions', /Sessions?$/],
  Playback: ['sessions', /Session$/],
  DTMF: ['sessions', /Session$/],
  Payments: ['sessions', /Session$/],
  Messages: ['messages', /Messages?$/],
  Rooms: ['rooms', /(ToRoom|Rooms?)(?=$|Playback)/],
  Recordings: ['recordings', /Recordings?$/],
  Browsers: ['webrtcTokens', /WebrtcToken$/],
  Application: ['app', /ApplicationSettings$/],
};

/** The methods of all resources, in the order of the document. */
export function methodsOf(document: Document): readonly Method[] {
  const methods: Method[] = [];
  for (const [path, operations] of Object.entries(document.paths))
    for (const [verb, described] of Object.entries(operations)) {
      const [resource, noun] = RESOURCES[described.tags[0]] ?? [];
      if (
        resource === undefined ||
        noun === undefined ||
        !described.security.some((each) => 'application' in each) ||
        path.startsWith('/v1/ingest')
      )
        continue;
      const success = Object.entries(described.responses).find(([status]) => status.startsWith('2'))?.[1];
      methods.push({
        resource,
        name: described.operationId.replace(noun, ''),
        described,
        verb: verb.toUpperCase(),
        path,
        parameters: described.parameters.flatMap((each) => (each.in === 'path' && each.name !== undefined ? [each.name] : [])),
        query: described.parameters.flatMap(({ name, in: where, schema = {} }) =>
          where === 'query' && name !== undefined ? [{ name, schema }] : [],
        ),
        body: resolved(document, described.requestBody?.content['application/json']?.schema),
        isBodyRequired: described.requestBody?.required === true,
        answer: success?.content?.['application/json']?.schema,
      });
    }
  return methods;
}

/** The name of the component that a schema refers to. Undefined where it stands for itself. */
export const refName = (schema: Json | undefined): string | undefined =>
  typeof schema?.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;

/** The schema itself, where one only refers to a component. */
function resolved(document: Document, schema: Json | undefined): Json | undefined {
  const name = refName(schema);
  return name === undefined ? schema : document.components.schemas[name];
}

/** The names of the components that answers and events are made of, in their order. */
export function answerSchemas(document: Document, methods: readonly Method[]): readonly string[] {
  const used = new Set<string>();
  const mention = (schema: Json): void => {
    for (const [, name = ''] of JSON.stringify(schema).matchAll(/#\/components\/schemas\/(\w+)/g))
      if (!used.has(name)) {
        used.add(name);
        mention(document.components.schemas[name] ?? {});
      }
  };
  for (const { answer } of methods) mention(answer ?? {});
  for (const schema of postedSchemas(document)) mention(schema);
  return [...used].sort();
}

/** The schemas of the events, in the order of the document. */
export const postedSchemas = (document: Document): readonly Json[] =>
  Object.values(document.webhooks).map(({ post }) => post.requestBody.content['application/json']?.schema ?? {});

/** The fields of an object, or none where it is no object. */
export const asJson = (value: unknown): Json => (typeof value === 'object' && value !== null ? { ...value } : {});

/** The schema of the values of an object whose names are any, or of a form. Empty where nothing is said of them. */
export const valuesOf = (schema: Json): Json =>
  [asJson(schema.additionalProperties), ...Object.values(asJson(schema.patternProperties)).map(asJson)].find(
    (each) => Object.keys(each).length > 0,
  ) ?? {};

/** What a schema says beside its type, as a sentence: its description, or its bounds. Empty where it says nothing. */
export function aboutOf(schema: Json): string {
  const items = asJson(schema.items);
  const described = text(schema.description);
  const said =
    (described === '' ? '' : joined([countOf(schema), described])) ||
    joined([
      rangeOf(schema),
      schema.maxLength === undefined ? '' : `at most ${schema.maxLength} characters`,
      countOf(schema),
      schema.type === 'array' && typeof items.description === 'string' ? `each ${items.description}` : '',
      schema.maxProperties === undefined ? '' : `at most ${schema.maxProperties} fields`,
    ]);
  const end = said === '' || said.endsWith('.') ? '' : '.';
  return `${capital(said)}${end}`.replaceAll('*/', '*\\/');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const joined = (parts: readonly string[]): string => parts.filter((each) => each !== '').join('; ');

/** The bounds of a number, where it has both. Those of a whole number that JavaScript can hold bound nothing. */
function rangeOf({ minimum, maximum }: Json): string {
  const isBound = (value: unknown): boolean => typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER;
  return isBound(minimum) && isBound(maximum) ? `${minimum} to ${maximum}` : '';
}

const countOf = ({ minItems, maxItems }: Json): string =>
  maxItems === undefined ? '' : minItems === undefined ? `at most ${maxItems}` : `${minItems} to ${maxItems}`;

/** A word with a capital at its beginning. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The field of the items, where the answer is a list. */
export const listField = (answer: Json | undefined): string | undefined => {
  const name = refName(answer);
  return name?.endsWith('List') === true
    ? `${name
        .slice(0, -4)
        .replace(/Summary$|^Stored/, '')
        .toLowerCase()}s`
    : undefined;
};

/** A list that is read page by page: its answer has the `after` that asks for the next page. */
export const hasPages = (query: Method['query']): boolean => query.some(({ name }) => name === 'after');

/** The first line of each file that is written, without the sign of a comment. */
export const HEAD = 'Written by sdk/generate.ts from the OpenAPI document. Do not edit.';
