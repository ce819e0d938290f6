#!/usr/bin/env node
/**
 * Installs the npm packages and builds the native media plane where they are missing or out of date, and does nothing otherwise. Plain
 * Node without dependencies: it is what runs before there are any.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const stampFile = join(root, 'node_modules', '.sidetone-lock');

if (Number(process.versions.node.split('.')[0]) < 20) stop(`Node 20 or newer is needed, this is ${process.versions.node}.`);

const lock = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex');
if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== lock) {
  say('installing npm packages (once, about 20 s) …');
  // `npm ci` wants the optional packages of every platform in the lock, which a mirror may not have; `--no-save` leaves the lock as it is.
  const npm = [process.versions.bun === undefined ? 'npm' : 'bun', 'install', '--no-save'];
  run(npm[0], [...npm.slice(1), '--no-audit', '--no-fund', '--loglevel=error'], `${npm[0]} is needed to install packages.`);
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, lock);
}

const build = spawnSync('make', ['-q', '-C', 'native', 'addon'], { cwd: root, stdio: 'ignore' });
if (build.error !== undefined)
  stop('make and a C++17 compiler are needed to build the media plane (Debian: apt-get install build-essential).');
if (build.status !== 0) {
  if (spawnSync('c++', ['--version'], { stdio: 'ignore' }).status !== 0) {
    stop('a C++17 compiler is needed to build the media plane (Debian: apt-get install build-essential).');
  }
  say('building the native media plane (once, under a minute) …');
  run('make', ['-s', '-j2', '-C', 'native', 'addon'], 'make is needed.');
}

function run(command, args, missing) {
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.error !== undefined) stop(missing);
  if (done.status !== 0) stop(`"${command} ${args.join(' ')}" failed; its output is above.`);
}

function say(message) {
  process.stderr.write(`sidetone: ${message}\n`);
}

function stop(message) {
  say(message);
  process.exit(1);
}
