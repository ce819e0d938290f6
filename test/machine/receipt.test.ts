import { describe, expect, test } from 'bun:test';
import { idCandidates, normalId, receiptOf } from '../../src/machine/message/receipt.ts';
import fc from '../support/fast-check.ts';

const fields = (text: string, more: object = {}) => ({
  text,
  receiptedMessageId: undefined,
  messageState: undefined,
  esmClass: 4,
  sourceAddress: '972500000001',
  ...more,
});
const TEXT = 'id:0a1F sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:DELIVRD err:000 text:hello';

describe('a delivery receipt', () => {
  test('is read from the text of appendix B', () => {
    expect(receiptOf(fields(TEXT))).toEqual({
      smscId: '0a1F',
      state: 'delivered',
      error: '',
      recipient: '972500000001',
      isMarked: true,
    });
  });

  test('is marked as one by its esm_class or by its TLV, which no text of a person has', () => {
    expect(receiptOf(fields(TEXT, { esmClass: 0 }))?.isMarked).toBe(false);
    expect(receiptOf(fields(TEXT, { esmClass: 0x40 }))?.isMarked).toBe(false);
    expect(receiptOf(fields(TEXT, { esmClass: 0x44 }))?.isMarked).toBe(true);
    expect(receiptOf(fields(TEXT, { esmClass: 0, receiptedMessageId: '77' }))?.isMarked).toBe(true);
    expect(receiptOf(fields(TEXT, { esmClass: 0, receiptedMessageId: '' }))).toMatchObject({ smscId: '0a1F', isMarked: false });
  });

  test('is read from the TLVs where there are any, whatever the text says', () => {
    expect(receiptOf(fields(TEXT, { receiptedMessageId: '77', messageState: 5 }))).toMatchObject({
      smscId: '77',
      state: 'undeliverable',
    });
    expect(receiptOf(fields('', { receiptedMessageId: '77', messageState: 3 }))?.state).toBe('expired');
  });

  test('has the state of table 5-8 where it is a number; on its way is none', () => {
    const states = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((messageState) => receiptOf(fields('id:1', { messageState }))?.state);
    const none = undefined;
    expect(states).toEqual([none, none, 'delivered', 'expired', 'deleted', 'undeliverable', none, 'unknown', 'rejected', none]);
  });

  test('names its recipient by digits alone', () => {
    expect(receiptOf(fields(TEXT, { sourceAddress: '+972 50-000-0001' }))?.recipient).toBe('972500000001');
  });

  test('without an id, or without a state, is none; an error of many letters is no code', () => {
    expect(receiptOf(fields('sub:001 stat:DELIVRD'))).toBeUndefined();
    expect(receiptOf(fields('id:1 sub:001'))).toBeUndefined();
    expect(receiptOf(fields('id:1 stat:DELIVRD'))?.error).toBe('');
    expect(['12345678', '123456789', '01-2'].map((err) => receiptOf(fields(`id:1 stat:UNDELIV err:${err}`))?.error)).toEqual([
      '12345678',
      '',
      '',
    ]);
  });

  test.each([
    ['stat:UNDELIV err:011', 'undeliverable', '011'],
    ['stat:EXPIRED err:0', 'expired', ''],
    ['Stat:REJECTD Err:2A', 'rejected', '2A'],
    ['stat:DELETED', 'deleted', ''],
    ['stat:UNKNOWN', 'unknown', ''],
    ['stat:DELIVERED', 'delivered', ''],
    ['stat:FAILED', 'undeliverable', ''],
  ])('%s says so', (words, state, error) => {
    expect(receiptOf(fields(`id:5 sub:001 ${words} text:`))).toMatchObject({ smscId: '5', state, error });
  });

  test('of a message that is only on its way is no receipt', () => {
    expect(receiptOf(fields('id:5 stat:ACCEPTD'))).toBeUndefined();
    expect(receiptOf(fields('id:5 stat:ENROUTE'))).toBeUndefined();
    expect(receiptOf(fields('', { receiptedMessageId: '5', messageState: 1 }))).toBeUndefined();
  });

  test('is not seen in what a person wrote', () => {
    expect(receiptOf(fields('my id: is secret, stat: unclear'))).toBeUndefined();
    expect(receiptOf(fields(''))).toBeUndefined();
  });

  test('names a message whose id came in the other base, padded, or in other case', () => {
    const response = normalId('0000ABCDEF');
    expect(idCandidates(String(0xabcdef))).toContain(response);
    expect(idCandidates('abcdef')).toContain(response);
    expect(idCandidates('2F')).toContain(normalId('47'));
    expect(idCandidates('a_b-c')).toEqual(['a_b-c']);
    // The largest of 64 bits has 20 digits, or 16 in hexadecimal; what is longer is no number.
    expect(idCandidates('18446744073709551615')).toContain('ffffffffffffffff');
    expect(idCandidates('ffffffffffffffff')).toContain('18446744073709551615');
    for (const id of ['9'.repeat(21), 'f'.repeat(17)]) expect(idCandidates(id)).toEqual([id]);
  });

  test('whatever the text, reading it ends', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => idCandidates(receiptOf(fields(text))?.smscId ?? 'x').length <= 3),
    );
  });
});
