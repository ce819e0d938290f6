/** The fields of bodies as arguments of Python: what each may be, and the classes of those that are objects. */
import { asJson, capital, type Json, type Method, valuesOf } from './document.ts';

/** The types of Python that those of JSON Schema are. */
export const PYTHON_TYPES: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

/** What an argument may be: a value of any of these schemas. */
interface Argument {
  /** What the class of an object among them is called. */
  readonly className: string;
  readonly schemas: readonly Json[];
}

/** A field of a body, which is an argument of its method. */
interface BodyField extends Argument {
  readonly name: string;
  readonly isRequired: boolean;
}

/** The fields of a body: of one with several shapes, all of them, and required is what each shape requires. */
export function bodyFields({ body, described }: Method): readonly BodyField[] {
  if (body === undefined) return [];
  const shapes = Array.isArray(body.anyOf) ? body.anyOf.map(asJson) : [body];
  const names = [...new Set(shapes.flatMap((shape) => Object.keys(asJson(shape.properties))))];
  const isRequired = (name: string) => shapes.every(({ required }) => Array.isArray(required) && required.includes(name));
  return names
    .map((name) => ({
      name,
      className: `${capital(described.operationId)}${name.split('_').map(capital).join('')}`,
      isRequired: isRequired(name),
      schemas: shapes.flatMap((shape) => {
        const properties = asJson(shape.properties);
        return name in properties ? [asJson(properties[name])] : [];
      }),
    }))
    .sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

/** The objects that an argument may be, each with the name of its class: those whose fields are known. */
export function argumentClasses({ className, schemas }: Argument): ReadonlyMap<string, Json> {
  const objects = new Map(
    schemas.flatMap(valuesWithin).flatMap((each) => (isClass(each) ? [[JSON.stringify(each), each] as const] : [])),
  );
  return new Map([...objects.values()].map((each, at) => [at === 0 ? className : `${className}${at + 1}`, each]));
}

/** An argument as a type of Python. An object whose fields may have any name is a mapping. */
export function argumentType(argument: Argument): string {
  const classes = new Map([...argumentClasses(argument)].map(([name, schema]) => [JSON.stringify(schema), `types.${name}`]));
  const unionOf = (schemas: readonly Json[]): string => {
    const all = schemas.flatMap(choicesOf);
    const words = new Set(all.flatMap(wordsOf));
    const types = new Set(all.filter((each) => wordsOf(each).length === 0).map(typeOf));
    const parts = [...(words.size === 0 ? [] : [`Literal[${[...words].join(', ')}]`]), ...types];
    if (parts.includes('Any')) return 'Any';
    return parts.length === 1 ? (parts[0] ?? 'Any') : `Union[${parts.join(', ')}]`;
  };
  const typeOf = (schema: Json): string => {
    if (schema.type === 'array') return `Sequence[${unionOf([asJson(schema.items)])}]`;
    if (schema.type === 'object') return classes.get(JSON.stringify(schema)) ?? `Mapping[str, ${unionOf([valuesOf(schema)])}]`;
    return PYTHON_TYPES[String(schema.type)] ?? 'Any';
  };
  return unionOf(argument.schemas);
}

const isClass = (schema: Json): boolean => schema.type === 'object' && Object.keys(asJson(schema.properties)).length > 0;

/** The values that one of this schema is made of, apart from the fields of an object: itself, or what a list holds. */
const valuesWithin = (schema: Json): readonly Json[] =>
  choicesOf(schema).flatMap((each) => (each.type === 'array' ? valuesWithin(asJson(each.items)) : [each]));

/** The schemas that a value may have any of. */
function choicesOf(schema: Json): readonly Json[] {
  const choices = schema.anyOf ?? schema.oneOf;
  return Array.isArray(choices) ? choices.map(asJson).flatMap(choicesOf) : [schema];
}

/** The values that a schema names one by one, as Python writes them. */
function wordsOf(schema: Json): readonly string[] {
  const values: readonly unknown[] = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [];
  return values.map((each) => JSON.stringify(each));
}
