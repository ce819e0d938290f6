/**
 * The shape of an answer, so far as it is read here. A shape is written by example: `''` is a text, `{…}` an object
 * that has these fields (and may have more), `[…]` a list whose every element has the shape inside, and `undefined` an
 * answer without a body.
 */

/** Whether a value has a shape. */
export function hasShape(value, shape) {
  if (Array.isArray(shape))
    return Array.isArray(value) && (shape.length === 0 || value.every((each) => hasShape(each, shape[0])));
  if (typeof shape !== 'object') return typeof value === typeof shape;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(shape).every(([name, inside]) => hasShape(value[name], inside));
}
