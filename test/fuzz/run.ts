/** Runs a target on one input, and says what is wrong with what it did. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seeded } from '../support/random.ts';
import type { Target } from './targets.ts';

/** No input may take longer, in milliseconds. The fastest of three counts, because others use the machine too. */
const TIME_MAX_MS = 250;
/** What a parser tells of 64 KiB is not longer. */
const TOLD_MAX_CHARS = 1_000_000;
const CORPUS = join(import.meta.dir, 'corpus');

interface Outcome {
  /** What the target made of it, to tell an input that does something new. */
  readonly told: string;
  readonly fault: string | undefined;
}

export function tryInput(target: Target, bytes: Uint8Array): Outcome {
  let outcome = once(target, bytes);
  for (let again = 0; again < 2 && outcome.tookMs > TIME_MAX_MS; again += 1) outcome = once(target, bytes);
  if (outcome.fault !== undefined) return outcome;
  if (outcome.tookMs > TIME_MAX_MS) return { ...outcome, fault: `took ${Math.round(outcome.tookMs)} ms` };
  if (outcome.told.length > TOLD_MAX_CHARS) return { ...outcome, fault: `told ${outcome.told.length} characters` };
  const { readPieces } = target;
  if (readPieces === undefined) return outcome;
  const pieces = inPieces(bytes);
  const other = guarded(target, () => readPieces(pieces));
  const isSame = other.fault === undefined && other.told === outcome.told;
  return isSame
    ? outcome
    : { ...outcome, fault: other.fault ?? `whole: ${outcome.told}; in ${pieces.length} pieces: ${other.told}` };
}

function once(target: Target, bytes: Uint8Array): Outcome & { readonly tookMs: number } {
  const began = performance.now();
  const outcome = guarded(target, () => target.read(bytes.slice()));
  return { ...outcome, tookMs: performance.now() - began };
}

function guarded({ owns }: Target, read: () => string): Outcome {
  try {
    return { told: read(), fault: undefined };
  } catch (error) {
    if (owns?.(error) === true) return { told: 'refused', fault: undefined };
    return { told: '', fault: error instanceof Error ? (error.stack ?? String(error)) : String(error) };
  }
}

/** Cuts that depend on the bytes alone, so that a fault comes again. */
function inPieces(bytes: Uint8Array): Uint8Array[] {
  const random = seeded(bytes.length + (bytes[0] ?? 0));
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + Math.floor(random() ** 3 * 2_000);
    pieces.push(bytes.slice(at, at + length));
    at += length;
  }
  return pieces;
}

/** The inputs that are kept for a target. */
export function corpusOf({ name }: Target): readonly { readonly name: string; readonly bytes: Uint8Array }[] {
  const folder = join(CORPUS, name);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((file) => ({ name: `${name}/${file}`, bytes: new Uint8Array(readFileSync(join(folder, file))) }));
}

/** Keeps an input, under the beginning of its hash. Returns its path. */
export function keep({ name }: Target, bytes: Uint8Array, prefix: string): string {
  const folder = join(CORPUS, name);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${prefix}-${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`);
  writeFileSync(path, bytes);
  return path;
}
