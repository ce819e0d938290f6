/** When it is read how each call sounds. */
import { expect, test } from 'bun:test';
import { sampleQuality } from '../../src/call/session/quality-sampler.ts';
import { CALL_DURATION_MAX_SEC, HISTORY_CALL_MAX_ENTRIES } from '../../src/limits.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('Each call is sampled every ten seconds of its own, not as it begins, and none after the end', async () => {
  const began = 1_000_500;
  const clock = new VirtualClock(began);
  const samples: string[] = [];
  const call = (sessionUuid: string, createdAt: number) => ({
    state: inbound({ sessionUuid, appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0 }, createdAt),
    sampleQuality: async () => {
      samples.push(`${sessionUuid} ${(clock.now() - began) / 1000}`);
      if (sessionUuid === 'lost') throw new Error('its worker is lost');
    },
  });
  const calls = [call('lost', began), call('late', 1_003_400)];
  const stop = sampleQuality(clock, () => calls.filter(({ state }) => state.createdAt <= clock.now()));
  await clock.advance(25_000);
  expect(samples).toEqual(['lost 10', 'late 13', 'lost 20', 'late 23']);
  stop();
  await clock.advance(60_000);
  expect([samples.length, clock.armed]).toEqual([4, 0]);
});

test('No sample is left out where each timer comes a little late', async () => {
  const began = 1_000_000;
  class LateClock extends VirtualClock {
    override at(deadline: number, fire: () => void): () => void {
      return super.at(deadline + 9, fire);
    }
  }
  const clock = new LateClock(began);
  const samples = Array.from({ length: 10 }, () => 0);
  const calls = samples.map((_, second) => ({
    state: inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0 }, began + second * 1_000),
    sampleQuality: async () => {
      samples[second] = (samples[second] ?? 0) + 1;
    },
  }));
  const stop = sampleQuality(clock, () => calls);
  await clock.advance(610_000);
  expect(samples.map((count) => Math.min(count, 60))).toEqual(samples.map(() => 60));
  stop();
});

test('A call of a day leaves most of its timeline to what happens in it, and is sampled to its end', async () => {
  const began = 1_000_000;
  const clock = new VirtualClock(began);
  const ages: number[] = [];
  const call = {
    state: inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0 }, began),
    sampleQuality: async () => {
      ages.push(Math.floor((clock.now() - began) / 1000));
    },
  };
  const stop = sampleQuality(clock, () => [call]);
  await clock.advance(CALL_DURATION_MAX_SEC * 1000);
  stop();
  const halfAnHour = ages.filter((age) => age <= 1_800);
  expect(halfAnHour).toEqual(Array.from({ length: 180 }, (_, nth) => (nth + 1) * 10));
  expect(ages.length).toBeLessThan(HISTORY_CALL_MAX_ENTRIES / 2);
  // The gaps grow with the age of the call, of which they are a ninetieth at most.
  for (const [nth, age] of ages.entries())
    if (nth > 0) expect(age - (ages[nth - 1] ?? 0)).toBeLessThanOrEqual(Math.max(10, age / 90));
  expect(ages.at(-1)).toBeGreaterThan(CALL_DURATION_MAX_SEC - 1_000);
});
