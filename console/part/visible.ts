/** Texts that strangers wrote: names of callers, addresses, messages. They are shown, and turn nothing around. */

/**
 * Characters that are not seen: controls, and those that turn the direction of the text around them. The two that join
 * letters or keep them apart (U+200C, U+200D) do neither, and words and emoji need them.
 */
const UNSEEN = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;

/** A text with its unseen characters told by their numbers, as `⟨U+202E⟩`. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (each) => `⟨U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
