/** Digit collection on one Session (contract §3): prompt and collect, and its cancellation. */

import type { Sessions } from '../../call/ports/sessions.ts';
import { SENT_DIGITS } from '../../call/ports/target.ts';
import {
  COLLECT_DIGITS_MAX,
  COLLECT_TIMEOUT_MAX_MS,
  COMMAND_BODY_MAX_BYTES,
  DTMF_SEND_DEFAULT_MS,
  DTMF_SEND_MAX_DIGITS,
  DTMF_SEND_MAX_MS,
  DTMF_SEND_MIN_MS,
  PLAYBACK_URLS_MAX,
} from '../../limits.ts';
import { problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { sourceUrl } from './playback.ts';
import { onSession } from './sessions.ts';

const ALL_DIGITS = '0123456789*#';
const timeout = `1 <= number.integer <= ${COLLECT_TIMEOUT_MAX_MS}` as const;
const digits = `1 <= number.integer <= ${COLLECT_DIGITS_MAX}` as const;

/** What is meant where a field is left out. */
const COLLECT = {
  min_digits: 1,
  max_digits: COLLECT_DIGITS_MAX,
  valid_digits: ALL_DIGITS,
  terminators: ['#'],
  first_digit_timeout_ms: 5_000,
  inter_digit_timeout_ms: 5_000,
  total_timeout_ms: 60_000,
  barge_in: true,
};

const collect = shape(
  () =>
    type({
      '+': 'reject',
      'prompt_files?': sourceUrl().array().atMostLength(PLAYBACK_URLS_MAX),
      'min_digits?': digits,
      'max_digits?': digits,
      'valid_digits?': type(/^[0-9*#A-D]{1,16}$/).describe('1 to 16 of 0-9, *, #, A-D'),
      'terminators?': type(/^[0-9*#A-D]$/)
        .describe('one of 0-9, *, #, A-D')
        .array()
        .atMostLength(16),
      'first_digit_timeout_ms?': timeout,
      'inter_digit_timeout_ms?': timeout,
      'total_timeout_ms?': timeout,
      'barge_in?': 'boolean',
    }),
  {},
  COLLECT,
);

const sentDigits = () => type(SENT_DIGITS).describe(`1 to ${DTMF_SEND_MAX_DIGITS} of 0-9, A-D, *, #, w, W`);
const keyTime = `${DTMF_SEND_MIN_MS} <= number.integer <= ${DTMF_SEND_MAX_MS}` as const;
const send = shape(
  () => type({ '+': 'reject', digits: sentDigits(), 'duration_ms?': keyTime, 'gap_ms?': keyTime }),
  {},
  { duration_ms: DTMF_SEND_DEFAULT_MS, gap_ms: DTMF_SEND_DEFAULT_MS },
);

const facts = {
  auth: 'application',
  tag: 'DTMF',
  resource: 'Session',
  command: true,
  answerStoredBy: 'journal',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  success: [202, 'Admitted; the outcome is an event.'],
  path: '/v1/sessions/:uuid/dtmf/collect',
} as const;

export const dtmfRoutes = (sessions: Sessions): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/v1/sessions/:uuid/dtmf/send',
      summary: 'Send digits to the far end',
      buckets: ['dtmf_send'],
    },
    send,
    (context, { digits, duration_ms: durationMs = DTMF_SEND_DEFAULT_MS, gap_ms: gapMs = DTMF_SEND_DEFAULT_MS }) =>
      onSession(sessions, context, { type: 'send_digits', digits, durationMs, gapMs }),
  ),
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      summary: 'Prompt and collect digits',
      opensSources: true,
      optional: true,
      buckets: ['dtmf_collect'],
    },
    collect,
    (context, body) => {
      const full = { ...COLLECT, ...body };
      if (full.min_digits > full.max_digits) return problems.invalid('min_digits: must be at most max_digits');
      const terms = {
        minDigits: full.min_digits,
        maxDigits: full.max_digits,
        validDigits: full.valid_digits,
        terminators: full.terminators,
        firstDigitTimeoutMs: full.first_digit_timeout_ms,
        interDigitTimeoutMs: full.inter_digit_timeout_ms,
        totalTimeoutMs: full.total_timeout_ms,
        bargeIn: full.barge_in,
      };
      return onSession(sessions, context, { type: 'collect', terms, promptUrls: body.prompt_files ?? [] });
    },
  ),
  route({ ...facts, method: 'DELETE', summary: 'Cancel the collection', buckets: ['dtmf_cancel'] }, (context) =>
    onSession(sessions, context, { type: 'cancel_collect' }),
  ),
];
