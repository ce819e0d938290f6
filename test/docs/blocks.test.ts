/**
 * Every code block of the documentation: programs are type-checked or parsed, commands are held against the command
 * line tool, the scripts and the API, JSON is parsed and held against the API, and links lead somewhere.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openPlatform, type Platform } from '../http/platform.ts';
import type { OpenApiDocument } from '../support/openapi-check.ts';
import { allBlocks, allPages, anchorOf, blocksOf, type CodeBlock, commandsOf, ROOT, wordsOf } from './blocks.ts';

const tool: { readCommandLine(args: readonly string[]): unknown } = await import(join(ROOT, 'bin/cli/command-line.mjs'));
const scripts: Record<string, string> = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts;

let platform: Platform;
let document: OpenApiDocument;
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

beforeAll(async () => {
  platform = await openPlatform();
  document = (await platform.raw('/openapi.json')).body;
  ajv.addSchema({ $id: 'openapi', components: document.components });
}, 60_000);
afterAll(() => platform.close());

/** What is wrong with a value, by a schema of the document. */
function fault(schema: object, value: unknown): string | undefined {
  const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/')));
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

/** The operation of a request, by its method and path. A variable of the shell stands for any part of a path. */
function operationAt(method: string, url: string) {
  const path = new URL(url.replaceAll(/\$\{?\w+\}?/g, 'x'), 'http://127.0.0.1').pathname;
  const found = Object.keys(document.paths).find((template) =>
    new RegExp(`^${template.replaceAll(/\{[a-z0-9_]+\}/g, '[^/]+')}$`).test(path),
  );
  return found === undefined ? undefined : document.paths[found]?.[method.toLowerCase()];
}

/** What is wrong with a use of `bin/sidetone`, by the tool itself. */
function toolFault(words: readonly string[]): string | undefined {
  const wrong = words.find((word, at) => words[at - 1] === '--set' && !isTrunkField(word));
  if (wrong !== undefined) return `${wrong} is no field of a trunk`;
  try {
    tool.readCommandLine(words.map((word) => (word === '$APP' ? 'app_1' : word)));
    return words.length > 0 ? undefined : 'there is no command';
  } catch (error) {
    return String(error);
  }
}

function isTrunkField(pair: string): boolean {
  const schema = document.components.schemas.SetTrunkRequest;
  const name = pair.split('=')[0]?.split('.')[0] ?? '';
  return JSON.stringify(schema).includes(`"${name}":`) && pair.includes('=');
}

/** What is wrong with a use of `curl` on the platform. */
function curlFault(words: readonly string[]): string | undefined {
  const after = (name: string) => words[words.indexOf(name) + 1];
  const url = words.find((word) => /^https?:\/\/127\.0\.0\.1:8080\//.test(word));
  if (url === undefined || url.endsWith('/mcp')) return undefined;
  const body = words.includes('-d') ? after('-d') : undefined;
  const method = words.includes('-X') ? (after('-X') ?? '') : body === undefined ? 'GET' : 'POST';
  const operation = operationAt(method, url);
  if (operation === undefined) return `${method} ${url}: there is no such operation`;
  if (body === undefined) return undefined;
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema === undefined) return `${operation.operationId} takes no body`;
  return fault(schema, JSON.parse(body));
}

function commandFault(command: string): string | undefined {
  const words = wordsOf(command.replace(/^(?:[A-Z]+=\S+ )+/, '').replace(/ > \S+$/, '')).filter(
    (word) => !['&&', '|', ';'].includes(word),
  );
  const [program = '', ...rest] = words;
  if (program === 'bin/sidetone') return toolFault(rest);
  if (program === 'curl') return curlFault(rest);
  if (program === 'npm' && rest[0] === 'run') {
    if (!Object.hasOwn(scripts, rest[1] ?? '')) return `npm run ${rest[1]}: there is no such script`;
    const bench = rest[1] === 'bench' ? rest[3] : undefined;
    return bench === undefined || bench === 'NAME' || existsSync(join(ROOT, 'bench', `${bench}.ts`))
      ? undefined
      : `there is no bench ${bench}`;
  }
  const file = rest.find((word) => /^(bin|docs|test|deploy|sdk)\//.test(word));
  if (
    ['node', 'node_modules/.bin/bun', 'bash', 'helm', 'cp'].includes(program) &&
    file !== undefined &&
    !existsSync(join(ROOT, file))
  )
    return `${file}: there is no such file`;
  return undefined;
}

describe('code blocks', () => {
  test('are of a language that is checked, or plain text', () => {
    // A test runs the blocks of SQL (test/cluster/alone.test.ts).
    const known = ['sh', 'json', 'ts', 'js', 'python', 'sql', ''];
    expect(allBlocks.filter(({ language }) => !known.includes(language)).map(({ at }) => at)).toEqual([]);
    expect(allBlocks.length).toBeGreaterThan(40);
  });

  test('of the shell are shell, and their commands, paths and options exist', () => {
    const wrong: string[] = [];
    for (const block of blocksOf('sh')) {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: block.text.replaceAll('…', 'x'), encoding: 'utf8' });
      if (status !== 0) wrong.push(`${block.at}: ${stderr}`);
      for (const command of commandsOf(block)) {
        const found = commandFault(command);
        if (found !== undefined) wrong.push(`${block.at}: ${command}: ${found}`);
      }
    }
    expect(wrong).toEqual([]);
  }, 30_000);

  test('of the first pages can be pasted as they stand: nothing in them is left to fill in', () => {
    const pages = ['README.md', 'docs/getting-started.md', 'docs/first-call.md'];
    const first = blocksOf('sh').filter(({ page }) => pages.includes(page));
    expect(first.length).toBeGreaterThan(10);
    expect(first.filter(({ text }) => text.includes('…')).map(({ at }) => at)).toEqual([]);
  });

  test('of JSON are JSON, and bodies, problems and events are those of the API', () => {
    /** The schema of a body, told by a field that only such a body has. */
    const schemaOf = (value: Record<string, unknown>): object | undefined => {
      if ('websocket' in value)
        return operationAt('POST', '/v1/sessions:connectWebsocket')?.requestBody?.content['application/json']?.schema;
      if ('code' in value && 'message' in value) return { $ref: '#/components/schemas/Problem' };
      if ('aud' in value) return { type: 'object', required: ['event', 'timestamp', 'session_uuid'] };
      return undefined;
    };
    let held = 0;
    const wrong = blocksOf('json').flatMap(({ at, text }) => {
      const value = JSON.parse(text);
      const schema = schemaOf(value);
      if (schema === undefined) return [];
      held += 1;
      const found = fault(schema, value);
      return found === undefined ? [] : [`${at}: ${found}`];
    });
    expect(wrong).toEqual([]);
    expect(held).toBeGreaterThanOrEqual(4);
  });

  test('of TypeScript are type-checked, of JavaScript parsed', () => {
    mkdirSync(join(ROOT, 'build'), { recursive: true });
    // Within the repository, so that packages are found.
    const folder = mkdtempSync(join(ROOT, 'build', 'docs-'));
    try {
      const written = (block: CodeBlock, at: number) => {
        const text = block.text.replaceAll("'./sdk/typescript/src/index.ts'", "'@sidetone/sdk'");
        writeFileSync(join(folder, `block-${at}.ts`), text);
      };
      const blocks = blocksOf('ts');
      blocks.forEach(written);
      const tsconfig = {
        extends: '../../tsconfig.json',
        compilerOptions: { noUnusedLocals: false, paths: { '@sidetone/sdk': ['../../sdk/typescript/src/index.ts'] } },
        include: ['*.ts'],
      };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
      const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['--noEmit', '-p', folder], { encoding: 'utf8' });
      expect([status, stdout, blocks.length > 1]).toEqual([0, '', true]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    for (const { text } of blocksOf('js')) expect(() => new Bun.Transpiler({ loader: 'js' }).transformSync(text)).not.toThrow();
  }, 30_000);

  const hasPython = spawnSync('python3', ['-c', 'pass']).status === 0;
  test.skipIf(!hasPython)('of Python, and the Python SDK, are Python 3.9', () => {
    const files = ['__init__', '_api', '_transport', 'webhook'].map((name) =>
      readFileSync(join(ROOT, `sdk/python/sidetone/${name}.py`), 'utf8'),
    );
    const program = `import ast, json, sys
for text in json.load(sys.stdin): ast.parse(text, feature_version=(3, 9))`;
    const input = JSON.stringify([...blocksOf('python').map(({ text }) => text), ...files]);
    expect(spawnSync('python3', ['-c', program], { input, encoding: 'utf8' }).stderr).toBe('');
  });
});

test('links lead to pages and headings that exist', () => {
  const texts = new Map(allPages.map(({ page, text }) => [page, text]));
  const headings = (page: string) =>
    new Set([...(texts.get(page) ?? '').matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => anchorOf(text)));
  const wrong = allPages.flatMap(({ page, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
      if (/^[a-z]+:/.test(target)) return [];
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : normalize(join(dirname(page), path));
      if (!existsSync(join(ROOT, file))) return [`${page}: ${target}`];
      return anchor === undefined || headings(file).has(anchor) ? [] : [`${page}: ${target}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('a false command, path, body or option is found', () => {
  const found = [
    'bin/sidetone trunks set x --uri sip:x --cidr 10.0.0.0/8 --sett codec=x',
    'bin/sidetone trunk list',
    'bin/sidetone apps list --deadline 3',
    'bin/sidetone numbers assign +15550001',
    'bin/sidetone trunks set x --uri sip:x --set nonsense=1',
    'curl http://127.0.0.1:8080/v1/calls',
    `curl -X POST http://127.0.0.1:8080/v1/sessions:dial -d '{"from":"+1"}'`,
    'npm run nothing',
    'npm run bench -- nothing',
    'node docs/examples/nothing.mjs',
  ].map(commandFault);
  expect(found.filter((each) => each === undefined)).toEqual([]);
  expect(commandFault('bin/sidetone trunks set x --uri sip:x --set max_cps=1')).toBeUndefined();
});
