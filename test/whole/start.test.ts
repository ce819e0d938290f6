/** The HTTP port while the platform starts, and the URLs that name it. */
import { afterEach, expect, test } from 'bun:test';
import { Platform } from '../support/platform.ts';
import { freePort } from '../support/sipp.ts';

let platform: Platform | undefined;
afterEach(() => platform?.stop(), 30_000);

const servers = async (url: string) => ((await (await fetch(`${url}/openapi.json`)).json()) as { servers: unknown }).servers;

test('who asks before all is up waits for it; URLs name the port that was bound, or PUBLIC_URL', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const starting = Platform.start({ HTTP_PORT: String(port), PUBLIC_URL: 'https://voice.example.com' });
  let first: Response | undefined;
  for (const until = performance.now() + 50_000; first === undefined && performance.now() < until; )
    first = await fetch(`${url}/readyz`).catch(() => Bun.sleep(20).then(() => undefined));
  expect([first?.status, await first?.json()]).toEqual([200, { status: 'ready', database: true, media: true, sip: true }]);
  platform = await starting;
  expect(await servers(url)).toEqual([{ url: 'https://voice.example.com' }]);
  await platform.stop();
  platform = await Platform.start();
  expect(await servers(platform.url)).toEqual([{ url: platform.url }]);
}, 60_000);
