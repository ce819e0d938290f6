/** What an SMSC brings that is for nobody here: it may come without an end. */
import { expect, test } from 'bun:test';
import { IncomingMessages } from '../../src/call/message/incoming-messages.ts';
import { Receipts } from '../../src/call/message/receipts.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { MESSAGES_SAID_EVERY_MS, RECEIPT_LOOKUP_WAIT_MS, RECEIPT_LOOKUPS_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const strays = () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const say = (_fields: object, message: string) => void said.push(message);
  const log = { ...silentLog, warn: say, error: say };
  return { clock, said, log };
};

test('texts to a number of nobody are told in the log once a minute, however many come', async () => {
  const { clock, said, log } = strays();
  const store = { take: async () => {}, giveUp: async () => {} };
  const incoming = new IncomingMessages({ store, clock, log, owner: async () => undefined });
  const part = { to: '+15550001', from: '+15550002', reference: 0, total: 1, number: 1, octets: new Uint8Array(1) };
  const come = async () => {
    for (let i = 0; i < 100; i++) {
      const link = { id: 'link', since: 0 };
      expect(await incoming.take({ ...part, alphabet: 'gsm7' }, link)).toBe(false);
    }
  };
  await come();
  expect(said).toEqual(['a short message came to a number that is assigned to no application']);
  await clock.advance(MESSAGES_SAID_EVERY_MS);
  await come();
  expect(said).toHaveLength(2);
});

test('receipts for messages of somebody else are told in the log once a minute, however many come', async () => {
  const { clock, said, log } = strays();
  const store = { findParts: async () => [], change: async () => undefined, held: async () => [], shared: false };
  const receipts = new Receipts({ store, clock, log, isSubmitting: () => false });
  const come = async () => {
    const receipt = { state: 'delivered', error: '', recipient: '', isMarked: true } as const;
    const taken = Array.from({ length: 100 }, (_, at) => receipts.take({ ...receipt, smscId: `id${at}` }));
    for (let lookup = 0; lookup < RECEIPT_LOOKUPS_MAX; lookup++) await clock.advance(RECEIPT_LOOKUP_WAIT_MS);
    await Promise.all(taken);
  };
  await come();
  expect(said).toEqual(['a receipt for no message of ours']);
  await clock.advance(MESSAGES_SAID_EVERY_MS);
  await come();
  expect(said).toHaveLength(2);
});

test('a text and a receipt that the database refuses are asked for again, and told in the log; an outage is told elsewhere', async () => {
  const { clock, said, log } = strays();
  let fault: Error = new StoreUnavailable('away');
  const refuses = () => Promise.reject(fault);
  const store = { findParts: refuses, change: refuses, held: async () => [], shared: false, take: refuses, giveUp: refuses };
  const incoming = new IncomingMessages({ store, clock, log, owner: async () => 'app' });
  const receipts = new Receipts({ store, clock, log, isSubmitting: () => false });
  const part = { to: '+15550001', from: '+15550002', reference: 0, total: 1, number: 1, octets: new Uint8Array(1) };
  const come = async () => {
    await expect(incoming.take({ ...part, alphabet: 'gsm7' }, { id: 'link', since: 0 })).rejects.toBe(fault);
    const receipt = { state: 'delivered', error: '', recipient: '', isMarked: true, smscId: 'id' } as const;
    await expect(receipts.take(receipt)).rejects.toBe(fault);
  };
  await come();
  expect(said).toEqual([]);
  fault = new Error('no');
  await come();
  await come();
  expect(said).toEqual(['a short message is refused by the database', 'a receipt is refused by the database']);
});
