/** Commands that need something before their Session is asked: sources that can be opened, and a card that is known. */
import { expect, test } from 'bun:test';
import type { Answer, CommandContext, SessionCommand } from '../../src/call/ports/sessions.ts';
import { AudioCommands } from '../../src/call/session/audio-commands.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { CollectPayment } from '../../src/machine/session/operation/payment.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { OpenPush } from '../../src/media/playback/push.ts';
import { type Problem, problems } from '../../src/problem.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const CONTEXT: CommandContext = { appUuid: 'app', operationUuid: 'op', idempotencyKey: undefined, traceparent: '' };
const BAD = 'http://bad/';

function world({ refused, answer }: { refused?: Problem; answer?: Problem } = {}) {
  const opened: string[] = [];
  const released: string[] = [];
  const obeyed: SessionCommand[] = [];
  const told: (Answer | undefined)[] = [];
  const refusal = { refused: { reason: 'not_found', retryable: false } } as const;
  const commands = new AudioCommands({
    ...{ nodeId: 'node', clock: new VirtualClock(), publicUrl: 'https://voice.test', recordings: noRecordings },
    media: {
      openPlaylist: async (urls) => {
        opened.push(...urls);
        const at = urls.indexOf(BAD);
        if (at >= 0) return { refused: { ...refusal.refused, source_index: at } };
        return { urls, release: () => released.push(...urls) };
      },
      openStream: async (url) => {
        opened.push(url);
        return url === BAD ? refusal : { urls: [], release: () => released.push(url) };
      },
      openPush: (format) => ({ playlist: { urls: [], release: () => {} }, ingest: new OpenPush(format) }),
    },
    payments: {
      ...{ nodeId: 'node', referenceTtlMs: 1_000 },
      vault: { seal: () => new Uint8Array(1), open: () => new Uint8Array(1) },
      cardBrand: async (appUuid, sessionUuid, reference) =>
        `${appUuid} ${sessionUuid} ${reference}` === 'app s card_1' ? 'amex' : undefined,
    },
  });
  const actor: Parameters<AudioCommands['command']>[0] = {
    state: inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 0 }, 0),
    refusal: () => refused,
    command: async (command, _context, _playlist, accepted) => {
      obeyed.push(command);
      told.push(accepted);
      return answer ?? accepted ?? { status: 202, body: {} };
    },
  };
  return {
    opened,
    released,
    obeyed,
    told,
    commands,
    order: (command: SessionCommand) => commands.command(actor, command, CONTEXT),
  };
}

const collect = (
  more: Partial<CollectPayment['terms']> = {},
  promptUrls: readonly string[] = [],
  cardUuid?: string,
): CollectPayment => ({
  type: 'collect_payment',
  terms: {
    ...{ kind: 'cvv', reference: 'cvv_r', maxAttempts: 2, terminators: ['#'], acceptedBrands: CARD_BRANDS, cardBrand: undefined },
    ...{ retryUrls: promptUrls, firstDigitTimeoutMs: 2_000, interDigitTimeoutMs: 1_000, hasPrompt: promptUrls.length > 0 },
    ...more,
  },
  promptUrls,
  cardUuid,
});

test('A CVV is of a card that the Session has, whose brand its length is judged by', async () => {
  const { obeyed, order } = world();
  expect(await order(collect({}, [], 'card_2'))).toMatchObject({ status: 404 });
  expect(obeyed).toEqual([]);
  expect(await order(collect({}, [], 'card_1'))).toMatchObject({ status: 202 });
  expect(obeyed).toMatchObject([{ terms: { cardBrand: 'amex' } }]);
});

test('The prompts of later attempts have to be there too, and are counted behind those of the first', async () => {
  const { opened, released, order } = world();
  expect(await order(collect({ retryUrls: ['c', BAD] }, ['a', 'b']))).toMatchObject({ status: 502, detail: { source_index: 3 } });
  expect(opened.splice(0)).toEqual(['c', BAD]);
  expect(await order(collect({ retryUrls: ['c', BAD], maxAttempts: 1 }, ['a', 'b']))).toMatchObject({ status: 202 });
  expect(opened.splice(0)).toEqual(['a', 'b']);
  expect(await order(collect({ retryUrls: ['c'] }, ['a', BAD]))).toMatchObject({ status: 502, detail: { source_index: 1 } });
  expect(opened.splice(0)).toEqual(['c', 'a', BAD]);
  expect(await order(collect({ retryUrls: ['c'] }, [BAD]))).toMatchObject({ status: 502, detail: { source_index: 0 } });
  // The prompts of later attempts are opened again when it is their turn.
  expect(released).toEqual(['c', 'c']);
});

const PUSH: SessionCommand = { type: 'play_push', format: { encoding: 'pcm_s16le', sample_rate: 8_000 }, volume: 100 };

test('Nothing is opened for a Session that refuses the command', async () => {
  const refused = problems.conflict('not now');
  const { opened, obeyed, order } = world({ refused });
  for (const command of [{ type: 'play_stream', url: 'http://a/', volume: 100 }, PUSH, collect({}, ['http://a/'])] as const)
    expect(await order(command)).toBe(refused);
  expect([opened, obeyed]).toEqual([[], []]);
});

test('The URL of a push leads to its audio, and to nothing where the push is refused', async () => {
  for (const answer of [undefined, problems.conflict('not now')]) {
    const { commands, told, order } = world(answer === undefined ? {} : { answer });
    await order(PUSH);
    const [, name = ''] = /\/v1\/ingest\/([^"]+)/.exec(JSON.stringify(told)) ?? [];
    expect([name === '', commands.ingest('app', name) === undefined]).toEqual([false, answer !== undefined]);
  }
});

test('The URL of a push whose answer is in doubt leads to its audio: the push may be stored all the same', async () => {
  const { commands, told, order } = world({ answer: { ...problems.unavailable('try again', 2), isInDoubt: true } });
  expect(await order(PUSH)).toMatchObject({ status: 503 });
  const [, name = ''] = /\/v1\/ingest\/([^"]+)/.exec(JSON.stringify(told)) ?? [];
  expect(commands.ingest('app', name)).toBeDefined();
});
