/** The file of a ring, made after its drawing in native/plane/recording/recording_ring.h and not by its code. */
export interface RingParts {
  readonly name: string;
  readonly rateHz: number;
  readonly ringBytes: number;
  readonly put: number;
  readonly taken: number;
  /** The sound from the first sample on, of which a ring keeps the end. */
  readonly sound: Uint8Array;
}

export function ringFile({ name, rateHz, ringBytes, put, taken, sound }: RingParts): Buffer {
  const file = Buffer.alloc(4096 + ringBytes);
  file.write('SIDERING', 0, 'latin1');
  file.writeUInt32LE(1, 8);
  file.writeUInt32LE(rateHz, 12);
  file.writeUInt32LE(ringBytes, 16);
  file.writeUInt32LE(Buffer.byteLength(name), 20);
  file.write(name, 192);
  writePosition(file, 64, put);
  writePosition(file, 128, taken);
  for (let at = Math.max(0, put - ringBytes); at < put; at++) file.writeUInt8(sound[at] ?? 0, 4096 + (at % ringBytes));
  file.writeUInt32LE(fnv1a(Buffer.concat([file.subarray(0, 24), file.subarray(192, 4096)])), 24);
  return file;
}

export function writePosition(file: Buffer, at: number, position: number): void {
  file.writeBigUInt64LE((BigInt.asUintN(32, ~BigInt(position)) << 32n) | BigInt(position), at);
}

function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5n;
  for (const byte of bytes) hash = BigInt.asUintN(32, (hash ^ BigInt(byte)) * 0x01000193n);
  return Number(hash);
}
