/** The types and methods of the SDK of TypeScript. */
import {
  aboutOf,
  answerSchemas,
  asJson,
  capital,
  type Document,
  HEAD,
  hasPages,
  type Json,
  listField,
  type Method,
  methodsOf,
  postedSchemas,
  refName,
  valuesOf,
} from './document.ts';

/** `sdk/typescript/src/api.ts`. */
export function typescriptApi(document: Document): string {
  const methods = methodsOf(document);
  const schemas = answerSchemas(document, methods).map(
    (name) => `export type ${name} = ${typeOf(document.components.schemas[name] ?? {})};`,
  );
  const bodies = methods.flatMap((each) =>
    each.body === undefined
      ? []
      : [
          `${typeof each.body.description === 'string' ? `/** ${each.body.description} */\n` : ''}export type ${capital(each.described.operationId)}Request = ${typeOf(each.body)};`,
        ],
  );
  const union = `export type WebhookEvent =\n${postedSchemas(document)
    .map((schema) => `  | ${typeOf(schema)}`)
    .join('\n')};`;
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

/** A JSON Schema as a type of TypeScript. */
function typeOf(schema: Json, indent = ''): string {
  const component = refName(schema);
  if (component !== undefined) return component;
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

function objectOf(schema: Json, indent: string): string {
  const properties = Object.entries(asJson(schema.properties));
  if (properties.length === 0) return `Readonly<Record<string, ${typeOf(valuesOf(schema), indent)}>>`;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const inner = `${indent}  `;
  const lines = properties.flatMap(([name, each]) => {
    const about = aboutOf(asJson(each));
    const field = `${inner}readonly ${name}${required.has(name) ? '' : '?'}: ${typeOf(asJson(each), inner)};`;
    return about === '' ? [field] : [`${inner}/** ${about} */`, field];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
