/**
 * The operator's console in Chromium, against the real platform: a call from one number to another, and all its pages.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import postgres from 'postgres';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { chromiumInstalled, launchChromium, watch } from './chromium.ts';

const BUILT = join(import.meta.dir, '../../build/console');
const NUMBER = '+15550001';
const READ_TOKEN = 'reading-token-of-the-console';
/** A name that would run a script wherever it were taken for markup. */
const NAME = '<img src=x onerror=alert(1)>';
const PAGES = ['calls', 'rooms', 'messages', 'applications', 'trunks', 'events', 'try'];
const KINDS = ['HTTP', 'SIP', 'Media', 'Events', 'Webhooks', 'Quality'];

test('the console weighs less than 150 kB', () => {
  const files = readdirSync(BUILT).filter((name) => /\.(html|js|css|svg)$/.test(name));
  expect(files.length).toBeGreaterThanOrEqual(3);
  const bytes = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT, name))).length, 0);
  expect(bytes).toBeLessThan(150_000);
});

describe.skipIf(!chromiumInstalled)('the console', () => {
  const receiver = new Receiver();
  const melody = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(toneWav(400, 2), { headers: { 'content-type': 'audio/wav' } }),
  });
  let platform: Platform;
  let app: Credentials;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let seen: ReturnType<typeof watch>;
  let refusesEnd = true;
  let answersEnd: Promise<unknown> = Promise.resolve();

  beforeAll(async () => {
    receiver.isJudged = false;
    platform = await Platform.start({ WEBHOOK_RETRY_SCALE: '0.00001', OPERATOR_READ_TOKEN: READ_TOKEN });
    app = await platform.application(receiver.url, NUMBER);
    await platform.operator('PATCH', `/apps/${app.appUuid}`, { name: NAME });
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    receiver.misbehave = ({ event, type, session_uuid: uuid }) => {
      if (event === 'session.created' && type === 'phone_in') void platform.answerSoon(app, uuid);
      if (event !== 'session.ended') return undefined;
      return refusesEnd ? new Response('not now', { status: 503 }) : answersEnd.then(() => undefined);
    };
    browser = await launchChromium();
    context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    page = await context.newPage();
    seen = watch(page, platform.url);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
    await receiver.stop();
    await melody.stop();
  }, 30_000);

  const logIn = async (tab: Page, token: string) => {
    await tab.goto(`${platform.url}/console`);
    await tab.getByLabel('Operator token').fill(token);
    await tab.getByRole('button', { name: 'Log in' }).click();
    await tab.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
  };
  /** Hides a tab, as another in front of it does, or shows it again. */
  const see = (tab: Page, isSeen: boolean) =>
    tab.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, !isSeen);
  const operatorToken = () => readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
  const happened = (tab: Page = page) => tab.getByRole('list', { name: 'What happened' }).getByRole('button');
  const details = (tab: Page = page) => tab.getByRole('complementary');

  test('refuses a wrong token in words, and opens with the right one; an empty list says what to do', async () => {
    await page.goto(`${platform.url}/console`);
    await page.getByLabel('Operator token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').waitFor();
    // The browser itself notes a refused request; everything else would be an error of ours.
    expect(seen.errors.splice(0)).toEqual([expect.stringContaining('401')]);
    await logIn(page, operatorToken());
    await page.getByText('No calls yet').waitFor();
    await page
      .getByRole('status')
      .filter({ hasText: /^live$/ })
      .waitFor();
  }, 60_000);

  test('asks again by itself for what could not be loaded, and says why meanwhile', async () => {
    const tab = await context.newPage();
    // Without the stream no news cause the page to load.
    await tab.route('**/events/stream', (route) => route.abort());
    const refusal = { code: 'unavailable', message: 'Service temporarily unavailable. See Retry-After header.' };
    const told = 'Service temporarily unavailable. Try again in a moment.';
    const lists = /operator\/v1\/(sessions|rooms)(\?|$)/;
    for (const [path, loaded] of [
      ['/console/calls', 'No calls yet'],
      ['/console/rooms', 'No Rooms'],
    ] as const) {
      await tab.route(lists, (route) => route.fulfill({ status: 503, json: refusal }));
      await tab.goto(`${platform.url}${path}`);
      await tab.getByText(told).waitFor();
      await tab.unroute(lists);
      await tab.getByText(loaded).waitFor();
      expect(await tab.getByText(told).count()).toBe(0);
    }
    await tab.close();
  }, 60_000);

  test('does not say that there is no application before it knows', async () => {
    const tab = await context.newPage();
    const refusal = { code: 'unavailable', message: 'Service temporarily unavailable. See Retry-After header.' };
    const told = 'Service temporarily unavailable. Try again in a moment.';
    const asked = Promise.withResolvers<void>();
    await tab.route(/operator\/v1\/apps$/, async (route) => {
      await asked.promise;
      await route.fulfill({ status: 503, json: refusal });
    });
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByRole('status').filter({ hasText: 'Loading' }).waitFor();
    expect(await tab.getByText('No application').count()).toBe(0);
    asked.resolve();
    await tab.getByRole('alert').filter({ hasText: told }).waitFor();
    expect(await tab.getByText('No application').count()).toBe(0);
    await tab.close();
  }, 60_000);

  test('sees on the page to try it what was done elsewhere: the first application, its caller ID, its webhook, a trunk', async () => {
    const tab = await context.newPage();
    const again = async () => {
      await see(tab, false);
      await see(tab, true);
    };
    await tab.route(/operator\/v1\/apps$/, (route) => route.fulfill({ json: { apps: [] } }));
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByText('No application').waitFor();
    const { body: made } = await platform.operator('POST', '/apps', { name: 'first' });
    await tab.unroute(/operator\/v1\/apps$/);
    await again();
    await tab.getByText('The application has no caller ID yet').waitFor();
    await tab.getByText('The application has no webhook: it is kept in the log as undeliverable').waitFor();
    await tab.getByRole('button', { name: 'Send' }).click();
    await tab.getByRole('link', { name: 'See its delivery' }).click();
    await tab.getByRole('row').filter({ hasText: 'session.created' }).filter({ hasText: 'undeliverable' }).waitFor();
    await tab.getByRole('row').getByRole('button', { name: 'session.created' }).first().click();
    await tab.getByRole('button', { name: 'Replay' }).click();
    await tab.getByText('Queued to be sent again').waitFor();
    await tab.goBack();
    await tab.getByRole('combobox', { name: /^Application/ }).waitFor();
    await platform.operator('PUT', `/apps/${made.app_uuid}/caller-ids/${encodeURIComponent('+15550009')}`);
    await platform.operator('PATCH', `/apps/${made.app_uuid}`, { webhook_url: 'http://127.0.0.1:9/hook' });
    await platform.operator('PUT', '/trunks/another', { uri: 'loopback:' });
    await again();
    await tab.getByText('It goes to http://127.0.0.1:9/hook').waitFor();
    await tab.getByRole('combobox', { name: /^Event/ }).selectOption('session.held');
    await platform.operator('PATCH', `/apps/${made.app_uuid}`, { blocked_webhook_events: ['session.held'] });
    await again();
    await tab.getByText('The application blocks it: it is kept in the log, and not sent').waitFor();
    await tab.getByRole('option', { name: 'another' }).waitFor({ state: 'attached' });
    expect(await tab.getByText('The application has no caller ID yet').count()).toBe(0);
    expect(await tab.getByLabel('From (a caller ID').inputValue()).toBe('+15550009');
    await platform.operator('DELETE', '/trunks/another');
    await tab.close();
  }, 60_000);

  test('says why a trunk is not registered: no answer, a wrong password, another refusal, or nothing known', async () => {
    const tab = await context.newPage();
    const status = { registered: false, registered_until: '', channels_in_use: 0, calls_24h: 0, failures_24h: 0 };
    const answers = { silent: 0, wrong: 403, full: 503, untried: undefined };
    const trunks = Object.entries(answers).map(([name, answer]) => ({
      ...{ name, uri: 'sip:192.0.2.1', register: true, inbound_cidrs: [] },
      status: { ...status, ...(answer === undefined ? {} : { register_sip_status: answer }) },
    }));
    await tab.route(/operator\/v1\/trunks$/, (route) => route.fulfill({ json: { trunks } }));
    await tab.goto(`${platform.url}/console/trunks`);
    for (const [name, words] of [
      ['silent', 'no; its registrar does not answer'],
      ['wrong', 'no; refused (SIP 403): check its user name and password'],
      ['full', 'no; refused (SIP 503): ask the carrier about its account'],
      ['untried', 'no; this node has heard of no answer yet'],
    ] as const)
      await tab.getByRole('region', { name }).getByText(words, { exact: true }).waitFor({ timeout: 10_000 });
    await tab.close();
  }, 60_000);

  test('shows the newest applications, the others on request, and finds one by its name', async () => {
    const tab = await context.newPage();
    const detail = await platform.operator('GET', `/apps/${app.appUuid}`);
    const apps = Array.from({ length: 60 }, (_, at) => ({ ...detail.body, name: `Shop ${at}`, app_uuid: `app_${at}` }));
    await tab.route(/operator\/v1\/apps$/, (route) => route.fulfill({ json: { apps } }));
    await tab.route(/operator\/v1\/apps\/app_\d+$/, (route) => route.fulfill({ json: detail.body }));
    await tab.goto(`${platform.url}/console/applications`);
    const cards = tab.getByRole('region', { name: /^Shop/ });
    await cards.getByText('Identifier').nth(11).waitFor();
    expect(await cards.getByRole('heading').first().textContent()).toBe('Shop 59');
    expect(await cards.count()).toBe(12);
    await tab.getByRole('button', { name: 'Older applications' }).click();
    await cards.nth(23).waitFor();
    await tab.getByRole('searchbox').fill('shop 7');
    await tab.keyboard.press('Enter');
    await tab.getByRole('region', { name: 'Shop 7' }).waitFor();
    expect(await cards.count()).toBe(1);
    await tab.close();
  }, 60_000);

  test('fits a telephone, with the longest names that applications, trunks and callers may have', async () => {
    const tab = await context.newPage();
    await tab.setViewportSize({ width: 360, height: 740 });
    const detail = await platform.operator('GET', `/apps/${app.appUuid}`);
    const since = new Date().toISOString();
    // A name of the letters that are widest, and one that would turn what is beside it.
    const long = { ...detail.body, name: `\u202e${'W'.repeat(100)}`, webhook_url: `https://example.com/${'segment'.repeat(20)}` };
    const told = { ...long, webhook_status: { state: 'disabled', since, last_error: 'e'.repeat(120) } };
    const call = {
      session_uuid: crypto.randomUUID(),
      app_uuid: app.appUuid,
      type: 'phone_in',
      state: 'answered',
      trunk: 't'.repeat(64),
    };
    const caller = { ...call, caller_id: 'W'.repeat(255), did: NUMBER, created_at: since, answered_at: since, ended_at: '' };
    const room = { room_id: crypto.randomUUID(), app_uuid: app.appUuid, created_at: since };
    const status = { registered: false, registered_until: '', channels_in_use: 0, calls_24h: 0, failures_24h: 0 };
    const trunk = {
      name: 'W'.repeat(64),
      uri: `sip:${'carrier.'.repeat(20)}example.com`,
      register: true,
      inbound_cidrs: [],
      status,
    };
    const answers: readonly (readonly [RegExp, object])[] = [
      [/operator\/v1\/apps$/, { apps: [long] }],
      [/operator\/v1\/apps\/app_[0-9a-f-]+$/, told],
      [
        /operator\/v1\/sessions\?/,
        { sessions: [{ ...caller, duration_seconds: 0, hangup_cause: '', hangup_by: '' }], after: '' },
      ],
      [/operator\/v1\/rooms$/, { rooms: [{ ...room, members: [{ ...call, muted: true, talking: true }] }] }],
      [/operator\/v1\/trunks$/, { trunks: [trunk] }],
    ];
    for (const [url, json] of answers) await tab.route(url, (route) => route.fulfill({ json }));
    const names = { rooms: caller.caller_id, trunks: trunk.name };
    for (const name of PAGES) {
      await tab.goto(`${platform.url}/console/${name}`);
      await tab.getByRole('heading', { level: 1 }).waitFor();
      const shown = name === 'rooms' || name === 'trunks' ? names[name] : `⟨U+202E⟩${'W'.repeat(100)}`;
      await tab.getByText(shown).first().waitFor({ state: 'attached' });
      const broken = await tab.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll('.card')]
          .filter((each) => each.scrollWidth > each.clientWidth)
          .map((each) => each.textContent?.slice(0, 40)),
      );
      expect([name, broken]).toEqual([name, []]);
    }
    await tab.close();
  }, 60_000);

  test('holds no connection while nobody sees it, and has everything when it is seen again', async () => {
    const tab = await context.newPage();
    await tab.goto(`${platform.url}/console/events`);
    const badge = (words: string) =>
      tab
        .getByRole('status')
        .filter({ hasText: new RegExp(`^${words}$`) })
        .waitFor();
    await badge('live');
    const closed = tab.waitForEvent('requestfailed', (request) => request.url().endsWith('/events/stream'));
    await see(tab, false);
    await closed;
    await badge('not live');
    await platform.operator('POST', `/apps/${app.appUuid}/events`, { event: 'session.transfer.failed' });
    await see(tab, true);
    await tab.getByRole('row').filter({ hasText: 'session.transfer.failed' }).waitFor();
    await badge('live');
    await tab.close();
  }, 60_000);

  test('places a call, which appears in the list as it comes', async () => {
    const list = await context.newPage();
    const seenThere = watch(list, platform.url);
    await list.goto(`${platform.url}/console/calls`);
    await list.getByText('No calls yet').waitFor();
    await page.getByRole('link', { name: 'Try it', exact: true }).click();
    await page.getByRole('combobox', { name: /^Application/ }).selectOption({ label: NAME });
    await page.getByLabel('Trunk').selectOption('loop');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.locator('.notice').getByText('answered').waitFor();
    await list.getByRole('row').filter({ hasText: 'answered' }).nth(1).waitFor();
    expect(await list.getByRole('row').filter({ hasText: NAME }).count()).toBe(2);
    expect(seenThere).toEqual({ errors: [], foreign: [] });
    await list.close();
    await page.getByLabel('A file to play').fill(`http://127.0.0.1:${melody.port}/tone.wav`);
    await page.getByRole('button', { name: 'Play' }).click();
    await page.getByText('It is being played').waitFor();
  }, 60_000);

  test('shows the Rooms with their members, the trunks, the messages and the applications', async () => {
    const tab = await context.newPage();
    const seenThere = watch(tab, platform.url);
    const callee = String((await receiver.event('session.created')).body.session_uuid);
    const { room_id: roomId } = (await platform.api(app, 'POST', '/api/v1/rooms', {})).body;
    await tab.goto(`${platform.url}/console/rooms`);
    await tab.getByText('Nobody is in it').waitFor();
    await platform.api(app, 'POST', `/api/v1/rooms/${roomId}/members`, { session_uuid: callee, muted: true });
    const room = tab.getByRole('region', { name: String(roomId) });
    await room
      .getByRole('listitem')
      .filter({ hasText: callee.slice(-8) })
      .filter({ hasText: 'muted' })
      .filter({ hasText: `in ${NUMBER}` })
      .waitFor();
    await platform.api(app, 'DELETE', `/api/v1/rooms/${roomId}`);
    await tab.getByText('No Rooms').waitFor();
    await tab.getByRole('link', { name: 'Trunks' }).click();
    await tab.getByRole('region', { name: 'loop' }).getByText('loopback:').waitFor();
    await tab
      .getByRole('region', { name: 'loop' })
      .getByText(/^[0-9]+, of which 0 failed$/)
      .waitFor();
    await platform.api(app, 'POST', '/v1/messages', {
      from: NUMBER,
      to: '+15550100',
      text: `<b>hello</b>\u202e${'x'.repeat(300)}`,
    });
    await tab.getByRole('link', { name: 'Messages' }).click();
    await tab.getByRole('row').filter({ hasText: '<b>hello</b>⟨U+202E⟩xxx' }).filter({ hasText: 'delivered' }).waitFor();
    const table = tab.locator('.scroll');
    expect(await table.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
    await tab.getByRole('link', { name: 'Applications' }).click();
    await tab.getByRole('region', { name: NAME }).getByText(app.appUuid).waitFor();
    expect(await tab.getByText(app.apiKey).count()).toBe(0);
    expect(seenThere).toEqual({ errors: [], foreign: [] });
    await tab.close();
  }, 60_000);

  test('shows each kind of entry of a call while it lives, and the recording after it', async () => {
    const { session_uuid: caller } = (await receiver.event('playback.started')).body;
    await platform.api(app, 'POST', `/v1/sessions/${caller}/recordings`, { direction: 'both', channels: 'mono' });
    const { recording_uuid: recordingUuid } = (await receiver.event('recording.became_available', String(caller))).body;
    const order = (what: string) => platform.api(app, 'POST', `/v1/sessions/${caller}/recordings/${recordingUuid}/${what}`);
    await order('mask');
    await page.locator('.notice').getByRole('link').click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.getByRole('checkbox', { name: 'Quality' }).check();
    for (const title of ['INVITE', 'POST /sessions/…/recordings', 'session.answered', 'playback started', 'MOS'])
      await happened().filter({ hasText: title }).first().waitFor();
    await happened().filter({ hasText: 'HTTP 204' }).first().waitFor();
    await order('unmask');
    for (const kind of KINDS) {
      await page.getByRole('checkbox', { name: kind, exact: true }).uncheck();
    }
    expect(await happened().count()).toBe(0);
    for (const kind of KINDS) await page.getByRole('checkbox', { name: kind, exact: true }).check();
    await happened().filter({ hasText: 'INVITE' }).first().click();
    await details().getByText('Contact:').waitFor();
    await page.keyboard.press('ArrowDown');
    await details().getByText('SIP/2.0 100 Trying').first().waitFor();
    await platform.api(app, 'DELETE', `/v1/sessions/${caller}`);
    await page.getByRole('status').filter({ hasText: 'ended' }).waitFor();
    await happened().filter({ hasText: 'recording.ended' }).first().waitFor();
  }, 60_000);

  test('plays the recording under its waveform', async () => {
    const recording = page.locator('.recording');
    await recording.getByRole('button', { name: 'Play' }).click();
    await page.waitForFunction(() => Number(document.querySelector('[data-position]')?.getAttribute('data-position')) >= 0.2);
    await recording.getByRole('button', { name: 'Pause' }).click();
    // By keyboard, too: a waveform is clicked by a pointer alone.
    const slider = recording.getByRole('slider', { name: 'Position in the recording' });
    await slider.press('ArrowRight');
    await slider.press('Home');
    await recording.locator('[data-position="0.00"]').waitFor();
    await slider.press('ArrowRight');
    await recording.locator('[data-position="0.10"]').waitFor();
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/^0:00 of 0:\d\d$/);
    await recording.getByText('masked').waitFor();
    expect(await page.getByRole('img', { name: /Time axis/ }).count()).toBe(1);
  }, 60_000);

  test('says in words why the text of a SIP message is not there yet, and shows it when it is', async () => {
    const tab = await context.newPage();
    const refusal = { code: 'unavailable', message: 'Service temporarily unavailable. See Retry-After header.' };
    await tab.route('**/sip.txt', (route) => route.fulfill({ status: 503, json: refusal }));
    await tab.goto(page.url());
    await happened(tab).filter({ hasText: 'INVITE' }).first().click();
    await details(tab).getByText('Service temporarily unavailable. Try again in a moment.', { exact: true }).waitFor();
    await tab.unroute('**/sip.txt');
    await details(tab).getByText('Contact:').waitFor();
    await tab.close();
  }, 60_000);

  test('says that a recording is gone only where it is, and loads it on request where it could not be', async () => {
    const tab = await context.newPage();
    const media = '**/v1/media/**';
    const recording = tab.locator('.recording');
    for (const [status, words] of [
      [410, 'The recording is not there any more, or its link has expired.'],
      [503, 'The recording could not be loaded.'],
    ] as const) {
      await tab.route(media, (route) => route.fulfill({ status, json: {} }));
      await tab.goto(page.url());
      await recording.getByText(words).waitFor();
      await tab.unroute(media);
    }
    await recording.getByRole('button', { name: 'Load the recording' }).click();
    await recording.getByRole('slider', { name: 'Position in the recording' }).waitFor();
    expect(await recording.getByText('could not be loaded').count()).toBe(0);
    await tab.close();
  }, 60_000);

  test('lays the recording and the quality on the time axis: what was masked is not in the file, and is left free', async () => {
    // The axis becomes longer with each attempt to deliver the end of the call. With the last it stays as it is.
    const attempts = happened().filter({ hasText: 'session.ended' }).filter({ hasText: 'HTTP 503' });
    await attempts.filter({ hasNotText: 'to be tried again' }).waitFor();
    // All places are those of one moment.
    const { before, masked, after, axis, plot } = await page.evaluate(() => {
      const edges = (selector: string, nth = 0) => {
        const box = document.querySelectorAll(selector)[nth]?.getBoundingClientRect();
        return { from: box?.left ?? Number.NaN, until: box?.right ?? Number.NaN };
      };
      const recording = { before: edges('.wave'), masked: edges('.track .shade.masked'), after: edges('.wave', 1) };
      return { ...recording, axis: edges('.axis'), plot: edges('.u-over') };
    });
    expect(await page.locator('.wave').count()).toBe(2);
    expect(masked.until - masked.from).toBeGreaterThan(5);
    expect(masked.from).toBeCloseTo(before.until, 0);
    expect(after.from).toBeCloseTo(masked.until, 0);
    expect([plot.from - axis.from, axis.until - plot.until].map(Math.round)).toEqual([84, 6]);
    // A click in a piece plays from there: the masked stretch is no part of the file.
    await page
      .locator('.wave')
      .nth(1)
      .click({ position: { x: 1, y: 30 } });
    await page.waitForFunction(() => {
      const [cursor, mask] = ['.cursor', '.track .shade.masked'].map((each) =>
        document.querySelector(each)?.getBoundingClientRect(),
      );
      return cursor !== undefined && mask !== undefined && cursor.left >= mask.right - 1;
    });
  }, 60_000);

  test('sends a webhook again that failed, and shows that it is delivered', async () => {
    const failed = happened().filter({ hasText: 'HTTP 503' });
    await failed.last().click();
    await details().getByText('not now').waitFor();
    const replay = details().getByRole('button', { name: 'Replay' });
    // It can be sent again once its last retry has failed.
    await replay.click({ trial: true });
    const before = await happened().filter({ hasText: 'session.ended' }).count();
    refusesEnd = false;
    // The page has asked several times before the receiver answers: it goes on asking until it does.
    let asked = 0;
    answersEnd = page.waitForResponse((response) => response.url().endsWith('/timeline') && ++asked > 3);
    await replay.dblclick();
    await happened().filter({ hasText: 'session.ended' }).filter({ hasText: 'HTTP 204' }).waitFor();
    expect(await details().getByText('still being delivered').count()).toBe(0);
    expect(await happened().filter({ hasText: 'session.ended' }).count()).toBe(before + 1);
    await receiver.event('session.ended');
  }, 60_000);

  test('filters the calls by state, number and application, and keeps the filter in the address', async () => {
    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    await page.getByRole('row').filter({ hasText: 'ended' }).nth(1).waitFor();
    await page.getByLabel('State').selectOption('live');
    await page.getByText('No call matches these filters').waitFor();
    await page.getByRole('button', { name: 'Show all calls' }).click();
    await page.getByRole('searchbox', { name: 'Number' }).fill('+15550999');
    await page.keyboard.press('Enter');
    await page.getByText('No call matches these filters').waitFor();
    await page.getByRole('searchbox', { name: 'Number' }).fill(NUMBER);
    await page.keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: 'ended' }).nth(1).waitFor();
    expect(page.url()).toContain('number=%2B15550001');
    await page.reload();
    await page.getByRole('row').filter({ hasText: 'ended' }).nth(1).waitFor();
    expect(await page.getByRole('searchbox', { name: 'Number' }).inputValue()).toBe(NUMBER);
  }, 60_000);

  test('takes the time of a filter in the zone that is shown, and shows no row for a filter that is refused', async () => {
    const abroad = await browser.newContext({ timezoneId: 'America/New_York', storageState: await context.storageState() });
    const tab = await abroad.newPage();
    await tab.goto(`${platform.url}/console/calls`);
    await tab.getByRole('combobox', { name: 'Times in' }).selectOption('utc');
    await tab.getByLabel('From (UTC)').fill('2020-01-31T06:45');
    await tab.waitForURL(/from=2020-01-31T06%3A45%3A00.000Z$/);
    await tab.getByRole('row').filter({ hasText: 'ended' }).nth(1).waitFor();
    await tab.getByRole('combobox', { name: 'Times in' }).selectOption('local');
    const from = tab.getByLabel('From', { exact: true });
    await tab.waitForFunction(
      (field) => field instanceof HTMLInputElement && field.value === '2020-01-31T01:45',
      await from.elementHandle(),
    );
    for (const query of ['state=bogus', 'from=garbage']) {
      await tab.goto(`${platform.url}/console/calls?${query}`);
      await tab.getByRole('alert').waitFor();
      expect(await tab.getByText('Loading').count()).toBe(0);
    }
    await tab.goto(`${platform.url}/console/events?event=session.ended`);
    await tab.getByRole('table', { name: 'Events' }).waitFor();
    await tab.getByRole('searchbox', { name: 'Session' }).fill('garbage');
    await tab.keyboard.press('Enter');
    await tab.getByRole('alert').waitFor();
    expect(await tab.getByRole('table', { name: 'Events' }).count()).toBe(0);
    await abroad.close();
  }, 60_000);

  test('goes on to older calls where the first page of a filter has none', async () => {
    const tab = await context.newPage();
    await tab.route(/operator\/v1\/sessions\?/, (route) => {
      const url = new URL(route.request().url());
      if (!url.searchParams.has('after')) return route.fulfill({ json: { sessions: [], after: 'further' } });
      url.searchParams.delete('after');
      return route.continue({ url: url.href });
    });
    await tab.goto(`${platform.url}/console/calls`);
    await tab.getByRole('table', { name: 'Calls' }).waitFor();
    await tab.close();
  }, 60_000);

  test('loads older calls as the list is scrolled, and goes on being live', async () => {
    const sql = postgres({ host: join(platform.dataDir, 'postgres-socket'), username: 'sidetone', database: 'postgres' });
    await sql`INSERT INTO sessions (session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, created_at, ended_at)
      SELECT gen_random_uuid(), ${app.appUuid}, 'older', 'phone_in', 'ended', '+15550900', '+15550901', false, '', n, n + 1
      FROM generate_series(1, 250) AS n`;
    await page.goto(`${platform.url}/console/calls`);
    await page.getByText('100 and more shown').waitFor();
    const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
    for (const count of [200, 252]) {
      await page.getByRole('button', { name: 'Older calls' }).scrollIntoViewIfNeeded();
      await rows.nth(count - 1).waitFor({ state: 'attached' });
    }
    expect(await rows.count()).toBe(252);
    expect(await page.getByRole('button', { name: 'Older calls' }).count()).toBe(0);
    // Back from a call leads to the place in the list from which it was opened.
    await rows.nth(200).getByRole('link').click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.goBack();
    await rows.nth(251).waitFor({ state: 'attached' });
    await page.waitForFunction(() => scrollY > 1000);
    const { body } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: NUMBER, trunk: 'loop' });
    await rows.locator(`a[href="/console/calls/${body.session_uuid}"]`).waitFor({ state: 'attached' });
    expect(await rows.count()).toBeGreaterThan(252);
    await platform.operator('POST', `/apps/${app.appUuid}/sessions/${body.session_uuid}/hangup`, {});
    await rows.filter({ hasText: '+15550001' }).filter({ hasText: 'ended' }).nth(3).waitFor({ state: 'attached' });
    await sql`DELETE FROM sessions WHERE node_id = 'older'`;
    await sql.end();
  }, 60_000);

  test('dials for an application only by its own caller IDs, and never for the reading token', async () => {
    const dial = (body: object) => platform.operator('POST', `/apps/${app.appUuid}/dial`, body);
    expect((await dial({ from: '+15550777', to: NUMBER, trunk: 'loop' })).status).toBe(403);
    expect((await dial({ from: NUMBER, to: NUMBER, trunk: 'no-such' })).status).toBe(400);
    const { session_uuid: ended } = (await receiver.event('session.ended')).body;
    const { body: other } = await platform.operator('POST', '/apps', { name: 'other' });
    const play = `/sessions/${ended}/play`;
    const url = `http://127.0.0.1:${melody.port}/tone.wav`;
    expect((await platform.operator('POST', `/apps/${other.app_uuid}${play}`, { url })).status).toBe(404);
    const reading = await fetch(`${platform.url}/operator/v1/apps/${app.appUuid}/dial`, {
      method: 'POST',
      headers: { authorization: `Bearer ${READ_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ from: NUMBER, to: NUMBER }),
    });
    expect(reading.status).toBe(403);
  }, 60_000);

  test('sends a sample event, and the log of events shows its delivery', async () => {
    await page.getByRole('link', { name: 'Try it', exact: true }).click();
    await page.getByRole('combobox', { name: /^Application/ }).selectOption({ label: NAME });
    const to = page.getByLabel('To (a number, or sip:DEVICE)');
    const isValid = () => to.evaluate((field) => field instanceof HTMLInputElement && field.validity.valid);
    for (const [value, valid] of [
      ['sip:alice', true],
      ['alice', false],
      [NUMBER, true],
    ] as const) {
      await to.fill(value);
      expect([value, await isValid()]).toEqual([value, valid]);
    }
    await page.getByRole('combobox', { name: 'Event' }).selectOption('digits.collected');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('link', { name: 'See its delivery' }).click();
    const row = page.getByRole('row').filter({ hasText: 'digits.collected' }).filter({ hasText: 'delivered' });
    await row.getByRole('button').click();
    await page.getByText('"test": true').waitFor();
    await page.getByRole('button', { name: 'Replay' }).waitFor();
  }, 60_000);

  test('shows older events that are gone to while one of the latest is being sent again', async () => {
    const own = await browser.newContext();
    const tab = await own.newPage();
    await logIn(tab, operatorToken());
    await platform.operator('POST', `/apps/${app.appUuid}/events`, { event: 'digits.collected' });
    const row = tab.getByRole('row').filter({ hasText: 'digits.collected' }).filter({ hasText: 'delivered' });
    // Older events are not looked at by themselves.
    await tab.goto(`${platform.url}/console/events?event=digits.collected&before=${2 ** 40}`);
    await row.first().waitFor();
    await tab.getByRole('link', { name: 'Latest' }).click();
    await tab.getByRole('link', { name: 'Latest' }).waitFor({ state: 'detached' });
    await row.first().getByRole('button').click();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await tab.route('**/replay', async (route) => {
      asked.resolve();
      await answer.promise;
      await route.fulfill({ status: 202, json: {} });
    });
    await tab.getByRole('button', { name: 'Replay' }).click();
    await asked.promise;
    await tab.goBack();
    await tab.getByRole('link', { name: 'Latest' }).waitFor();
    await row.first().waitFor();
    const again = tab.waitForResponse(/operator\/v1\/events\?/);
    answer.resolve();
    await (await again).finished();
    await tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
    expect(await row.count()).toBeGreaterThan(0);
    await own.close();
  }, 60_000);

  test('shows nothing to change to the reading role', async () => {
    const reading = await browser.newContext();
    const tab = await reading.newPage();
    const seenThere = watch(tab, platform.url);
    await logIn(tab, READ_TOKEN);
    await tab.getByText('read only').waitFor();
    expect(await tab.getByRole('link', { name: 'Try it' }).count()).toBe(0);
    await tab.getByRole('row').filter({ hasText: 'ended' }).getByRole('link').first().click();
    await happened(tab).filter({ hasText: 'session.ended' }).first().click();
    await details(tab).getByText('hangup_cause').waitFor();
    for (const name of ['Replay', 'Erase']) expect(await tab.getByRole('button', { name }).count()).toBe(0);
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByText('There is no such page').waitFor();
    expect(seenThere).toEqual({ errors: [], foreign: [] });
    await reading.close();
  }, 60_000);

  test('fits a narrow screen on each page, in both colour schemes', async () => {
    await page.setViewportSize({ width: 400, height: 800 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const name of PAGES) {
        await page.goto(`${platform.url}/console/${name}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        expect([name, width]).toEqual([name, 400]);
      }
    }
    await page.goto(`${platform.url}/console/events`);
    await page.getByRole('row').getByRole('button').first().click();
    const opened = await page.getByRole('table', { name: 'Events' }).locator('pre').boundingBox();
    expect(opened?.width).toBeGreaterThan(300);
    await page.setViewportSize({ width: 1280, height: 900 });
  }, 60_000);

  test('erases a call', async () => {
    await page.goto(`${platform.url}/console/calls`);
    const rows = page.getByRole('row').filter({ hasText: 'ended' });
    await rows.nth(1).waitFor();
    await rows.getByRole('link').first().click();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    await rows.first().waitFor();
    expect(await rows.count()).toBe(3);
  }, 60_000);

  test('shows the end of a call that a hundred newer ones have pushed down while the list was open', async () => {
    const sql = postgres({ host: join(platform.dataDir, 'postgres-socket'), username: 'sidetone', database: 'postgres' });
    const insert = (first: number, count: number) =>
      sql`INSERT INTO sessions (session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, created_at, ended_at)
        SELECT gen_random_uuid(), ${app.appUuid}, 'pushing', 'phone_in', 'ended', '+15550900', '+15550901', false, '', n, n + 1
        FROM generate_series(${first}::bigint, ${first + count - 1}::bigint) AS n`;
    await insert(1, 120);
    await page.goto(`${platform.url}/console/calls`);
    await page.getByText('100 and more shown').waitFor();
    const { body } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: NUMBER, trunk: 'loop' });
    const row = page.getByRole('row').filter({ has: page.locator(`a[href="/console/calls/${body.session_uuid}"]`) });
    await row.filter({ hasText: 'answered' }).waitFor();
    await page.reload();
    await page.getByText('100 and more shown, 2 live').waitFor();
    for (const [first, shown] of [
      [Date.now() + 10_000, 150],
      [Date.now() + 20_000, 200],
    ] as const) {
      await insert(first, 50);
      await platform.operator('POST', `/apps/${app.appUuid}/events`, { event: 'session.transfer.failed' });
      await page.getByText(`${shown} and more shown, 2 live`).waitFor();
    }
    await platform.operator('POST', `/apps/${app.appUuid}/sessions/${body.session_uuid}/hangup`, {});
    await row.filter({ hasText: 'ended' }).waitFor({ state: 'attached' });
    await page.getByText('200 and more shown, 0 live').waitFor();
    await sql`DELETE FROM sessions WHERE node_id = 'pushing'`;
    await sql.end();
  }, 60_000);

  test('goes on in a tab whose session another tab has renewed, and says when it cannot be left', async () => {
    const tab = await context.newPage();
    const renew = () => context.request.post(`${platform.url}/console/session`, { data: { token: operatorToken() } });
    const idle = await context.newPage();
    await idle.goto(`${platform.url}/console/calls`);
    await idle.getByRole('row').first().waitFor();
    await tab.goto(`${platform.url}/console/try`);
    await tab.getByRole('button', { name: 'Send' }).waitFor();
    await renew();
    await tab.getByRole('button', { name: 'Send' }).click();
    await tab.getByText('Queued as').waitFor();
    await renew();
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    expect((await fetch(`${platform.url}/console/session`, { headers: { cookie } })).status).toBe(200);
    // A log-out that does not come through is told, and ends nothing.
    await tab.route('**/console/session', (route) => route.abort());
    await tab.getByRole('button', { name: 'Log out' }).click();
    await tab.getByRole('alert').filter({ hasText: 'still logged in' }).waitFor();
    await tab.unroute('**/console/session');
    await tab.getByRole('button', { name: 'Log out' }).click();
    await tab.getByLabel('Operator token').waitFor();
    expect((await fetch(`${platform.url}/console/session`, { headers: { cookie } })).status).toBe(401);
    await tab.close();
    // The other tabs see it when they ask for something, or when their stream is opened again.
    await page.getByRole('link', { name: 'Rooms' }).click();
    await page.getByRole('alert').filter({ hasText: 'The session is over' }).waitFor();
    await see(idle, false);
    await see(idle, true);
    await idle.getByRole('alert').filter({ hasText: 'The session is over' }).waitFor();
    await idle.close();
    // The browser notes requests that were refused, and the stream that breaks off with the session.
    expect(seen.errors.splice(0).filter((each) => !each.startsWith('Failed to load resource'))).toEqual([]);
    await logIn(page, operatorToken());
  }, 60_000);

  test('is left by logging out; no error was on its console, and nothing was asked of elsewhere', async () => {
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Operator token').waitFor();
    await page.reload();
    await page.getByLabel('Operator token').waitFor();
    // A request of the session that was over may have been refused after all: 401, or 400 where its cookie was gone.
    const errors = seen.errors.filter((each) => !/^Failed to load resource: .* 40[01] .*\/operator\/v1\//.test(each));
    expect({ ...seen, errors }).toEqual({ errors: [], foreign: [] });
  }, 60_000);

  test('takes a one-time login from the address, once, and removes it from there', async () => {
    const { body } = await platform.operator('POST', '/console-logins', {});
    const other = await browser.newContext();
    const tab = await other.newPage();
    await tab.goto(String(body.url));
    await tab.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    expect(tab.url()).toBe(`${platform.url}/console/calls`);
    // The link may be pasted into a page that shows the log-in form already: only its fragment changes.
    await other.clearCookies();
    const open = await other.newPage();
    await open.goto(`${platform.url}/console`);
    await open.getByLabel('Operator token').waitFor();
    const { body: next } = await platform.operator('POST', '/console-logins', {});
    await open.evaluate(
      (hash) => {
        location.hash = hash;
      },
      new URL(String(next.url)).hash,
    );
    await open.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    expect(open.url()).toBe(`${platform.url}/console/calls`);
    await other.clearCookies();
    const again = await other.newPage();
    await again.goto(String(body.url));
    await again.getByRole('alert').filter({ hasText: 'used already' }).waitFor();
    // A platform that cannot be asked has used nothing.
    const refusal = { code: 'unavailable', message: 'Service temporarily unavailable. See Retry-After header.' };
    await again.route('**/console/session', (route) => route.fulfill({ status: 503, json: refusal }));
    await again.goto(`${platform.url}/docs`);
    await again.goto(String((await platform.operator('POST', '/console-logins', {})).body.url));
    await again.getByRole('alert').filter({ hasText: 'temporarily unavailable' }).waitFor();
    expect(await again.getByText('used already').count()).toBe(0);
    await other.close();
  }, 60_000);
});
