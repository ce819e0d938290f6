/**
 * A media worker: one native plane, ticked for ever. The thread sleeps inside `planeRun` until the next deadline or until the main thread
 * has posted orders (and woken it); after each return the event loop gets a turn, in which posted orders are carried out.
 */
import { MEDIA_NOTICES_A_TICK_MAX } from '../../limits.ts';
import type { LegCounters } from '../engine.ts';
import { native, type PlaneHandle } from '../native.ts';
import { NOTICE_WORDS, REPORT_WORDS } from './notice.ts';
import { TickLateness } from './tick-lateness.ts';
import { CODEC_NUMBER, type Order, type Reply } from './worker-command.ts';

declare const self: Worker;

const PULSE_MS = 1_000;
const buffer = new Uint32Array(REPORT_WORDS + NOTICE_WORDS * MEDIA_NOTICES_A_TICK_MAX);
const counterWords = new Uint32Array(8);

let frames = new Uint8Array(64 * 1024);
let plane: PlaneHandle | undefined;
let ticks = 0;
let skippedTicks = 0;
let latenessMaxUs = 0;
const lateness = new TickLateness();
let busyUs = 0;
let pulseAt = 0;

const reply = (message: Reply): void => self.postMessage(message);

function countersNow(): LegCounters {
  const [received = 0, sent = 0, lost = 0, late = 0, jitterUs = 0, delayUs = 0, roundTripUs = 0, mosMilli = 0] = counterWords;
  return {
    packetsReceived: received,
    packetsSent: sent,
    packetsLost: lost | 0,
    packetsLate: late,
    jitterMs: jitterUs / 1000,
    delayMs: delayUs / 1000,
    roundTripMs: roundTripUs / 1000,
    mos: mosMilli / 1000,
  };
}

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

/** All frames of a tick go up in one message. */
function postFrames(from: PlaneHandle): void {
  let count = native.planeFrames(from, frames);
  if (count > frames.length) {
    frames = new Uint8Array(count * 2);
    count = native.planeFrames(from, frames);
  }
  if (count > 0) reply({ type: 'frames', bytes: frames.slice(0, count) });
}

function obey(order: Order): void {
  if (order.type === 'start') {
    plane = native.planeCreate(order.mediaTimeoutMs);
    pulseAt = performance.now() + PULSE_MS;
    reply({
      type: 'up',
      wakeFd: native.planeWakeFd(plane),
      plane: native.planeNumber(plane),
      priority: native.planePriority(plane),
    });
    setImmediate(turn);
    return;
  }
  if (plane === undefined) return;
  switch (order.type) {
    case 'open':
      reply({ type: 'opened', leg: order.leg, errno: native.legOpen(plane, order.leg, order.host, order.port) });
      break;
    case 'negotiate': {
      const agreed = order.parameters;
      native.legNegotiate(
        plane,
        order.leg,
        agreed.remoteHost,
        agreed.remotePort,
        agreed.remoteRtcpPort,
        CODEC_NUMBER[agreed.codec],
        agreed.payloadType,
        agreed.telephoneEventPayloadType ?? -1,
        agreed.ptimeMs,
        agreed.send,
        agreed.receive,
        agreed.held,
        agreed.learnFrom.join(','),
      );
      break;
    }
    case 'play':
      native.legPlay(plane, order.leg, order.playback, order.rateHz, order.volume);
      break;
    case 'feed':
      native.legFeed(plane, order.leg, order.playback, order.pcm);
      break;
    case 'finish':
      native.legFinish(plane, order.leg, order.playback);
      break;
    case 'stop':
      native.legStop(plane, order.leg, order.playback);
      break;
    case 'pause':
      native.legPause(plane, order.leg, order.playback, order.paused);
      break;
    case 'seek':
      native.legSeek(plane, order.leg, order.playback);
      break;
    case 'counters':
      native.legCounters(plane, order.leg, counterWords);
      reply({ type: 'counters', request: order.request, counters: countersNow() });
      break;
    case 'close':
      native.legClose(plane, order.leg, counterWords);
      flushNotices(plane);
      reply({ type: 'closed', leg: order.leg, counters: countersNow() });
      break;
    case 'move':
      native.legDrop(plane, order.leg);
      flushNotices(plane); // what it noticed here is posted before the other worker can say a word of it
      if (!native.legMove(plane, order.leg, order.plane)) reply({ type: 'stayed', leg: order.leg });
      break;
    case 'open stream': {
      const { toSession, fromSession } = order;
      const toMulaw = toSession.encoding === 'mulaw';
      const fromMulaw = fromSession.encoding === 'mulaw';
      const open = native.streamOpen(plane, order.leg, order.inbox, toMulaw, toSession.rateHz, fromMulaw, fromSession.rateHz);
      reply({ type: 'opened', leg: order.leg, errno: open ? 0 : 17 }); // EEXIST
      break;
    }
    case 'open room':
      native.roomOpen(plane, order.leg);
      break;
    case 'close room':
      native.roomClose(plane, order.leg);
      flushNotices(plane);
      reply({ type: 'room closed', leg: order.leg });
      break;
    case 'playback volume':
      native.playVolume(plane, order.leg, order.percent);
      break;
    case 'voices':
      native.roomVoices(plane, order.leg, order.on);
      break;
    case 'join':
      native.legJoin(plane, order.leg, order.room, order.muted, order.from, order.to);
      break;
    case 'tones':
      native.legTones(plane, order.leg, order.on);
      break;
    case 'record': {
      const { leg, recording, path, ring, rateHz, includeGaps, voices } = order;
      const { sensitivityPercent, onsetMs, releaseMs } = voices ?? { sensitivityPercent: 50, onsetMs: 100, releaseMs: 500 };
      const heard = voices !== undefined;
      const found = native.record(
        plane,
        leg,
        recording,
        path,
        ring,
        rateHz,
        includeGaps,
        heard,
        sensitivityPercent,
        onsetMs,
        releaseMs,
      );
      if (!found) reply({ type: 'not recorded', recording });
      break;
    }
    case 'mask':
      native.recordMask(plane, order.leg, order.recording, order.masked);
      break;
    case 'stop recording':
      native.recordStop(plane, order.leg, order.recording);
      break;
    case 'leave':
      native.legLeave(plane, order.leg);
      break;
    case 'mute':
      native.legMute(plane, order.leg, order.muted);
      break;
    case 'room volume':
      native.legVolume(plane, order.leg, order.from, order.percent);
      break;
    case 'quit':
      native.planeDestroy(plane);
      plane = undefined;
      process.exit(0);
  }
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
  if ((buffer[0] ?? 0) > 0) postFrames(plane);
  if ((buffer[0] ?? 0) > 0 && performance.now() >= pulseAt) {
    reply({ type: 'pulse', ticks, skippedTicks, latenessMaxUs, lateness: lateness.counts(), busyUs });
    pulseAt = performance.now() + PULSE_MS;
    latenessMaxUs = 0;
    busyUs = 0;
  }
  setImmediate(turn);
}

self.onmessage = (event: MessageEvent<readonly Order[]>) => {
  for (const order of event.data) {
    try {
      obey(order);
    } catch (error) {
      reply({ type: 'failed', message: `${order.type}: ${error instanceof Error ? error.message : String(error)}` });
    }
  }
};
