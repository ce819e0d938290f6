/**
 * A media worker: one native plane, ticked for ever. The thread stays inside `planeRun`, asleep between the ticks,
 * until there is something to tell, some ticks are over, or the main thread has posted commands (and woken it); after
 * each return the event loop gets a turn, in which posted commands are carried out.
 */
import { messageOf } from '../../error-facts.ts';
import { MEDIA_NOTICES_A_TICK_MAX } from '../../limits.ts';
import { native, type PlaneHandle } from '../native.ts';
import { NOTICE_WORDS, REPORT_WORDS } from './notice.ts';
import { answerRefused, carryOut } from './plane-commands.ts';
import { TickLateness } from './tick-lateness.ts';
import type { WorkerCommand, WorkerReply } from './worker-command.ts';

declare const self: Worker;

const PULSE_MS = 1_000;
const buffer = new Uint32Array(REPORT_WORDS + NOTICE_WORDS * MEDIA_NOTICES_A_TICK_MAX);

let frames = new Uint8Array(64 * 1024);
let plane: PlaneHandle | undefined;
let ticks = 0;
let skippedTicks = 0;
let latenessMaxUs = 0;
const lateness = new TickLateness();
let busyUs = 0;
let pulseAt = 0;

const reply = (message: WorkerReply): void => self.postMessage(message);

function postNotices(count: number): void {
  if (count === 0) return;
  reply({ type: 'notices', words: buffer.slice(REPORT_WORDS, REPORT_WORDS + count * NOTICE_WORDS), count });
}

/** Posts what the plane still holds, so that a reply that follows comes after every notice before it. */
function flushNotices(to: PlaneHandle): void {
  for (;;) {
    const count = native.planeNotices(to, buffer);
    postNotices(count);
    if (count < MEDIA_NOTICES_A_TICK_MAX) return;
  }
}

/** All frames of a phase go up in one message. */
function postFrames(from: PlaneHandle): void {
  let count = native.planeFrames(from, frames);
  if (count > frames.length) {
    frames = new Uint8Array(count * 2);
    count = native.planeFrames(from, frames);
  }
  if (count > 0) reply({ type: 'frames', bytes: frames.slice(0, count) });
}

function obey(command: WorkerCommand): void {
  if (command.type === 'start') {
    start(command.mediaTimeoutMs);
    return;
  }
  if (plane === undefined) return;
  const current = plane;
  if (command.type === 'quit') {
    native.planeDestroy(plane);
    plane = undefined;
    process.exit(0);
  }
  carryOut({ plane: current, reply, flushNotices: () => flushNotices(current) }, command);
}

function start(mediaTimeoutMs: number): void {
  plane = native.planeCreate(mediaTimeoutMs);
  pulseAt = performance.now() + PULSE_MS;
  const priority = native.planePriority(plane);
  reply({ type: 'up', plane: native.planeNumber(plane), priority });
  setImmediate(turn);
}

function turn(): void {
  if (plane === undefined) return;
  const count = native.planeRun(plane, buffer);
  ticks += buffer[0] ?? 0;
  skippedTicks += buffer[1] ?? 0;
  latenessMaxUs = Math.max(latenessMaxUs, buffer[2] ?? 0);
  busyUs += buffer[3] ?? 0;
  lateness.add(buffer[0] ?? 0, buffer[2] ?? 0);
  postNotices(count);
  if (count === MEDIA_NOTICES_A_TICK_MAX) flushNotices(plane);
  postFrames(plane);
  // A plane without calls that is given orders all the time returns before it has ticked, each time.
  if (performance.now() >= pulseAt) {
    reply({ type: 'pulse', ticks, skippedTicks, latenessMaxUs, lateness: lateness.counts(), busyUs });
    pulseAt = performance.now() + PULSE_MS;
    latenessMaxUs = 0;
    busyUs = 0;
  }
  setImmediate(turn);
}

self.onmessage = (event: MessageEvent<readonly WorkerCommand[]>) => {
  for (const command of event.data) {
    try {
      obey(command);
    } catch (error) {
      reply({ type: 'failed', message: `${command.type}: ${messageOf(error)}` });
      answerRefused(reply, command);
    }
  }
};
