/**
 * The answers, events and objects of requests as types of Python: a TypedDict for each object (PEP 589). A field that may be absent is in a
 * class that is not total, as Python has no other word for it before 3.11.
 */
import {
  aboutOf,
  answerSchemas,
  asJson,
  capital,
  type Document,
  HEAD,
  type Json,
  methodsOf,
  postedSchemas,
  refName,
  valuesOf,
} from './document.ts';
import { argumentClasses, bodyFields, PYTHON_TYPES } from './python-arguments.ts';

const IMPORTS = 'from typing import Any, Dict, List, Literal, TypedDict, Union';
/** Words of the language that no field of a class may be named. */
const KEYWORDS = new Set(['from']);

/** The classes, and the names that stand for one of several, each after what it is made of. */
interface Written {
  readonly classes: string[];
  readonly unions: string[];
}

/** `sdk/python/sidetone/types.py`. */
export function pythonTypes(document: Document): string {
  const written: Written = { classes: [], unions: [] };
  const methods = methodsOf(document);
  for (const field of methods.flatMap(bodyFields))
    for (const [name, schema] of argumentClasses(field)) typeOf(schema, name, written);
  for (const name of answerSchemas(document, methods)) {
    const type = typeOf(document.components.schemas[name] ?? {}, name, written);
    if (type !== name) written.unions.push(`${name} = ${type}`);
  }
  const events = unionOf(postedSchemas(document).map((schema) => typeOf(schema, 'WebhookEvent', written)));
  const parts = [...written.classes, `${written.unions.join('\n')}\nWebhookEvent = ${events}`];
  return `# ${HEAD}\n"""The answers and events of the platform, and the objects of requests."""\nfrom __future__ import annotations\n\n${IMPORTS}\n\n\n${parts.join('\n\n\n')}\n`;
}

/** A JSON Schema as a type of Python. Its objects are written as classes, whose names begin with `name`. */
function typeOf(schema: Json, name: string, written: Written): string {
  const component = refName(schema);
  if (component !== undefined) return component;
  if ('const' in schema) return literalOf([schema.const]);
  if (Array.isArray(schema.enum)) return literalOf(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return unionOf(choices.map((each, at) => typeOf(asJson(each), `${name}${at + 1}`, written)));
  if (Array.isArray(schema.type)) return unionOf(schema.type.map((type) => typeOf({ type }, name, written)));
  if (schema.type === 'array') return `List[${typeOf(asJson(schema.items), name, written)}]`;
  if (schema.type === 'object') return objectOf(schema, name, written);
  return PYTHON_TYPES[String(schema.type)] ?? 'Any';
}

const literalOf = (values: readonly unknown[]): string =>
  `Literal[${values.map((each) => (typeof each === 'boolean' ? capital(String(each)) : JSON.stringify(each))).join(', ')}]`;

const unionOf = (types: readonly string[]): string => {
  const all = [...new Set(types)];
  return all.length === 1 ? (all[0] ?? 'Any') : `Union[${all.join(', ')}]`;
};

function objectOf(schema: Json, name: string, written: Written): string {
  const properties = Object.entries(asJson(schema.properties));
  if (properties.length === 0) return `Dict[str, ${typeOf(valuesOf(schema), name, written)}]`;
  const fields = properties.map(([field, each]) => ({
    field,
    type: typeOf(asJson(each), `${name}${field.split('_').map(capital).join('')}`, written),
    about: aboutOf(asJson(each)),
  }));
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const always = fields.filter(({ field }) => required.has(field));
  const maybe = fields.filter(({ field }) => !required.has(field));
  if (maybe.length === 0) written.classes.push(typedDict(name, always, 'TypedDict'));
  else if (always.length === 0) written.classes.push(typedDict(name, maybe, 'TypedDict, total=False'));
  else {
    written.classes.push(typedDict(`_${name}`, always, 'TypedDict'));
    written.classes.push(typedDict(name, maybe, `_${name}, total=False`));
  }
  return name;
}

interface Field {
  readonly field: string;
  readonly type: string;
  readonly about: string;
}

/** A class of the fields, or a call where one of them cannot be named in a class. */
function typedDict(name: string, fields: readonly Field[], bases: string): string {
  const comment = (about: string) => (about === '' ? [] : [`    # ${about}`]);
  if (fields.some(({ field }) => KEYWORDS.has(field))) {
    const items = fields.flatMap(({ field, type, about }) => [...comment(about), `    "${field}": ${JSON.stringify(type)},`]);
    return `${name} = TypedDict("${name}", {\n${items.join('\n')}\n})`;
  }
  const lines = fields.flatMap(({ field, type, about }) => [...comment(about), `    ${field}: ${type}`]);
  return `class ${name}(${bases}):\n${lines.join('\n')}`;
}
