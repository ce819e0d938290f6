/** How many requests the running platform has under way at once: Bun allows 256 unless it is told otherwise. */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../recording-storage/harness.ts';
import { Platform } from '../support/platform.ts';

const ROOT = join(import.meta.dir, '../..');
const APPS = 5;
/** `APP_WINDOW_MAX_JOBS`: what one application has in flight. */
const EACH = 64;

test('Receivers of five applications that never answer hold up no webhook of a sixth one', async () => {
  const release = Promise.withResolvers<void>();
  let hanging = 0;
  let reached = 0;
  const receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: async ({ url, signal }) => {
      if (url.endsWith('/quick')) reached++;
      else {
        hanging++;
        signal.addEventListener('abort', () => hanging--);
        await release.promise;
      }
      return new Response();
    },
  });
  const platform = await Platform.start({ OUTBOUND_ALLOW: '127.0.0.0/8', RECORDINGS: 'off' });
  try {
    const trigger = (appUuid: string) => platform.operator('POST', `/apps/${appUuid}/events`, { event: 'session.created' });
    for (let app = 0; app < APPS; app++) {
      const { appUuid } = await platform.application(`${receiver.url}hangs`, `+1555000${1000 + app}`);
      for (let event = 0; event < EACH; event++) expect((await trigger(appUuid)).status).toBeLessThan(300);
    }
    await until(() => hanging >= APPS * EACH);
    const { appUuid } = await platform.application(`${receiver.url}quick`, '+15550009999');
    await trigger(appUuid);
    await until(() => reached === 1);
  } finally {
    release.resolve();
    await platform.stop();
    await receiver.stop(true);
  }
}, 60_000);

test('A platform that is started without the setting says so', async () => {
  const platform = await Platform.start({ BUN_CONFIG_MAX_HTTP_REQUESTS: '', RECORDINGS: 'off' });
  await platform.stop();
  expect(platform.output).toContain('set BUN_CONFIG_MAX_HTTP_REQUESTS=4096');
}, 60_000);

test('Each way to start the platform allows it more requests at once', () => {
  for (const path of [
    'package.json',
    'Dockerfile',
    'deploy/systemd/sidetone.service',
    'bin/cli/dev.mjs',
    'bin/cluster/cluster.ts',
  ])
    expect([path, readFileSync(join(ROOT, path), 'utf8').includes('BUN_CONFIG_MAX_HTTP_REQUESTS')]).toEqual([path, true]);
});
