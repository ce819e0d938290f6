/**
 * What we submit, as a foreign implementation of SMPP reads it: an SMSC on a socket passes our segments on to Kannel,
 * which puts them together.
 */
import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { segment } from '../../src/machine/message/segments.ts';
import { SmppGateway } from '../../src/provider/smpp-gateway.ts';
import { Kannel, kannelInstalled } from './kannel.ts';
import { Smsc } from './smsc.ts';

// Skipped where Kannel is not installed (apt-get install kannel).
describe.skipIf(!kannelInstalled)('Kannel reads', () => {
  test('Hebrew, 400 GSM characters and the extension table as they were written', async () => {
    const arrived: URLSearchParams[] = [];
    let heard = () => {};
    const web = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        // Kannel escapes octets: the text of coding 2 is UTF-16, so it is taken apart as octets, not as UTF-8.
        arrived.push(new URLSearchParams(new URL(request.url).search));
        raw.push(request.url);
        heard();
        return new Response('');
      },
    });
    const raw: string[] = [];
    const smsc = await Smsc.open();
    const kannel = await Kannel.start(smsc, `http://127.0.0.1:${web.port}/mo`);
    const clock = systemClock();
    const settings = { host: '127.0.0.1', port: smsc.port, systemId: 'user', password: 'secret', systemType: '', window: 1 };
    const gateway = new SmppGateway({ kind: 'smpp', ...settings, longMessages: 'udh' }, clock, silentLog);
    try {
      smsc.relayTo = 'kannel';
      const ready = new Promise<void>((onReady) =>
        gateway.start({ onReceipt: async () => {}, onMessage: async () => false, onReady }),
      );
      await ready;
      const texts = ['שלום, ההזמנה שלך בדרך אליך. '.repeat(5), 'abcdefghij'.repeat(40), 'Grüße {à} 5 € [ok] ~ ^ \\ |'];
      for (const text of texts) {
        const before = arrived.length;
        const parts = segment(text).segments.map((_, at) => at);
        const outcomes = await gateway.submit({
          messageUuid: newUuid(),
          from: '+15550001',
          to: '+972500000001',
          text,
          parts,
          total: parts.length,
        });
        expect(outcomes.map(({ outcome }) => outcome.outcome)).toEqual(parts.map(() => 'accepted'));
        await Promise.race([
          new Promise<void>((resolve) => {
            heard = resolve;
            if (arrived.length > before) resolve();
          }),
          Bun.sleep(10_000),
        ]);
        expect([kannel.said.slice(-500), arrived.length]).toEqual([expect.anything(), before + 1]);
        const escaped = /[?&]text=([^&]*)/.exec(raw.at(-1) ?? '')?.[1] ?? '';
        const octets = Buffer.from(
          escaped
            .replaceAll('+', ' ')
            .replaceAll(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
          'latin1',
        );
        const read = arrived.at(-1)?.get('coding') === '2' ? new TextDecoder('utf-16be').decode(octets) : octets.toString('utf8');
        expect(read).toBe(text);
      }
    } finally {
      await gateway.close();
      await kannel.stop();
      await smsc.close();
      await web.stop(true);
    }
  }, 60_000);
});
