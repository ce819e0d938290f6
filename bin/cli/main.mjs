/** The operator's command line: a client of the operator API, once `bin/sidetone` has found Node new enough. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readCommandLine } from './command-line.mjs';
import { operatorApi } from './operator-api.mjs';
import { plain, plainJson, plainLines } from './plain.mjs';
import { Stop } from './stop.mjs';
import { fieldLines, table } from './table.mjs';

async function main() {
  const { text, command, words, given, done } = readCommandLine(process.argv.slice(2));
  if (text !== undefined) console.log(text);
  else if (command.start) await command.start(untilInterrupted(), environmentOf(given));
  else if (command.run) process.exitCode = runBun(command.run, words, given);
  else if (command.follow) await command.follow(operatorApi(given), given, untilInterrupted());
  else await show(command, command.ask(words, given), given, done);
}

/** The variables of this process, and what the options say in their place. */
function environmentOf(given) {
  const env = { ...process.env };
  if (given['data-dir'] !== undefined) env.DATA_DIR = given['data-dir'];
  if (given.url !== undefined) env.SIDETONE_URL = given.url;
  return env;
}

/** Runs a program of the platform with the variables that it starts with. Returns its exit code. */
function runBun(file, words, given) {
  const root = join(import.meta.dirname, '../..');
  const switches = ['json', 'open'].filter((name) => given[name]).map((name) => `--${name}`);
  const args = ['--no-env-file', join(root, file), ...words, ...switches];
  const done = spawnSync(join(root, 'node_modules/.bin/bun'), args, { stdio: 'inherit', env: environmentOf(given) });
  if (done.error)
    throw new Stop(`the npm packages are not installed here (${done.error.code}): npm start, or npm install, does it`);
  return done.status ?? 1;
}

/** Asks once and prints the answer; `done`, where it has no body. */
async function show(command, [method, path, body], given, done) {
  const shape = typeof command.answer === 'function' ? command.answer(given) : command.answer;
  const { body: answer } = await operatorApi(given).ask(method, path, shape, body);
  if (typeof answer === 'string') {
    process.stdout.write(plainLines(answer));
    return;
  }
  if (given.shell) {
    console.log(plain(command.shell(answer)));
    return;
  }
  if (given.json) console.log(plainJson(answer ?? done, 2));
  else if (answer === undefined) console.log('done');
  else if (command.text) console.log(command.text(answer));
  else if (command.rows) console.log(table(command.rows(answer), command.columns));
  else console.log(fieldLines(answer));
  if (given.json) return;
  const next = command.next?.(answer, given);
  if (next) console.error(`There are more: --after ${next}`);
  if (command.note) console.error(command.note);
}

/** A signal that is aborted by Ctrl-C and its like. */
function untilInterrupted() {
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => abort.abort());
  return abort.signal;
}

// Whoever reads the output may have read enough: `sidetone tail | head`.
process.stdout.on('error', ({ code }) => process.exit(code === 'EPIPE' ? 0 : 1));

main().catch((error) => {
  console.error(error instanceof Stop ? plain(`sidetone: ${error.message}`) : error);
  process.exitCode = 1;
});
