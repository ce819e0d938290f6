/**
 * Arktype, loaded when the first body is to be validated: it takes a third of a start, and 25 MB, which a process that
 * is asked nothing does without.
 */
import type { type as Type } from './type-library.ts';

export type { ArkErrors } from 'arktype';

/** Makes types. It is there once `typesLoaded` says so, which whoever validates asks before. */
export let type: typeof Type;

let loading: Promise<void> | undefined;
let isLoaded = false;

/** Resolves when types can be made. Undefined: they can, and there is nothing to wait for. */
export function typesLoaded(): Promise<void> | undefined {
  if (isLoaded) return undefined;
  loading ??= import('./type-library.ts').then(
    (library) => {
      type = library.type;
      isLoaded = true;
    },
    (error: unknown) => {
      // The next request tries again.
      loading = undefined;
      throw error;
    },
  );
  return loading;
}
