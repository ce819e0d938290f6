/** A plot of one row over the commits that it was measured at, as SVG. */

export interface Point {
  readonly commit: string;
  readonly value: number;
}

const [WIDTH, HEIGHT] = [640, 220];
const [LEFT, RIGHT, TOP, BOTTOM] = [60, 20, 36, 40];
/** So many of the newest points are drawn. */
const POINTS_MAX = 40;

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Draws the newest points from left to right, from 0 upwards, with the goal as a dashed line. */
export function plot(title: string, unit: string, goal: number, all: readonly Point[]): string {
  const points = all.slice(-POINTS_MAX);
  const most = 1.1 * Math.max(goal, ...points.map(({ value }) => value));
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, points.length - 1);
  const x = (at: number) => (points.length === 1 ? (LEFT + WIDTH - RIGHT) / 2 : LEFT + at * step);
  const y = (value: number) => HEIGHT - BOTTOM - (Math.max(0, value) / most) * (HEIGHT - TOP - BOTTOM);
  const line = points.map(({ value }, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const label = (px: number, py: number, anchor: string, text: string) =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" text-anchor="${anchor}">${escaped(text)}</text>`;
  const dots = points.map(({ commit, value }, at) => {
    const shown = `<circle cx="${x(at).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3"><title>${escaped(commit)}: ${value}</title></circle>`;
    return points.length > 12 ? shown : shown + label(x(at), HEIGHT - BOTTOM + 16, 'middle', commit);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="20" font-size="13">${escaped(title)}</text>
<g stroke="#999" fill="none"><path d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}"/>
<path stroke="#2a7" stroke-dasharray="5 4" d="M${LEFT} ${y(goal).toFixed(1)}H${WIDTH - RIGHT}"/></g>
${label(LEFT - 6, y(goal) + 4, 'end', `goal ${goal}`)}
${label(LEFT - 6, y(0) + 4, 'end', `0 ${unit}`)}
<polyline fill="none" stroke="#25c" stroke-width="1.5" points="${line}"/>
<g fill="#25c">${dots.join('')}</g>
${label(x(points.length - 1), y(points.at(-1)?.value ?? 0) - 8, 'end', `${points.at(-1)?.value ?? ''} ${unit}`)}
</svg>
`;
}
