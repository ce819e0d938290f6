import { detached } from './detached.ts';

/** A longer text is not kept: a thousand of them would be megabytes. */
const KEPT_MAX_CHARS = 512;

/**
 * A pure function of a text, with the answers it gave last. For what is asked again and again of a few texts, as of the
 * addresses that a platform talks to. `most` answers are kept; the next one begins anew, so that a flood of texts costs
 * what it would without. Nobody changes an answer.
 */
export function remembered<T>(of: (text: string) => T, most: number): (text: string) => T {
  const answers = new Map<string, { readonly answer: T }>();
  return (text) => {
    const known = answers.get(text);
    if (known !== undefined) return known.answer;
    if (text.length > KEPT_MAX_CHARS) return of(text);
    // Both the text and what was found in it are kept, and may be a part of something large.
    const own = detached(text);
    const answer = of(own);
    if (answers.size >= most) answers.clear();
    answers.set(own, { answer });
    return answer;
  };
}
