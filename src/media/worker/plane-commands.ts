/**
 * Carries out the commands of a media worker: each becomes a call of the native plane with numbers, literal addresses
 * and buffers.
 */
import { type LegCounters, NO_COUNTERS } from '../audio.ts';
import { native, type PlaneHandle } from '../native.ts';
import {
  CODEC_NUMBER,
  FINGERPRINT_HASH_NUMBER,
  type LegCommand,
  type PlaybackCommand,
  type RecordingCommand,
  type RoomCommand,
  SRTP_SUITE_NUMBER,
  type WorkerCommand,
  type WorkerReply,
} from './worker-command.ts';

/** The plane, and the ways in which its commands answer. */
interface CommandContext {
  readonly plane: PlaneHandle;
  reply(message: WorkerReply): void;
  /** Posts the notices that the plane still holds, so that a reply that follows comes after every notice before it. */
  flushNotices(): void;
}

const EEXIST = 17;
const EINVAL = 22;
/** The terms of voice activity when none is asked for. It is not told then. */
const NO_VOICES = { sensitivityPercent: 50, onsetMs: 100, releaseMs: 500 };
const NO_KEY = new Uint8Array();
const counterWords = new Uint32Array(10);

function countersNow(): LegCounters {
  const [received = 0, sent = 0, lost = 0, late = 0, jitterUs = 0] = counterWords;
  const [delayUs = 0, roundTripUs = 0, mosMilli = 0, forged = 0, replayed = 0] = counterWords.subarray(5);
  return {
    packetsReceived: received,
    packetsSent: sent,
    packetsLost: Math.max(0, lost | 0),
    packetsLate: late,
    jitterMs: jitterUs / 1000,
    delayMs: delayUs / 1000,
    roundTripMs: roundTripUs / 1000,
    mos: mosMilli / 1000,
    srtpForged: forged,
    srtpReplayed: replayed,
  };
}

/** Carries out one command. Those that are no leg's are handed on to the function for their kind. */
export function carryOut(context: CommandContext, command: LegCommand | PlaybackCommand | RoomCommand | RecordingCommand): void {
  const { plane, reply, flushNotices } = context;
  const { leg } = command;
  switch (command.type) {
    case 'open':
      reply({ type: 'opened', leg, errno: native.legOpen(plane, leg, command.host, command.port) });
      break;
    case 'open stream': {
      const { toSession: to, fromSession: from, inbox } = command;
      const isOpen = native.streamOpen(
        plane,
        leg,
        inbox,
        to.encoding === 'mulaw',
        to.rateHz,
        from.encoding === 'mulaw',
        from.rateHz,
      );
      reply({ type: 'opened', leg, errno: isOpen ? 0 : EEXIST });
      break;
    }
    case 'open webrtc': {
      const { port, ssrc, ice, fingerprint } = command;
      const hash = FINGERPRINT_HASH_NUMBER[fingerprint.hash];
      reply({
        type: 'opened',
        leg,
        errno: native.legOpenWebrtc(plane, leg, ssrc, port, ice.ufrag, ice.password, hash, fingerprint.bytes),
      });
      break;
    }
    case 'restart ice':
      native.legRestartIce(plane, leg, command.ice.ufrag, command.ice.password);
      break;
    case 'negotiate':
      negotiate(plane, command);
      break;
    case 'pipe':
      native.legPipe(plane, leg, command.ssrc, command.theirs, command.atOnce);
      break;
    case 'tones':
      native.legTones(plane, leg, command.on);
      break;
    case 'keys':
      native.legKeys(plane, leg, command.number, command.keys, command.durationMs, command.gapMs);
      break;
    case 'answerer':
      native.legAnswerer(plane, leg, command.timeoutMs);
      break;
    case 'counters':
      native.legCounters(plane, leg, counterWords);
      reply({ type: 'counters', request: command.request, counters: countersNow() });
      break;
    case 'move':
      native.legDrop(plane, leg);
      flushNotices(); // What it noticed here is posted before the other worker can say a word of it.
      if (!native.legMove(plane, leg, command.plane)) reply({ type: 'stayed', leg });
      break;
    case 'close':
      native.legClose(plane, leg, counterWords);
      flushNotices();
      reply({ type: 'closed', leg, counters: countersNow() });
      break;
    default:
      obeyPlayback(context, command);
  }
}

function negotiate(plane: PlaneHandle, command: Extract<LegCommand, { readonly type: 'negotiate' }>): void {
  const agreed = command.parameters;
  native.legNegotiate(
    plane,
    command.leg,
    agreed.remoteHost,
    agreed.remotePort,
    agreed.remoteRtcpPort,
    CODEC_NUMBER[agreed.codec],
    agreed.payloadType,
    agreed.telephoneEventPayloadType ?? -1,
    agreed.telephoneEventClockHz ?? 8000,
    agreed.ownPayloadType ?? -1,
    agreed.ownEventPayloadType ?? -1,
    agreed.ptimeMs,
    agreed.maxBitrate ?? 0,
    agreed.send,
    agreed.receive,
    agreed.held,
    agreed.isRinging ?? false,
    agreed.isHolding ?? false,
    agreed.learnFrom.join(','),
    agreed.numbers?.sequence ?? -1,
    agreed.numbers?.timestamp ?? 0,
    agreed.srtp === undefined ? 0 : SRTP_SUITE_NUMBER[agreed.srtp.suite],
    agreed.srtp?.sendKey ?? NO_KEY,
    agreed.srtp?.receiveKey ?? NO_KEY,
  );
}

/** Playbacks of legs and of rooms. */
function obeyPlayback(context: CommandContext, command: PlaybackCommand | RoomCommand | RecordingCommand): void {
  const { plane } = context;
  const { leg } = command;
  switch (command.type) {
    case 'play':
      native.legPlay(plane, leg, command.playback, command.rateHz, command.volume);
      break;
    case 'feed':
      native.legFeed(plane, leg, command.playback, command.pcm);
      break;
    case 'finish':
      native.legFinish(plane, leg, command.playback);
      break;
    case 'stop':
      native.legStop(plane, leg, command.playback);
      break;
    case 'pause':
      native.legPause(plane, leg, command.playback, command.paused);
      break;
    case 'seek':
      native.legSeek(plane, leg, command.playback);
      break;
    case 'playback volume':
      native.playVolume(plane, leg, command.percent);
      break;
    default:
      obeyRoom(context, command);
  }
}

/** Rooms, and legs as their members. */
function obeyRoom(context: CommandContext, command: RoomCommand | RecordingCommand): void {
  const { plane, reply, flushNotices } = context;
  const { leg } = command;
  switch (command.type) {
    case 'open room':
      native.roomOpen(plane, leg);
      break;
    case 'open music':
      native.roomMusic(plane, leg, command.music);
      break;
    case 'close room':
      native.roomClose(plane, leg);
      flushNotices();
      reply({ type: 'room closed', leg });
      break;
    case 'voices':
      native.roomVoices(plane, leg, command.on);
      break;
    case 'join':
      native.legJoin(plane, leg, command.room, command.muted, command.from, command.to);
      break;
    case 'coach':
      native.legCoach(plane, leg, command.coached);
      break;
    case 'leave':
      native.legLeave(plane, leg);
      break;
    case 'mute':
      native.legMute(plane, leg, command.muted);
      break;
    case 'room volume':
      native.legVolume(plane, leg, command.from, command.percent);
      break;
    default:
      obeyRecording(context, command);
  }
}

/**
 * Answers a command that the plane refused to take, as what it was asked for will never come: whoever waits for the
 * answer would wait for ever.
 */
export function answerRefused(reply: (message: WorkerReply) => void, command: WorkerCommand): void {
  switch (command.type) {
    case 'open':
    case 'open stream':
    case 'open webrtc':
      reply({ type: 'opened', leg: command.leg, errno: EINVAL });
      break;
    case 'counters':
      reply({ type: 'counters', request: command.request, counters: NO_COUNTERS });
      break;
    case 'move':
      reply({ type: 'stayed', leg: command.leg });
      break;
    case 'close':
      reply({ type: 'closed', leg: command.leg, counters: NO_COUNTERS });
      break;
    case 'close room':
      reply({ type: 'room closed', leg: command.leg });
      break;
    case 'record':
      reply({ type: 'not recorded', recording: command.recording });
      break;
  }
}

/** Recordings of legs and of rooms. */
function obeyRecording({ plane, reply }: CommandContext, command: RecordingCommand): void {
  const { leg, recording } = command;
  switch (command.type) {
    case 'record': {
      const { path, ring, rateHz, includeGaps, voices } = command;
      const { sensitivityPercent, onsetMs, releaseMs } = voices ?? NO_VOICES;
      const told = voices !== undefined;
      const isThere = native.record(
        plane,
        leg,
        recording,
        path,
        ring,
        rateHz,
        includeGaps,
        told,
        sensitivityPercent,
        onsetMs,
        releaseMs,
      );
      if (!isThere) reply({ type: 'not recorded', recording });
      break;
    }
    case 'mask':
      native.recordMask(plane, leg, recording, command.masked);
      break;
    case 'stop recording':
      native.recordStop(plane, leg, recording);
      break;
  }
}
