/** The leg of a `websocket` Session with the media engine behind it: what it says of its end. */
import { afterAll, expect, test } from 'bun:test';
import type { LegSignal } from '../../src/call/ports/leg.ts';
import { WEBSOCKET_PING_MS } from '../../src/limits.ts';
import type { StreamFormat } from '../../src/media/leg/stream.ts';
import { connector } from '../../src/outbound/connect.ts';
import { WebSocketLeg } from '../../src/websocket/websocket-leg.ts';
import { Harness } from '../media/harness.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { byHand, closeAll, raw } from './harness.ts';

const engines: Harness[] = [];
afterAll(async () => {
  closeAll();
  for (const engine of engines) await engine.close();
});

const FORMAT: StreamFormat = { encoding: 'pcm_s16le', rateHz: 8000 };

/** A leg to `url` on virtual time. `until` resolves with the first signal of that type. */
async function leg(url: string) {
  const harness = await Harness.open({ workers: 1 });
  engines.push(harness);
  const clock = new VirtualClock();
  const said: LegSignal[] = [];
  const waiting: (() => void)[] = [];
  new WebSocketLeg({
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
  }).start();
  const until = async (type: LegSignal['type']): Promise<LegSignal> => {
    for (;;) {
      const found = said.find((signal) => signal.type === type);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { clock, until };
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

test('A server that does not answer pings in time is ended by the system.', async () => {
  const { clock, until } = await leg(await byHand(() => {}));
  await until('leg.connected');
  await clock.advance(WEBSOCKET_PING_MS * 3);
  expect(await until('leg.disconnected')).toMatchObject({ reason: 'keepalive_timeout', end: { by: 'system' } });
});
