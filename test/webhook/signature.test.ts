/** The signature of Standard Webhooks 1.0. */
import { expect, test } from 'bun:test';
import { signatureHeaders, signingKey } from '../../src/outbound/webhook-signature.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('A webhook is signed as the published example of Standard Webhooks is', () => {
  expect(signatureHeaders([signingKey(SECRET)], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}')).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('While a secret is rotated a webhook has a signature for each, the newest first, over its bytes', () => {
  const [one, other] = [signingKey(SECRET), signingKey(`whsec_${'A'.repeat(32)}`)];
  const of = (...keys: Uint8Array[]) => signatureHeaders(keys, 'evt_1', 7, '{"name":"Zoë"}')['webhook-signature'];
  expect(of(one, other)).toBe(`${of(one)} ${of(other)}`);
  expect(of(one)).not.toBe(of(other));
  expect(of()).toBe('');
});

test('What is no secret of ours signs nothing', () => {
  for (const bad of ['', 'whsec_', 'whsec_short', SECRET.slice(6), `${SECRET}===`, `x${SECRET}`, `${SECRET}\n`])
    expect(() => signingKey(bad)).toThrow('not a webhook secret');
});
