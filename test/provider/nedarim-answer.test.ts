/** What an answer of Nedarim Plus is taken for, field by field. */
import { expect, test } from 'bun:test';
import { outcomeOf } from '../../src/provider/nedarim-answer.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const order = (installments = 1) => ({ last4: '4321', installments });
/** The outcome of an answer with these fields, and OK. */
const of = (fields: Record<string, unknown>, installments = 1) =>
  outcomeOf(JSON.stringify({ Status: 'OK', ...fields }), order(installments), NOW);
const succeeded = (fields: Record<string, unknown>, installments = 1) => {
  const outcome = of(fields, installments);
  if (outcome.status !== 'succeeded') throw new Error(`it is ${outcome.status}`);
  return outcome;
};

test('An answer that says nothing but OK is a success, at the time that it came and as it was ordered', () => {
  const nothing = { receiptCreated: false, classification: '', issuer: '', acquirer: '' };
  expect(of({})).toEqual({
    ...nothing,
    status: 'succeeded',
    transactionCreatedAt: NOW,
    installments: 1,
    transactionType: 'regular',
  });
  for (const installments of [2, 3])
    expect(of({}, installments)).toMatchObject({ installments, transactionType: 'installments' });
});

test('An answer that is no object, or names another status, leaves the charge indeterminate', () => {
  for (const text of ['', 'OK', 'null', '"OK"', '[]', '{', '{}', '{"Status":"ok"}', '{"Status":true}', '[{"Status":"OK"}]'])
    expect([text, outcomeOf(text, order(), NOW).status]).toEqual([text, 'indeterminate']);
  expect(outcomeOf('{"Status":"Error"}', order(), NOW)).toEqual({ status: 'declined', reason: 'card_declined' });
});

test('An answer that speaks of another card leaves the charge indeterminate; one that names no card is taken', () => {
  for (const last of ['4321', 4321, ' 4321 ', '411111114321', '21', '', '0', '0000', undefined])
    expect([last, of({ LastNum: last }).status]).toEqual([last, 'succeeded']);
  for (const last of ['2222', 4322, '9321', '0321', '43', '12'])
    expect([last, of({ LastNum: last }).status]).toEqual([last, 'indeterminate']);
});

test('The number of payments is the one that was made, if it can be', () => {
  for (const [told, taken] of [
    ['1', 1],
    [12, 12],
    ['99', 99],
    ['0', 3],
    ['100', 3],
    ['1.5', 3],
    ['many', 3],
    ['', 3],
  ] as const)
    expect([told, succeeded({ Tashloumim: told }, 3).installments]).toEqual([told, taken]);
});

test('The kind of the transaction is told by word or number, and else follows from the order', () => {
  for (const [told, taken] of [
    ['Ragil', 'regular'],
    ['1', 'regular'],
    ['רגיל', 'regular'],
    ['regular', 'regular'],
    ['Tashloumim', 'installments'],
    ['Tashlumim', 'installments'],
    [8, 'installments'],
    ['תשלומים', 'installments'],
    ['something', 'installments'],
  ] as const)
    expect([told, succeeded({ TransactionType: told }, 3).transactionType]).toEqual([told, taken]);
  for (const told of ['8', 'TASHLUMIM', 'tashloumim', 'תשלומים'])
    expect([told, succeeded({ TransactionType: told }).transactionType]).toEqual([told, 'installments']);
});

test('A receipt was made where the answer says so in any of the ways that it has', () => {
  for (const [told, taken] of [
    ['true', true],
    [true, true],
    ['1', true],
    [1, true],
    ['YES', true],
    ['no', false],
    ['0', false],
    ['11', false],
    ['untrue', false],
  ] as const)
    expect([told, succeeded({ ReceiptCreated: told }).receiptCreated]).toEqual([told, taken]);
});

test('Companies and kinds of card are known numbers or short names; anything else is left out', () => {
  for (const [told, taken] of [
    ['1', 'isracard'],
    ['2', 'cal'],
    ['3', 'diners'],
    ['4', 'amex'],
    ['5', 'jcb'],
    [6, 'max'],
    ['02', 'cal'],
    ['7', ''],
    ['Bank Leumi-Card', 'bank_leumi_card'],
    ['ישראכרט', 'ישראכרט'],
    ['x'.repeat(40), 'x'.repeat(40)],
    ['x'.repeat(41), ''],
    ['card 4111', ''],
    ['<b>', ''],
    [{}, ''],
  ] as const) {
    const { issuer, acquirer } = succeeded({ CompagnyCard: told, Solek: told });
    expect([told, issuer, acquirer]).toEqual([told, taken, taken]);
  }
  expect(['0', '1', '2', '00', '3'].map((told) => succeeded({ Tayar: told }).classification)).toEqual([
    ...['regular', 'debit', 'prepaid', 'regular', ''],
  ]);
});

test('The time of the transaction is that of a clock in Israel, in winter, in summer and around the change', () => {
  for (const [told, at] of [
    ['20/11/2026 13:45:10', '2026-11-20T11:45:10Z'],
    ['2026-11-20 13:45:10', '2026-11-20T11:45:10Z'],
    ['2026-11-20T13:45', '2026-11-20T11:45:00Z'],
    ['1/7/2026 9:05', '2026-07-01T06:05:00Z'],
    ['01/07/2026 00:30:00', '2026-06-30T21:30:00Z'],
    ['31/12/2026 23:59:59', '2026-12-31T21:59:59Z'],
    // Clocks go from 2:00 to 3:00 on 27 March 2026, and from 2:00 to 1:00 on 25 October.
    ['27/03/2026 01:59:59', '2026-03-26T23:59:59Z'],
    ['27/03/2026 03:00:00', '2026-03-27T00:00:00Z'],
    ['27/03/2026 05:00:00', '2026-03-27T02:00:00Z'],
    ['25/10/2026 00:30:00', '2026-10-24T21:30:00Z'],
    ['25/10/2026 02:00:00', '2026-10-25T00:00:00Z'],
  ] as const)
    expect([told, succeeded({ TransactionTime: told }).transactionCreatedAt]).toEqual([told, Date.parse(at)]);
});

test('A time that is none, or that no calendar has, counts as absent', () => {
  for (const told of [
    ...['yesterday', '2026-11-20', '20/11/26 13:45', '20.11.2026 13:45', 'x20/11/2026 13:45', '20/11/2026 13:45:10x'],
    ...[
      '00/00/0000 00:00:00',
      '0000-00-00 00:00:00',
      '31/02/2026 10:00',
      '20/13/2026 10:00',
      '20/11/2026 24:10',
      '20/11/2026 10:60',
    ],
  ])
    expect([told, succeeded({ TransactionTime: told }).transactionCreatedAt]).toEqual([told, NOW]);
});
