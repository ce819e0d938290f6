/** The codec on which a Session's node and the home of its Room agree: a home of an older release knows no L16. */
import { expect, test } from 'bun:test';
import { L16_PROTOCOL, type SeatRequest } from '../../src/call/ports/room-peers.ts';
import { Pipe } from '../../src/call/room/pipe.ts';
import type { LegAudio, MediaPipe, MediaRoom, PipeCodec } from '../../src/media/engine.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const END = { host: '127.0.0.1', port: 10_000, ssrc: 1 };
const noRecording = { mask() {}, unmask() {}, stop() {} };
const player = { play() {}, stopPlayback() {}, controlPlayback() {}, record: () => noRecording };
const room: MediaRoom = {
  number: 1,
  ...player,
  setVoiceActivity() {},
  setPlaybackVolume() {},
  playMusic() {},
  stopMusic() {},
  close: async () => {},
};
const member = { join() {}, leave() {}, setMuted() {}, setVolume: () => true };

/** The codec that is asked for, and the one that is spoken, where the leg's own is `pipeCodec`. */
async function agreed(protocol: number, pipeCodec: PipeCodec): Promise<readonly (PipeCodec | undefined)[]> {
  const asked: (PipeCodec | undefined)[] = [];
  const media: MediaPipe = {
    end: END,
    ...member,
    connect: (_end, codec) => void asked.push(codec),
    counters: () => Promise.reject(new Error('not asked for')),
    close: () => Promise.reject(new Error('not closed')),
  };
  const ask = async (_: string, request: SeatRequest) => {
    if (request.type === 'open') asked.push(request.codec);
    return { type: 'open', end: END, epoch: 1 } as const;
  };
  const pipe = new Pipe(
    {
      peers: {
        pipeHost: '127.0.0.1',
        ask,
        reach: async () => 'answers',
        isDead: () => false,
        protocol: (nodeId) => (nodeId === 'home' ? protocol : 0),
        tellHome() {},
        askRelease: async () => false,
        serve() {},
      },
      clock: new VirtualClock(),
      media: { openPipe: async () => media, openRoom: async () => room },
      roomId: 'room',
      sessionUuid: 'session',
      appUuid: 'app',
      isBot: true,
      number: 1,
      listener: { notice() {}, closed() {}, news() {}, homeLost() {} },
    },
    'home',
  );
  const audio: LegAudio = { ...player, ...member, pipeCodec };
  pipe.join(audio, { muted: false, volumes: {}, coach: undefined });
  await settle();
  return asked;
}

test('A stream goes to a home of this release as samples, at its rate.', async () => {
  for (const codec of ['L16/8000', 'L16/16000', 'L16/24000', 'PCMA'] as const)
    expect(await agreed(L16_PROTOCOL, codec)).toEqual([codec, codec]);
});

test('A home of an older release, or one that is not known yet, is offered what every release knows.', async () => {
  for (const [own, offered] of [
    ['L16/8000', 'PCMU'],
    ['L16/16000', 'G722'],
    ['L16/24000', 'G722'],
    ['PCMA', 'PCMA'],
    ['G722', 'G722'],
  ] as const)
    for (const protocol of [0, L16_PROTOCOL - 1]) expect(await agreed(protocol, own)).toEqual([offered, offered]);
});
