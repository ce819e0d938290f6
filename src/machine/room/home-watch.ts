/**
 * Judges whether the home of a Room is lost, as a node sees it that has a member there: nothing has come through the
 * pipe for 300 ms, which its media plane tells.
 *
 *   heard ─300 ms of silence→ silent ─nobody of that name at NATS, or no answer for HOME_SILENT_MS→ lost
 *                             silent ─it answers→ only the pipe is broken: it is made anew after HOME_PIPE_MS
 *
 * A lost home is replaced by compare-and-set on the Room's row, so that a wrong judgement costs a move and nothing
 * else.
 */
import { HOME_PIPE_MS, HOME_SILENT_MS } from '../../limits.ts';

/** What a ping of the home came to. `unknown`: this node does not reach NATS itself. */
export type Reach = 'answers' | 'silent' | 'nobody' | 'unknown';

export interface HomeWatch {
  /** When the silence began, in milliseconds. */
  readonly silentSince: number;
  /** Since when it has not answered either, as far as this node could ask. */
  readonly unansweredSince: number;
}

export const newHomeWatch = (now: number): HomeWatch => ({ silentSince: now, unansweredSince: now });

export type HomeVerdict = 'look_again' | 'replace_home' | 'remake_pipe';

/** What to do after a ping. `now` is when it was answered or given up. */
export function judgeHome(
  watch: HomeWatch,
  reach: Reach,
  now: number,
): { readonly watch: HomeWatch; readonly verdict: HomeVerdict } {
  if (reach === 'nobody') return { watch, verdict: 'replace_home' };
  if (reach === 'unknown') return { watch: { ...watch, unansweredSince: now }, verdict: 'look_again' };
  if (reach === 'answers') {
    const verdict = now - watch.silentSince >= HOME_PIPE_MS ? 'remake_pipe' : 'look_again';
    return { watch: { ...watch, unansweredSince: now }, verdict };
  }
  return { watch, verdict: now - watch.unansweredSince >= HOME_SILENT_MS ? 'replace_home' : 'look_again' };
}
