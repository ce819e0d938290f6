/** How much a JSON text holds, found before it is read: what validates or prints a value goes as deep. */
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

interface Extent {
  /** Objects and arrays in each other, at most. */
  readonly depth: number;
  /** Fields and items, of all objects and arrays together, less one of each. */
  readonly members: number;
}

/** Measures a text, which need not be JSON, in its length. */
export function extentOf(text: string): Extent {
  let depth = 0;
  let deepest = 0;
  let members = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COMMA) members++;
    // `[` and `{`, then `]` and `}`: they differ by one bit.
    else if ((code | 0x20) === 0x7b) deepest = Math.max(deepest, ++depth);
    else if ((code | 0x20) === 0x7d) depth--;
  }
  return { depth: deepest, members };
}

/**
 * The value down to `depth`, with null for what lies deeper: no body of ours is as deep, so that a shape judges it as
 * it would judge all of it, and prints little of it.
 */
export function cutAt(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return null;
  if (Array.isArray(value)) return value.map((each) => cutAt(each, depth - 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cutAt(each, depth - 1)]));
}
