import { afterAll, beforeAll, describe, expect } from 'bun:test';
import type { MediaRoom, RoomNotice } from '../../src/media/engine.ts';
import { test } from '../support/real-time.ts';
import { type Call, Harness } from './harness.ts';
import { levelDb, mulawOctet, mulawSample, presentDb, tone, wav } from './sound.ts';
import { Talker } from './talker.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open({ workers: 2 });
});
afterAll(() => harness.close());

const FREE = { muted: false, fromVolumePercent: 100, toVolumePercent: 100 };

async function opened(notices: RoomNotice[] = []): Promise<MediaRoom> {
  const room = await harness.engine.openRoom((notice) => notices.push(notice));
  if (room === undefined) throw new Error('no room');
  return room;
}

/** A party that says a tone of its own, as its codec has it, and has been told that it is in the room. */
async function member(room: MediaRoom, hz: number, options = FREE, codec: 'PCMU' | 'PCMA' = 'PCMU'): Promise<Talker> {
  const call: Call = await harness.call();
  const talker = new Talker(call, hz, codec);
  call.leg.negotiate(call.peer.parameters({ codec }));
  await call.leg.counters();
  talker.start();
  call.leg.join(room, options);
  await call.notices.until(() => call.notices.of('room.joined').length > 0);
  return talker;
}

describe('a room', () => {
  test('of three on two workers: each hears the other two and not itself', async () => {
    const room = await opened();
    const members = await Promise.all([440, 660, 880].map((hz) => member(room, hz)));
    for (const talker of members) {
      const heard = await talker.listen(600, 200);
      for (const hz of [440, 660, 880]) {
        if (hz === talker.hz) expect(levelDb(heard, hz, 8000)).toBeLessThan(-55);
        else expect(Math.abs(presentDb(heard, hz, 8000) - talker.level)).toBeLessThan(0.5); // 40 dB and more over its own
      }
    }
    await Promise.all(members.map((talker) => talker.end()));
    await room.close();
  });

  test('of both laws of G.711: each hears the other as it spoke', async () => {
    const room = await opened();
    const [mu, a] = await Promise.all([member(room, 500), member(room, 700, FREE, 'PCMA')]);
    if (mu === undefined || a === undefined) throw new Error('no members');
    const [byMu, byA] = await Promise.all([mu.listen(600, 200), a.listen(600, 200)]);
    expect(Math.abs(presentDb(byMu, 700, 8000) - a.level)).toBeLessThan(0.5);
    expect(Math.abs(presentDb(byA, 500, 8000) - mu.level)).toBeLessThan(0.5);
    expect(Math.max(levelDb(byMu, 500, 8000), levelDb(byA, 700, 8000))).toBeLessThan(-55);
    await Promise.all([mu.end(), a.end()]);
    await room.close();
  });

  test('obeys mute and volume in both directions, in decibels', async () => {
    const room = await opened();
    const [one, two] = await Promise.all([member(room, 440, { ...FREE, muted: true }), member(room, 660)]);
    if (one === undefined || two === undefined) throw new Error('no members');
    const heardOf = async (hz: number, by: Talker) => levelDb(await by.listen(400, 200), hz, 8000);
    const presentIn = async (by: Talker) => presentDb(await by.listen(400, 200), 440, 8000);
    expect(await heardOf(440, two)).toBeLessThan(-55);
    one.call.leg.setMuted(false);
    expect(Math.abs((await presentIn(two)) - one.level)).toBeLessThan(0.5);
    one.call.leg.setVolume('from_member', 50);
    expect(Math.abs((await presentIn(two)) - one.level + 6.02)).toBeLessThan(0.5);
    two.call.leg.setVolume('to_member', 200);
    expect(Math.abs((await presentIn(two)) - one.level)).toBeLessThan(0.5);
    two.call.leg.setVolume('from_member', 0);
    expect(await heardOf(660, one)).toBeLessThan(-55);
    two.call.leg.setVolume('to_member', 0);
    expect(await heardOf(440, two)).toBeLessThan(-55);
    await Promise.all([one.end(), two.end()]);
    await room.close();
  });

  test('plays to all of its members, while a playback on a leg is heard by that leg alone', async () => {
    const notices: RoomNotice[] = [];
    const room = await opened(notices);
    const [one, two] = await Promise.all([member(room, 440), member(room, 660)]);
    if (one === undefined || two === undefined) throw new Error('no members');
    harness.files.set('/room.wav', wav(tone(1000, 20, 16_000, 0.1), 16_000));
    harness.files.set('/leg.wav', wav(tone(1300, 20, 8000, 0.1), 8000));
    room.play({ operationUuid: 'room', playlist: await harness.admitted('/room.wav'), loop: 1, volume: 100 });
    one.call.leg.play({ operationUuid: 'leg', playlist: await harness.admitted('/leg.wav'), loop: 1, volume: 100 });
    await one.call.notices.until(() => one.call.notices.of('playback.started').length === 1);
    const [byOne, byTwo] = await Promise.all([one.listen(600, 200), two.listen(600, 200)]);
    for (const heard of [byOne, byTwo]) expect(Math.abs(presentDb(heard, 1000, 8000) + 20)).toBeLessThan(0.5);
    expect(Math.abs(presentDb(byOne, 1300, 8000) + 20)).toBeLessThan(0.5);
    expect(levelDb(byTwo, 1300, 8000)).toBeLessThan(-55);
    expect(presentDb(byOne, 660, 8000)).toBeGreaterThan(one.level - 1);
    room.setPlaybackVolume(50);
    expect(Math.abs(presentDb(await two.listen(400, 200), 1000, 8000) + 26)).toBeLessThan(0.5);
    room.stopPlayback('room');
    expect(levelDb(await two.listen(400, 200), 1000, 8000)).toBeLessThan(-55);
    expect(notices).toEqual([
      { type: 'playback.started', operationUuid: 'room' },
      { type: 'playback.stopped', operationUuid: 'room' },
    ]);
    await Promise.all([one.end(), two.end()]);
    await room.close();
  });

  test('that is joined, left, muted and closed makes no click, and a leg that moves loses and doubles no frame', async () => {
    const rooms = [await opened(), await opened()]; // on different workers
    const [first, second] = rooms;
    if (first === undefined || second === undefined) throw new Error('no rooms');
    const listener = await Promise.all([member(first, 0), member(second, 0)]);
    const mover = await member(first, 200);
    for (let i = 0; i < 4; i++) {
      mover.call.leg.join(i % 2 === 0 ? second : first, FREE);
      await mover.call.notices.until(() => mover.call.notices.of('room.joined').length === i + 2);
      mover.call.leg.setMuted(true);
      mover.call.leg.setMuted(false);
      await mover.hears(10);
    }
    mover.call.leg.leave();
    await mover.call.notices.until(() => mover.call.notices.of('room.left').length === 5);
    expect(mover.call.notices.all.flatMap((notice) => ('room' in notice ? [`${notice.type} ${notice.room}`] : []))).toEqual([
      `room.joined ${first.number}`,
      ...[second, first, second, first].flatMap((to) => [
        `room.left ${to === first ? second.number : first.number}`,
        `room.joined ${to.number}`,
      ]),
      `room.left ${first.number}`,
    ]);
    const { heard } = mover.call.peer;
    heard.slice(1).forEach((packet, i) => {
      expect((packet.sequence - (heard[i]?.sequence ?? 0)) & 0xffff).toBe(1);
      expect((packet.timestamp - (heard[i]?.timestamp ?? 0)) >>> 0).toBe(160);
    });
    // The tone's own steepest step is 2 pi 200 / 8000 of its amplitude; a click would be a step of up to all of it.
    for (const ear of listener) {
      const pcm = ear.all();
      const steepest = pcm.reduce((most, sample, i) => Math.max(most, i === 0 ? 0 : Math.abs(sample - (pcm[i - 1] ?? 0))), 0);
      expect(Math.max(...pcm)).toBeGreaterThan(6_000);
      expect(steepest).toBeLessThan(2_600);
    }
    await Promise.all([...listener, mover].map((talker) => talker.end()));
    await Promise.all(rooms.map((room) => room.close()));
  });

  test('tells who talks: soon after the first sound, soon after the last, not when muted, and not without being asked', async () => {
    const room = await opened();
    const [talker, other] = await Promise.all([member(room, 0), member(room, 660)]);
    if (talker === undefined || other === undefined) throw new Error('no members');
    const { notices, leg } = talker.call;
    expect(other.call.notices.of('voice')).toEqual([]);
    room.setVoiceActivity(true);
    await other.call.notices.until(() => other.call.notices.of('voice').length === 1);
    expect(notices.of('voice')).toEqual([]);
    const began = performance.now();
    talker.say(440);
    await notices.until(() => notices.of('voice').length === 1);
    expect(performance.now() - began).toBeLessThan(400);
    const ended = performance.now();
    talker.say(0);
    await notices.until(() => notices.of('voice').length === 2);
    expect(performance.now() - ended).toBeGreaterThan(450);
    expect(performance.now() - ended).toBeLessThan(1_200);
    talker.say(440);
    await notices.until(() => notices.of('voice').length === 3);
    leg.setMuted(true);
    await notices.until(() => notices.of('voice').length === 4);
    expect(notices.of('voice').map(({ talking }) => talking)).toEqual([true, false, true, false]);
    other.call.leg.leave();
    await other.call.notices.until(() => other.call.notices.of('room.left').length === 1);
    expect(other.call.notices.of('voice').map(({ talking }) => talking)).toEqual([true, false]);
    await Promise.all([talker.end(), other.end()]);
    await room.close();
  });

  test('that is left and joined again at once is told as joined, and the end of the seat before as nothing', async () => {
    const [room, other] = [await opened(), await opened()];
    const [one, two] = await Promise.all([member(room, 440), member(room, 660)]);
    if (one === undefined || two === undefined) throw new Error('no members');
    const { notices, leg } = two.call;
    for (let round = 1; round <= 5; round++) {
      leg.leave();
      leg.join(room, FREE);
      await notices.until(() => notices.of('room.joined').length === 1 + round);
    }
    expect(notices.of('room.left')).toEqual([]);
    leg.join(other, FREE);
    leg.leave();
    leg.join(room, FREE);
    await notices.until(() => notices.of('room.joined').some(({ room: number }, at) => at > 5 && number === room.number));
    expect(notices.of('room.left').filter(({ room: number }) => number === room.number)).toEqual([]);
    expect(Math.abs(presentDb(await one.listen(600, 200), 660, 8000) - two.level)).toBeLessThan(0.5);
    leg.leave();
    await notices.until(() => notices.of('room.left').some(({ room: number }) => number === room.number));
    // The leave was asked for: whoever has ordered the next join of that room meanwhile has lost nothing.
    expect(notices.of('room.left').at(-1)).toEqual({ type: 'room.left', room: room.number, isAsked: true });
    await Promise.all([one.end(), two.end()]);
    await room.close();
    await other.close();
  });

  test('closed, it is left by all; joining it afterwards is told as left', async () => {
    const room = await opened();
    const talker = await member(room, 440);
    await room.close();
    await talker.call.notices.until(() => talker.call.notices.of('room.left').length === 1);
    expect(talker.call.notices.of('room.left')).toEqual([{ type: 'room.left', room: room.number }]);
    talker.call.leg.join(room, FREE);
    await talker.call.notices.until(() => talker.call.notices.of('room.left').length === 2);
    expect(talker.call.notices.of('room.joined').length).toBe(1);
    await talker.end();
  });
});

test('mu-law there and back is the identity on its codes', () => {
  for (let octet = 0; octet < 256; octet++) {
    if (octet !== 0x7f) expect(mulawOctet(mulawSample(octet))).toBe(octet); // 0x7f is the other zero
  }
});
