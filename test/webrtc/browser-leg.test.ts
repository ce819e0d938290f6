/** A browser as a leg, with a media plane that only keeps what it is told. */
import { expect, test } from 'bun:test';
import type { LegSignal } from '../../src/call/ports/leg.ts';
import { SIP_LEG_EVENT_KEYS } from '../../src/limits.ts';
import { type MediaNotice, NO_COUNTERS, type RtpParameters, type WebrtcLeg } from '../../src/media/engine.ts';
import type { LinkState } from '../../src/notice/signal.ts';
import type { AudioAgreement } from '../../src/sdp/negotiation.ts';
import { BrowserLeg } from '../../src/webrtc/browser-leg.ts';
import { settle } from '../support/virtual-clock.ts';

const AGREED: AudioAgreement = {
  ...{ remoteHost: '0.0.0.0', remotePort: 9, remoteRtcpPort: 9, codec: 'PCMU', payloadType: 0, ptimeMs: 20 },
  ...{ telephoneEventPayloadType: 101, send: true, receive: true, held: false, isHolding: false, srtp: undefined },
};
const HELD: AudioAgreement = { ...AGREED, send: false, receive: false, held: true };
const PLAYBACK = { operationUuid: 'prompt', playlist: { urls: [], release() {} }, loop: 1, volume: 100 };

async function opened() {
  const negotiated: RtpParameters[] = [];
  const played: string[] = [];
  const tones: boolean[] = [];
  const signals: LegSignal[] = [];
  let hear: (notice: MediaNotice) => void = () => {};
  let closed = 0;
  let ended = 0;
  const media: WebrtcLeg = {
    pipeCodec: 'PCMU',
    negotiate: (parameters) => void negotiated.push(parameters),
    play: ({ operationUuid }) => void played.push(operationUuid),
    ...{ stopPlayback() {}, controlPlayback() {}, join() {}, leave() {}, setMuted() {}, coach() {}, setVolume: () => true },
    ...{ sendKeys() {}, detectMachine() {}, restartIce() {} },
    detectTones: (on) => void tones.push(on),
    record: () => ({ mask() {}, unmask() {}, stop() {} }),
    counters: async () => NO_COUNTERS,
    close: async () => {
      closed++;
      return NO_COUNTERS;
    },
  };
  const leg = await BrowserLeg.open({
    open: async (notify) => {
      hear = notify;
      return media;
    },
    wait: () => () => {},
    onEnded: () => void ended++,
  });
  if (leg === undefined) throw new Error('not opened');
  leg.listen((signal) => void signals.push(signal));
  leg.agree(AGREED);
  const told = () => signals.map(({ type }) => type).filter((type) => type !== 'leg.media');
  const end = async () => {
    await settle();
    return signals.flatMap((signal) => (signal.type === 'leg.ended' ? [signal.end] : []));
  };
  const linked = (state: LinkState) => hear({ type: 'link', state });
  return {
    leg,
    hear: (notice: MediaNotice) => hear(notice),
    negotiated,
    played,
    tones,
    signals,
    told,
    end,
    linked,
    counts: () => ({ closed, ended }),
  };
}
async function answered() {
  const all = await opened();
  all.leg.answer();
  all.linked('connected');
  all.signals.length = 0;
  return all;
}

test('A browser is answered once, when the application has answered and the browser is there, whichever comes first', async () => {
  for (const isLinkFirst of [true, false]) {
    const { leg, linked, told } = await opened();
    leg.ring();
    if (isLinkFirst) linked('connected');
    else leg.answer();
    expect(told()).toEqual(['leg.ringing']);
    if (isLinkFirst) leg.answer();
    else linked('connected');
    expect(told()).toEqual(['leg.ringing', 'leg.answered']);
    for (let times = 0; times < 2; times++) {
      leg.answer();
      linked('connected');
    }
    leg.startEarlyMedia();
    expect(told()).toEqual(['leg.ringing', 'leg.answered']);
  }
});

test('What is played before the browser is there begins with it, and early media is told once', async () => {
  const { leg, linked, played, told } = await opened();
  for (let times = 0; times < 2; times++) leg.startEarlyMedia();
  leg.audio?.play(PLAYBACK);
  leg.probe();
  expect([played, told(), await leg.quality()]).toEqual([[], ['leg.early_media'], undefined]);
  linked('connected');
  leg.probe();
  expect([played, told(), (await leg.quality())?.codec]).toEqual([['prompt'], ['leg.early_media', 'leg.alive'], 'PCMU']);
});

test('A browser that we hold is not heard, also where it offers anew meanwhile, and is heard again afterwards', async () => {
  const { leg, negotiated, told } = await answered();
  const now = () => negotiated.map(({ send, receive, isHolding }) => [send, receive, isHolding]).at(-1);
  expect(now()).toEqual([true, true, false]);
  leg.hold(true);
  expect(now()).toEqual([true, false, true]);
  leg.agree(AGREED);
  expect(now()).toEqual([true, false, true]);
  leg.agree({ ...AGREED, receive: false });
  leg.hold(false);
  expect(now()).toEqual([true, false, false]);
  leg.agree(AGREED);
  expect(now()).toEqual([true, true, false]);
  expect(told()).toEqual(['leg.own_hold', 'leg.own_hold']);
  const ringing = await opened();
  ringing.leg.hold(true);
  expect([ringing.negotiated.length, ringing.told()]).toEqual([1, []]);
});

test('A browser that holds us is told each time that it changes, and once it is answered where it began so', async () => {
  const { leg, told } = await answered();
  for (const offered of [HELD, HELD, AGREED, AGREED]) leg.agree(offered);
  expect(told()).toEqual(['leg.held', 'leg.resumed']);
  const ringing = await opened();
  ringing.leg.agree(HELD);
  ringing.leg.answer();
  ringing.linked('connected');
  expect(ringing.told()).toEqual(['leg.answered', 'leg.held']);
});

/** The time without a sound is a setting (MEDIA_TIMEOUT_SEC), which the words do not name. */
const LOST = { cause: 'timeout', by: 'system', description: 'The browser was not heard any more' };
test.each([
  ['failed', (all) => all.linked('failed'), { cause: 'failed', by: 'network' }, { cause: 'failed', by: 'network' }],
  ['lost', (all) => all.linked('lost'), LOST, LOST],
  ['closed', (all) => all.linked('closed'), { cause: 'cancelled', by: 'caller' }, { cause: 'completed', by: 'caller' }],
  ['left', (all) => all.leg.hungUp(), { cause: 'cancelled', by: 'caller' }, { cause: 'completed', by: 'caller' }],
  ['rejected', (all) => all.leg.reject(), { cause: 'rejected', by: 'callee' }, { cause: 'rejected', by: 'callee' }],
  ['cancelled', (all) => all.leg.cancel(), { cause: 'completed', by: 'callee' }, { cause: 'completed', by: 'callee' }],
  ['hung up', (all) => all.leg.hangup(), { cause: 'completed', by: 'callee' }, { cause: 'completed', by: 'callee' }],
] as const satisfies readonly (readonly [string, (all: Awaited<ReturnType<typeof opened>>) => void, object, object])[])(
  'A leg that is %s ends once, frees its audio, and hears no more orders',
  async (_, over, before, after) => {
    const connected = await opened();
    connected.linked('connected');
    for (const [all, expected, codec] of [
      [await opened(), before, undefined],
      [connected, before, 'PCMU'],
      [await answered(), after, 'PCMU'],
    ] as const) {
      expect(all.leg.media).toBeDefined();
      over(all);
      const media = all.negotiated.length;
      for (const again of [() => all.linked('closed'), () => all.leg.hangup(), () => all.leg.answer()]) again();
      all.leg.agree(HELD);
      all.leg.hold(true);
      all.linked('connected');
      all.leg.probe();
      // How it sounded is told of a browser that was there.
      const [end] = await all.end();
      expect([end, end?.quality?.codec]).toEqual([expect.objectContaining(expected), codec]);
      expect([all.told(), all.counts(), all.negotiated.length]).toEqual([['leg.ended'], { closed: 1, ended: 1 }, media]);
      expect([all.leg.audio, all.leg.media, await all.leg.quality()]).toEqual([undefined, undefined, undefined]);
    }
  },
);

test('What is to be played waits for a browser no longer than its leg lasts', async () => {
  const { leg } = await opened();
  let released = 0;
  leg.audio?.play({ ...PLAYBACK, playlist: { urls: [], release: () => void released++ } });
  leg.hangup();
  expect(released).toBe(1);
});

test('What the audio tells is told, but for what the end of the Session tells once the leg is over', async () => {
  const { leg, hear, signals, end } = await opened();
  const stopped = { type: 'playback.stopped', operationUuid: 'prompt' } as const;
  const recorded = { type: 'recording.ended', recordingUuid: 'recording', durationMs: 20, bytes: 364 } as const;
  hear(stopped);
  leg.hangup();
  for (const notice of [stopped, recorded]) hear(notice);
  await end();
  const heard = signals.flatMap((signal) => (signal.type === 'leg.media' ? [signal.notice] : []));
  expect(heard).toEqual([stopped, recorded]);
});

test('Keys are listened for in the audio until some have come as events, and during a secure collection', async () => {
  const { leg, hear, tones } = await opened();
  expect(tones).toEqual([true]);
  for (let keys = 0; keys < SIP_LEG_EVENT_KEYS; keys++) hear({ type: 'digit', digit: '1', durationMs: 100, method: 'rfc4733' });
  leg.secure(true);
  leg.secure(false);
  leg.agree({ ...AGREED, telephoneEventPayloadType: undefined });
  expect(tones).toEqual([true, false, true, false, true]);
});

test('A leg for which there is no room is none', async () => {
  expect(await BrowserLeg.open({ open: async () => undefined, wait: () => () => {}, onEnded() {} })).toBeUndefined();
});
