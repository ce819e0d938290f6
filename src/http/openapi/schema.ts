/** The words that the schemas of the OpenAPI document are written with (JSON Schema 2020-12). */

/** A JSON Schema, as far as this document writes it. */
export type Schema = Readonly<Record<string, unknown>>;

export const text = { type: 'string' } as const;
export const uuid = { type: 'string', format: 'uuid' } as const;
export const time = { type: 'string', format: 'date-time' } as const;
/** A required string that has no value yet is empty, never null. */
export const timeOrNone = { type: 'string', description: 'RFC 3339; empty while there is none.' } as const;
export const whole = { type: 'integer' } as const;
export const flag = { type: 'boolean' } as const;
export const appUuid = { type: 'string', pattern: '^app_[0-9a-f-]{36}$' } as const;
export const webhookId = { type: 'string', pattern: '^evt_[0-9a-f-]{36}$' } as const;
export const recordingUuid = { type: 'string', pattern: '^rec_[0-9a-f-]{36}$' } as const;
export const texts = { type: 'array', items: text } as const;
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const listOf = (field: string, name: string): Schema => object({ [field]: { type: 'array', items: ref(name) } });

/** An object with these fields, all required but the optional ones. Others may come later: a reader ignores them. */
export const openObject = (fields: Schema, optional: Schema = {}): Schema => ({
  type: 'object',
  required: Object.keys(fields),
  properties: { ...fields, ...optional },
});

/** An object with these fields, all required but the optional ones, and no others. */
export const object = (fields: Schema, optional: Schema = {}): Schema => ({
  ...openObject(fields, optional),
  additionalProperties: false,
});

/** One of a closed set of words. The type makes a missing word, or one too many, an error of compilation. */
export const oneOfWords = <Word extends string>(words: Readonly<Record<Word, true>>): Schema => ({ enum: Object.keys(words) });

/** A word of a set that may grow: those that are known are examples. */
export const openWord = (known: readonly string[], description: string): Schema => ({
  type: 'string',
  examples: known,
  description: `${description} Known values: ${known.map((each) => `\`${each}\``).join(', ')}.`,
});
