/**
 * Shapes of bodies: arktype validates, and the same shape becomes JSON Schema for the API reference. A message is made
 * of the failing path and what was expected, never of arktype's own text, which quotes what was submitted.
 */

import { JSON_MEMBERS_MAX } from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import { type ArkErrors, type } from './type.ts';

export interface Shape<B> {
  readonly check: (value: unknown) => { readonly value: B } | { readonly issue: string };
  /** JSON Schema 2020-12. */
  readonly schema: object;
}

/** An arktype type, as far as this file uses it. */
interface Definition<B> {
  (value: unknown): B | ArkErrors;
  toJsonSchema(options: { fallback: (context: { base: object }) => object }): { readonly $schema?: unknown };
}

/**
 * What a schema says beside its arktype type: the words of JSON Schema that a `narrow` judges by and cannot tell, under
 * the path of the field (`websocket.headers`; "" is the body).
 */
type Told = Readonly<Record<string, object>>;

/**
 * What a field counts as where it is left out, under its path. It is told in the description and not as `default`:
 * generators take a field with that word for one that is always there.
 */
type Defaults = Readonly<Record<string, unknown>>;

/**
 * The shape of an arktype type, which is made when it is first needed, after the library is loaded (`type.ts`).
 */
export function shape<B>(define: () => Definition<B>, told: Told = {}, defaults: Defaults = {}): Shape<B> {
  let made: { readonly definition: Definition<B>; readonly schema: object } | undefined;
  const make = () => {
    const definition = define();
    const { $schema: _dialect, ...schema } = definition.toJsonSchema({ fallback: (context) => context.base });
    const full = Object.entries(told).reduce<SchemaNode>((node, [path, words]) => changedAt(node, path, () => words), schema);
    const words = (value: unknown) => (node: SchemaNode) => ({ description: withDefault(node, value) });
    made = {
      definition,
      schema: Object.entries(defaults).reduce((node, [path, value]) => changedAt(node, path, words(value)), full),
    };
    return made;
  };
  return {
    get schema() {
      return (made ?? make()).schema;
    },
    check(value) {
      const crowded = pathWhere(value, isCrowded);
      if (crowded !== undefined) return { issue: `${pathText(crowded)}: must have at most ${JSON_MEMBERS_MAX} fields or items` };
      const { definition, schema } = made ?? make();
      const misplaced = notAnObject(schema, value);
      if (misplaced !== undefined) return { issue: `${pathText(misplaced)}: must be an object` };
      const out = definition(value);
      if (!(out instanceof type.errors)) return { value: out };
      const first = out[0];
      return { issue: first === undefined ? 'body: must be of the documented shape' : issueOf(first, schema) };
    },
  };
}

/** A schema with more words at a path, in each of its alternatives that has it. Throws where the path leads nowhere. */
function changedAt(schema: SchemaNode, path: string, words: (node: SchemaNode) => object): SchemaNode {
  if (path === '') return { ...schema, ...words(schema) };
  const [name = '', ...rest] = path.split('.');
  const child = schema.properties?.[name];
  if (child !== undefined)
    return { ...schema, properties: { ...schema.properties, [name]: changedAt(child, rest.join('.'), words) } };
  const has = (each: SchemaNode) => each.properties?.[name] !== undefined;
  if (schema.anyOf?.some(has) !== true) throw new Error(`a shape tells of ${name}, which it has not`);
  return { ...schema, anyOf: schema.anyOf.map((each) => (has(each) ? changedAt(each, path, words) : each)) };
}

/** `1 to 128; 1 when left out`: what a field says of itself, and what it counts as without a value. */
function withDefault({ description, minimum, maximum, items }: SchemaNode, value: unknown): string {
  const range = minimum === undefined || maximum === undefined ? undefined : `${minimum} to ${maximum}`;
  const said = description ?? range ?? items?.description;
  return `${said === undefined ? '' : `${said}; `}${JSON.stringify(value)} when left out`;
}

/** The path of the first value within another, itself among them, of which that is true. Undefined: there is none. */
function pathWhere(value: unknown, isSo: (value: unknown) => boolean): readonly PropertyKey[] | undefined {
  if (isSo(value)) return [];
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const found = pathWhere(value[at], isSo);
      if (found !== undefined) return [at, ...found];
    }
  } else if (isRecord(value)) {
    for (const name of Object.keys(value)) {
      const found = pathWhere(value[name], isSo);
      if (found !== undefined) return [name, ...found];
    }
  }
  return undefined;
}

/**
 * Whether an object or list has more members than those of any body. arktype makes an error of each that is wrong, at 8
 * µs, and all of one body are judged in one turn of the event loop.
 */
const isCrowded = (value: unknown): boolean =>
  (Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0) > JSON_MEMBERS_MAX;

/** PostgreSQL stores neither. The shape has bounded depth and size by now. */
const isUnstorable = (value: unknown): boolean => typeof value === 'string' && (value.includes('\0') || !value.isWellFormed());

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The part of a JSON Schema that is read here. */
interface SchemaNode {
  readonly type?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, unknown>>;
  readonly anyOf?: readonly SchemaNode[];
}

/** The path of a value that is no object where the schema wants one: to arktype a list is an object too. */
function notAnObject(node: SchemaNode, value: unknown): readonly PropertyKey[] | undefined {
  const wantsObject = node.type === 'object' || node.anyOf?.every((each) => each.type === 'object') === true;
  if (!wantsObject) return undefined;
  if (!isRecord(value)) return [];
  for (const name of Object.keys(value)) {
    const found = misplacedIn(node, name, value[name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The same of a field, which is misplaced where none of the alternatives that have it takes it. */
function misplacedIn(node: SchemaNode, name: string, value: unknown): readonly PropertyKey[] | undefined {
  let path: readonly PropertyKey[] | undefined;
  for (const { properties } of node.anyOf === undefined ? [node] : [node, ...node.anyOf]) {
    const field = properties?.[name];
    if (field === undefined) continue;
    const found = notAnObject(field, value);
    if (found === undefined) return undefined;
    path ??= [name, ...found];
  }
  return path;
}

interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly expected: string;
  readonly errors?: readonly Issue[];
}

/** The pattern of names of the object that holds the end of the path; undefined where it lists its fields. */
function namePattern(node: SchemaNode, [step, ...rest]: readonly PropertyKey[]): string | undefined {
  if (rest.length === 0) return Object.keys(node.patternProperties ?? {})[0];
  const within = [node, ...(node.anyOf ?? [])].flatMap(({ properties }) => properties?.[String(step)] ?? []);
  return within.map((each) => namePattern(each, rest)).find((pattern) => pattern !== undefined);
}

function issueOf(issue: Issue, schema: SchemaNode): string {
  const path = pathText(issue.path);
  if (issue.code === 'required') return `${path}: is required`;
  // arktype says of an undeclared key that it expects it removed.
  if (issue.expected === 'removed') {
    const pattern = namePattern(schema, [...issue.path]);
    return `${path}: ${pattern === undefined ? 'is not a known field here' : `must have a name of the form ${pattern}`}`;
  }
  if (issue.errors !== undefined) {
    // A union is met by any of its parts; a number that is too large and no integer has to meet both.
    const expected = [...new Set(issue.errors.map((each) => each.expected))];
    return `${path}: must be ${expected.join(issue.code === 'intersection' ? ' and ' : ' or ')}`;
  }
  return `${path}: must be ${issue.expected.replaceAll(/ \(was [^)]*\)/g, '')}`;
}

const PATH_STEP_MAX_CHARS = 64;

/** `sip_headers.X-Note`, `urls[3]`; a step the caller named is cut and cleaned, for it goes into a message. */
function pathText(path: readonly PropertyKey[]): string {
  // arktype's own list of steps, which `map` would make another of its kind of, has one where it is empty.
  const text = [...path]
    .map((step) =>
      typeof step === 'number'
        ? `[${step}]`
        : `.${String(step)
            .slice(0, PATH_STEP_MAX_CHARS)
            .replaceAll(/[^\x20-\x7e]/g, '?')}`,
    )
    .join('')
    .replace(/^\./, '');
  return text === '' ? 'body' : text;
}

/** `{}`, and nothing else. */
export const noBody: Shape<object> = shape(() => type({ '+': 'reject' }));

/** Validates a parsed body: a JSON object, of the shape, of text that can be stored. */
export function inBody<B>(expected: Shape<B>, value: unknown, status: 400 | 422): { value: B } | { problem: Problem } {
  const refuse = (message: string) => ({ problem: status === 422 ? problems.unprocessable(message) : problems.invalid(message) });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse('body: must be a JSON object');
  const checked = expected.check(value);
  if ('issue' in checked) return refuse(checked.issue);
  const unstorable = pathWhere(value, isUnstorable);
  return unstorable === undefined ? checked : refuse(`${pathText(unstorable)}: must be text without U+0000 and lone surrogates`);
}
