/** Everything that happened, in order: application, platform and far end as lifelines, an arrow for each message. */

import { useEffect, useMemo, useRef } from 'preact/hooks';
import { steady, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { span } from '../platform/time.ts';
import type { Entry } from '../platform/types.ts';
import { detailOf, isBad, keyOf, titleOf } from './words.ts';

const PAUSE_MS = 1000;

/**
 * Moves the selection to the entry above or below by the arrow keys, to the first by Home and to the last by End. A
 * list may have thousands of entries, so Tab stops at one of them alone and then leads on to its details.
 */
function move(event: KeyboardEvent): void {
  const item = event.currentTarget instanceof HTMLElement ? event.currentTarget.closest('li') : null;
  const beside = {
    ArrowDown: item?.nextElementSibling,
    ArrowUp: item?.previousElementSibling,
    Home: item?.parentElement?.firstElementChild,
    End: item?.parentElement?.lastElementChild,
  }[event.key];
  const next = beside?.querySelector('button');
  if (next === undefined || next === null) return;
  event.preventDefault();
  next.focus();
  next.click();
}

export function Ladder(props: { readonly entries: readonly Entry[]; readonly selected: string; onSelect(entry: Entry): void }) {
  const { entries, selected, onSelect } = props;
  const lines = useMemo(() => linesOf(entries), [entries]);
  const list = useRef<HTMLOListElement>(null);
  // The details of what was chosen may lie over it now.
  useEffect(() => {
    const { activeElement: held } = document;
    if (held !== null && list.current?.contains(held) === true) held.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  const stop = lines.find(({ key }) => key === selected)?.key ?? lines[0]?.key;
  return (
    <div class="ladder">
      <div class="ends" aria-hidden="true">
        <span>Time</span>
        <span class="names">
          <span>Application</span>
          <span>Sidetone</span>
          <span>Far end</span>
        </span>
        <span>What</span>
      </div>
      <ol aria-label="What happened" ref={list}>
        {lines.map(({ entry, key, more, pauseMs }, index) => (
          <Line
            key={`${key} ${index}`}
            entry={entry}
            more={more}
            pauseMs={pauseMs}
            isChosen={key === selected}
            isStop={key === stop}
            onSelect={onSelect}
          />
        ))}
      </ol>
    </div>
  );
}

/** The entries, each with its key, what else is said of it, and the pause before it. */
function linesOf(entries: readonly Entry[]) {
  const names = new Map(entries.flatMap((entry) => (entry.kind === 'event' ? [[entry.webhook_id, entry.name] as const] : [])));
  return entries.map((entry, index) => {
    const before = entries[index - 1];
    const detail = detailOf(entry);
    return {
      entry,
      key: keyOf(entry),
      more: entry.kind === 'webhook' ? `${names.get(entry.webhook_id) ?? 'event'}, ${detail}` : detail,
      pauseMs: before === undefined ? 0 : Date.parse(entry.at) - Date.parse(before.at),
    };
  });
}

const pauseText = (ms: number): string => (ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms / 1000));

interface LineProps {
  readonly entry: Entry;
  readonly more: string;
  readonly pauseMs: number;
  readonly isChosen: boolean;
  /** Tab stops here. */
  readonly isStop: boolean;
  onSelect(entry: Entry): void;
}

const Line = steady(({ entry, more, pauseMs, isChosen, isStop, onSelect }: LineProps) => (
  <li>
    {pauseMs >= PAUSE_MS && <div class="pause">⋮ {pauseText(pauseMs)}</div>}
    <button type="button" tabIndex={isStop ? 0 : -1} aria-pressed={isChosen} onClick={() => onSelect(entry)} onKeyDown={move}>
      <Time at={entry.at} short />
      <Step entry={entry} />
      <span class="what">
        <b class={isBad(entry) ? 'error' : entry.kind}>
          <Foreign text={titleOf(entry)} />
        </b>{' '}
        <span class="quiet small">
          <Foreign text={more} />
        </span>
      </span>
    </button>
  </li>
));

const [APPLICATION, PLATFORM, FAR_END] = [16, 120, 224] as const;
const HIGH = 34;

/** The lifelines from which and to which an entry goes. It is the same one twice for what only happens there. */
function wayOf(entry: Entry): readonly [number, number] {
  switch (entry.kind) {
    case 'command':
      return [APPLICATION, PLATFORM];
    case 'webhook':
      return [PLATFORM, APPLICATION];
    case 'sip':
      return entry.direction === 'out' ? [PLATFORM, FAR_END] : [FAR_END, PLATFORM];
    default:
      return [PLATFORM, PLATFORM];
  }
}

function Step({ entry }: { readonly entry: Entry }) {
  const [from, to] = wayOf(entry);
  const y = HIGH / 2;
  const back = to > from ? to - 9 : to + 9;
  const colour = isBad(entry) ? 'var(--bad)' : 'currentColor';
  return (
    <svg class={entry.kind} viewBox={`0 0 240 ${HIGH}`} preserveAspectRatio="none" aria-hidden="true">
      {[APPLICATION, PLATFORM, FAR_END].map((x) => (
        <line key={x} class="life" x1={x} x2={x} y1={0} y2={HIGH} />
      ))}
      {from === to ? (
        <rect x={from - 6} y={y - 6} width={12} height={12} rx={entry.kind === 'event' ? 6 : 2} fill={colour} />
      ) : (
        <>
          <line
            x1={from}
            x2={back}
            y1={y}
            y2={y}
            stroke={colour}
            stroke-width={2}
            stroke-dasharray={entry.kind === 'webhook' ? '5 3' : ''}
          />
          <path d={`M${to} ${y}L${back} ${y - 5}L${back} ${y + 5}Z`} fill={colour} />
        </>
      )}
    </svg>
  );
}
