/** The entry: reads the settings, starts the platform, says that it is ready, and stops it at SIGTERM or SIGINT. */
import type { Platform } from './compose/compose.ts';
import { type HttpListener, listen } from './compose/listen.ts';
import { beginOpening, type Opening } from './compose/opening.ts';
import { shutDown } from './compose/shutdown.ts';
import type { Config } from './config.ts';
import { messageOf } from './error-facts.ts';
import { SECOND_INTERRUPT_MS } from './limits.ts';
import { createLog } from './log.ts';
import { ignoreProxies } from './outbound/ignore-proxies.ts';
import { lookUpWithoutThreads } from './outbound/system-names.ts';
import { loadConfig } from './settings/load.ts';
import { misspelt } from './settings/misspelt.ts';

const STOPS = ['SIGTERM', 'SIGINT'] as const;

ignoreProxies(process.env);
lookUpWithoutThreads();
const config = settingsOrExit();
const log = createLog(config.logLevel);
// Bun reads it before any script runs, so that it can be set outside only.
if (!process.env.BUN_CONFIG_MAX_HTTP_REQUESTS)
  log.warn(
    {},
    'Bun has 256 requests under way at once, so that receivers that hang hold up others: set BUN_CONFIG_MAX_HTTP_REQUESTS=4096',
  );
for (const { variable, meant } of misspelt(process.env))
  log.warn(
    { variable, setting: meant },
    'a variable of the environment is near the name of a setting and is none: it is ignored',
  );
process.on('unhandledRejection', (error) => log.error({ reason: String(error) }, 'a promise nobody waited for was rejected'));
await run(config).catch((error: unknown) => exit(messageOf(error)));

async function run(settings: Config): Promise<void> {
  let drainingSince: number | undefined;
  // A terminal that is closed is none any more when its SIGHUP comes.
  const hasTerminal = process.stdin.isTTY;
  const listener = listen(settings);
  const opening = beginOpening(settings, log);
  const started = stoppableStart(opening, hasTerminal);
  const { compose } = await import('./compose/compose.ts');
  const platform = await compose(settings, log, listener, opening, () => drainingSince !== undefined).catch(started.failed);
  started.over();
  const stop = async (signal: string): Promise<void> => {
    if (drainingSince !== undefined) return;
    drainingSince = performance.now();
    log.info({ signal, sessions: platform.sessions.size, grace_sec: settings.shutdownGraceSec }, 'draining');
    await shutDown(platform, listener);
    log.info({}, 'stopped');
    process.exit(0);
  };
  for (const signal of STOPS)
    process.on(signal, () => {
      // npm passes on to its program what the terminal has sent to both: one press of Ctrl-C comes twice.
      if (drainingSince !== undefined && signal === 'SIGINT' && performance.now() - drainingSince > SECOND_INTERRUPT_MS)
        process.exit(130);
      stop(signal).catch((error: unknown) => exit(String(error)));
    });
  process.on('SIGHUP', () => {
    if (settings.sip.tls !== undefined) platform.carrier.reloadCertificate();
    else if (hasTerminal) stop('SIGHUP').catch((error: unknown) => exit(String(error)));
    else log.info({ signal: 'SIGHUP' }, 'there is no certificate to read anew: SIP_TLS_CERT is not set');
  });
  listener.ready(platform.app);
  platform.sessions.sampleQuality();
  await welcome(platform);
  tellReady(platform, listener);
}

/**
 * Ends the process at SIGTERM or SIGINT while it starts: as process 1 of a container it would not hear them, and else
 * the embedded PostgreSQL would be left behind. SIGHUP, as of `systemctl reload`, ends it only where a terminal
 * closes. `failed` takes the error of a start, and throws it again.
 */
function stoppableStart(opening: Opening, hasTerminal: boolean): { failed(error: unknown): Promise<never>; over(): void } {
  let isStopped = false;
  const stop = () => {
    if (isStopped) return;
    isStopped = true;
    log.info({}, 'stopped before the start was over');
    giveUp(opening).finally(() => process.exit(0));
  };
  // Its own action would end the process, and nobody would stop the embedded PostgreSQL. What there is to read anew is
  // read in this start.
  const hangUp = () => {
    if (hasTerminal) stop();
    else log.info({ signal: 'SIGHUP' }, 'the start goes on: it reads everything anew');
  };
  for (const signal of STOPS) process.on(signal, stop);
  process.on('SIGHUP', hangUp);
  return {
    async failed(error) {
      // What a start meets whose database is closed under it is no news.
      if (isStopped) await new Promise<never>(() => {});
      await giveUp(opening);
      throw error;
    },
    over() {
      for (const signal of STOPS) process.off(signal, stop);
      process.off('SIGHUP', hangUp);
    },
  };
}

/** Ends what a start that failed had begun: the embedded PostgreSQL is no child of ours, and would live on. */
async function giveUp({ store: opened }: Opening): Promise<void> {
  const store = await opened.catch(() => undefined);
  await store?.nodes.leave().catch(() => undefined);
  await store?.close();
}

/** Makes the first application of an empty database, and prints its secrets once. */
async function welcome({ store, publicUrl }: Platform): Promise<void> {
  const fresh = await store.apps.ensureDefault();
  if (fresh === undefined) return;
  process.stdout.write(`
A first application, "default", was made. This is shown once:

  app_uuid        ${fresh.appUuid}
  API key         ${fresh.apiKey}
  webhook secret  ${fresh.webhookSecret}

  curl -H 'Authorization: Bearer ${fresh.appUuid}:${fresh.apiKey}' ${publicUrl}/api/v1/app

`);
}

function tellReady({ carrier, publicUrl }: Platform, { port }: HttpListener): void {
  const bound = (transport: string) => carrier.ports().find((each) => each.transport === transport)?.port;
  log.info(
    {
      url: publicUrl,
      http_port: port,
      sip_udp_port: bound('udp'),
      sip_tcp_port: bound('tcp'),
      sip_tls_port: bound('tls'),
      started_ms: Math.round(performance.now()),
    },
    'ready',
  );
  if (!carrier.hasOpus) log.info({ opus: 'off' }, 'opus: off, because the media plane was built without libopus');
  if (!carrier.hasSrtp) log.info({ srtp: 'off' }, 'srtp: off, because the media plane was built without libsrtp2');
}

function settingsOrExit(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    return exit(messageOf(error));
  }
}

function exit(message: string): never {
  process.stderr.write(`sidetone: ${message}\n`);
  process.exit(1);
}
