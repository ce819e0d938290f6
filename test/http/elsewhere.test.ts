/** How long another node may take for a command that is forwarded to it. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { accepted } from '../../src/call/ports/sessions.ts';
import { newUuid } from '../../src/id.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
const slow: [path: string, isSlow: boolean][] = [];

beforeAll(async () => {
  platform = await openPlatform({
    peers: {
      nodeOf: async () => 'another',
      take: async () => () => {},
      forward: async (_nodeId, { path, operationUuid }, isSlow) => {
        slow.push([path.replace(/.*sessions\/[^/]+\//, ''), isSlow]);
        return { outcome: 'answered', answer: accepted(operationUuid) };
      },
    },
  });
});
afterAll(() => platform.close());

test('is long only for one whose body names audio sources, which the other node opens first', async () => {
  const app = await platform.testStore.store.apps.create({ name: 'forwarded' });
  const session = `/v1/sessions/${newUuid()}`;
  const order = (path: string, body: unknown) => platform.call(app, 'POST', `${session}/${path}`, body);
  await order('playback/play', { type: 'silence' });
  await order('playback/play', { type: 'files', urls: ['http://192.0.2.1/a.wav'] });
  await order('dtmf/collect', {});
  await order('dtmf/collect', { prompt_files: ['http://192.0.2.1/a.wav'] });
  await order('payment/card/collect', {});
  await order('payment/card/collect', { retry_prompt_files: ['http://192.0.2.1/a.wav'] });
  await order('dtmf/send', { digits: '1' });
  expect(slow).toEqual([
    ['playback/play', false],
    ['playback/play', true],
    ['dtmf/collect', false],
    ['dtmf/collect', true],
    ['payment/card/collect', false],
    ['payment/card/collect', true],
    ['dtmf/send', false],
  ]);
});
