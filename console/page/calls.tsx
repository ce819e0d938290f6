/** The list of calls, live and ended, newest first. It is filtered by the platform and filled page by page. */
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { DIRECTIONS, mosOf } from '../call/words.ts';
import { AppName, AppSelect, useApps } from '../part/apps.tsx';
import { type Column, Count, Empty, FilterField, Problem, State, Table, Time } from '../part/parts.tsx';
import { useMayWrite } from '../part/role.ts';
import { Foreign } from '../part/text.tsx';
import { queryOf } from '../platform/api.ts';
import { platformNow } from '../platform/clock.ts';
import { whileLoading } from '../platform/live.ts';
import { go, usePlace } from '../platform/router.ts';
import { fieldOf, instantOf, span, ZoneContext } from '../platform/time.ts';
import type { App, Call } from '../platform/types.ts';
import { useCallList } from './call-list.ts';

const STATES = ['live', 'new', 'connecting', 'ringing', 'early_media', 'answered', 'ended'];
const NAMES = ['app_uuid', 'state', 'number', 'from', 'until'] as const;
type Filters = Readonly<Record<(typeof NAMES)[number], string>>;

export function CallsPage() {
  const { query } = usePlace();
  const filters: Filters = {
    app_uuid: query.get('app_uuid') ?? '',
    state: query.get('state') ?? '',
    number: query.get('number') ?? '',
    from: query.get('from') ?? '',
    until: query.get('until') ?? '',
  };
  const { apps, error } = useApps();
  const columns = useMemo(() => columnsOf(apps), [apps]);
  const asked = queryOf({
    app_uuid: filters.app_uuid,
    state: filters.state,
    number: filters.number,
    created_after: utc(filters.from),
    created_before: utc(filters.until),
  });
  const list = useCallList(asked);
  const isFiltered = NAMES.some((name) => filters[name] !== '');
  return (
    <>
      <div class="head">
        <h1>Calls</h1>
        <Count of={asked} isLoaded={list.isLoaded}>
          {list.isLoaded ? told(list.calls, list.next !== '') : whileLoading(list.error)}
        </Count>
      </div>
      <FilterForm filters={filters} apps={apps} />
      <Problem words={list.error || error} />
      {(list.calls.length > 0 || list.next !== '') && (
        <div class="card">
          {list.calls.length > 0 && (
            <Table label="Calls" columns={columns} rows={list.calls} keyOf={(call) => call.session_uuid} />
          )}
          {list.next !== '' && <More key={list.next} onMore={list.more} />}
        </div>
      )}
      {list.isLoaded && list.calls.length === 0 && list.next === '' && (isFiltered ? <NoMatch /> : <NoCalls />)}
    </>
  );
}

function told(calls: readonly Call[], hasMore: boolean): string {
  const live = calls.filter(({ state }) => state !== 'ended').length;
  return `${calls.length}${hasMore ? ' and more' : ''} shown, ${live} live`;
}

/** An instant of the address as the platform takes it. What is none is for the platform to refuse, in its words. */
const utc = (text: string): string => instantOf(text, 'local') || text;

function FilterForm({ filters, apps }: { readonly filters: Filters; readonly apps: readonly App[] }) {
  const set = (name: keyof Filters, value: string) =>
    go(`/console/calls${queryOf({ ...filters, [name]: value })}`, { replace: true });
  const zone = useContext(ZoneContext);
  // The address has instants, so that a link means the same to readers in other zones.
  const time = (name: 'from' | 'until') => ({
    value: fieldOf(filters[name], zone),
    onFinish: (value: string) => set(name, instantOf(value, zone)),
  });
  return (
    <search aria-label="Filter the calls">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <AppSelect apps={apps} value={filters.app_uuid} all onChange={(value) => set('app_uuid', value)} />
        <label>
          State
          <select value={filters.state} onChange={({ currentTarget }) => set('state', currentTarget.value)}>
            <option value="">All</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {state.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <FilterField
          label="Number"
          type="search"
          hint="+15550001"
          value={filters.number}
          onFinish={(value) => set('number', value)}
        />
        <FilterField label={zone === 'utc' ? 'From (UTC)' : 'From'} type="datetime-local" {...time('from')} />
        <FilterField label={zone === 'utc' ? 'Until (UTC)' : 'Until'} type="datetime-local" {...time('until')} />
        <button type="button" onClick={() => go('/console/calls', { replace: true })}>
          Clear
        </button>
      </form>
    </search>
  );
}

const columnsOf = (apps: readonly App[]): readonly Column<Call>[] => [
  {
    name: 'Began',
    cell: (call) => (
      <a href={`/console/calls/${call.session_uuid}`}>
        <Time at={call.created_at} />
      </a>
    ),
  },
  { name: 'State', cell: (call) => <State state={call.state} /> },
  { name: 'Direction', cell: (call) => DIRECTIONS[call.type] ?? call.type },
  { name: 'From', party: true, cell: (call) => <Party text={call.caller_id} /> },
  { name: 'To', party: true, cell: (call) => <Party text={call.did} /> },
  { name: 'Application', party: true, cell: (call) => <AppName apps={apps} uuid={call.app_uuid} /> },
  { name: 'Trunk', party: true, cell: (call) => call.trunk || <span class="quiet">–</span> },
  { name: 'Length', number: true, cell: (call) => lengthOf(call) },
  { name: 'End', cell: (call) => call.hangup_cause.replaceAll('_', ' ') || <span class="quiet">–</span> },
  { name: 'MOS', number: true, cell: (call) => mosOf(call) || <span class="quiet">–</span> },
];

const Party = ({ text }: { readonly text: string }) => (text === '' ? <span class="quiet">–</span> : <Foreign text={text} />);

const lengthOf = (call: Call) => (call.ended_at === '' ? <Running since={call.answered_at} /> : span(call.duration_seconds));

/** The length of a call that is up, counted on. */
function Running({ since }: { readonly since: string }) {
  const [now, setNow] = useState(platformNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(platformNow()), 1000);
    return () => clearInterval(timer);
  }, []);
  return since === '' ? <span class="quiet">–</span> : <span>{span((now - Date.parse(since)) / 1000)}</span>;
}

/** The end of the list: the next page is loaded when it comes into view, or by the button. */
function More({ onMore }: { onMore(): void }) {
  const end = useRef<HTMLButtonElement>(null);
  const latest = useRef(onMore);
  latest.current = onMore;
  useEffect(() => {
    const { current } = end;
    if (current === null) return;
    const watcher = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) latest.current();
    });
    watcher.observe(current);
    return () => watcher.disconnect();
  }, []);
  return (
    <p class="row">
      <button ref={end} type="button" onClick={onMore}>
        Older calls
      </button>
    </p>
  );
}

const NoMatch = () => (
  <Empty title="No call matches these filters">
    <button type="button" onClick={() => go('/console/calls', { replace: true })}>
      Show all calls
    </button>
  </Empty>
);

function NoCalls() {
  const mayWrite = useMayWrite();
  return (
    <Empty title="No calls yet">
      <p>
        Calls appear here as they come. {mayWrite && <a href="/console/try">Try one</a>}
        {mayWrite && ', or run'}
        {!mayWrite && 'Run'} <code>bin/sidetone dev</code> for a page with a button that calls.
      </p>
      <p>
        To connect a carrier, <a href="/console/trunks">set up a trunk</a> and assign a number with{' '}
        <code>bin/sidetone numbers assign</code>.
      </p>
    </Empty>
  );
}
