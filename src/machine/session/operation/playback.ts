/** Playback in a Session: play of every kind, and what is ordered of the one that plays (contract §2, §3). */

import { type Problem, problems } from '../../../problem.ts';
import { type Collect, promptOf } from '../../dtmf/collect.ts';
import { noActivePlayback, type Playback, type PlaybackControl, playbackEnded } from '../../playback/playback.ts';
import type { Command, Effect, Step } from '../input.ts';
import { rises, type SessionState } from '../session.ts';

export type PlaybackCommand = Extract<
  Command,
  { type: 'play' | 'play_stream' | 'play_silence' | 'play_push' | 'stop_playback' | 'control_playback' }
>;

const PLAYS: readonly Command['type'][] = ['play', 'play_stream', 'play_silence', 'play_push'];

/** Tells whether the command begins a playback. */
export const isPlay = (type: Command['type']): boolean => PLAYS.includes(type);

/** The playback that can be controlled. One that is being stopped is as good as gone. */
const active = ({ playback }: SessionState): Playback | undefined => (playback?.phase === 'stopping' ? undefined : playback);

/** Why a playback cannot be controlled so. Only files have a place to hold or go to; every kind may be resumed. */
function controlRefusal(state: SessionState, control: PlaybackControl): Problem | undefined {
  const playback = active(state);
  if (playback === undefined || playback.kind === 'files' || control.type === 'resume') return undefined;
  return problems.conflict(`A ${playback.kind} playback cannot be paused, moved or restarted`);
}

/** The events of a playback that is replaced by another one. */
export const replaced = ({ playback, sessionUuid }: SessionState) =>
  playback === undefined ? [] : [playbackEnded(sessionUuid, playback, 'stopped')];

/** Before the answer of an inbound call, what is played needs early media first. */
export const audible = (state: SessionState): Effect[] =>
  rises(state.phase, 'early_media') && state.answering === undefined ? [{ do: 'early_media' }] : [];

export function playback(state: SessionState, order: PlaybackCommand, operationUuid: string): Step {
  switch (order.type) {
    case 'play':
      return play(state, { operationUuid, kind: 'files', urls: order.urls, phase: 'starting' }, order.loop, order.volume);
    case 'play_stream':
      return play(state, { operationUuid, kind: 'stream', urls: [], phase: 'starting' }, 1, order.volume);
    case 'play_push':
      return play(state, { operationUuid, kind: 'push', urls: [], phase: 'starting' }, 1, order.volume);
    case 'play_silence':
      return silence(state, operationUuid);
    case 'stop_playback':
      return stop(state, operationUuid);
    case 'control_playback':
      return control(state, order.control, operationUuid);
  }
}

function play(state: SessionState, next: Playback, loop: number, volume: number): Step {
  return {
    state: { ...state, playback: next },
    events: replaced(state),
    effects: [...audible(state), { do: 'play', operationUuid: next.operationUuid, loop, volume }],
  };
}

/** Nothing is played for it: a leg without a playback sends silence. What plays, a prompt too, is stopped. */
function silence(state: SessionState, operationUuid: string): Step {
  return {
    state: { ...state, playback: { operationUuid, kind: 'silence', urls: [], phase: 'playing' } },
    events: replaced(state),
    effects: [...audible(state), ...stopOf(state.playback), ...stopPrompt(state.collect)],
  };
}

/** The order that ends what is heard of it; a silence is nothing to the leg. */
const stopOf = (heard: Playback | undefined): Effect[] =>
  heard === undefined || heard.kind === 'silence' ? [] : [{ do: 'stop_playback', operationUuid: heard.operationUuid }];

const stopPrompt = (collect: Collect | undefined): Effect[] =>
  collect === undefined ? [] : [{ do: 'stop_playback', operationUuid: promptOf(collect) }];

function stop(state: SessionState, operationUuid: string): Step {
  const { playback: playing, sessionUuid } = state;
  if (playing === undefined) return { state, events: [noActivePlayback(sessionUuid, operationUuid)], effects: [] };
  if (playing.phase === 'stopping') return { state, events: [], effects: [] };
  if (playing.kind === 'silence') {
    return { state: { ...state, playback: undefined }, events: [playbackEnded(sessionUuid, playing, 'stopped')], effects: [] };
  }
  return { state: { ...state, playback: { ...playing, phase: 'stopping' } }, events: [], effects: stopOf(playing) };
}

function control(state: SessionState, order: PlaybackControl, operationUuid: string): Step {
  const playing = active(state);
  if (playing === undefined) return { state, events: [noActivePlayback(state.sessionUuid, operationUuid)], effects: [] };
  const refused = controlRefusal(state, order);
  if (refused !== undefined) return { state, events: [], effects: [], refused };
  if (playing.kind !== 'files') return { state, events: [], effects: [] };
  return { state, events: [], effects: [{ do: 'control_playback', operationUuid: playing.operationUuid, control: order }] };
}
