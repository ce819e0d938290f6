import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { type ChargeOutcome, chargeCompleted } from '../../src/machine/payment/charge.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { nedarimPlus } from '../../src/provider/nedarim-plus.ts';
import { NedarimFake } from './nedarim-fake.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const TIMEOUT_MS = 300;
let fake: NedarimFake;

beforeEach(async () => {
  fake = await NedarimFake.open();
});
afterEach(() => fake.close());

function charge(url = fake.url, last4 = '1111'): Promise<ChargeOutcome> {
  const settings = { kind: 'nedarim_plus' as const, url, apiValid: new Map([['', 'secret']]), clientName: 'A & B' };
  const gateway = nedarimPlus(settings, createOutbound(['127.0.0.0/8']), () => NOW, TIMEOUT_MS);
  return gateway.charge({
    chargeUuid: 'charge',
    operationUuid: 'op',
    sessionUuid: 'session',
    card: Buffer.from(`411111111111${last4}`),
    cvv: Buffer.from('737'),
    last4,
    expMonth: 3,
    expYear: 2031,
    amount: 12_300,
    currency: 'ils',
    terminalNumber: '1234567',
    installments: 1,
  });
}
const indeterminate = (reason: string): ChargeOutcome => ({ status: 'indeterminate', reason });
const INVALID = indeterminate('provider_response_invalid');

describe('Nedarim Plus', () => {
  test('is sent its form, and its answer becomes what may be told', async () => {
    const outcome = await charge();
    expect(fake.taken[0]?.path).toBe('/V6/Files/WebServices/DebitCard.aspx');
    expect(Object.fromEntries(fake.taken[0]?.form ?? [])).toEqual({
      Mosad: '1234567',
      ApiValid: 'secret',
      ClientName: 'A & B',
      CardNumber: '4111111111111111',
      Tokef: '0331',
      CVV: '737',
      Amount: '123',
      Currency: '1',
      Tashloumim: '1',
      PaymentType: 'RAGIL',
      Param1: 'session',
      Param2: 'op',
      AjaxId: 'charge',
    });
    expect(outcome).toEqual({
      status: 'succeeded',
      // 13:45:10 in Israel, in winter.
      transactionCreatedAt: Date.parse('2026-11-20T11:45:10Z'),
      receiptCreated: true,
      installments: 1,
      transactionType: 'regular',
      classification: 'regular',
      issuer: 'cal',
      acquirer: 'max',
    });
  });

  test('nothing else it says is passed on', async () => {
    fake.respond = (socket) =>
      socket.end(
        NedarimFake.answer({
          Tayar: 'Zeout 012345678',
          CompagnyCard: '4111111111111111',
          Solek: '<script>',
          TransactionType: 'x1',
        }),
      );
    const facts = {
      sessionUuid: 's',
      operationUuid: 'o',
      amount: 100,
      currency: 'ils',
      provider: 'nedarim_plus',
      terminalNumber: '1234567',
    };
    const event = JSON.stringify(chargeCompleted(facts, await charge(), { brand: 'visa', last4: '1111' }));
    for (const secret of [
      '99887766',
      '0012345',
      '012345678',
      'Israeli',
      '1230',
      'example.test',
      'עסקה',
      '4111111111111111',
      'script',
      '737',
    ])
      expect([secret, event.includes(secret)]).toEqual([secret, false]);
  });

  test('an error is a decline', async () => {
    fake.respond = (socket) => socket.end(NedarimFake.answer({ Status: 'Error', Message: 'כרטיס נדחה' }));
    expect(await charge()).toEqual({ status: 'declined', reason: 'card_declined' });
  });

  test.each<[string, (fake: NedarimFake) => void, ChargeOutcome]>([
    ['silence', (f) => (f.respond = () => {}), indeterminate('provider_timeout')],
    ['a reset', (f) => (f.respond = (socket) => socket.resetAndDestroy()), indeterminate('provider_unreachable')],
    [
      'an answer cut short',
      (f) => (f.respond = (socket) => socket.end(NedarimFake.answer().slice(0, -20))),
      indeterminate('provider_unreachable'),
    ],
    [
      'half an answer, then silence',
      (f) => (f.respond = (socket) => socket.write(NedarimFake.answer().slice(0, -20))),
      indeterminate('provider_timeout'),
    ],
    ['an error page', (f) => (f.respond = (socket) => socket.end(NedarimFake.text('<html>', '500 Oops'))), INVALID],
    [
      'an error page that says OK',
      (f) => (f.respond = (socket) => socket.end(NedarimFake.answer({}, '502 Bad Gateway'))),
      INVALID,
    ],
    [
      'a redirect',
      (f) => (f.respond = (socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n')),
      INVALID,
    ],
    ['no JSON', (f) => (f.respond = (socket) => socket.end(NedarimFake.text('OK'))), INVALID],
    ['a list', (f) => (f.respond = (socket) => socket.end(NedarimFake.text('[]'))), INVALID],
    ['another status', (f) => (f.respond = (socket) => socket.end(NedarimFake.answer({ Status: 'Pending' }))), INVALID],
    ['another card', (f) => (f.respond = (socket) => socket.end(NedarimFake.answer({ LastNum: '2222' }))), INVALID],
    ['an answer without end', (f) => (f.respond = (socket) => socket.end(NedarimFake.text('x'.repeat(100_000)))), INVALID],
  ])('%s leaves it indeterminate, after one attempt', async (_, misbehave, outcome) => {
    misbehave(fake);
    expect(await charge()).toEqual(outcome);
    expect(fake.taken).toHaveLength(1);
  });

  test('an answer that begins with a byte order mark is read', async () => {
    fake.respond = (socket) => socket.end(NedarimFake.text(`\ufeff${NedarimFake.answer().split('\r\n\r\n')[1]}`));
    expect((await charge()).status).toBe('succeeded');
  });

  test('whose certificate nobody vouches for is sent nothing, so that the charge has failed and may be tried again', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'nedarim-'));
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
    execFileSync('openssl', [...request.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' });
    let heard = 0;
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) =>
      socket.on('data', () => heard++).on('error', () => {}),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const failed = { status: 'failed', reason: 'provider_unreachable', retryable: true } as const;
    expect(await charge(`https://127.0.0.1:${port}`)).toEqual(failed);
    expect(heard).toBe(0);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    rmSync(directory, { recursive: true });
  });

  test('a second answer to the first charge is never taken for the answer to the second', async () => {
    fake.respond = (socket) => socket.write(NedarimFake.answer() + NedarimFake.answer({ Status: 'Error' }));
    expect((await charge()).status).toBe('succeeded');
    expect((await charge()).status).toBe('succeeded');
    expect(fake.taken).toHaveLength(2);
  });

  test('is not sent a charge on the idle connection of another request, which may be closing', async () => {
    fake.respond = (socket) => socket.write(NedarimFake.answer());
    const request = { url: `${fake.url}/webhook`, method: 'POST', headers: {}, signal: AbortSignal.timeout(10_000) } as const;
    const { body } = await createOutbound(['127.0.0.0/8']).fetch(request);
    await new Response(body).text();
    expect((await charge()).status).toBe('succeeded');
    expect([fake.taken.length, fake.connections]).toEqual([2, 2]);
  });

  test('that cannot be reached at all has failed, and may be tried again: nothing left', async () => {
    const { url } = fake;
    await fake.close();
    expect(await charge(url)).toEqual({ status: 'failed', reason: 'provider_unreachable', retryable: true });
    fake = await NedarimFake.open();
    expect(await charge('http://10.0.0.1')).toEqual({ status: 'failed', reason: 'provider_unreachable', retryable: true });
  });
});
