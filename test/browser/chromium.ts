/** Debian's Chromium, headless, with a fake microphone that beeps once a second. */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium';

/** What a browser is started with: the client library of PulseAudio would leave a folder in `/tmp` for each start. */
export const environmentOfBrowser = (): NodeJS.ProcessEnv => ({ ...process.env, PULSE_RUNTIME_PATH: '/dev/null/pulse' });

export const chromiumInstalled = existsSync(EXECUTABLE);
if (!chromiumInstalled) console.log('skipped: chromium (Debian package chromium) is not installed');

/** Starts the browser. Its own traffic to the outside is switched off. */
export const launchChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    env: environmentOfBrowser(),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--autoplay-policy=no-user-gesture-required',
    ],
  });

/** Notes what a page must not do: errors on its console, and requests to other origins than its own. */
export function watch(page: Page, origin: string): { readonly errors: string[]; readonly foreign: string[] } {
  const errors: string[] = [];
  const foreign: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`${message.text()} ${message.location().url}`.trimEnd());
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:') && !url.startsWith('blob:')) foreign.push(url);
  });
  return { errors, foreign };
}
