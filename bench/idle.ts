/**
 * What the platform costs while nothing happens, and how soon it is ready: `npm run bench -- idle [SECONDS] [STARTS]`
 * (20 s, 5 starts). Beside it stands a bare Bun process with a server that nobody asks, for the same time.
 */
import { join } from 'node:path';
import { Platform } from '../test/support/platform.ts';
import { cpuNs, databaseCpuNs, median, REST_MS, rssKb } from './support/usage.ts';

const seconds = Number(process.argv[2] ?? 20);
const starts = Number(process.argv[3] ?? 5);
const bun = join(import.meta.dir, '../node_modules/.bin/bun');

const platform = await Platform.start({ MEDIA_WORKERS: '1' });
const bare = Bun.spawn([bun, '-e', "Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })"]);
await Bun.sleep(REST_MS);
const look = () => [cpuNs(platform.pid), databaseCpuNs(platform.dataDir), cpuNs(bare.pid)] as const;
const before = look();
await Bun.sleep(seconds * 1_000);
const after = look();
const [own = 0, database = 0, floor = 0] = after.map((ns, at) => (ns - (before[at] ?? 0)) / seconds / 1e7);
console.log(
  `idle: platform ${own.toFixed(2)} %, PostgreSQL ${database.toFixed(2)} %, bare server ${floor.toFixed(2)} % of a core; ` +
    `resident ${Math.round(rssKb(platform.pid) / 1024)} MB, bare server ${Math.round(rssKb(bare.pid) / 1024)} MB`,
);
bare.kill();

const took: number[] = [];
for (let start = 0; start < starts; start += 1) {
  await platform.kill();
  const from = performance.now();
  await platform.start();
  took.push((performance.now() - from) / 1_000);
}
console.log(
  `start to ready on the database of before: median ${median(took).toFixed(2)} s (${took.map((each) => each.toFixed(2)).join(' ')})`,
);
await platform.stop();
