/** Secure collection of card and CVV, and the charge (interface, Payments; contract §6). */

import type { ChargeRequest, Charges } from '../../call/ports/charges.ts';
import type { Sessions } from '../../call/ports/sessions.ts';
import { isUuid, newUuid } from '../../id.ts';
import {
  CHARGE_AMOUNT_MAX,
  CHARGE_INSTALLMENTS_MAX,
  COLLECT_TIMEOUT_MAX_MS,
  COMMAND_BODY_MAX_BYTES,
  PAYMENT_ATTEMPTS_MAX,
  PAYMENT_PROMPTS_MAX,
} from '../../limits.ts';
import { CARD_BRANDS } from '../../machine/payment/card.ts';
import type { CollectionKind, CollectionTerms } from '../../machine/payment/collection.ts';
import { problems } from '../../problem.ts';
import { characters } from '../characters.ts';
import type { Route } from '../request-context.ts';
import { commandContext, type RequestContext } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { sourceUrl } from './playback.ts';
import { onSession } from './sessions.ts';

const timeout = `1 <= number.integer <= ${COLLECT_TIMEOUT_MAX_MS}` as const;
const prompts = () => sourceUrl().array().atMostLength(PAYMENT_PROMPTS_MAX);
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const cardUuid = () => type(new RegExp(`^card_${UUID}$`)).describe('card_ and a lowercase UUID v4');
const cvvUuid = () => type(new RegExp(`^cvv_${UUID}$`)).describe('cvv_ and a lowercase UUID v4');

const collection = () =>
  ({
    '+': 'reject',
    'prompt_files?': prompts(),
    'retry_prompt_files?': prompts(),
    'max_attempts?': `1 <= number.integer <= ${PAYMENT_ATTEMPTS_MAX}`,
    'first_digit_timeout_ms?': timeout,
    'inter_digit_timeout_ms?': timeout,
    'terminators?': type(/^[0-9#A-D]$/)
      .describe('one of 0-9, #, A-D')
      .array()
      .atMostLength(15),
  }) as const;
/** What is meant where a field of a collection is left out. */
const COLLECT = { max_attempts: 3, first_digit_timeout_ms: 10_000, inter_digit_timeout_ms: 5_000, terminators: ['#'] };

const collectCard = shape(
  () =>
    type({
      ...collection(),
      'accepted_brands?': type
        .enumerated(...CARD_BRANDS)
        .array()
        .atLeastLength(1)
        .atMostLength(CARD_BRANDS.length),
    }),
  {},
  COLLECT,
);
const collectCvv = shape(() => type({ ...collection(), 'card_uuid?': cardUuid() }), {}, COLLECT);

const charge = shape(
  () =>
    type({
      '+': 'reject',
      card_uuid: cardUuid(),
      cvv_uuid: cvvUuid(),
      exp_month: '1 <= number.integer <= 12',
      exp_year: '2000 <= number.integer <= 2099',
      amount: `1 <= number.integer <= ${CHARGE_AMOUNT_MAX}`,
      currency: "'ils'",
      provider: characters(1, 64),
      terminal_number: type(/^[0-9]{7}$/).describe('seven digits'),
      'installments?': `1 <= number.integer <= ${CHARGE_INSTALLMENTS_MAX}`,
    }),
  { amount: { multipleOf: 100, description: 'agorot, divisible by 100' } },
  { installments: 1 },
);

interface CollectionBody {
  readonly prompt_files?: readonly string[];
  readonly retry_prompt_files?: readonly string[];
  readonly max_attempts?: number;
  readonly first_digit_timeout_ms?: number;
  readonly inter_digit_timeout_ms?: number;
  readonly terminators?: readonly string[];
}

const facts = {
  auth: 'application',
  tag: 'Payments',
  resource: 'Session',
  command: true,
  answerStoredBy: 'journal',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  success: [202, 'Admitted; the outcome is an event.'],
} as const;
const card = { ...facts, path: '/v1/sessions/:uuid/payment/card/collect' } as const;
const cvv = { ...facts, path: '/v1/sessions/:uuid/payment/cvv/collect' } as const;

export const paymentRoutes = (sessions: Sessions, charges: Charges): readonly Route[] => [
  bodyRoute(
    {
      ...card,
      method: 'POST',
      summary: 'Collect a card number by keypad',
      opensSources: true,
      optional: true,
      buckets: ['card_collect'],
    },
    collectCard,
    (context, body) =>
      collect(sessions, context, 'card', body, { acceptedBrands: body.accepted_brands ?? CARD_BRANDS, cardUuid: undefined }),
  ),
  route({ ...card, method: 'DELETE', summary: 'Cancel the collection of a card', buckets: ['card_cancel'] }, (context) =>
    onSession(sessions, context, { type: 'cancel_payment', kind: 'card' }),
  ),
  bodyRoute(
    { ...cvv, method: 'POST', summary: 'Collect a CVV by keypad', opensSources: true, optional: true, buckets: ['cvv_collect'] },
    collectCvv,
    (context, body) => collect(sessions, context, 'cvv', body, { acceptedBrands: CARD_BRANDS, cardUuid: body.card_uuid }),
  ),
  route({ ...cvv, method: 'DELETE', summary: 'Cancel the collection of a CVV', buckets: ['cvv_cancel'] }, (context) =>
    onSession(sessions, context, { type: 'cancel_payment', kind: 'cvv' }),
  ),
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/v1/sessions/:uuid/payment/charges',
      summary: 'Charge a collected card; Idempotency-Key is required',
      starts: true,
      buckets: ['charge'],
    },
    charge,
    async (context, body) => {
      if (context.keyed === undefined) return problems.invalid('Idempotency-Key: is required');
      if (charges.provider !== undefined && body.provider !== charges.provider)
        return problems.invalid(`provider: must be ${charges.provider}, the configured one`);
      if (body.amount % 100 !== 0) return problems.invalid('amount: must be divisible by 100');
      const uuid = context.params.uuid ?? '';
      if (!isUuid(uuid) || !(await sessions.owns(context.appUuid, uuid, 'collect_payment'))) return undefined;
      const request: ChargeRequest = {
        cardUuid: body.card_uuid,
        cvvUuid: body.cvv_uuid,
        expMonth: body.exp_month,
        expYear: body.exp_year,
        amount: body.amount,
        currency: body.currency,
        terminalNumber: body.terminal_number,
        installments: body.installments ?? 1,
      };
      return () => charges.charge(uuid, request, commandContext(context));
    },
  ),
];

function collect(
  sessions: Sessions,
  context: RequestContext,
  kind: CollectionKind,
  body: CollectionBody,
  more: { readonly acceptedBrands: CollectionTerms['acceptedBrands']; readonly cardUuid: string | undefined },
) {
  const promptUrls = body.prompt_files ?? [];
  const terms: CollectionTerms = {
    kind,
    reference: `${kind}_${newUuid()}`,
    maxAttempts: body.max_attempts ?? COLLECT.max_attempts,
    firstDigitTimeoutMs: body.first_digit_timeout_ms ?? COLLECT.first_digit_timeout_ms,
    interDigitTimeoutMs: body.inter_digit_timeout_ms ?? COLLECT.inter_digit_timeout_ms,
    terminators: body.terminators ?? COLLECT.terminators,
    acceptedBrands: more.acceptedBrands,
    cardBrand: undefined,
    hasPrompt: promptUrls.length > 0,
    // A caller who is asked again without other words hears the same ones.
    retryUrls: body.retry_prompt_files ?? promptUrls,
  };
  return onSession(sessions, context, { type: 'collect_payment', terms, promptUrls, cardUuid: more.cardUuid });
}
