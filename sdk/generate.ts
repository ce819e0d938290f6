/**
 * Writes what the SDKs have of each operation and event, from an OpenAPI document of the platform: types and methods of
 * TypeScript, and the methods of Python. `bun sdk/generate.ts URL` writes the files; a test holds them against the
 * document that is served.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Json = Readonly<Record<string, unknown>>;

interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly [string, ...string[]];
  readonly security: readonly Json[];
  readonly parameters: readonly { readonly name?: string; readonly in?: string; readonly schema?: Json }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, { readonly schema: Json }>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Json }>> }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly webhooks: Readonly<
    Record<
      string,
      { readonly post: { readonly requestBody: { readonly content: Readonly<Record<string, { readonly schema: Json }>> } } }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}

interface Method {
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

function methodsOf(document: Document): readonly Method[] {
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

/** The schema itself, where one only refers to a component. */
function resolved(document: Document, schema: Json | undefined): Json | undefined {
  const name = typeof schema?.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;
  return name === undefined ? schema : document.components.schemas[name];
}

/** A JSON Schema as a type of TypeScript. */
function typeOf(schema: Json, indent = ''): string {
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1) ?? 'unknown';
  if ('const' in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((each) => JSON.stringify(each)).join(' | ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return choices.map((each) => typeOf(each, indent)).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ type })).join(' | ');
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array':
      return `readonly (${typeOf(asJson(schema.items), indent)})[]`;
    case 'object':
      return objectOf(schema, indent);
    default:
      return 'unknown';
  }
}

const asJson = (value: unknown): Json => (typeof value === 'object' && value !== null ? { ...value } : {});

function objectOf(schema: Json, indent: string): string {
  const properties = Object.entries(asJson(schema.properties));
  // The values of any name, or of names of a form.
  const [values = {}] = [asJson(schema.additionalProperties), ...Object.values(asJson(schema.patternProperties))]
    .map(asJson)
    .filter((each) => Object.keys(each).length > 0);
  if (properties.length === 0) return `Readonly<Record<string, ${typeOf(values, indent)}>>`;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const inner = `${indent}  `;
  const lines = properties.flatMap(([name, each]) => {
    const about = aboutOf(asJson(each));
    const field = `${inner}readonly ${name}${required.has(name) ? '' : '?'}: ${typeOf(asJson(each), inner)};`;
    return about === '' ? [field] : [`${inner}/** ${about} */`, field];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

/** What a schema says beside its type, as a sentence: its description, or its bounds. Empty where it says nothing. */
function aboutOf(schema: Json): string {
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

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const HEAD = 'Written by sdk/generate.ts from the OpenAPI document. Do not edit.';

/** `sdk/typescript/src/api.ts`. */
export function typescriptApi(document: Document): string {
  const methods = methodsOf(document);
  const used = new Set<string>();
  const mention = (schema: Json): void => {
    for (const [, name = ''] of JSON.stringify(schema).matchAll(/#\/components\/schemas\/(\w+)/g))
      if (!used.has(name)) {
        used.add(name);
        mention(document.components.schemas[name] ?? {});
      }
  };
  const posted = Object.values(document.webhooks).map(({ post }) => post.requestBody.content['application/json']?.schema ?? {});
  for (const { answer } of methods) mention(answer ?? {});
  for (const schema of posted) mention(schema);
  const schemas = [...used].sort().map((name) => `export type ${name} = ${typeOf(document.components.schemas[name] ?? {})};`);
  const bodies = methods.flatMap((each) =>
    each.body === undefined
      ? []
      : [
          `${typeof each.body.description === 'string' ? `/** ${each.body.description} */\n` : ''}export type ${capital(each.described.operationId)}Request = ${typeOf(each.body)};`,
        ],
  );
  const union = `export type WebhookEvent =\n${posted.map((schema) => `  | ${typeOf(schema)}`).join('\n')};`;
  const resources = [...new Set(methods.map(({ resource }) => resource))].map((resource) => {
    const own = methods.filter((each) => each.resource === resource).map(typescriptMethod);
    return `export class ${capital(resource)} {\n  readonly #transport: Transport;\n\n  constructor(transport: Transport) {\n    this.#transport = transport;\n  }\n\n${own.join('\n\n')}\n}`;
  });
  return `// ${HEAD}\nimport { Listing, type RequestOptions, type Transport } from './transport.ts';\n\n${[...schemas, ...bodies, union, ...resources].join('\n\n')}\n`;
}

function typescriptMethod({ name, described, verb, path, parameters, query, body, isBodyRequired, answer }: Method): string {
  const list = listField(answer);
  const args = [
    ...parameters.map((each) => `${camel(each)}: string`),
    ...(body === undefined ? [] : [`body: ${capital(described.operationId)}Request${isBodyRequired ? '' : ' = {}'}`]),
    ...(query.length === 0
      ? []
      : [`query: { ${query.map((each) => `readonly ${each.name}?: ${typeOf(each.schema)}`).join('; ')} } = {}`]),
    'options: RequestOptions = {}',
  ];
  const url = `\`${path.replaceAll(/\{(\w+)\}/g, (_, each: string) => `\${encodeURIComponent(${camel(each)})}`)}\``;
  const sent = [
    `'${verb}'`,
    url,
    `{ ${[body === undefined ? '' : 'body', query.length === 0 ? '' : 'query', '...options'].filter((each) => each !== '').join(', ')} }`,
  ].join(', ');
  const doc = `  /** ${described.summary}. */`;
  if (list !== undefined) {
    const item = `${typeOf(answer ?? {})}['${list}'][number]`;
    const asked = `this.#transport.list<${typeOf(answer ?? {})}>('${list}', ${sent})`;
    const load = hasPages(query)
      ? `(after = query.after) => ${asked.replace(' query,', ' query: { ...query, after },')}.then((answer) => ({ items: answer.${list}, after: answer.after }))`
      : `() => ${asked}.then((answer) => ({ items: answer.${list} }))`;
    return `${doc}\n  ${name}(${args.join(', ')}): Listing<${item}> {\n    return new Listing(${load});\n  }`;
  }
  const result = answer === undefined ? 'void' : typeOf(answer);
  return `${doc}\n  ${name}(${args.join(', ')}): Promise<${result}> {\n    return this.#transport.request(${sent});\n  }`;
}

/** The field of the items, where the answer is a list. */
const listField = (answer: Json | undefined): string | undefined => {
  const name = typeof answer?.$ref === 'string' ? answer.$ref.split('/').at(-1) : undefined;
  return name?.endsWith('List') === true
    ? `${name
        .slice(0, -4)
        .replace(/Summary$|^Stored/, '')
        .toLowerCase()}s`
    : undefined;
};

/** A list that is read page by page: its answer has the `after` that asks for the next page. */
const hasPages = (query: Method['query']): boolean => query.some(({ name }) => name === 'after');

/** `sdk/python/sidetone/_api.py`. */
export function pythonApi(document: Document): string {
  const methods = methodsOf(document);
  const resources = [...new Set(methods.map(({ resource }) => resource))].map((resource) => {
    const own = methods.filter((each) => each.resource === resource).map(pythonMethod);
    return `class ${capital(resource)}:\n    def __init__(self, transport: Transport) -> None:\n        self._transport = transport\n\n${own.join('\n\n')}`;
  });
  const events = Object.keys(document.webhooks).map((name) => `    "${name}",`);
  return `# ${HEAD}\nfrom __future__ import annotations\n\nfrom typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Union\nfrom urllib.parse import quote\n\nfrom ._transport import Transport\n\nEVENTS = (\n${events.join('\n')}\n)\n\n\n${resources.join('\n\n\n')}\n`;
}

const KEYWORDS = new Set(['from', 'type', 'to']);

function pythonMethod({ name, described, verb, path, parameters, query, body, answer }: Method): string {
  const fields = bodyFields(body);
  const args = [
    'self',
    ...parameters.map((each) => `${each}: str`),
    '*',
    ...fields.map((each) => {
      const type = pythonType(each.schemas);
      return `${pythonName(each.name)}: ${each.isRequired ? type : `Optional[${type}] = None`}`;
    }),
    ...query.map((each) => `${pythonName(each.name)}: Optional[${pythonType([each.schema])}] = None`),
    'idempotency_key: Optional[str] = None',
    'operation_id: Optional[str] = None',
    'timeout: Optional[float] = None',
  ];
  const url =
    parameters.length === 0
      ? `"${path}"`
      : `f"${path.replaceAll(/\{(\w+)\}/g, (_, each: string) => `{quote(${each}, safe='')}`)}"`;
  const dict = (names: readonly { readonly name: string }[]) =>
    `{${names.map((each) => `"${each.name}": ${pythonName(each.name)}`).join(', ')}}`;
  const list = listField(answer);
  const sent = [
    `"${verb}"`,
    url,
    ...(body === undefined ? [] : [`body=${dict(fields)}`]),
    ...(query.length === 0 ? [] : [`query=${dict(query)}`]),
    'idempotency_key=idempotency_key',
    'operation_id=operation_id',
    'timeout=timeout',
  ].join(', ');
  const isPaged = list !== undefined && hasPages(query);
  const items = isPaged ? 'Iterator[Dict[str, Any]]' : 'List[Dict[str, Any]]';
  const result = answer === undefined ? 'None' : list === undefined ? 'Dict[str, Any]' : items;
  const asked = list === undefined ? `self._transport.request(${sent})` : `self._transport.list("${list}", ${sent})`;
  const returned = isPaged
    ? `        return self._transport.pages("${list}", ${sent})`
    : answer === undefined
      ? `        ${asked}`
      : `        return ${asked}`;
  return `    def ${snake(name)}(${args.join(', ')}) -> ${result}:\n        """${described.summary}."""\n${returned}`;
}

/** A word of the language gets an underscore, as PEP 8 has it. */
const pythonName = (name: string): string => (KEYWORDS.has(name) && name === 'from' ? 'from_' : name);

const PYTHON_TYPES: Readonly<Record<string, string>> = { string: 'str', integer: 'int', number: 'float', boolean: 'bool' };

/** A value of any of these schemas as a type of Python. An object is a mapping, whatever its fields are. */
function pythonType(schemas: readonly Json[]): string {
  const words = new Set<string>();
  const types = new Set<string>();
  const add = (schema: Json): void => {
    const choices = schema.anyOf ?? schema.oneOf;
    const values: readonly unknown[] = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [];
    if (values.length > 0) for (const value of values) words.add(JSON.stringify(value));
    else if (Array.isArray(choices)) choices.map(asJson).forEach(add);
    else if (schema.type === 'array') types.add(`Sequence[${pythonType([asJson(schema.items)])}]`);
    else if (schema.type === 'object') types.add('Mapping[str, Any]');
    else types.add(PYTHON_TYPES[String(schema.type)] ?? 'Any');
  };
  schemas.forEach(add);
  const all = [...(words.size === 0 ? [] : [`Literal[${[...words].join(', ')}]`]), ...types];
  if (all.includes('Any')) return 'Any';
  return all.length === 1 ? (all[0] ?? 'Any') : `Union[${all.join(', ')}]`;
}

/** The fields of a body: of one with several shapes, all of them, and required is what each shape requires. */
function bodyFields(
  body: Json | undefined,
): readonly { readonly name: string; readonly isRequired: boolean; readonly schemas: readonly Json[] }[] {
  if (body === undefined) return [];
  const shapes = Array.isArray(body.anyOf) ? body.anyOf.map(asJson) : [body];
  const names = [...new Set(shapes.flatMap((shape) => Object.keys(asJson(shape.properties))))];
  const isRequired = (name: string) => shapes.every(({ required }) => Array.isArray(required) && required.includes(name));
  return names
    .map((name) => ({
      name,
      isRequired: isRequired(name),
      schemas: shapes.flatMap((shape) => {
        const properties = asJson(shape.properties);
        return name in properties ? [asJson(properties[name])] : [];
      }),
    }))
    .sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

if (import.meta.main) {
  const document: Document = await (await fetch(process.argv[2] ?? 'http://127.0.0.1:8080/openapi.json')).json();
  writeFileSync(join(import.meta.dir, 'typescript/src/api.ts'), typescriptApi(document));
  writeFileSync(join(import.meta.dir, 'python/sidetone/_api.py'), pythonApi(document));
}
