/** Answers of the operator API as text. */
import { plain } from './plain.mjs';

/** Rows under a line of column names, each column as wide as its widest cell. */
export function table(rows, columns) {
  const cell = (row, column) => plain(String(row[column] ?? ''));
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => cell(row, column).length)));
  const line = (cells) =>
    cells
      .map((text, at) => text.padEnd(widths[at]))
      .join('  ')
      .trimEnd();
  return [
    line(columns.map((column) => column.toUpperCase())),
    ...rows.map((row) => line(columns.map((column) => cell(row, column)))),
  ].join('\n');
}

/** One field a line. */
export function fieldLines(body) {
  const width = Math.max(...Object.keys(body).map((name) => name.length));
  return Object.entries(body)
    .map(([name, value]) => `${name.padEnd(width)}  ${plain(shown(value))}`.trimEnd())
    .join('\n');
}

function shown(value) {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
