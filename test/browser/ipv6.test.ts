/** Chromium calls in over IPv6: the platform's only candidate is an address of that version. */

import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { networkInterfaces } from 'node:os';
import type { Browser, Page } from 'playwright-core';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { tokenOf } from '../support/webrtc-peer.ts';
import { callSite } from './call-page.ts';
import { chromiumInstalled, launchChromium } from './chromium.ts';

const NUMBER = '+15550002';
/** Chromium offers no loopback address, so that it needs another one of this version. */
const hasSix = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .some(({ internal, family, address }) => !internal && family === 'IPv6' && !address.startsWith('fe80'));
if (!hasSix) console.log('skipped: this machine has no IPv6 address beside the loopback one');

describe.skipIf(!chromiumInstalled || !hasSix)('Chromium over IPv6', () => {
  let platform: Platform;
  let app: Credentials;
  let browser: Browser;
  let page: Page;
  const receiver = new Receiver();
  const site = callSite((pathname) => (pathname === '/tone.wav' ? new Response(toneWav(1000, 3)) : undefined));

  beforeAll(async () => {
    [platform, browser] = await Promise.all([Platform.start({ WEBRTC_LISTEN: '[::1]' }), launchChromium()]);
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${site.port}/`);
    await page.waitForFunction('window.ready === true');
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
    await receiver.stop();
    await site.stop(true);
  }, 20_000);

  test('hears what is played to it, and comes back after a reconnection', async () => {
    const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
    const { url, token } = tokenOf(await api('POST', '/v1/webrtc-tokens', { caller_id: NUMBER }));
    const uuid: string = await page.evaluate(`start(${JSON.stringify(url)}, ${JSON.stringify(token)}, 700)`);
    await receiver.event('session.created', uuid);
    await api('POST', `/v1/sessions/${uuid}/answer`, {});
    await receiver.event('session.answered', uuid);
    const urls = [`http://127.0.0.1:${site.port}/tone.wav`];
    await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls, loop: 10 });
    const hears = () => page.waitForFunction('Math.abs(loudest() - 1000) < 15', undefined, { timeout: 10_000 });
    await hears();
    const pair = `call.connection.getStats().then((all) => {
      const found = [...all.values()].find((each) => each.type === 'candidate-pair' && each.nominated);
      return [all.get(found.localCandidateId).address, all.get(found.remoteCandidateId).address];
    })`;
    expect(await page.evaluate(pair)).toEqual([expect.stringContaining(':'), '::1']);
    await page.evaluate('call.reconnect()');
    await hears();
    await api('DELETE', `/v1/sessions/${uuid}`);
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true });
  }, 30_000);
});
