/**
 * Fuzzing of the parsers in TypeScript: mutants of a corpus that is kept, by a seed. None may throw another error than
 * its own, take long, or read a stream otherwise because it came in pieces.
 *
 *   npm run fuzz -- [PARSER…] [--seconds 5] [--seed N] [--keep]
 *
 * An input that breaks the law is kept in test/fuzz/corpus, where npm test tries it from then on. With `--keep` so are
 * inputs with which a parser does something new, up to 40 for each.
 */
import { parseArgs } from 'node:util';
import { numberOption } from '../support/number-option.ts';
import { oneOf, seeded } from '../support/random.ts';
import { mutant } from './mutate.ts';
import { corpusOf, keep, tryInput } from './run.ts';
import { TARGETS, type Target } from './targets.ts';

const KEPT_MAX = 40;
const KEPT_MAX_BYTES = 4_096;
/** Inputs from which further ones are made. */
const POOL_MAX = 2_000;
const FAULTS_MAX = 5;

function fuzz(target: Target, seconds: number, seed: number, keepsNew: boolean): number {
  const random = seeded(seed);
  const corpus = corpusOf(target);
  const pool = corpus.map(({ bytes }) => bytes);
  if (pool.length === 0) pool.push(new Uint8Array(Buffer.from(target.words.join(''), 'latin1')));
  // What was told is compared without its numbers and names: a new shape is new, another number is not.
  const shape = (told: string) => told.replace(/[0-9a-f]{6,}|[0-9]+/g, '#').slice(0, 200);
  const seen = new Set(pool.map((bytes) => shape(tryInput(target, bytes).told)));
  const until = performance.now() + seconds * 1000;
  let tried = 0;
  let faults = 0;
  let kept = corpus.length;
  while (performance.now() < until && faults < FAULTS_MAX) {
    const input = mutant(random, oneOf(random, pool), oneOf(random, pool), target.words);
    const { told, fault } = tryInput(target, input);
    tried += 1;
    if (fault !== undefined) {
      faults += 1;
      console.log(`FAULT ${target.name}: ${fault}\n  ${keep(target, input, 'fault')}`);
    } else if (!seen.has(shape(told)) && pool.length < POOL_MAX) {
      seen.add(shape(told));
      pool.push(input);
      if (keepsNew && kept < KEPT_MAX && input.length <= KEPT_MAX_BYTES) {
        keep(target, input, 'new');
        kept += 1;
      }
    }
  }
  console.log(`${target.name}: ${tried} inputs, ${seen.size} shapes, ${faults} faults`);
  return faults;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '5' }, seed: { type: 'string' }, keep: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !TARGETS.some((target) => target.name === name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; there are ${TARGETS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : numberOption(values, 'seed');
const seconds = numberOption(values, 'seconds');
const chosen = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const faults = chosen.reduce((sum, target) => sum + fuzz(target, seconds, seed, values.keep), 0);
console.log(`seed ${seed}: ${chosen.length} parsers, ${faults} faults`);
process.exit(faults === 0 ? 0 : 1);
