/** Small parts that many pages have: times, states, errors, empty lists, columns. */
import { Component, type ComponentChildren } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { clockTime, dayAndTime, ZoneContext } from '../platform/time.ts';

/** A time in the chosen zone; the other zone is told on pointing at it. */
export function Time({ at, short = false }: { readonly at: string; readonly short?: boolean }) {
  const zone = useContext(ZoneContext);
  if (at === '') return <span class="quiet">–</span>;
  const other = zone === 'utc' ? 'local' : 'utc';
  const title = `${dayAndTime(at, other, true)} ${other === 'utc' ? 'UTC' : 'local time'}`;
  return (
    <time dateTime={at} title={title}>
      {short ? clockTime(at, zone) : dayAndTime(at, zone)}
    </time>
  );
}

/** A part that is drawn anew only when one of its properties is another. */
export function steady<P extends object>(draw: (props: P) => ComponentChildren) {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const known = new Map<string, unknown>(Object.entries(this.props));
      return Object.entries(next).some(([name, value]) => known.get(name) !== value);
    }

    override render(props: P): ComponentChildren {
      return draw(props);
    }
  };
}

type Tone = 'good' | 'warn' | 'bad' | '';

const TONES: Readonly<Record<string, Tone>> = {
  answered: 'good',
  early_media: 'warn',
  ringing: 'warn',
  connecting: 'warn',
  new: 'warn',
  delivered: 'good',
  pending: 'warn',
  dead: 'bad',
  undeliverable: 'bad',
  failed: 'bad',
  disabled: 'bad',
  enabled: 'good',
  sent: 'good',
};
const LIVE = new Set(['new', 'connecting', 'ringing', 'early_media', 'answered']);

/** The state of a call, a delivery or a message. */
export const State = ({ state }: { readonly state: string }) => (
  <span class={`badge ${TONES[state] ?? ''} ${LIVE.has(state) ? 'live' : ''}`}>
    {LIVE.has(state) && <span class="dot" aria-hidden="true" />}
    {state.replaceAll('_', ' ')}
  </span>
);

export const Problem = ({ words }: { readonly words: string }) =>
  words === '' ? null : (
    <p class="notice bad" role="alert">
      {words}
    </p>
  );

/** Says why there is nothing, and what to do about it. `isPage`: the page has no other heading. */
export const Empty = (props: { readonly title: string; readonly isPage?: boolean; readonly children: ComponentChildren }) => (
  <div class="empty">
    {props.isPage === true ? <h1>{props.title}</h1> : <strong>{props.title}</strong>}
    {props.children}
  </div>
);

/** A text that may be scrolled, also by keyboard in browsers that let nobody reach what only scrolls. */
export const Text = ({ children }: { readonly children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard.
  <pre tabIndex={0}>{children}</pre>
);

/** A count is read out after the reader has done something, and for so long. Milliseconds. */
const SETTLED_MS = 1500;

/**
 * How many there are. It is read out when it answers what the reader has asked for, named by `of`, and not each time
 * that a call comes or goes: on a busy platform a reader of the screen would say nothing else.
 */
export function Count({ of, isLoaded, children }: { readonly of: string; isLoaded: boolean; children: ComponentChildren }) {
  const [settled, setSettled] = useState<string>();
  useEffect(() => {
    if (!isLoaded) return;
    const timer = setTimeout(() => setSettled(of), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [of, isLoaded]);
  return (
    <p class="quiet small" role="status" aria-live={isLoaded && settled === of ? 'off' : 'polite'}>
      {children}
    </p>
  );
}

export interface Column<T> {
  readonly name: string;
  readonly number?: boolean;
  /** A text that others wrote: it may be long, and without a space. */
  readonly text?: boolean;
  /** A name or a number that others chose: mostly short, but there is no saying. */
  readonly party?: boolean;
  cell(row: T): ComponentChildren;
}

const classOf = ({ number, text, party }: Pick<Column<never>, 'number' | 'text' | 'party'>): string =>
  number === true ? 'number' : text === true ? 'text' : party === true ? 'party' : '';

/** A row of a table. It is drawn anew only when it is another, so that a long list stays quick while it is live. */
class Row<T> extends Component<{ readonly columns: readonly Column<T>[]; readonly row: T }> {
  override shouldComponentUpdate(next: { readonly columns: readonly Column<T>[]; readonly row: T }): boolean {
    return next.row !== this.props.row || next.columns !== this.props.columns;
  }

  override render({ columns, row }: { readonly columns: readonly Column<T>[]; readonly row: T }) {
    return (
      <tr>
        {columns.map((column) => (
          <td key={column.name} data-name={column.name} class={classOf(column)}>
            {column.cell(row)}
          </td>
        ))}
      </tr>
    );
  }
}

/** A table that becomes a list of cards on a narrow screen. `label` names it for a reader of the screen. */
export function Table<T>(props: {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  keyOf(row: T): string;
}) {
  const { label, columns, rows, keyOf } = props;
  return (
    <div class="scroll">
      <table class="stacks" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" class={number === true ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} columns={columns} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `label: value` lines. A value that is undefined or empty is left out. */
export const Facts = ({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {of
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => [<dt key={`${name}:`}>{name}</dt>, <dd key={name}>{value}</dd>])}
  </dl>
);

/** A field of a filter. What is typed stays while the page is drawn anew, and counts when it is finished. */
export function FilterField(props: {
  readonly label: string;
  readonly type: 'search' | 'datetime-local';
  readonly value: string;
  readonly hint?: string;
  readonly size?: number;
  onFinish(value: string): void;
}) {
  const [draft, setDraft] = useState(props.value);
  useEffect(() => setDraft(props.value), [props.value]);
  const field = {
    placeholder: props.hint,
    size: props.size,
    value: draft,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => setDraft(currentTarget.value),
    onChange: ({ currentTarget }: { currentTarget: HTMLInputElement }) => props.onFinish(currentTarget.value.trim()),
  };
  return props.type === 'search' ? (
    <label>
      {props.label}
      <input type="search" {...field} />
    </label>
  ) : (
    <label>
      {props.label}
      <input type="datetime-local" {...field} />
    </label>
  );
}

/**
 * A link to a call's page, in a tab of its own where this page has to stay. It shows the end of the UUID: the beginning
 * is the time.
 */
export const CallLink = ({ uuid, apart = false }: { readonly uuid: string; readonly apart?: boolean }) => (
  <a class="mono" href={`/console/calls/${uuid}`} target={apart ? '_blank' : undefined}>
    {uuid.slice(-8)}
  </a>
);
