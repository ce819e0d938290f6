/**
 * Runs under Deno: opens the store on the database of the first argument, boots the app, and serves it. Prints the
 * port, then stays until its input closes. Only the calls behind the app are left out: there is no media on Deno.
 */
import process from 'node:process';
import { systemClock } from '../../src/clock.ts';
import { openStore } from '../../src/database/store.ts';
import { createHttpApp } from '../../src/http/app.ts';
import { silentLog } from '../../src/log.ts';
import { httpDeps } from '../support/http-deps.ts';

declare const Deno: {
  serve(
    options: { hostname: string; port: number; onListen: (address: { port: number }) => void },
    handler: (request: Request) => Promise<Response>,
  ): { shutdown(): Promise<void> };
};

const clock = systemClock();
const databaseUrl = process.argv[2];
const settings = { dataDir: '/nowhere', databaseUrl, databaseDriver: 'postgres', masterKey: new Uint8Array(32).fill(7) } as const;
const store = await openStore(settings, silentLog, clock);

const app = createHttpApp(httpDeps(store, clock));
const server = Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(port) }, app.fetch);
process.stdin.on('end', async () => {
  await server.shutdown();
  await store.close();
  process.exit(0);
});
process.stdin.resume();
