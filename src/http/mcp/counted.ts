/** A number and what it counts: `one` after 1, else `many`. */
export const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
