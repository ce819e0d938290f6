/**
 * The console and the documentation for people with a reader of the screen, with the keyboard alone, with the page at
 * 200 %, with a telephone, and with a clock that is wrong: Chromium, against the real platform.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { chromiumInstalled, launchChromium, watch } from './chromium.ts';
import { faintTexts, headingsOf, nameless, overflowOf, unseenFocus } from './reading.ts';

const NUMBER = '+15550001';
const PAGES = ['calls', 'rooms', 'messages', 'applications', 'trunks', 'events', 'try', 'nowhere'].map(
  (each) => `console/${each}`,
);
const DOCUMENTS = ['docs', 'docs/webhooks', 'docs/operations/carriers'];
/** The sizes of windows: of a desk, of the same at 200 %, and of a telephone. */
const WINDOWS = [
  [1280, 900],
  [640, 450],
  [360, 740],
] as const;

describe.skipIf(!chromiumInstalled)('the console and the documentation', () => {
  const receiver = new Receiver();
  let platform: Platform;
  let app: Credentials;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let seen: ReturnType<typeof watch>;
  let ended = '';
  let live = '';

  const dial = async () => {
    const { body } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: NUMBER, trunk: 'loop' });
    await receiver.event('session.answered', String(body.session_uuid));
    return String(body.session_uuid);
  };
  const entries = (tab: Page = page) => tab.getByRole('list', { name: 'What happened' }).getByRole('button');
  const open = async (path: string) => {
    await page.goto(`${platform.url}/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    if (/^console\/calls\/./.test(path)) await entries().first().waitFor();
    await page.getByText('Loading …').first().waitFor({ state: 'detached' });
  };

  beforeAll(async () => {
    receiver.isJudged = false;
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    receiver.misbehave = ({ event, type, session_uuid: uuid }) => {
      if (event === 'session.created' && type === 'phone_in') void platform.answerSoon(app, uuid);
      return undefined;
    };
    ended = await dial();
    await platform.api(app, 'DELETE', `/v1/sessions/${ended}`);
    await receiver.event('session.ended', ended);
    live = await dial();
    await platform.api(app, 'POST', '/v1/messages', { from: NUMBER, to: '+15550100', text: 'hello' });
    browser = await launchChromium();
    context = await browser.newContext();
    page = await context.newPage();
    seen = watch(page, platform.url);
    const { body } = await platform.operator('POST', '/console-logins', {});
    await page.goto(String(body.url));
    await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
    await receiver.stop();
  }, 30_000);

  test('each page has one first heading, a name for each control, and text of enough contrast, light and dark', async () => {
    const faint = async () => {
      const found = [];
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme });
        found.push(...(await faintTexts(page)));
      }
      return found;
    };
    for (const path of [...PAGES, `console/calls/${ended}`, ...DOCUMENTS]) {
      await open(path);
      if (path.endsWith(ended)) await entries().filter({ hasText: 'INVITE' }).first().click();
      const { first, jumps } = await headingsOf(page);
      const found = { path, first, jumps, faint: await faint(), nameless: await nameless(page) };
      expect(found).toEqual({ path, first: 1, jumps: [], faint: [], nameless: [] });
    }
    // Its colours take a moment to be others.
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${platform.url}/docs/reference`);
      await page.locator('.opblock').first().waitFor();
      await page.getByRole('combobox', { name: 'Server' }).waitFor();
      expect(await faintTexts(page)).toEqual([]);
    }
    // A style that the policy of a page refuses is an error on its console.
    expect(seen).toEqual({ errors: [], foreign: [] });
  }, 90_000);

  test('each page is used by Tab alone on a desk, at 200 % and on a telephone, and what has the focus is seen', async () => {
    for (const [width, height] of WINDOWS) {
      await page.setViewportSize({ width, height });
      for (const path of [...PAGES, `console/calls/${ended}`, ...DOCUMENTS]) {
        await open(path);
        if (path.endsWith(ended)) await entries().nth(2).click();
        const { unseen } = await unseenFocus(page, 40);
        expect({ width, path, unseen, tooWide: await overflowOf(page) }).toEqual({ width, path, unseen: [], tooWide: 0 });
      }
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }, 90_000);

  test('a page has the focus as soon as it is there, and takes it from nothing later', async () => {
    const tab = await context.newPage();
    await tab.addInitScript(() => {
      const seen = new MutationObserver(() => {
        if (document.querySelector('main h1') === null) return;
        document.documentElement.dataset.first = document.activeElement?.id ?? '';
        seen.disconnect();
      });
      seen.observe(document, { childList: true, subtree: true });
    });
    await tab.goto(`${platform.url}/console/trunks`);
    const root = tab.locator('html[data-first]');
    await root.waitFor();
    expect(await root.getAttribute('data-first')).toBe('main');
    await tab.close();
  }, 30_000);

  test('what happened in a call is one stop of Tab: arrow keys go through it, and Tab leads on to the details', async () => {
    for (const [width, height] of WINDOWS) {
      await page.setViewportSize({ width, height });
      await open(`console/calls/${ended}`);
      const count = await entries().count();
      await entries().first().focus();
      await page.keyboard.press('End');
      const held = page.locator(':focus');
      expect(await held.getAttribute('aria-pressed')).toBe('true');
      expect(await entries().and(page.locator('[aria-pressed=true]')).count()).toBe(1);
      for (let at = 0; at < count; at++) {
        const isCovered = await held.evaluate(async (button) => {
          await new Promise((drawn) => requestAnimationFrame(drawn));
          const { x, y, width: w, height: h } = button.getBoundingClientRect();
          return !button.contains(document.elementFromPoint(x + w / 2, y + h / 2));
        });
        expect({ width, at, isCovered }).toEqual({ width, at, isCovered: false });
        await page.keyboard.press('ArrowUp');
      }
      expect(await entries().first().getAttribute('aria-pressed')).toBe('true');
      await page.keyboard.press('Tab');
      expect(await held.textContent()).toBe('Close');
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }, 90_000);

  test('the count of calls is read out when it was asked for, not whenever a call comes or goes', async () => {
    await page.goto(`${platform.url}/console/calls`);
    const count = page.getByRole('status').filter({ hasText: 'shown' });
    await count.waitFor();
    expect(await count.getAttribute('aria-live')).toBe('polite');
    const settled = page.locator('[role=status][aria-live=off]').filter({ hasText: 'shown' });
    await settled.waitFor();
    const another = await dial();
    await settled.filter({ hasText: ', 4 live' }).waitFor();
    await platform.api(app, 'DELETE', `/v1/sessions/${another}`);
    await settled.filter({ hasText: ', 2 live' }).waitFor();
    await page.getByRole('combobox', { name: 'State' }).selectOption('ended');
    await page.locator('[role=status][aria-live=polite]').filter({ hasText: '0 live' }).waitFor();
  }, 60_000);

  test('a browser whose clock is ten minutes fast or slow shows a live call where it is, by the clock of the platform', async () => {
    for (const offMs of [600_000, -600_000]) {
      const tab = await context.newPage();
      await tab.addInitScript((off) => {
        const { now } = Date;
        Date.now = () => now() + off;
      }, offMs);
      await tab.goto(`${platform.url}/console/calls/${live}`);
      await entries(tab).first().waitFor();
      const ticks = await tab.locator('.axis .tick').allTextContents();
      expect(ticks.length).toBeGreaterThan(1);
      // The call is some minutes old at most.
      const [minutes = 99, seconds = 0] = (ticks.at(-1) ?? '').split(':').map(Number);
      expect({ offMs, isNow: minutes < 5 && minutes * 60 + seconds > 0 }).toEqual({ offMs, isNow: true });
      await tab.goto(`${platform.url}/console/calls?state=live`);
      const length = tab
        .getByRole('row')
        .filter({ has: tab.locator(`a[href$="${live}"]`) })
        .locator('[data-name=Length]');
      await length.waitFor();
      expect(await length.textContent()).toMatch(/^[0-4]:\d\d$/);
      await tab.waitForFunction((text) => document.body.textContent?.includes(text) === false, '10:0');
      await tab.close();
    }
  }, 60_000);
});
