/** A browser whose network changes in the middle of a call: another address, and a while without any. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import type { Browser, Page } from 'playwright-core';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { type Token, tokenOf } from '../support/webrtc-peer.ts';
import { callSite } from './call-page.ts';
import { chromiumInstalled, launchChromium } from './chromium.ts';
import { UdpRelay } from './udp-relay.ts';

const NUMBER = '+15550002';

describe.skipIf(!chromiumInstalled)('Chromium', () => {
  let platform: Platform;
  let app: Credentials;
  let browser: Browser;
  let page: Page;
  let relay: UdpRelay;
  let token: Token;
  let patched: () => void = () => {};
  let refusals = 0;
  const receiver = new Receiver();
  const site = callSite((pathname, request) => {
    if (pathname === '/tone.wav') return new Response(toneWav(1000, 3));
    return pathname.startsWith('/whip') ? throughRelay(request, pathname.slice('/whip'.length)) : undefined;
  });

  /** WHIP of the platform, with the relay in its answers. */
  async function throughRelay(request: Request, rest: string): Promise<Response> {
    const { method, headers } = request;
    const body = method === 'DELETE' ? null : await request.text();
    if (method === 'PATCH' && refusals > 0) {
      refusals--;
      return new Response('', { status: 503 });
    }
    const response = await fetch(token.url + rest, { method, headers, body });
    if (method === 'PATCH') patched();
    const answer = await response.text();
    if (response.status !== 201) return new Response(answer, response);
    const location = `/whip/${response.headers.get('location')?.split('/').at(-1)}`;
    return new Response(relay.lead(answer), { status: 201, headers: { location, 'content-type': 'application/sdp' } });
  }

  beforeAll(async () => {
    [platform, browser, relay] = await Promise.all([Platform.start(), launchChromium(), UdpRelay.open()]);
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${site.port}/`);
    await page.waitForFunction('window.ready === true');
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    relay?.close();
    await platform?.stop();
    await receiver.stop();
    await site.stop(true);
  }, 20_000);

  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
  const hears = (hz: number) => page.waitForFunction(`Math.abs(loudest() - ${hz}) < 15`, undefined, { timeout: 20_000 });
  const presses = async (uuid: string, digit: string) => {
    await page.evaluate(`call.sendDigits('${digit}')`);
    await receiver.until(
      () => receiver.of(uuid).some(({ event, body }) => event === 'dtmf.received' && body.digit === digit),
      `the key ${digit}`,
    );
  };

  test('keeps its call when its address changes, and takes it over by itself after its network and the platform were away', async () => {
    token = tokenOf(await api('POST', '/v1/webrtc-tokens', {}));
    const uuid = String(await page.evaluate(`start(location.origin + '/whip', ${JSON.stringify(token.token)}, 700)`));
    await receiver.event('session.created', uuid);
    await api('POST', `/v1/sessions/${uuid}/answer`, {});
    await receiver.event('session.answered', uuid);
    const urls = [`http://127.0.0.1:${site.port}/tone.wav`];
    await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls, loop: 50 });
    await hears(1000);
    await presses(uuid, '1');

    // Its NAT gives it another address: the platform follows a check from there.
    relay.move();
    await relay.carries(50);
    await hears(1000);
    await presses(uuid, '2');

    const name = '/^a=ice-ufrag:.*$/m.exec(call.connection.currentRemoteDescription.sdp)[0]';
    const before = await page.evaluate(name);
    const reconnects = new Promise<void>((resolve) => {
      patched = resolve;
    });
    refusals = 2;
    relay.cut();
    await page.waitForFunction('loudest() === 0');
    await reconnects;
    relay.mend();
    await hears(1000);
    expect(refusals).toBe(0);
    expect(await page.evaluate(name)).not.toBe(before);
    await presses(uuid, '3');

    await page.evaluate('call.hangUp()');
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({
      answered: true,
      hangup_cause: 'completed',
      hangup_by: 'caller',
    });
  }, 60_000);

  test('is told that its call is over where its network stays away', async () => {
    const away = await browser.newPage();
    // Two minutes pass in a moment: those of the page, while the connection lives in real time.
    await away.clock.install();
    await away.goto(`http://127.0.0.1:${site.port}/`);
    await away.waitForFunction('window.ready === true');
    token = tokenOf(await api('POST', '/v1/webrtc-tokens', {}));
    const uuid = String(await away.evaluate(`start(location.origin + '/whip', ${JSON.stringify(token.token)}, 700)`));
    await receiver.event('session.created', uuid);
    await api('POST', `/v1/sessions/${uuid}/answer`, {});
    await receiver.event('session.answered', uuid);
    await away.route('**/whip/**', (route) => route.abort());
    const asked = away.waitForEvent('requestfailed', { timeout: 30_000 });
    relay.cut();
    await asked;
    for (let turn = 0; turn < 50 && !(await away.evaluate('window.over')); turn++) await away.clock.runFor(5000);
    expect(await away.evaluate('window.over')).toBe(true);
    expect(await away.evaluate('call.connection.connectionState')).toBe('closed');
    relay.mend();
    await away.close();
  }, 60_000);
});
