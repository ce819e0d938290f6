/** A valid number of 16 digits, told from all others: random but for its prefix and check digit. */
export function randomCard(): string {
  const body = `4${Array.from({ length: 14 }, () => Math.floor(Math.random() * 10)).join('')}`;
  const sum = [...body].reduce((total, digit, at) => {
    const counted = Number(digit) * (at % 2 === 0 ? 2 : 1);
    return total + (counted > 9 ? counted - 9 : counted);
  }, 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}
