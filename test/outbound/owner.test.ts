/** Whose a name is that is looked up: its owner rests after one with thousands of addresses, and nobody else does. */
import { beforeEach, expect, test } from 'bun:test';
import { openPlaylist, openStream } from '../../src/media/playback/playlist.ts';
import { connector } from '../../src/outbound/connect.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { attemptDelivery } from '../../src/webhook/delivery.ts';
import { playlistTerms } from '../media/source/terms.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { open } from '../websocket/harness.ts';

const asked: string[] = [];
/** No name has an address here, but that of a server that leads elsewhere. */
const resolver = async (name: string, owner: string): Promise<readonly string[]> => {
  asked.push(`${name}: ${owner}`);
  return name === 'elsewhere.test' ? ['127.0.0.1'] : [];
};
const outbound = createOutbound(['127.0.0.0/8'], resolver);
beforeEach(() => void asked.splice(0));

test('A webhook is looked up for the application of its event', async () => {
  const endpoint = { url: 'http://receiver.test/', disabled: false, since: 0, keys: [], blocks: () => false };
  const event = { appUuid: 'app_1', webhookId: 'evt_1', body: '{}' };
  const { error } = await attemptDelivery({ outbound, clock: new VirtualClock(), timeoutSec: 5 }, endpoint, event, '');
  expect([error, asked]).toEqual(['dns', ['receiver.test: webhooks of app_1']]);
});

test('What is played is looked up for the application that plays it, where it is led to as well', async () => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      url.endsWith('.m3u')
        ? new Response('http://entry.test/a.wav\n', { headers: { 'content-type': 'audio/x-mpegurl' } })
        : Response.redirect('http://hop.test/'),
  });
  const terms = playlistTerms(outbound);
  await openPlaylist(terms, [`http://elsewhere.test:${server.port}/`], 'app_1');
  await openPlaylist(terms, [`http://elsewhere.test:${server.port}/list.m3u`], 'app_2');
  await openStream(terms, 'http://radio.test/', 'app_3');
  expect(asked).toEqual([
    'elsewhere.test: audio of app_1',
    'hop.test: audio of app_1',
    'elsewhere.test: audio of app_2',
    'entry.test: audio of app_2',
    'radio.test: audio of app_3',
  ]);
  await server.stop(true);
});

test('The server of a WebSocket is looked up for the application of its Session', async () => {
  const { until } = open('ws://bot.test/', { appUuid: 'app_1', connect: connector([], resolver) });
  await until('failed');
  expect(asked).toEqual(['bot.test: WebSockets of app_1']);
});
