/**
 * Holds the house (docs/architecture.md): which way imports point, what is pure, how long a file and a function and how
 * full a folder may be, and names that say nothing.
 */
import { describe, expect, test } from 'bun:test';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dir, '..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));
/** The beginning of a comment that has no subject. */
const NO_SUBJECT =
  /^\s*\/\*\* (Of|As|Those|With|Undefined|Where|Told|Absent|Until|By|From|In order|At|On|To|For|Not|Once|Such|True|False|Without|After|Only)\b/;

const source = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const sources = tracked.filter((path) => path.startsWith('src/') && path.endsWith('.ts'));
const native = tracked.filter((path) => /^native\/.*\.(cc|h)$/.test(path));

/**
 * The floor of a room: imports point to the same room or to a lower floor. Rooms of one floor never import each other.
 */
const FLOOR: Readonly<Record<string, number>> = {
  limits: -1,
  vocabulary: 0,
  bounds: 1,
  settings: 2,
  sip: 2,
  sdp: 2,
  event: 2,
  notice: 3,
  machine: 4,
  outbound: 5,
  history: 5,
  tracing: 6,
  'recording-storage': 6,
  database: 6,
  media: 6,
  call: 7,
  carrier: 8,
  cluster: 8,
  doctor: 8,
  http: 8,
  provider: 8,
  webhook: 8,
  webrtc: 8,
  websocket: 8,
  compose: 9,
  main: 10,
};
const PURE = ['sip', 'sdp', 'event', 'notice', 'machine'];

/**
 * The room of a file is its first folder below `src`; files at the top are the vocabulary, the entry aside.
 */
const roomOf = (path: string): string => {
  if (path === 'src/main.ts') return 'main';
  const [, first, second] = path.split('/');
  return second === undefined ? 'vocabulary' : (first ?? '');
};

/** Relative and package imports of a file, `import type` included. */
const importsOf = (path: string): string[] =>
  [...source(path).matchAll(/^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  );
const resolved = (path: string, target: string): string => normalize(join(dirname(path), target));

/**
 * The functions of a file, each with its first line and its number of lines, signature and comments included. It reads
 * the indentation, which the formatter keeps: a function ends at the first line that is indented no deeper than its
 * first one. Biome's own rule counts neither signatures nor comments.
 */
function functionsOf(text: string): readonly { readonly line: number; readonly length: number }[] {
  const lines = text.split('\n');
  const depth = (line: string) => line.length - line.trimStart().length;
  return lines.flatMap((first, at) => {
    const isBlock = /\)(: .*)? \{$/.test(first) && !/^\s*(\}|(if|for|while|switch)\b)/.test(first);
    // An arrow, or parameters over several lines: the latter may be the arguments of a call.
    if (first.trimStart().startsWith(')') || !(isBlock || /(=>|=> .*[{[(]|\()$/.test(first))) return [];
    let isFunction = isBlock || /=>/.test(first);
    for (let to = at + 1; to < lines.length; to++) {
      const line = lines[to] ?? '';
      if (line.trim() === '' || depth(line) > depth(first)) continue;
      if (/^\s*\).*(=>|[{[(])$/.test(line)) isFunction = true;
      else return isFunction ? [{ line: at + 1, length: to - at + (/^\s*[)\]}]/.test(line) ? 1 : 0) }] : [];
    }
    return [];
  });
}

describe('the house', () => {
  test('every room of src has its floor', () => {
    expect(sources.map(roomOf).filter((folder) => !(folder in FLOOR))).toEqual([]);
  });

  test('imports point down', () => {
    const wrong: string[] = [];
    for (const path of sources) {
      const from = roomOf(path);
      for (const target of importsOf(path).filter((name) => name.startsWith('.'))) {
        const to = roomOf(resolved(path, target));
        const down = from === to || (FLOOR[to] ?? 99) < (FLOOR[from] ?? -1);
        if (!down) wrong.push(`${path} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('no file imports itself through others, types included', () => {
    const edges = new Map(
      sources.map((path) => [
        path,
        importsOf(path)
          .filter((name) => name.startsWith('.'))
          .map((name) => resolved(path, name)),
      ]),
    );
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (path: string, trail: string[]): void => {
      if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      if (done.has(path) || trail.includes(path)) return;
      for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
      done.add(path);
    };
    for (const path of sources) visit(path, []);
    expect(cycles).toEqual([]);
  });

  test('machines and protocols are pure: no clock, entropy, timer, process or platform', () => {
    const impure =
      /\b(Date\.now|new Date\(\)|Math\.random|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|crypto\.|process\.|Bun\.|console\.|await\s|fetch\()/;
    const wrong = sources
      .filter((path) => PURE.includes(roomOf(path)))
      .flatMap((path) => [
        ...importsOf(path)
          .filter((name) => name.startsWith('node:') || name.startsWith('bun'))
          .map((name) => `${path} imports ${name}`),
        ...source(path)
          .split('\n')
          .filter((line) => impure.test(line) && !/^\s*(\*|\/\/|\/\*)/.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ]);
    expect(wrong).toEqual([]);
  });

  test('what is Bun’s own stays in main and the engines; the HTTP floor and all below it run elsewhere too', () => {
    const bound = sources.filter((path) =>
      ['vocabulary', 'bounds', 'event', 'notice', 'machine', 'sip', 'sdp', 'database', 'call', 'http'].includes(roomOf(path)),
    );
    const wrong = bound.filter((path) => /\bBun\.|from 'bun/.test(source(path).replace(/^\s*(\*|\/\/).*$/gm, '')));
    expect(wrong).toEqual([]);
  });

  test('one file of script loads the addon, one folder of C++ knows Node-API', () => {
    expect(sources.filter((path) => /\.node['"`]/.test(source(path)))).toEqual(['src/media/native.ts']);
    const elsewhere = native.filter((path) => !path.startsWith('native/addon/'));
    expect(elsewhere.filter((path) => /#include\s+[<"](node_api|napi)/.test(source(path)))).toEqual([]);
    expect(elsewhere.filter((path) => /#include\s+[<"]addon\//.test(source(path)))).toEqual([]);
  });

  test('script uses each function of the addon', () => {
    const named = (path: string, name: RegExp) => [...source(path).matchAll(name)].map(([, each]) => each);
    const addon = native.filter((path) => path.startsWith('native/addon/'));
    const given = addon.flatMap((path) => named(path, /\{"(\w+)",/g));
    const used = new Set(sources.flatMap((path) => named(path, /\bnative\.(\w+)/g)));
    expect(given.length).toBeGreaterThan(0);
    expect(given.filter((name) => !used.has(name))).toEqual([]);
  });

  test('kernels allocate nothing and know no thread, lock or clock', () => {
    const banned =
      /#include\s+<(thread|mutex|chrono|atomic|memory|string|map|unordered_map|iostream)>|\b(malloc|calloc|realloc)\s*\(|\bnew\s+[A-Za-z]/;
    const kernels = native.filter((path) => path.startsWith('native/kernel/'));
    expect(kernels.length).toBeGreaterThan(0);
    const wrong = kernels.flatMap((path) =>
      source(path)
        .split('\n')
        .filter((line) => banned.test(line.replace(/\/\/.*$/, '')) && !/^\s*\*/.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(wrong).toEqual([]);
  });

  test('a file is one idea: 500 lines at most', () => {
    const long = [...sources, ...native].filter((path) => source(path).split('\n').length > 501);
    expect(long).toEqual([]);
  });

  test('a function fits on a screen: 70 lines at most', () => {
    const scripts = tracked.filter((path) => /^(src|bench|console|bin|sdk)\/.*\.(ts|tsx|mjs)$/.test(path));
    const found = scripts.flatMap((path) => functionsOf(source(path)).map((each) => ({ path, ...each })));
    expect(found.length).toBeGreaterThan(2_000);
    const long = found.filter(({ length }) => length > 70).map(({ path, line, length }) => `${path}:${line} has ${length}`);
    expect(long).toEqual([]);
  });

  test('a folder of src is one idea: 16 files at most', () => {
    const folders = Map.groupBy(sources, dirname);
    const full = [...folders].filter(([, files]) => files.length > 16).map(([folder, { length }]) => `${folder} has ${length}`);
    expect(full).toEqual([]);
  });

  test('comments end at 120 columns, addresses and drawings aside, and begin with their subject', () => {
    const scripts = tracked.filter((path) => /^(test|bench|console|bin)\/.*\.(ts|tsx|mjs)$/.test(path));
    const wrong = [...sources, ...native, ...scripts].flatMap((path) =>
      source(path)
        .split('\n')
        .flatMap((line, at) => {
          const isWide = line.length > 120 && /^\s*(\/\/|\/\*\*|\*) /.test(line) && !/https?:|[│─┌└]/.test(line);
          const hasNoSubject = NO_SUBJECT.test(line);
          return isWide || hasNoSubject ? [`${path}:${at + 1}`] : [];
        }),
    );
    expect(wrong).toEqual([]);
  });

  test('names say what a file is', () => {
    const empty = /(^|[-_/.])(utils?|helpers?|common|libs?|core|services?|managers?|misc)([-_/.]|$)/;
    expect([...sources, ...native].filter((path) => empty.test(path.replace(/^src\//, '')))).toEqual([]);
  });

  test('nothing is hidden from the checks', () => {
    const hidden = /@ts-(ignore|nocheck|expect-error)|biome-ignore|\bas any\b|\bas unknown as\b|\b(TODO|FIXME|XXX|HACK)\b/;
    const scripts = tracked.filter((path) => /^(src|test|bench|bin|native)\//.test(path) && path !== 'test/tidy.test.ts');
    const wrong = scripts.flatMap((path) =>
      source(path)
        .split('\n')
        .filter((line) => hidden.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(wrong).toEqual([]);
  });

  test('prose is wrapped at 100 columns, code and tables aside', () => {
    const wide = tracked
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) => {
        let isCode = false;
        return source(path)
          .split('\n')
          .flatMap((line, at) => {
            if (line.trimStart().startsWith('```')) isCode = !isCode;
            return !isCode && !line.trimStart().startsWith('|') && line.length > 100 ? [`${path}:${at + 1}`] : [];
          });
      });
    expect(wide).toEqual([]);
  });
});
