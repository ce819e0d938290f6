/** How the call sounded over time, on the time axis of the page. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Call, Entry, QualityEntry } from '../platform/types.ts';
import { type Extent, GUTTER, MARGIN, useWidth } from './axis.tsx';
import { colour, useScheme } from './scheme.ts';
import { detailOf, hasPackets, noFigures, titleOf } from './words.ts';

const HEIGHT = 90;

export function QualityStrip(props: { readonly entries: readonly Entry[]; readonly session: Call; readonly extent: Extent }) {
  const { entries, session, extent } = props;
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
          {last === undefined ? noFigures(session) : `${titleOf(last)}, ${detailOf(last)}`}
          {last !== undefined && <Lines />}
        </p>
      </div>
      {last !== undefined && (
        <div ref={chart} role="img" aria-label={`Quality over time, ${samples.length} values, the last: ${titleOf(last)}`} />
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
  // Nothing was heard, so it sounded neither well nor badly: there is no point.
  samples.map((each) => (hasPackets(each) ? each.mos : null)),
  samples.map((each) => (hasPackets(each) ? each.jitter_ms : null)),
  samples.map((each) => (hasPackets(each) ? each.round_trip_ms : null)),
];

/** The widths of the two scales at the left. Together they are the gutter, so that the plot begins with the axis. */
const MS_SCALE = 46;
const MOS_SCALE = GUTTER - MS_SCALE;

function optionsOf(within: HTMLElement, width: number, [from, until]: Extent): uPlot.Options {
  const line = colour(within, 'line');
  const grid = { stroke: line, width: 1 };
  const [quality, media, sip] = ['quality', 'media', 'sip'].map((name) => colour(within, name));
  const scale = { font: '11px system-ui', ticks: { show: false }, gap: 4 };
  return {
    width,
    height: HEIGHT,
    padding: [8, MARGIN, 8, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [from / 1000, until / 1000] },
      mos: { range: () => [1, 4.6] },
      ms: { range: (_plot, _least, most) => [0, Math.max(50, most)] },
    },
    axes: [
      { show: false, grid },
      { ...scale, scale: 'mos', size: MOS_SCALE, stroke: quality, grid, splits: () => [1, 2, 3, 4] },
      {
        ...scale,
        scale: 'ms',
        size: MS_SCALE,
        side: 3,
        stroke: media,
        grid: { show: false },
        splits: (_plot, _axis, _least, most) => [0, most / 2, most],
        values: (_plot, splits) => splits.map((each) => `${Math.round(each)} ms`),
      },
    ],
    series: [
      {},
      { label: 'MOS', scale: 'mos', stroke: quality, width: 2, points: { show: true, size: 5 } },
      { label: 'jitter', scale: 'ms', stroke: media, width: 1 },
      { label: 'round trip', scale: 'ms', stroke: sip, width: 1, dash: [4, 3] },
    ],
  };
}
