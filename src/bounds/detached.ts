/**
 * A copy of a text that stands by itself. The engine keeps a part of a text as a view of the whole: twenty characters
 * out of a message of 32 kB hold all of it for as long as they are kept. So what is cut out of a stranger's message,
 * and kept for longer than that, is copied. A cut may leave half a surrogate pair, which neither PostgreSQL nor every
 * reader of JSON takes: it becomes U+FFFD.
 */
export function detached(text: string): string {
  const encoding = WIDE.test(text) ? 'utf16le' : 'latin1';
  return Buffer.from(text.toWellFormed(), encoding).toString(encoding);
}

const WIDE = /[^\x00-\xff]/;
