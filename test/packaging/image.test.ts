/**
 * The steps of the Dockerfile, in a clean Debian made by debootstrap, since there is no container engine here: the
 * first stage builds, the second one gets what it is given, and the platform starts in it as its plain user. It takes
 * minutes and the network, so it is run with LONG_TESTS=1, as root, where debootstrap is installed.
 */
import { afterAll, expect, test } from 'bun:test';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
const isPossible =
  process.env.LONG_TESTS === '1' && process.getuid?.() === 0 && spawnSync('debootstrap', ['--version']).error === undefined;
const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';

interface Step {
  readonly word: string;
  readonly rest: string;
}

/** The steps of each stage, in order. */
function stages(): readonly (readonly Step[])[] {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n/g, ' ');
  const steps = text.split('\n').flatMap((line): Step[] => {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line.trim()) ?? [];
    return word === '' ? [] : [{ word, rest }];
  });
  const all: Step[][] = [];
  for (const step of steps) {
    if (step.word === 'FROM') all.push([]);
    else all.at(-1)?.push(step);
  }
  return all;
}

const folder = isPossible ? mkdtempSync(join(tmpdir(), 'sidetone-image-')) : '';
afterAll(() => {
  if (folder === '') return;
  for (const name of ['build', 'image']) spawnSync('umount', [join(folder, name, 'proc')]);
  rmSync(folder, { recursive: true, force: true });
});

const AUTHORITIES = 'authorities-of-the-machine.crt';

function inRoot(root: string, command: string, environment: readonly string[] = []): void {
  const variables = [
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'HOME=/root',
    'DEBIAN_FRONTEND=noninteractive',
  ];
  const more = [`NODE_EXTRA_CA_CERTS=/etc/${AUTHORITIES}`, ...environment];
  execFileSync('chroot', [root, '/usr/bin/env', '-i', ...variables, ...more, 'sh', '-c', `cd /app 2>/dev/null; ${command}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Puts the Node of this machine where the image of the first stage has one. */
function node(root: string): void {
  const { stdout } = spawnSync('node', ['-p', 'process.execPath'], { encoding: 'utf8' });
  const program = stdout.trim();
  cpSync(program, join(root, 'usr/local/bin/node'));
  cpSync(join(dirname(program), '../lib/node_modules/npm'), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
}

/** Runs the steps of a stage. `others` are the roots of the stages before. */
function build(steps: readonly Step[], root: string, build: string): void {
  for (const { word, rest } of steps) {
    if (word === 'WORKDIR') mkdirSync(join(root, rest), { recursive: true });
    if (word === 'RUN') inRoot(root, rest);
    if (word !== 'COPY') continue;
    const words = rest.split(' ').filter((each) => !each.startsWith('--from='));
    const source = rest.startsWith('--from=') ? build : ROOT;
    const target = words.pop() ?? '';
    for (const each of words) {
      const to = target.endsWith('/') ? join(root, 'app', target, basename(each)) : join(root, 'app', target);
      mkdirSync(dirname(to), { recursive: true });
      cpSync(join(source, each), to, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !path.startsWith(join(ROOT, 'native/build')),
      });
    }
  }
}

test.skipIf(!isPossible)(
  'the steps of the Dockerfile make an image in which the platform starts as a plain user',
  async () => {
    const [first = [], second = []] = stages();
    const [builder, image] = [join(folder, 'build'), join(folder, 'image')];
    execFileSync('debootstrap', ['--variant=minbase', 'bookworm', builder, MIRROR], { stdio: ['ignore', 'ignore', 'inherit'] });
    cpSync('/etc/resolv.conf', join(builder, 'etc/resolv.conf'));
    cpSync('/etc/hosts', join(builder, 'etc/hosts'));
    // A machine may know an authority that a new one does not.
    const authorities = process.env.NODE_EXTRA_CA_CERTS ?? '';
    if (existsSync(authorities)) cpSync(authorities, join(builder, 'etc', AUTHORITIES));
    execFileSync('cp', ['-a', builder, image]);
    node(builder);
    for (const root of [builder, image]) {
      spawnSync('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
      mkdirSync(join(root, 'dev/shm'), { recursive: true });
      chmodSync(join(root, 'dev/shm'), 0o1777);
    }
    build(first, builder, '');
    build(second, image, builder);
    // The image has no compiler and no npm.
    for (const name of ['usr/bin/npm', 'usr/bin/c++']) expect(existsSync(join(image, name))).toBe(false);
    writeFileSync(join(image, 'start.sh'), 'cd /app && exec "$@"\n');
    const variables = [
      'PATH=/usr/bin:/bin',
      'HTTP_PORT=0',
      'SIP_LISTEN=udp:127.0.0.1:0',
      'DATA_DIR=/var/lib/sidetone',
      'MEDIA_WORKERS=1',
    ];
    const command = [
      '--userspec=10001:10001',
      image,
      '/usr/bin/env',
      '-i',
      ...variables,
      'sh',
      '/start.sh',
      '/app/node_modules/.bin/bun',
      'src/main.ts',
    ];
    const child = spawn('chroot', command, { stdio: ['ignore', 'pipe', 'pipe'] });
    try {
      let output = '';
      const ready = await new Promise<string>((resolve, reject) => {
        const read = (chunk: Buffer) => {
          output += chunk.toString();
          const line = /^\{.*"http_port".*\}$/m.exec(output)?.[0];
          if (line !== undefined) resolve(line);
        };
        child.stdout.on('data', read);
        child.stderr.on('data', read);
        child.once('exit', (code) => reject(new Error(`ended with ${code}:\n${output}`)));
      });
      const origin = `http://127.0.0.1:${JSON.parse(ready).http_port}`;
      expect(await (await fetch(`${origin}/readyz`)).json()).toMatchObject({ status: 'ready', media: true });
      for (const page of ['/console', '/docs', '/docs/reference']) expect((await fetch(origin + page)).status).toBe(200);
      expect(output).not.toContain('srtp: off');
    } finally {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
  },
  1_800_000,
);
