/**
 * The number that an option of a program has. Anything else ends the program with 2: with NaN it would try nothing and
 * find no fault, which looks like a run in which all is well.
 */
export function numberOption(values: Readonly<Record<string, string | boolean | undefined>>, name: string): number {
  const given = values[name];
  if (typeof given === 'string' && /^[0-9]{1,15}(\.[0-9]+)?$/.test(given)) return Number(given);
  console.error(`--${name}: expected a number`);
  process.exit(2);
}
