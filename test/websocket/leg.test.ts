/** The leg of a `websocket` Session with the media engine behind it: what it says of its end. */
import { afterAll, expect, test } from 'bun:test';
import { TurnBudget } from '../../src/bounds/turn-budget.ts';
import type { LegSignal } from '../../src/call/ports/leg.ts';
import { STREAM_MARKS_MAX, STREAM_TURN_MARKS, WEBSOCKET_PING_MS } from '../../src/limits.ts';
import type { MediaNotice } from '../../src/media/engine.ts';
import type { StreamFormat } from '../../src/media/leg/stream.ts';
import { connector } from '../../src/outbound/connect.ts';
import { PassedMarks } from '../../src/websocket/passed-marks.ts';
import { WebSocketLeg, type WebSocketLegOptions } from '../../src/websocket/websocket-leg.ts';
import { Harness } from '../media/harness.ts';
import { refusedPort } from '../support/refused-port.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { byHand, closeAll, raw, serve } from './harness.ts';

const engines: Harness[] = [];
afterAll(async () => {
  closeAll();
  for (const engine of engines) await engine.close();
});

const FORMAT: StreamFormat = { encoding: 'pcm_s16le', rateHz: 8000 };

/** A leg to `url` on virtual time. `until` resolves with the first signal of that type. */
async function leg(url: string, more: Partial<WebSocketLegOptions> = {}) {
  const harness = await Harness.open({ workers: 1 });
  engines.push(harness);
  const clock = new VirtualClock();
  const said: LegSignal[] = [];
  const waiting: (() => void)[] = [];
  const made = new WebSocketLeg({
    sessionUuid: 's',
    appUuid: 'a',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    url,
    headers: {},
    subprotocol: undefined,
    connectTimeoutMs: 3000,
    fromSession: FORMAT,
    toSession: FORMAT,
    parameters: {},
    phoneSessionUuid: undefined,
    order: async () => undefined,
    listener: (signal) => {
      said.push(signal);
      for (const look of waiting.splice(0)) look();
    },
    connect: connector(['127.0.0.0/8']),
    clock,
    media: harness.engine,
    markTurns: new TurnBudget(STREAM_TURN_MARKS),
    ...more,
  });
  made.start();
  const until = async (type: LegSignal['type']): Promise<LegSignal> => {
    for (;;) {
      const found = said.find((signal) => signal.type === type);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { leg: made, clock, said, until };
}

test('A server that does not answer in time is a timeout, which the system ends.', async () => {
  let isAsked = () => {};
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const { clock, until } = await leg(await raw(() => isAsked()));
  await asked;
  await clock.advance(3000);
  expect(await until('leg.failed')).toMatchObject({ reason: 'connect_timeout', end: { cause: 'timeout', by: 'system' } });
});

test('What could not be opened was ended by the server that refused it, by the way to it, or by our own rules.', async () => {
  const refused = await refusedPort();
  const answering = (status: number) => serve({ message() {} }, () => new Response('', { status, headers: { location: '/' } }));
  for (const [url, error, cause, by] of [
    [`ws://127.0.0.1:${refused.port}/`, 'network', 'carrier_unreachable', 'network'],
    [answering(503), 'http_5xx', 'carrier_unreachable', 'network'],
    [answering(401), 'http_4xx', 'rejected', 'callee'],
    [answering(302), 'policy', 'rejected', 'callee'],
    [await raw((socket) => socket.end('SSH-2.0\r\n\r\n')), 'internal', 'failed', 'callee'],
    ['ws://10.1.2.3/', 'policy', 'rejected', 'system'],
  ] as const) {
    const { until } = await leg(url);
    expect([url, await until('leg.failed')]).toMatchObject([url, { error, end: { cause, by } }]);
  }
  refused.close();
});

test('A server that does not answer pings in time is ended by the system.', async () => {
  const { clock, until } = await leg(await byHand(() => {}));
  await until('leg.connected');
  await clock.advance(WEBSOCKET_PING_MS * 3);
  expect(await until('leg.disconnected')).toMatchObject({ reason: 'keepalive_timeout', end: { by: 'system' } });
});

test('A bot is spoken to as it asked and agreed, and the subprotocol that is spoken is told.', async () => {
  const cases = [
    // What the application asks for, what the server agrees to, what is offered, told, and said first.
    ['sidetone.v1', 'sidetone.v1', 'sidetone.v1', 'sidetone.v1', '"type":"start"'],
    ['other', 'other', 'other', 'other', undefined],
    ['twilio', '', null, 'twilio', '"event":"connected"'],
    [undefined, '', null, undefined, undefined],
  ] as const;
  for (const [subprotocol, agreed, offered, spoken, first] of cases) {
    let offer: string | null = null;
    const heard = Promise.withResolvers<string | undefined>();
    const closed = Promise.withResolvers<void>();
    let last: string | undefined;
    let keys = '';
    const url = serve(
      {
        message(_, message) {
          last = typeof message === 'string' ? message : undefined;
          keys += /"digit":"(.)"/.exec(last ?? '')?.[1] ?? '';
          heard.resolve(last);
        },
        close: () => closed.resolve(),
      },
      ({ headers }): Record<string, string> => {
        offer = headers.get('sec-websocket-protocol');
        return agreed === '' ? {} : { 'sec-websocket-protocol': agreed };
      },
    );
    const { leg: bot, until } = await leg(url, { subprotocol });
    const connected = await until('leg.connected');
    expect([subprotocol, offer, connected]).toEqual([
      subprotocol,
      offered,
      { type: 'leg.connected', ...(spoken === undefined ? {} : { subprotocol: spoken }) },
    ]);
    // Whoever is told nothing first hears a frame of audio.
    const message = await heard.promise;
    if (first === undefined) expect(message).toBeUndefined();
    else expect(message).toContain(first);
    bot.hear({ type: 'dtmf', session_uuid: 's', digit: '5', duration_ms: 100 });
    bot.hangup();
    bot.hear({ type: 'dtmf', session_uuid: 's', digit: '6', duration_ms: 100 });
    expect(await until('leg.disconnected')).toMatchObject({ reason: 'local_closed', closeCode: 1000 });
    await closed.promise;
    expect(last?.includes('"event":"stop"') === true).toBe(subprotocol === 'twilio');
    expect(keys).toBe(first === undefined ? '' : '5');
  }
});

test('A leg without a media worker has failed, and one that is hung up before it has any has ended; neither says more.', async () => {
  const none = await leg('ws://127.0.0.1:1/', { media: { openStreamLeg: async () => undefined } });
  expect(await none.until('leg.failed')).toMatchObject({ reason: 'connection_precondition_failed', end: { by: 'system' } });
  none.leg.hangup();
  expect(none.said).toHaveLength(1);

  const harness = await Harness.open({ workers: 1 });
  engines.push(harness);
  const hungUp = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const early = await leg('ws://127.0.0.1:1/', {
    media: {
      async openStreamLeg(...asked) {
        const audio = await harness.engine.openStreamLeg(...asked);
        if (audio === undefined) throw new Error('no worker');
        await hungUp.promise;
        const { close } = audio;
        audio.close = () => {
          closed.resolve();
          return close.call(audio);
        };
        return audio;
      },
    },
  });
  early.leg.hangup();
  hungUp.resolve();
  await closed.promise;
  await settle();
  expect(early.said).toMatchObject([{ type: 'leg.ended', end: { cause: 'cancelled' } }]);
});

test('A leg that is over tells of the recordings that end after it, and of nothing else.', async () => {
  const { engine } = engines[0] ?? (await Harness.open({ workers: 1 }));
  let notify: (notice: MediaNotice) => void = () => {};
  const media: WebSocketLegOptions['media'] = {
    openStreamLeg: (options, told) => {
      notify = told;
      return engine.openStreamLeg(options, told);
    },
  };
  const { leg: hung, said, until } = await leg(serve({ message() {} }), { media });
  await until('leg.connected');
  const stopped = { type: 'playback.stopped', operationUuid: 'prompt' } as const;
  notify(stopped);
  expect(said.at(-1)).toEqual({ type: 'leg.media', notice: stopped });
  hung.hangup();
  await until('leg.disconnected');
  expect(hung.audio).toBeUndefined();
  const before = said.length;
  notify({ type: 'voice', talking: true });
  expect(said.length).toBe(before);
  const notice = { type: 'recording.ended', recordingUuid: 'rec', durationMs: 20, bytes: 364 } as const;
  notify(notice);
  expect(said.slice(before)).toEqual([{ type: 'leg.media', notice }]);
});

/** Turns of the event loop that end by hand, in each of which two marks are told. */
function twoInATurn() {
  const afterTurn: (() => void)[] = [];
  const endTurn = async () => {
    for (const go of afterTurn.splice(0)) go();
    await settle();
  };
  return { turns: new TurnBudget(2, (then) => void afterTurn.push(then)), endTurn };
}

/** A bot that fills its audio, sets marks and clears them. `answered` resolves when what it says then is answered. */
function clearingBot(marks: string) {
  const told: string[] = [];
  const begun = Promise.withResolvers<Bun.ServerWebSocket<undefined>>();
  let answered = () => {};
  const url = serve(
    {
      message(socket, message) {
        if (typeof message !== 'string') return;
        const { type, name } = JSON.parse(message);
        if (type === 'mark_played') told.push(name);
        if (type === 'error') answered();
        if (type !== 'start') return;
        socket.send(new Uint8Array(80_000));
        for (const mark of marks) socket.send(JSON.stringify({ type: 'mark', name: mark }));
        socket.send('{"type":"clear"}');
        begun.resolve(socket);
      },
    },
    () => ({ 'sec-websocket-protocol': 'sidetone.v1' }),
  );
  const isAnswered = async () => {
    const socket = await begun.promise;
    await new Promise<void>((resolve) => {
      answered = resolve;
      socket.send('{"type":"no order"}');
    });
  };
  return { url, told, isAnswered };
}

test('Of marks that are cleared at once so many are told in a turn of the event loop, and the others in those after it.', async () => {
  const { turns, endTurn } = twoInATurn();
  const { url, told, isAnswered } = clearingBot('abcde');
  const { leg: bot } = await leg(url, { subprotocol: 'sidetone.v1', markTurns: turns });
  const after: string[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await isAnswered();
    after.push(told.join(''));
    await endTurn();
  }
  expect(after).toEqual(['ab', 'abcd', 'abcde']);
  bot.hangup();
});

test('Of marks that wait to be told there are no more than wait in the audio, and one that is gone is told of none.', async () => {
  const { turns, endTurn } = twoInATurn();
  const told: string[] = [];
  const marks = new PassedMarks({ appUuid: 'a', turns, tell: (name) => void told.push(name) });
  const sent = Array.from({ length: STREAM_MARKS_MAX + 5 }, (_, at) => String(at));
  for (const name of sent) marks.add(name);
  expect(told).toEqual(sent.slice(0, 5));
  marks.drop();
  await endTurn();
  await endTurn();
  marks.add('anew');
  expect(told).toEqual([...sent.slice(0, 5), 'anew']);
});
