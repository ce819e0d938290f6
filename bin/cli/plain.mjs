/**
 * Text that others chose (callers, carriers, applications, receivers) as it may be printed. A terminal obeys escape
 * sequences, a line break in a field begins a line that looks like one of ours, and some characters turn the direction
 * of a text.
 */

/** Characters that are not seen: controls, marks of format and direction, private ones, separators of lines. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;
/** The same without ends of lines and tabs. A bare carriage return is no end of a line: what follows overwrites it. */
const UNSEEN_IN_LINES = /(?!\r\n|\n|\t)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;

/** One line of text. What is not seen is written as JSON writes it: `\u001b`. */
export const plain = (text) => text.replace(UNSEEN, escaped);

/** Text of several lines. */
export const plainLines = (text) => text.replace(UNSEEN_IN_LINES, escaped);

/** JSON that means the same. JSON need not escape all that is not seen. */
export const plainJson = (value, indent) => plainLines(JSON.stringify(value, null, indent));

const escaped = (character) =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
