/**
 * Tells whether a text is a URL in one spelling only. The parser of URLs leaves out tabs and line breaks wherever they
 * are, and control characters and blanks at both ends: such a text would be stored, and told in events, as another URL
 * than the one that is asked.
 */
export const isWholeUrl = (text: string): boolean => URL.canParse(text) && !/[\x00-\x1f\x7f]|^\s|\s$/.test(text);

/** Tells whether a URL names a user or a password. `URL.canParse` must be true for the text. */
export function hasUserInfo(text: string): boolean {
  const { username, password } = new URL(text);
  return username !== '' || password !== '';
}
