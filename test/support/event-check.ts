/**
 * Holds the body of a webhook against the schema of its event in the OpenAPI document, closed: a field that is not
 * described is a fault, as is one that is missing.
 */
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { capitals, EVENT_SCHEMAS } from '../../src/http/openapi/event/events.ts';

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
const compiled = new Map<string, ValidateFunction>();

/** A schema whose objects take no fields but those that they describe. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  return inner.type === 'object' && 'properties' in inner ? { ...inner, additionalProperties: false } : inner;
}

function validatorOf(event: string): ValidateFunction | undefined {
  const name = `${capitals(event)}Event`;
  const known = compiled.get(name);
  if (known !== undefined || EVENT_SCHEMAS[name] === undefined) return known;
  if (ajv.getSchema('events') === undefined) ajv.addSchema({ $id: 'events', components: { schemas: closed(EVENT_SCHEMAS) } });
  const made = ajv.compile({ $ref: `events#/components/schemas/${name}` });
  compiled.set(name, made);
  return made;
}

/** What the schema of its event has against a body, in words; nothing when it is as described. */
export function eventFaults(body: Readonly<Record<string, unknown>>): readonly string[] {
  const event = String(body.event);
  const validate = validatorOf(event);
  if (validate === undefined) return [`${event} has no schema`];
  if (validate(body)) return [];
  const fields = validate.errors?.map(({ instancePath, message, params }) => {
    const { additionalProperty: more = '' } = params;
    return `${instancePath} ${message} ${more}`.trim();
  });
  return [`${event} is not of its schema: ${fields?.join('; ')} in ${JSON.stringify(body)}`];
}
