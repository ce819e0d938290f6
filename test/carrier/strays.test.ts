/** Requests within dialogs of other nodes: which are asked about, and what becomes of those that nobody takes. */
import { expect, test } from 'bun:test';
import { Strays } from '../../src/carrier/strays.ts';
import { SIP_STRAYS_MAX } from '../../src/limits.ts';
import { settle } from '../support/virtual-clock.ts';

const SOURCE = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 0 } as const;
const BYE = Buffer.from('BYE');

test('What no other node takes is answered here, also where the others cannot be asked', async () => {
  const answers = [Promise.resolve(true), Promise.resolve(false), Promise.reject(new Error('no bus'))];
  const own: string[] = [];
  const take = () => answers.shift() ?? Promise.resolve(true);
  const strays = new Strays({ take, answer: () => {} }, (bytes) => own.push(Buffer.from(bytes).toString()));
  for (const name of ['taken', 'of nobody', 'unasked']) expect(strays.take(Buffer.from(name), SOURCE)).toBe(true);
  await settle();
  expect(own).toEqual(['of nobody', 'unasked']);
});

test('What another node could not keep goes no further, nor does one too many, until others are answered', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let asked = 0;
  const take = () => {
    asked += 1;
    return promise;
  };
  const strays = new Strays({ take, answer: () => {} }, () => {});
  expect(strays.take(BYE, { ...SOURCE, via: 'b' })).toBe(false);
  for (let stray = 0; stray < SIP_STRAYS_MAX; stray++) expect(strays.take(BYE, SOURCE)).toBe(true);
  expect([strays.take(BYE, SOURCE), asked]).toEqual([false, SIP_STRAYS_MAX]);
  resolve(true);
  await settle();
  expect(strays.take(BYE, SOURCE)).toBe(true);
});
