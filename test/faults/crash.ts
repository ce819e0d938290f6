/**
 * Kills the real platform (`kill -9`) at random moments under load, on one DATA_DIR, and holds what its receiver got
 * against what was admitted: nothing lost, nothing doubled, one end of each Session, each lane in order, each command
 * once under its Idempotency-Key.
 *
 *   npm run crash -- [--rounds 200] [--seed N]
 *
 * The seed chooses the stories and the moments. What they meet in the process is up to the machine, so a seed names a
 * run and does not repeat it exactly.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { numberOption } from '../support/number-option.ts';
import { Platform } from '../support/platform.ts';
import { QUICK, Stage } from './stage.ts';

const STORIES_AT_ONCE = 8;
/** The load has run for so long when the platform is killed, in milliseconds. */
const KILL_FROM_MS = 100;
const KILL_TO_MS = 2_000;
/** In some rounds the load runs on until payments are under way. */
const KILL_LATE = 0.2;
const KILL_LATE_TO_MS = 7_000;
/** The chance that it is killed again while it starts, and that its database is killed with it. */
const KILL_IN_START = 0.15;
const KILL_DATABASE = 0.2;
const START_KILL_MAX_MS = 600;
/** Everything is told within so long, in milliseconds. */
const SETTLE_MS = 30_000;
const SETTLE_EVERY = 5;
const REPLAYED_A_ROUND = 10;

interface CrashFigures {
  readonly rounds: number;
  readonly kills: number;
  readonly databaseKills: number;
  readonly breaches: readonly string[];
  readonly events: number;
  readonly summary: string;
}

/** Runs so many rounds. `tell` is given a line for each round. */
export async function crash(rounds: number, seed: number, tell: (line: string) => void): Promise<CrashFigures> {
  const stage = await Stage.open(await Platform.start(QUICK), seed);
  const kills = { platform: 0, database: 0 };
  const began = performance.now();
  let round = 0;
  try {
    while (round < rounds && stage.breaches().length === 0) {
      round += 1;
      await oneRound(stage, kills);
      if (round % SETTLE_EVERY !== 0 && round !== rounds) continue;
      await stage.clear();
      const isSettled = await stage.settle(SETTLE_MS);
      tell(`round ${round}: ${kills.platform} kills, ${stage.witness.events} events, ${stage.breaches().length} breaches`);
      if (!isSettled) break;
    }
    await stage.checkMessages();
    const logged = await stage.checkLog(SETTLE_MS);
    const breaches = [...stage.breaches(), ...stage.missing()];
    return {
      rounds: round,
      kills: kills.platform,
      databaseKills: kills.database,
      breaches,
      events: stage.witness.events,
      summary: summary(stage, logged, began),
    };
  } finally {
    await stage.close();
  }
}

async function oneRound(stage: Stage, kills: { platform: number; database: number }): Promise<void> {
  const { platform, client, random } = stage;
  stage.play(STORIES_AT_ONCE);
  const to = random() < KILL_LATE ? KILL_LATE_TO_MS : KILL_TO_MS;
  await Bun.sleep(KILL_FROM_MS + random() * (to - KILL_FROM_MS));
  if (random() < KILL_DATABASE && killDatabase(platform)) kills.database += 1;
  await platform.kill();
  kills.platform += 1;
  await stage.cut();
  if (random() < KILL_IN_START) {
    const starting = platform.start().catch(() => {});
    await Bun.sleep(random() * START_KILL_MAX_MS);
    await platform.kill();
    await starting;
    kills.platform += 1;
  }
  await restart(platform);
  await client.recover();
  await stage.checkRooms();
  const answered = client.commands.filter(({ answer }) => (answer?.status ?? 500) < 300);
  const chosen = answered.filter(() => random() < REPLAYED_A_ROUND / answered.length);
  await client.replay(chosen);
  client.forget();
}

/** Starts it again. Throws with the end of its database's log where it does not. */
async function restart(platform: Platform): Promise<void> {
  const log = join(platform.dataDir, 'postgres/server.log');
  await platform.start().catch((error: unknown) => {
    throw new Error(`${String(error)}\n${existsSync(log) ? readFileSync(log, 'utf8').slice(-3_000) : ''}`);
  });
}

/** Kills the embedded database. Returns whether there was one. */
function killDatabase({ dataDir }: Platform): boolean {
  const file = join(dataDir, 'postgres/postmaster.pid');
  if (!existsSync(file)) return false;
  process.kill(Number(readFileSync(file, 'utf8').split('\n')[0]), 'SIGKILL');
  return true;
}

function summary({ ledger, witness, client, told, cutOff }: Stage, logged: number, began: number): string {
  const admitted = [...ledger.admitted].map(([kind, count]) => `${count} ${kind}`).join(', ');
  const minutes = ((performance.now() - began) / 60_000).toFixed(1);
  return [
    `${witness.events} events (${logged} in the log) in ${witness.deliveries} deliveries, ${witness.repeated} repeated; ${minutes} min`,
    `admitted, and each outcome told once: ${admitted}`,
    `${told} stories told, ${cutOff} cut off; ${client.retried} commands sent again unanswered, ${client.replayed} answered ones again`,
  ].join('\n');
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '200' }, seed: { type: 'string' } } });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : numberOption(values, 'seed');
  const figures = await crash(numberOption(values, 'rounds'), seed, (line) => console.log(line));
  for (const breach of figures.breaches.slice(0, 50)) console.log(`BREACH ${breach}`);
  console.log(figures.summary);
  console.log(
    `seed ${seed}: ${figures.rounds} rounds, ${figures.kills} kills of the platform, ${figures.databaseKills} of its database, ` +
      `${figures.breaches.length} breaches`,
  );
  process.exit(figures.breaches.length === 0 ? 0 : 1);
}
