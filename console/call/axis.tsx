/** The time axis: a lane for each kind of entry, drawn to scale. The list below it has the same by keyboard. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { steady } from '../part/parts.tsx';
import { visible } from '../part/visible.ts';
import type { Entry, SipEntry } from '../platform/types.ts';
import type { Span } from './spans.ts';
import { stepOf, ticksOf, tickText } from './ticks.ts';
import { isBad, KIND_NAMES, type Kind, keyOf, titleOf } from './words.ts';

/** A span of time: its first and its last, in ms since the epoch. */
export type Extent = readonly [number, number];

/** The width of the names of lanes, which the chart and the waveform leave free too. Pixels. */
export const GUTTER = 84;
/** The room at the right of the axis, for what lies at its end. Pixels. */
export const MARGIN = 6;
const TOP = 22;
const LANE = 34;
const SPAN_LANE = 17;
const LETTER = 6.3;
const LANES: readonly Kind[] = ['command', 'sip', 'event', 'webhook'];

/** The width of an element, as it changes. */
export function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const watcher = new ResizeObserver(() => setWidth(current.clientWidth));
    watcher.observe(current);
    setWidth(current.clientWidth);
    return () => watcher.disconnect();
  }, []);
  return { element, width };
}

interface Scale {
  readonly width: number;
  readonly extent: Extent;
  x(at: number): number;
}

export function Axis(props: {
  readonly entries: readonly Entry[];
  readonly spans: readonly Span[];
  readonly extent: Extent;
  /** The first instant of the call, from which the ticks count. */
  readonly start: number;
  readonly selected: Entry | undefined;
  onSelect(entry: Entry): void;
}) {
  const { entries, spans, extent, selected } = props;
  const [from, until] = extent;
  const { element, width } = useWidth();
  usePointed(element, entries, props.onSelect);
  const scale: Scale = useMemo(
    () => ({ width, extent: [from, until], x: (at) => GUTTER + ((at - from) / (until - from)) * (width - GUTTER - MARGIN) }),
    [width, from, until],
  );
  const rows = useMemo(() => stacked(spans.filter(({ what }) => what !== 'speech')), [spans]);
  const shown = useMemo(
    () => entries.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) <= until),
    [entries, from, until],
  );
  const mediaHeight = Math.max(LANE, 18 + SPAN_LANE * rows.length);
  const mediaTop = TOP + 2 * LANE;
  const top = (kind: Kind): number => {
    const index = LANES.indexOf(kind);
    return kind === 'media' ? mediaTop : TOP + index * LANE + (index >= 2 ? mediaHeight : 0);
  };
  const height = TOP + LANES.length * LANE + mediaHeight;
  return (
    <div class="axis" ref={element}>
      {width > 0 && (
        <svg height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Time axis of ${entries.length} entries`}>
          <Ticks scale={scale} start={props.start} height={height} />
          {([...LANES, 'media'] as const).map((kind) => (
            <g key={kind} class={kind}>
              <line class="rule" x1={0} x2={width} y1={top(kind)} y2={top(kind)} />
              <text class="lane-name" x={0} y={top(kind) + 20}>
                {KIND_NAMES[kind]}
              </text>
              {kind === 'media' && <Spans rows={rows} scale={scale} top={mediaTop + 16} />}
              <Marks kind={kind} shown={shown} scale={scale} top={top(kind)} />
              {selected?.kind === kind && shown.includes(selected) && (
                <Shape entry={selected} x={scale.x(Date.parse(selected.at))} top={top(kind)} isChosen />
              )}
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}

/**
 * A pointer selects a mark. The way by keyboard is the list, so that nobody has to step through all marks to get by.
 */
function usePointed(
  element: { readonly current: HTMLDivElement | null },
  entries: readonly Entry[],
  onSelect: (entry: Entry) => void,
): void {
  useEffect(() => {
    const { current } = element;
    const point = ({ target }: MouseEvent) => {
      const mark = target instanceof Element ? target.closest('[data-entry]') : null;
      const entry = entries.find((each) => keyOf(each) === mark?.getAttribute('data-entry'));
      if (entry !== undefined) onSelect(entry);
    };
    current?.addEventListener('click', point);
    return () => current?.removeEventListener('click', point);
  });
}

const TICK_PIXELS = 80;

/** Ticks count from the call's first instant. */
function Ticks({ scale, start, height }: { readonly scale: Scale; readonly start: number; readonly height: number }) {
  const [from, until] = scale.extent;
  const step = stepOf(until - from, Math.max(2, (scale.width - GUTTER) / TICK_PIXELS));
  return (
    <g>
      {ticksOf(from, until, start, step).map((at) => {
        const x = scale.x(at);
        const isLast = x > scale.width - TICK_PIXELS / 2;
        return (
          <g key={at}>
            <line class="rule" x1={x} x2={x} y1={16} y2={height} stroke-dasharray="2 4" />
            <text class="tick" x={isLast ? scale.width - MARGIN : x} y={12} text-anchor={isLast ? 'end' : 'middle'}>
              {tickText(at - start, step)}
            </text>
          </g>
        );
      })}
    </g>
  );
}

/** Spans in as few rows as they need without lying over each other. */
function stacked(spans: readonly Span[]): readonly (readonly Span[])[] {
  const rows: Span[][] = [];
  for (const span of spans) {
    const row = rows.find((each) => (each.at(-1)?.until ?? 0) <= span.from);
    if (row === undefined) rows.push([span]);
    else row.push(span);
  }
  return rows;
}

const SPAN_NAMES: Readonly<Record<Span['what'], string>> = {
  playback: 'playback',
  recording: 'recording',
  room: 'in a Room',
  held: 'on hold',
  speech: 'speech',
  masked: 'masked',
  card: 'card is keyed in',
};

const Spans = steady((props: { readonly rows: readonly (readonly Span[])[]; readonly scale: Scale; readonly top: number }) => (
  <>
    {props.rows.map((row, index) =>
      row.map((span) => {
        const from = Math.max(GUTTER, props.scale.x(span.from));
        const until = Math.min(props.scale.width - 2, props.scale.x(span.until));
        if (until <= from) return null;
        const y = props.top + index * SPAN_LANE;
        return (
          <g key={`${span.what} ${span.from} ${span.recordingUuid}`}>
            <title>{`${SPAN_NAMES[span.what]}, ${((span.until - span.from) / 1000).toFixed(1)} s`}</title>
            <rect
              class="span"
              x={from}
              width={Math.max(2, until - from)}
              y={y}
              height={SPAN_LANE - 3}
              rx={3}
              fill="currentColor"
            />
            {until - from > SPAN_NAMES[span.what].length * LETTER + 8 && (
              <text class="span-name" x={from + 5} y={y + 11}>
                {SPAN_NAMES[span.what]}
              </text>
            )}
          </g>
        );
      }),
    )}
  </>
));

/** The marks of a lane. They are thousands in a long call, so they are drawn anew only when they are others. */
const Marks = steady(
  ({
    kind,
    shown,
    scale,
    top,
  }: {
    readonly kind: Kind;
    readonly shown: readonly Entry[];
    readonly scale: Scale;
    readonly top: number;
  }) => {
    const own = shown.filter((entry) => entry.kind === kind);
    return (
      <>
        {own.map((entry, index) => {
          const x = scale.x(Date.parse(entry.at));
          const next = own[index + 1];
          const room = (next === undefined ? scale.width : scale.x(Date.parse(next.at))) - x - 10;
          const title = visible(titleOf(entry));
          return (
            <g key={`${keyOf(entry)} ${index}`} class="mark" data-entry={keyOf(entry)}>
              <title>{title}</title>
              <rect x={x - 5} y={top} width={10} height={LANE} fill="transparent" />
              <Shape entry={entry} x={x} top={top} isChosen={false} />
              {kind !== 'media' && room > title.length * LETTER && (
                <text x={x + 6} y={top + 21}>
                  {title}
                </text>
              )}
            </g>
          );
        })}
      </>
    );
  },
);

interface Shaped {
  readonly entry: Entry;
  readonly x: number;
  readonly top: number;
  readonly isChosen: boolean;
}

/** An entry on its lane. The chosen one is drawn a second time, and stronger. */
function Shape({ entry, x, top, isChosen }: Shaped) {
  if (entry.kind === 'sip') return <SipArrow entry={entry} x={x} top={top} isChosen={isChosen} />;
  const isMedia = entry.kind === 'media';
  return (
    <rect
      x={x - (isChosen ? 2.5 : 1.5)}
      y={top + (isMedia ? 3 : 7)}
      width={isChosen ? 5 : 3}
      height={isMedia ? 11 : 20}
      rx={1.5}
      pointer-events="none"
      fill={isBad(entry) ? 'var(--bad)' : 'currentColor'}
    />
  );
}

/** A message of the ladder, lying on its side: up is to the far end, down is from it. */
function SipArrow({ entry, x, top, isChosen }: Shaped & { readonly entry: SipEntry }) {
  const [upper, lower] = [top + 6, top + LANE - 6];
  const tip = entry.direction === 'out' ? upper : lower;
  const back = entry.direction === 'out' ? upper + 6 : lower - 6;
  const colour = isBad(entry) ? 'var(--bad)' : 'currentColor';
  return (
    <g pointer-events="none">
      <line x1={x} x2={x} y1={upper} y2={lower} stroke={colour} stroke-width={isChosen ? 3 : 1.5} />
      <path d={`M${x} ${tip}L${x - 4} ${back}L${x + 4} ${back}Z`} fill={colour} />
    </g>
  );
}
