/** Chromium calls in by WebRTC with the SDK: its own ICE, DTLS, codecs and jitter buffer, compared by tones. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { purity, toneWav } from '../support/rtp-peer.ts';
import { mulawTone, tokenOf, WebrtcPeer } from '../support/webrtc-peer.ts';
import { callSite } from './call-page.ts';
import { chromiumInstalled, launchChromium, watch } from './chromium.ts';

const NUMBER = '+15550002';
describe.skipIf(!chromiumInstalled)('Chromium calls in', () => {
  let platform: Platform;
  let app: Credentials;
  let browser: Browser;
  let page: Page;
  let seen: ReturnType<typeof watch>;
  let peer: WebrtcPeer | undefined;
  const receiver = new Receiver();
  const site = callSite((pathname) => (pathname === '/tone.wav' ? new Response(toneWav(1000, 3)) : undefined));

  beforeAll(async () => {
    [platform, browser] = await Promise.all([Platform.start(), launchChromium()]);
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    page = await browser.newPage();
    seen = watch(page, '');
    await page.goto(`http://127.0.0.1:${site.port}/`);
    await page.waitForFunction('window.ready === true');
  }, 60_000);

  afterAll(async () => {
    peer?.close();
    await browser?.close();
    await platform?.stop();
    await receiver.stop();
    await site.stop(true);
  }, 20_000);

  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
  const newToken = async () => tokenOf(await api('POST', '/v1/webrtc-tokens', { caller_id: NUMBER }));
  const start = async (hz: number): Promise<string> => {
    const { url, token } = await newToken();
    return await page.evaluate(`start(${JSON.stringify(url)}, ${JSON.stringify(token)}, ${hz})`);
  };
  const answer = async (uuid: string) => {
    await receiver.event('session.created', uuid);
    await api('POST', `/v1/sessions/${uuid}/answer`, {});
    await receiver.event('session.answered', uuid);
  };
  /** Waits until the loudest tone that the browser hears is that one. */
  const hears = (hz: number) => page.waitForFunction(`Math.abs(loudest() - ${hz}) < 15`, undefined, { timeout: 10_000 });

  test('it hears what is played, presses keys, holds and comes back, changes its way, and is told of the end', async () => {
    const uuid = await start(700);
    await answer(uuid);
    const urls = [`http://127.0.0.1:${site.port}/tone.wav`];
    await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls, loop: 10 });
    await hears(1000);
    // The platform chooses the suite that costs least among those that Chromium offers.
    const suite = `call.connection.getStats().then((all) => [...all.values()].find((each) => each.srtpCipher)?.srtpCipher)`;
    expect(await page.evaluate(suite)).toBe('SRTP_AEAD_AES_128_GCM');

    await page.evaluate(`call.sendDigits('5')`);
    expect((await receiver.event('dtmf.received', uuid)).body).toMatchObject({ digit: '5', method: 'rfc4733' });

    await page.evaluate('call.hold(true)');
    expect((await receiver.event('session.held', uuid)).body).toMatchObject({ by: 'far_end' });
    await page.evaluate('call.hold(false)');
    expect((await receiver.event('session.resumed', uuid)).body).toMatchObject({ by: 'far_end' });
    await hears(1000);

    const name = '/^a=ice-ufrag:.*$/m.exec(call.connection.currentRemoteDescription.sdp)[0]';
    const before = await page.evaluate(name);
    await page.evaluate('call.reconnect()');
    expect(await page.evaluate(name)).not.toBe(before);
    await page.waitForFunction(
      `call.connection.iceConnectionState === 'connected' || call.connection.iceConnectionState === 'completed'`,
    );
    await hears(1000);

    await api('DELETE', `/v1/sessions/${uuid}`);
    await page.waitForFunction('over');
    const ended = await receiver.event('session.ended', uuid);
    expect(ended.body).toMatchObject({ answered: true, hangup_by: 'callee' });
  }, 30_000);

  test('a hold or a reconnection whose request is lost leaves the call as it was, and both can be asked for again', async () => {
    const uuid = await start(700);
    await answer(uuid);
    await page.waitForFunction(`call.connection.connectionState === 'connected'`);
    const tell = (what: string) => page.evaluate(`${what}.then(() => 'done', () => 'failed')`);
    const whileAway = async (what: string) => {
      await page.route('**/v1/whip/**', (route) => route.abort());
      const told = await tell(what);
      await page.unroute('**/v1/whip/**');
      const audio = 'call.connection.getTransceivers()[0]';
      return [
        told,
        await page.evaluate(`[call.connection.signalingState, ${audio}.direction, ${audio}.currentDirection].join()`),
      ];
    };
    expect(await whileAway('call.hold(true)')).toEqual(['failed', 'stable,sendrecv,sendrecv']);
    expect(await tell('call.reconnect()')).toBe('done');
    expect(await whileAway('call.reconnect()')).toEqual(['failed', 'stable,sendrecv,sendrecv']);
    expect(await tell('call.hold(true)')).toBe('done');
    expect(await tell('Promise.all([call.reconnect(), call.hold(false)])')).toBe('done');
    await receiver.event('session.resumed', uuid);
    // The platform has taken the restart, and the browser goes on as it was: it has never seen the answer.
    await page.route('**/v1/whip/**', (route) => route.fetch().then(() => route.abort()));
    expect(await tell('call.reconnect()')).toBe('failed');
    await page.unroute('**/v1/whip/**');
    expect(await tell('call.hold(true)')).toBe('done');
    expect(await tell('call.reconnect()')).toBe('done');
    expect(await tell('call.hold(false)')).toBe('done');
    const urls = [`http://127.0.0.1:${site.port}/tone.wav`];
    await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls, loop: 10 });
    await hears(1000);
    // The console names the three requests that were lost.
    expect(seen.errors.splice(0)).toEqual(Array(3).fill(expect.stringContaining('ERR_FAILED')));
    await page.evaluate('call.hangUp()');
    await receiver.event('session.ended', uuid);
  }, 30_000);

  test('a call that ends before it is connected is over within seconds', async () => {
    // The browser is told of a port where nobody is.
    await page.evaluate(`
      window.taken = RTCPeerConnection.prototype.setRemoteDescription;
      RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
        return taken.call(this, { type, sdp: sdp.replace(/^(a=candidate:.* )[0-9]+( typ host)/gm, '$19$2') });
      };
    `);
    const uuid = await start(700);
    await page.evaluate('RTCPeerConnection.prototype.setRemoteDescription = taken');
    // It asks once while the call is there.
    await page.waitForResponse((response) => response.request().method() === 'PATCH' && response.status() === 204);
    await api('POST', `/v1/sessions/${uuid}/reject`, { reason: 'busy' });
    await receiver.event('session.ended', uuid);
    await page.waitForFunction('over', undefined, { timeout: 6_000 });
    expect(seen.errors.splice(0)).toEqual([expect.stringContaining('404')]);
  }, 30_000);

  test('a call whose answer the browser does not take is hung up', async () => {
    const calls = () => receiver.events.filter(({ event }) => event === 'session.created');
    const before = calls().length;
    await page.evaluate(`
      window.taken = RTCPeerConnection.prototype.setRemoteDescription;
      RTCPeerConnection.prototype.setRemoteDescription = () => Promise.reject(new Error('not taken'));
    `);
    await expect(start(700)).rejects.toThrow('not taken');
    await page.evaluate('RTCPeerConnection.prototype.setRemoteDescription = taken');
    await receiver.until(() => calls().length > before, 'the call');
    const ended = await receiver.event('session.ended', String(calls().at(-1)?.body.session_uuid));
    expect(ended.body).toMatchObject({ answered: false, hangup_cause: 'cancelled', hangup_by: 'caller' });
  }, 30_000);

  test('a page of its own making calls with its audio in the transport of its video', async () => {
    const { url, token } = await newToken();
    const location = String(
      await page.evaluate(`(async () => {
        const connection = window.own = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
        connection.addTransceiver('video');
        const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
        connection.addTrack(microphone.getAudioTracks()[0], microphone);
        await connection.setLocalDescription();
        const headers = { authorization: 'Bearer ${token}', 'content-type': 'application/sdp' };
        const answer = await fetch('${url}', { method: 'POST', headers, body: connection.localDescription.sdp });
        await connection.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
        return answer.headers.get('location');
      })()`),
    );
    const uuid = location.split('/').at(-1) ?? '';
    await answer(uuid);
    await page.evaluate(`(async () => {
      for (let sent = 0; sent < 20; await new Promise((resolve) => setTimeout(resolve, 50)))
        for (const each of (await own.getStats()).values())
          if (each.type === 'outbound-rtp' && each.kind === 'audio') sent = each.packetsSent;
    })()`);
    await page.evaluate('own.close()');
    const ended = await receiver.event('session.ended', uuid);
    expect((ended.body.quality as Record<string, number>).packets_in).toBeGreaterThan(5);
  }, 30_000);

  test('in a Room it hears the others and they hear it; it hangs up', async () => {
    const uuid = await start(700);
    await answer(uuid);
    const called = await WebrtcPeer.call(await newToken());
    ({ peer } = called);
    const other = peer;
    await answer(other.sessionUuid);
    const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
    for (const each of [uuid, other.sessionUuid]) {
      await api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: each });
      await receiver.event('room.member.joined', each);
    }
    other.say(mulawTone(1200));
    await hears(1200);
    await other.until(() => purity(other.heard(), 700) > 0.9, 'the tone of the browser');
    await page.evaluate('call.hangUp()');
    const ended = await receiver.event('session.ended', uuid);
    expect(ended.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'caller' });
    const quality = ended.body.quality as Record<string, number>;
    expect(quality.codec as unknown).toBe('opus');
    // How well it sounded is for the machine to say: a busy one is late with what both ends do.
    expect(quality.mos).toBeGreaterThanOrEqual(1);
    expect(quality.packets_in).toBeGreaterThan(5);
    expect(seen.errors).toEqual([]);
  }, 30_000);

  test('the console’s softphone calls an application, presses keys, and hangs up', async () => {
    const { body: other } = await platform.operator('POST', '/apps', { name: 'other' });
    const tab = await browser.newPage();
    const there = watch(tab, platform.url);
    await tab.goto(`${platform.url}/console`);
    await tab.getByLabel('Operator token').fill(readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim());
    await tab.getByRole('button', { name: 'Log in' }).click();
    await tab.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByRole('combobox', { name: /^Application/ }).selectOption(app.appUuid);
    await tab.getByRole('button', { name: 'Call from here' }).click();
    await tab.getByRole('status').filter({ hasText: 'Ringing' }).waitFor();
    const link = tab
      .locator('section', { has: tab.getByRole('heading', { name: 'Call from the browser' }) })
      .getByRole('link')
      .first();
    const uuid = (await link.getAttribute('href'))?.split('/').at(-1) ?? '';
    // The link to the call does not end it, and no way out of the page does so without a question.
    const [opened] = await Promise.all([tab.context().waitForEvent('page'), link.click()]);
    await opened.getByRole('heading', { name: 'What happened' }).waitFor();
    expect(await opened.getByRole('link', { name: 'SIP as text' }).count()).toBe(0);
    await opened.close();
    const chosen = tab.getByRole('combobox', { name: /^Application/ });
    for (const leave of [
      () => tab.getByRole('link', { name: 'Calls', exact: true }).click(),
      () => tab.getByRole('button', { name: 'Log out' }).click(),
      () => chosen.selectOption(String(other.app_uuid)),
    ]) {
      const asked = tab.waitForEvent('dialog');
      const left = leave();
      await (await asked).dismiss();
      await left;
      expect([tab.url(), await chosen.inputValue()]).toEqual([`${platform.url}/console/try`, app.appUuid]);
    }
    await answer(uuid);
    await tab.getByRole('button', { name: '7', exact: true }).click();
    expect((await receiver.event('dtmf.received', uuid)).body).toMatchObject({ digit: '7' });
    await tab.getByRole('button', { name: 'Hang up' }).last().click();
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true, hangup_by: 'caller' });
    await tab.getByRole('status').filter({ hasText: 'The call is over' }).waitFor();
    expect(there).toEqual({ errors: [], foreign: [] });
    await tab.close();
  }, 30_000);

  test('a call of the console’s softphone goes on when the session is over, and the page asks to log in after it', async () => {
    const own = await browser.newContext();
    const tab = await own.newPage();
    const { body } = await platform.operator('POST', '/console-logins', {});
    await tab.goto(String(body.url));
    await tab.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByRole('combobox', { name: /^Application/ }).selectOption(app.appUuid);
    await tab.getByRole('button', { name: 'Call from here' }).click();
    const card = tab.locator('section', { has: tab.getByRole('heading', { name: 'Call from the browser' }) });
    const uuid = (await card.getByRole('link').first().getAttribute('href'))?.split('/').at(-1) ?? '';
    await answer(uuid);
    // What went wrong is no longer said once it went right.
    const hold = card.getByRole('button', { name: 'Hold' });
    const call = `**/v1/whip/${uuid}`;
    await tab.route(call, (route) => (route.request().method() === 'PATCH' ? route.abort() : route.continue()));
    await hold.click();
    await card.getByRole('alert').waitFor();
    await tab.unroute(call);
    for (const pressed of ['true', 'false']) {
      await hold.click();
      await card.locator(`button[aria-pressed=${pressed}]`, { hasText: 'Hold' }).waitFor();
      expect(await card.getByRole('alert').count()).toBe(0);
    }
    await own.clearCookies();
    await tab.getByRole('button', { name: 'Send' }).click();
    await tab.getByRole('alert').filter({ hasText: 'Your call goes on' }).waitFor();
    await card.getByRole('button', { name: '5', exact: true }).click();
    expect((await receiver.event('dtmf.received', uuid)).body).toMatchObject({ digit: '5' });
    await card.getByRole('button', { name: 'Hang up' }).click();
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true, hangup_by: 'caller' });
    await tab.getByRole('alert').filter({ hasText: 'Please log in again' }).waitFor();
    expect(await tab.getByLabel('Operator token').evaluate((field) => field === document.activeElement)).toBe(true);
    await own.close();
  }, 30_000);

  test('the page of the examples calls, presses a key and hangs up, and tells at once that the other side did', async () => {
    for (const who of ['page', 'application']) {
      const tab = await browser.newPage();
      const { url, token } = await newToken();
      await tab.goto(`http://127.0.0.1:${site.port}/example#${new URLSearchParams({ URL: url, TOKEN: token })}`);
      const calls = () => receiver.events.filter(({ event }) => event === 'session.created');
      const before = calls().length;
      await tab.getByRole('button', { name: 'Call' }).click();
      await receiver.until(() => calls().length > before, 'the call');
      await tab.getByRole('status').filter({ hasText: 'connected' }).waitFor();
      const uuid = String(calls().at(-1)?.body.session_uuid);
      await answer(uuid);
      await tab.getByRole('button', { name: '5' }).click();
      expect((await receiver.event('dtmf.received', uuid)).body).toMatchObject({ digit: '5' });
      if (who === 'page') await tab.getByRole('button', { name: 'Hang up' }).click();
      else await api('DELETE', `/v1/sessions/${uuid}`);
      await tab.getByRole('status').filter({ hasText: 'over' }).waitFor();
      await receiver.event('session.ended', uuid);
      await tab.close();
    }
  }, 30_000);

  test('a call whose tab is closed is over at once', async () => {
    const { url, token } = await newToken();
    const tab = await browser.newPage();
    await tab.goto(`http://127.0.0.1:${site.port}/`);
    await tab.waitForFunction('window.ready === true');
    // Chromium drops a DELETE that has to ask what is taken (CORS) when its page is gone. It has been asked before.
    const isAsked = (page: Page) => page.waitForResponse((response) => response.request().method() === 'PATCH');
    const tabAsked = isAsked(tab);
    const uuid = String(await tab.evaluate(`start(${JSON.stringify(url)}, ${JSON.stringify(token)}, 700)`));
    await answer(uuid);
    expect((await tabAsked).status()).toBe(204);
    const example = await browser.newPage();
    const exampleAsked = isAsked(example);
    await example.goto(`http://127.0.0.1:${site.port}/example#${new URLSearchParams({ URL: url, TOKEN: token })}`);
    const created = example.waitForResponse((response) => response.status() === 201);
    await example.getByRole('button', { name: 'Call' }).click();
    const ofExample = String((await (await created).headerValue('location'))?.split('/').at(-1));
    await example.getByRole('status').filter({ hasText: 'connected' }).waitFor();
    await answer(ofExample);
    expect((await exampleAsked).status()).toBe(204);
    for (const [left, session] of [
      [tab, uuid],
      [example, ofExample],
    ] as const) {
      await left.close();
      // A browser that is not heard any more is given up as `timeout`, half a minute later.
      expect((await receiver.event('session.ended', session)).body).toMatchObject({
        hangup_cause: 'completed',
        hangup_by: 'caller',
      });
    }
  }, 60_000);
});
