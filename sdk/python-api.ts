/** The methods of the SDK of Python. */
import {
  asJson,
  capital,
  type Document,
  HEAD,
  hasPages,
  type Json,
  listField,
  type Method,
  methodsOf,
  refName,
} from './document.ts';
import { argumentType, bodyFields } from './python-arguments.ts';

/** `sdk/python/sidetone/_api.py`. */
export function pythonApi(document: Document): string {
  const methods = methodsOf(document);
  const resources = [...new Set(methods.map(({ resource }) => resource))].map((resource) => {
    const own = methods.filter((each) => each.resource === resource).map((each) => pythonMethod(document, each));
    return `class ${capital(resource)}:\n    def __init__(self, transport: Transport) -> None:\n        self._transport = transport\n\n${own.join('\n\n')}`;
  });
  const events = Object.keys(document.webhooks).map((name) => `    "${name}",`);
  return `# ${HEAD}\nfrom __future__ import annotations\n\nfrom typing import Any, Iterator, List, Literal, Mapping, Optional, Sequence, Union\nfrom urllib.parse import quote\n\nfrom . import types\nfrom ._transport import Transport\n\nEVENTS = (\n${events.join('\n')}\n)\n\n\n${resources.join('\n\n\n')}\n`;
}

const KEYWORDS = new Set(['from', 'type', 'to']);

function pythonMethod(document: Document, method: Method): string {
  const { name, described, verb, path, parameters, query, body, answer } = method;
  const fields = bodyFields(method);
  const args = [
    'self',
    ...parameters.map((each) => `${each}: str`),
    '*',
    ...fields.map((each) => {
      const type = argumentType(each);
      return `${pythonName(each.name)}: ${each.isRequired ? type : `Optional[${type}] = None`}`;
    }),
    ...query.map(
      (each) =>
        `${pythonName(each.name)}: Optional[${argumentType({ className: capital(each.name), schemas: [each.schema] })}] = None`,
    ),
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
  const type = answer === undefined ? 'None' : `types.${className(answer)}`;
  const result = list === undefined ? type : `${isPaged ? 'Iterator' : 'List'}[types.${itemName(document, answer, list)}]`;
  const asked = list === undefined ? `self._transport.request(${sent})` : `self._transport.list("${list}", ${sent})`;
  const returned = isPaged
    ? `        return self._transport.pages("${list}", ${sent})`
    : answer === undefined
      ? `        ${asked}`
      : `        answer: ${result} = ${asked}\n        return answer`;
  return `    def ${snake(name)}(${args.join(', ')}) -> ${result}:\n        """${described.summary}."""\n${returned}`;
}

/** The class of an answer: each is a component of the document. */
function className(answer: Json | undefined): string {
  const name = refName(answer);
  if (name === undefined) throw new Error('an answer is no component of the document, and has no name');
  return name;
}

/** The class of the items of a list. */
function itemName(document: Document, answer: Json | undefined, list: string): string {
  const { properties } = document.components.schemas[className(answer)] ?? {};
  return className(asJson(asJson(asJson(properties)[list]).items));
}

/** A word of the language gets an underscore, as PEP 8 has it. */
const pythonName = (name: string): string => (KEYWORDS.has(name) && name === 'from' ? 'from_' : name);

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
