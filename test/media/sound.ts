/** Sounds to play and listener to measure them: WAV writing, G.711 by its formulas, and the purity of a tone. */

/** A sine at `hz`, `seconds` long; `amplitude` of full scale. */
export function tone(hz: number, seconds: number, rateHz: number, amplitude = 0.5): Float64Array {
  return Float64Array.from(
    { length: Math.round(seconds * rateHz) },
    (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / rateHz),
  );
}

/** A PCM16 WAV of one channel, or of two equal ones. */
export function wav(samples: Float64Array, rateHz: number, channels = 1): Uint8Array<ArrayBuffer> {
  const data = samples.length * 2 * channels;
  const bytes = new Uint8Array(44 + data);
  const view = new DataView(bytes.buffer);
  const text = (at: number, id: string) => bytes.set(new TextEncoder().encode(id), at);
  text(0, 'RIFF');
  view.setUint32(4, 36 + data, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rateHz, true);
  view.setUint32(28, rateHz * 2 * channels, true);
  view.setUint16(32, 2 * channels, true);
  view.setUint16(34, 16, true);
  text(36, 'data');
  view.setUint32(40, data, true);
  samples.forEach((sample, i) => {
    for (let channel = 0; channel < channels; channel++)
      view.setInt16(44 + 2 * (i * channels + channel), Math.round(sample * 32767), true);
  });
  return bytes;
}

/** ITU-T G.711 mu-law octet to a 16-bit sample, as table 2a has it. */
export function mulawSample(octet: number): number {
  const code = ~octet & 0xff;
  const magnitude = (((code & 15) * 2 + 33) << ((code >> 4) & 7)) - 33;
  return ((code & 0x80) !== 0 ? -magnitude : magnitude) * 4;
}

/** ITU-T G.711 A-law octet to a 16-bit sample, as table 1a has it. */
export function alawSample(octet: number): number {
  const code = octet ^ 0x55;
  const segment = (code >> 4) & 7;
  const magnitude = segment === 0 ? (code & 15) * 2 + 1 : ((code & 15) * 2 + 33) << (segment - 1);
  return ((code & 0x80) !== 0 ? magnitude : -magnitude) * 8;
}

/**
 * Signal to noise of a sine at `hz`, in dB: what of the sound is that sine of any phase and level, over what is not.
 */
export function toneSnrDb(pcm: readonly number[], hz: number, rateHz: number): number {
  let cos = 0;
  let sin = 0;
  let total = 0;
  pcm.forEach((sample, i) => {
    const angle = (2 * Math.PI * hz * i) / rateHz;
    cos += sample * Math.cos(angle);
    sin += sample * Math.sin(angle);
    total += sample * sample;
  });
  const signal = (2 * (cos * cos + sin * sin)) / pcm.length;
  return 10 * Math.log10(signal / Math.max(total - signal, 1e-9));
}

/** A 16-bit sample to the nearest mu-law octet, by search. */
export function mulawOctet(sample: number): number {
  return nearest(MULAW, sample);
}

/** A 16-bit sample to the nearest A-law octet, by search. */
export function alawOctet(sample: number): number {
  return nearest(ALAW, sample);
}

interface Law {
  readonly levels: readonly number[];
  readonly octets: readonly number[];
}

function law(sampleOf: (octet: number) => number): Law {
  const pairs = Array.from({ length: 256 }, (_, octet) => [sampleOf(octet), octet] as const).sort(
    (a, b) => a[0] - b[0] || a[1] - b[1],
  );
  return { levels: pairs.map(([level]) => level), octets: pairs.map(([, octet]) => octet) };
}

const MULAW = law(mulawSample);
const ALAW = law(alawSample);

function nearest({ levels, octets }: Law, sample: number): number {
  let low = 0;
  let high = levels.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((levels[middle] ?? 0) <= sample) low = middle;
    else high = middle;
  }
  const below = Math.abs((levels[low] ?? 0) - sample) <= Math.abs((levels[high] ?? 0) - sample);
  return octets[below ? low : high] ?? 0;
}

const LEVEL_WINDOW_SEC = 0.05;

/**
 * Level of the sine at `hz`, a multiple of 20, in dB below full scale: the median over windows of 50 ms, in which tones
 * 20 Hz apart do not meet. A frame that came late because the machine was busy, and what it was bridged with, is in one
 * or two of them.
 */
export function levelDb(pcm: readonly number[], hz: number, rateHz: number): number {
  return quantileDb(pcm, hz, rateHz, 0.5);
}

/**
 * The same of a tone that is there: the level that a quarter of the windows reach. Whatever disturbs a tone takes from
 * its level, and on a busy machine more than half of the windows were seen to be disturbed.
 */
export function presentDb(pcm: readonly number[], hz: number, rateHz: number): number {
  return quantileDb(pcm, hz, rateHz, 0.75);
}

function quantileDb(pcm: readonly number[], hz: number, rateHz: number, quantile: number): number {
  const length = Math.min(pcm.length, Math.round(rateHz * LEVEL_WINDOW_SEC));
  const levels: number[] = [];
  for (let at = 0; at + length <= pcm.length; at += length) levels.push(windowLevelDb(pcm.slice(at, at + length), hz, rateHz));
  return levels.sort((a, b) => a - b)[Math.floor(levels.length * quantile)] ?? Number.NEGATIVE_INFINITY;
}

function windowLevelDb(pcm: readonly number[], hz: number, rateHz: number): number {
  let cos = 0;
  let sin = 0;
  let weight = 0;
  pcm.forEach((sample, i) => {
    const angle = (2 * Math.PI * hz * i) / rateHz;
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / pcm.length);
    cos += sample * window * Math.cos(angle);
    sin += sample * window * Math.sin(angle);
    weight += window;
  });
  return 20 * Math.log10(Math.max((2 * Math.hypot(cos, sin)) / weight / 32_768, 1e-9));
}

/** The share of a sound that is this tone, 0 to 1 (Goertzel). */
export function toneShare(pcm: readonly number[], hz: number, rateHz = 8_000): number {
  const turn = 2 * Math.cos((2 * Math.PI * hz) / rateHz);
  let [before, last, energy] = [0, 0, 0];
  for (const sample of pcm) {
    [before, last] = [last, sample + turn * last - before];
    energy += sample * sample;
  }
  return (2 * (last * last + before * before - turn * last * before)) / (pcm.length * energy + 1);
}
