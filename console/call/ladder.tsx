/** Everything that happened, in order: application, platform and far end as lifelines, an arrow for each message. */

import { Time } from '../part/parts.tsx';
import type { Entry } from '../platform/types.ts';
import { detailOf, isBad, keyOf, titleOf } from './words.ts';

const PAUSE_MS = 1000;

export function Ladder(props: { readonly entries: readonly Entry[]; readonly selected: string; onSelect(entry: Entry): void }) {
  const { entries, selected, onSelect } = props;
  const names = new Map(entries.flatMap((entry) => (entry.kind === 'event' ? [[entry.webhook_id, entry.name] as const] : [])));
  const more = (entry: Entry) =>
    entry.kind === 'webhook' ? `${names.get(entry.webhook_id) ?? 'event'}, ${detailOf(entry)}` : detailOf(entry);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const list = event.currentTarget instanceof HTMLElement ? event.currentTarget.closest('ol') : null;
    if (step === undefined || list === null) return;
    const buttons = [...list.querySelectorAll('button')];
    const index = buttons.findIndex((each) => each.matches(':focus'));
    const next = buttons[index + step];
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
    next.click();
  };
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
      <ol aria-label="What happened">
        {entries.map((entry, index) => {
          const before = entries[index - 1];
          const pauseMs = before === undefined ? 0 : Date.parse(entry.at) - Date.parse(before.at);
          const key = keyOf(entry);
          return (
            <li key={`${key} ${index}`}>
              {pauseMs >= PAUSE_MS && <div class="pause">⋮ {(pauseMs / 1000).toFixed(1)} s</div>}
              <button type="button" aria-pressed={key === selected} onClick={() => onSelect(entry)} onKeyDown={move}>
                <Time at={entry.at} short />
                <Step entry={entry} />
                <span class="what">
                  <b class={isBad(entry) ? 'error' : entry.kind}>{titleOf(entry)}</b>{' '}
                  <span class="quiet small">{more(entry)}</span>
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const [APPLICATION, PLATFORM, FAR_END] = [16, 120, 224] as const;
const HIGH = 34;

/** From which lifeline to which an entry goes; the same one twice: it only happens there. */
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
