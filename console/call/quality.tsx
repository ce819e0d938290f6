/** How the call sounded over time, on the time axis of the page. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Entry, QualityEntry } from '../platform/types.ts';
import { type Extent, GUTTER, useWidth } from './axis.tsx';
import { colour, useScheme } from './scheme.ts';
import { detailOf } from './words.ts';

const HEIGHT = 90;

export function QualityStrip({ entries, extent }: { readonly entries: readonly Entry[]; readonly extent: Extent }) {
  const { element, width } = useWidth();
  const chart = useRef<HTMLDivElement>(null);
  const scheme = useScheme();
  const samples = entries.filter((entry) => entry.kind === 'quality');
  const last = samples.at(-1);
  const [from, until] = extent;
  const key = `${samples.length} ${last?.at}`;
  useEffect(() => {
    const { current } = chart;
    if (current === null || width === 0 || samples.length === 0) return;
    const plot = new uPlot(optionsOf(current, width, extent), columnsOf(samples), current);
    return () => plot.destroy();
  }, [width, key, from, until, scheme]);
  return (
    <div ref={element}>
      <div class="strip">
        <div class="lane-label quality">Quality</div>
        <p class="small quiet" style={{ margin: 0 }}>
          {last === undefined
            ? 'The first figures come ten seconds after the answer.'
            : `MOS ${last.mos.toFixed(1)}, ${detailOf(last)}`}
          {last !== undefined && <Lines />}
        </p>
      </div>
      {last !== undefined && (
        <div ref={chart} role="img" aria-label={`MOS over time, ${samples.length} values, the last ${last.mos}`} />
      )}
    </div>
  );
}

/** What the lines of the chart are, by their colours. */
const Lines = () => (
  <span aria-hidden="true">
    {' '}
    <span class="quality">— MOS</span> <span class="media">— jitter</span> <span class="sip">┄ round trip</span>
  </span>
);

const columnsOf = (samples: readonly QualityEntry[]): uPlot.AlignedData => [
  samples.map(({ at }) => Date.parse(at) / 1000),
  samples.map(({ mos }) => mos),
  samples.map(({ jitter_ms: jitter }) => jitter),
  samples.map(({ round_trip_ms: roundTrip }) => roundTrip),
];

function optionsOf(within: HTMLElement, width: number, [from, until]: Extent): uPlot.Options {
  const quiet = colour(within, 'quiet');
  const line = colour(within, 'line');
  const grid = { stroke: line, width: 1 };
  return {
    width,
    height: HEIGHT,
    padding: [6, 6, 4, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [from / 1000, until / 1000] },
      mos: { range: () => [1, 4.6] },
      ms: { range: (_plot, _least, most) => [0, Math.max(50, most)] },
    },
    axes: [
      { show: false, grid },
      { scale: 'mos', size: GUTTER, stroke: quiet, grid, ticks: grid, splits: () => [1, 2, 3, 4], label: 'MOS', labelSize: 18 },
    ],
    series: [
      {},
      { label: 'MOS', scale: 'mos', stroke: colour(within, 'quality'), width: 2, points: { show: true, size: 5 } },
      { label: 'jitter', scale: 'ms', stroke: colour(within, 'media'), width: 1 },
      { label: 'round trip', scale: 'ms', stroke: colour(within, 'sip'), width: 1, dash: [4, 3] },
    ],
  };
}
