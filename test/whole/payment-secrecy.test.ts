/**
 * Many collections at once, many of them cut off in the middle of a number by a hang-up or the death of the platform;
 * then everything that was written, sent or said is searched for the numbers.
 */
import { describe, expect, test } from 'bun:test';
import { filesBelow } from '../support/files-below.ts';
import { Keypad } from '../support/keypad.ts';
import { patiently } from '../support/patiently.ts';
import { Platform } from '../support/platform.ts';
import { randomCard } from '../support/random-card.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer } from '../support/rtp-peer.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';
const CALLS = 24;
const TOGETHER = 6;
/** Four digits: three would be found anywhere. */
const CVV = '9973';

describe.skipIf(!sippInstalled)('card numbers', () => {
  test('are found nowhere afterwards: not in the database, its log, the data directory, the output, a webhook or an answer', async () => {
    const receiver = new Receiver();
    const platform = await Platform.start({ LOG_LEVEL: 'trace' });
    let said = '';
    try {
      const app = await platform.application(receiver.url, NUMBER);
      await platform.trunk('127.0.0.1:9');
      const ask = (method: string, sessionUuid: string, path = '', body?: unknown) =>
        patiently(() => platform.api(app, method, `/v1/sessions/${sessionUuid}${path}`, body));
      const cards: string[] = [];
      const callers: { ear: RtpPeer; sipp: Sipp; sessionUuid: string; keypad: Keypad }[] = [];
      // Each call by a number of its own, so that several begin together.
      const begin = async (at: number) => {
        const did = `+1555010${String(at).padStart(3, '0')}`;
        await platform.operator('PUT', `/numbers/${encodeURIComponent(did)}`, { app_uuid: app.appUuid });
        const ear = await RtpPeer.open();
        const number = did;
        const find = () => receiver.events.findLast(({ event, body }) => event === 'session.created' && body.did === did);
        const dial = () => sipp({ scenario: 'caller-waits', to: platform.sipUdp, number, keys: { rtp_port: String(ear.port) } });
        let peer = await dial();
        // SIPp may find its ports taken by the one beside it, and end: then it is begun again.
        for (let again = 0; again < 3 && find() === undefined; again++) {
          const arrived = receiver.until(() => find() !== undefined, 'a call', 20_000).then(() => true);
          if (await Promise.race([arrived, peer.done.then(() => false)])) break;
          arrived.catch(() => {});
          peer = await dial();
        }
        const sessionUuid = String(find()?.body.session_uuid);
        const answered = await ask('POST', sessionUuid, '/answer');
        expect([answered.status, answered.body]).toMatchObject([202, {}]);
        await receiver.event('session.answered', sessionUuid);
        await ear.until(() => ear.source !== undefined, 'audio');
        callers[at] = { ear, sipp: peer, sessionUuid, keypad: new Keypad(ear) };
      };
      for (let first = 0; first < CALLS; first += TOGETHER)
        await Promise.all(Array.from({ length: TOGETHER }, (_, at) => begin(first + at)));
      const collect = async (at: number, kind: 'card' | 'cvv') => {
        const { sessionUuid } = callers[at] ?? { sessionUuid: '' };
        const answer = await ask('POST', sessionUuid, `/payment/${kind}/collect`, {});
        said += JSON.stringify(answer.body);
        expect(answer.status).toBe(202);
      };
      // A third is whole; a third is cut off by a hang-up after some digits; a third by the kill.
      for (const [at, { keypad, sessionUuid }] of callers.entries()) {
        const card = randomCard();
        cards.push(card);
        await collect(at, 'card');
        if (at % 3 === 0) keypad.press(`${card}#`);
        else keypad.press(card.slice(0, 6 + (at % 11)));
        if (at % 3 === 0) await receiver.event('payment.card.collected', sessionUuid);
        if (at % 3 === 0) await collect(at, 'cvv');
        if (at % 6 === 0) keypad.press(`${CVV}#`);
        if (at % 6 === 0) await receiver.event('payment.cvv.collected', sessionUuid);
        if (at % 3 === 1) {
          const { status, body } = await ask('DELETE', sessionUuid);
          expect([status, body]).toMatchObject([202, {}]);
          await receiver.event('session.ended', sessionUuid);
        }
      }
      said += platform.output;
      await platform.kill();
      for (const { sipp: peer, ear } of callers) {
        peer.stop();
        ear.close();
      }
      await platform.start();
      const unfinished = callers.filter((_, at) => at % 3 !== 1);
      for (const { sessionUuid } of unfinished) await ask('DELETE', sessionUuid);
      await receiver.until(() => receiver.count('session.ended') === CALLS, 'every end', 30_000);
      // One result for each collection, whatever became of it.
      const results = receiver.events.filter(({ event }) => event === 'payment.card.collected');
      expect(results).toHaveLength(CALLS);
      expect(results.filter(({ body }) => body.status === 'collected')).toHaveLength(CALLS / 3);
      expect(receiver.count('dtmf.received')).toBe(0);
      said += await (await fetch(`${platform.url}/metrics`)).text();
      const logged = await platform.operator('GET', `/events?app_uuid=${app.appUuid}`);
      said += JSON.stringify(logged.body) + platform.output + JSON.stringify(receiver.events.map(({ body }) => body));

      const directory = [...filesBelow(platform.dataDir)];
      expect(directory.some(([path]) => path.includes('pg_wal'))).toBe(true);
      // What is not secret is found by the same search.
      const known = callers[0]?.sessionUuid ?? '';
      expect([said.includes(known), directory.some(([, bytes]) => bytes.includes(known))]).toEqual([true, true]);
      // Four digits are found by accident in bytes, and inside of longer numbers and of identifiers; not by themselves
      // in text, nor in quotes.
      expect(new RegExp(`(?<![0-9a-f-])${CVV}(?![0-9a-f-])`).exec(said)?.index).toBeUndefined();
      for (const spelled of [`"${CVV}"`, `'${CVV}'`, `=${CVV}&`])
        expect(directory.filter(([, bytes]) => bytes.includes(spelled)).map(([path]) => path)).toEqual([]);
      for (const [at, card] of cards.entries()) {
        // A number that was cut off counts by what had been keyed in; ten digits are no accident.
        const keyed = at % 3 === 0 ? card : card.slice(0, 6 + (at % 11));
        for (const secret of keyed.length >= 10 ? [keyed, keyed.slice(0, 10)] : []) {
          expect([at, said.includes(secret)]).toEqual([at, false]);
          expect(directory.filter(([, bytes]) => bytes.includes(secret)).map(([path]) => path)).toEqual([]);
        }
      }
    } finally {
      await platform.stop();
      await receiver.stop();
    }
  }, 120_000);
});
