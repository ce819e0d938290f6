/** What an SMSC brings that is for nobody here: it may come without an end. */
import { expect, test } from 'bun:test';
import { IncomingMessages } from '../../src/call/message/incoming-messages.ts';
import { Receipts } from '../../src/call/message/receipts.ts';
import { MESSAGES_SAID_EVERY_MS, RECEIPT_LOOKUP_WAIT_MS, RECEIPT_LOOKUPS_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const strays = () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void said.push(message) };
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
