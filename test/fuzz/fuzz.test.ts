/** The kept inputs of `npm run fuzz`, and some mutants of each, through every parser. */
import { describe, expect, test } from 'bun:test';
import { seeded } from '../support/random.ts';
import { mutant } from './mutate.ts';
import { corpusOf, tryInput } from './run.ts';
import { TARGETS } from './targets.ts';

const MUTANTS = 10;

describe('No bytes of a stranger make a parser throw, hang or read a stream otherwise because it came in pieces:', () => {
  for (const target of TARGETS)
    test(target.name, () => {
      const corpus = corpusOf(target);
      expect(corpus.length).toBeGreaterThan(0);
      const random = seeded(corpus.length);
      for (const { name, bytes } of corpus) {
        expect([name, tryInput(target, bytes).fault]).toEqual([name, undefined]);
        for (let n = 0; n < MUTANTS; n += 1) {
          const input = mutant(random, bytes, bytes, target.words);
          const fault = tryInput(target, input).fault;
          if (fault !== undefined) throw new Error(`${name}, as ${Buffer.from(input).toString('base64')}: ${fault}`);
        }
      }
    });
});
