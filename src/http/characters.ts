/** Text of so many characters, as JSON Schema counts them: code points, not the units of UTF-16. */
import { type } from './shape/type.ts';

export const characters = (least: number, most: number) =>
  type(new RegExp(`^[\\s\\S]{${least},${most}}$`, 'u')).describe(
    least === 0 ? `a string of at most ${most} characters` : `a string of ${least} to ${most} characters`,
  );
