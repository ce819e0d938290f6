/** What is sent to Nedarim Plus, and what a request that fails is taken for, without a socket. */
import { expect, test } from 'bun:test';
import { CHARGE_ANSWER_MAX_BYTES } from '../../src/limits.ts';
import type { ChargeOrder } from '../../src/machine/payment/charge.ts';
import { type Outbound, OutboundError, type OutboundRequest, type OutboundResponse } from '../../src/outbound/outbound.ts';
import { nedarimPlus } from '../../src/provider/nedarim-plus.ts';

const order = (more: Partial<ChargeOrder> = {}): ChargeOrder => ({
  ...{ chargeUuid: 'charge', operationUuid: 'op', sessionUuid: 'session', card: Buffer.from('4111111111111111') },
  ...{ cvv: Buffer.from('737'), last4: '1111', expMonth: 3, expYear: 2031, amount: 12_300, currency: 'ils' },
  ...{ terminalNumber: '1234567', installments: 1 },
  ...more,
});

/** A gateway whose requests are kept, as they were sent and as they are afterwards. */
function gateway(fetch: Outbound['fetch'], apiValid: readonly (readonly [string, string])[] = [['', 'secret']]) {
  const sent: string[] = [];
  const requests: OutboundRequest[] = [];
  const outbound = {
    fetch: (request: OutboundRequest) => {
      requests.push(request);
      sent.push(new TextDecoder().decode(request.body instanceof Uint8Array ? request.body.slice() : new Uint8Array(0)));
      return fetch(request);
    },
  };
  const settings = { kind: 'nedarim_plus', url: 'https://pay.test', apiValid: new Map(apiValid), clientName: 'A' } as const;
  return { sent, requests, provider: nedarimPlus(settings, outbound, () => 0, 1_000) };
}
const fails = (failure: OutboundError['failure'], message = '') =>
  gateway(async () => {
    throw new OutboundError(failure, message);
  }).provider.charge(order());

const CERTIFICATE_FAULTS = [
  ...['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CERT_SIGNATURE_FAILURE', 'CERT_REVOKED', 'CERT_UNTRUSTED'],
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT'],
  ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
];

test('Only a request that certainly did not leave has failed, and may be tried again', async () => {
  const failed = { status: 'failed', reason: 'provider_unreachable', retryable: true } as const;
  for (const [failure, message] of [
    ...([
      ['rejected', ''],
      ['dns', 'ENOTFOUND'],
    ] as const),
    ...(['ConnectionRefused', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'] as const).map(
      (code) => ['unreachable', code] as const,
    ),
    ...CERTIFICATE_FAULTS.map((code) => ['tls', code] as const),
  ] as const)
    expect([failure, message, await fails(failure, message)]).toEqual([failure, message, failed]);
  for (const [failure, message, reason] of [
    ['unreachable', 'ECONNRESET', 'provider_unreachable'],
    // A code of a refused connection says nothing of TLS, nor that of a certificate of a connection.
    ['tls', 'ECONNREFUSED', 'provider_unreachable'],
    ['unreachable', 'CERT_HAS_EXPIRED', 'provider_unreachable'],
    ['tls', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'provider_unreachable'],
    ['timeout', '', 'provider_timeout'],
    ['invalid_response', '', 'provider_response_invalid'],
  ] as const)
    expect([failure, message, await fails(failure, message)]).toEqual([failure, message, { status: 'indeterminate', reason }]);
  const broken = gateway(async () => {
    throw new TypeError('a bug');
  });
  expect(await broken.provider.charge(order())).toEqual({ status: 'indeterminate', reason: 'provider_unreachable' });
});

test('A terminal has credentials of its own, or those of all, or is not served', async () => {
  const answer = async (): Promise<OutboundResponse> => ({ status: 500, headers: new Headers(), body: undefined });
  const apiOf = async (terminalNumber: string, apiValid: readonly (readonly [string, string])[]) => {
    const { provider, sent } = gateway(answer, apiValid);
    await provider.charge(order({ terminalNumber }));
    return [provider.serves(terminalNumber), new URLSearchParams(sent[0]).get('ApiValid')];
  };
  expect(
    await apiOf('1', [
      ['1', 'one'],
      ['', 'all'],
    ]),
  ).toEqual([true, 'one']);
  expect(
    await apiOf('2', [
      ['1', 'one'],
      ['', 'all'],
    ]),
  ).toEqual([true, 'all']);
  expect((await apiOf('2', [['1', 'one']]))[0]).toBe(false);
});

test('An answer is read up to its limit; of a longer one no more is read, and the charge may have been made', async () => {
  let cancels = 0;
  const ok = new TextEncoder().encode('{"Status":"OK"}'.padEnd(CHARGE_ANSWER_MAX_BYTES));
  const answered = async (...pieces: readonly Uint8Array[]) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        if (pieces.length === 1) controller.close();
      },
      cancel() {
        cancels += 1;
      },
    });
    return await gateway(async () => ({ status: 200, headers: new Headers(), body })).provider.charge(order());
  };
  expect(await answered(ok)).toMatchObject({ status: 'succeeded' });
  expect(cancels).toBe(0);
  expect(await answered(ok, ok.slice(0, 1))).toEqual({ status: 'indeterminate', reason: 'provider_response_invalid' });
  expect(cancels).toBe(1);
});

test('The request has whole shekels and the expiry as it is printed, goes out once, and is wiped afterwards', async () => {
  const { provider, sent, requests } = gateway(async () => {
    throw new OutboundError('timeout', '');
  });
  await provider.charge(order({ expMonth: 12, expYear: 2009, amount: 100, installments: 3 }));
  const form = new URLSearchParams(sent[0]);
  expect(['Tokef', 'Amount', 'Tashloumim', 'CardNumber', 'CVV'].map((name) => form.get(name))).toEqual([
    '1209',
    '1',
    '3',
    '4111111111111111',
    '737',
  ]);
  const [{ url, method, body } = {}] = requests;
  expect([requests.length, url, method]).toEqual([1, 'https://pay.test/V6/Files/WebServices/DebitCard.aspx', 'POST']);
  expect(body instanceof Uint8Array && body.every((byte) => byte === 0)).toBe(true);
});
