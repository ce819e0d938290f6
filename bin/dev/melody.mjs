/** C, E, G, C: a third of a second each, as a WAV of 8 kHz, 16 bits, mono. */
export function melody() {
  const rate = 8_000;
  const samples = [262, 330, 392, 523].flatMap((hz) =>
    Array.from({ length: rate / 3 }, (_, at) =>
      Math.round(9_000 * Math.sin((2 * Math.PI * hz * at) / rate) * Math.exp((-3 * at) / rate)),
    ),
  );
  const wav = Buffer.alloc(44 + samples.length * 2);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(samples.length * 2, 40);
  for (const [at, sample] of samples.entries()) wav.writeInt16LE(sample, 44 + at * 2);
  return wav;
}
