/** The applications, by name, for filters and forms. */
import { ask } from '../platform/api.ts';
import { useLoaded } from '../platform/live.ts';
import type { App } from '../platform/types.ts';
import { Foreign } from './text.tsx';
import { visible } from './visible.ts';

const NONE: readonly App[] = [];

export interface Apps {
  /** The applications, the oldest first; none until they are loaded. */
  readonly apps: readonly App[];
  readonly isLoaded: boolean;
  /** Why they could not be loaded; empty when they could. */
  readonly error: string;
}

export function useApps(options: { readonly everyMs?: number } = {}): Apps {
  const load = (signal: AbortSignal) => ask<{ apps: readonly App[] }>('GET', '/apps', undefined, signal);
  const { data, error } = useLoaded('apps', load, options);
  return { apps: data?.apps ?? NONE, isLoaded: data !== undefined, error };
}

/** The name of an application, or the head of its identifier until the names are loaded. */
export const AppName = ({ apps, uuid }: { readonly apps: readonly App[]; readonly uuid: string }) => (
  <Foreign text={apps.find((each) => each.app_uuid === uuid)?.name ?? uuid.slice(0, 12)} />
);

export function AppSelect(props: {
  readonly apps: readonly App[];
  readonly value: string;
  readonly all?: boolean;
  onChange(appUuid: string): void;
}) {
  return (
    <label>
      Application
      <select
        value={props.value}
        onChange={({ currentTarget }) => {
          props.onChange(currentTarget.value);
          // It shows what is chosen, and the page may have kept to what was.
          currentTarget.value = props.value;
        }}
      >
        {props.all === true && <option value="">All</option>}
        {props.apps.map((app) => (
          <option key={app.app_uuid} value={app.app_uuid}>
            {visible(app.name)}
          </option>
        ))}
      </select>
    </label>
  );
}
