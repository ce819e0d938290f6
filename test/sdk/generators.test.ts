/**
 * Clients that other people's generators make from the OpenAPI document: they compile, and each places a call. The
 * generators want another TypeScript than the project's, so they are installed into a folder of their own; that takes
 * the network and half a minute, so it is done with LONG_TESTS=1.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550082';
const PACKAGES = ['openapi-typescript@7', 'openapi-fetch@0', '@hey-api/openapi-ts@0', 'typescript@5'];
const TSCONFIG = {
  compilerOptions: {
    target: 'ES2022',
    module: 'ESNext',
    moduleResolution: 'Bundler',
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
};
const START = `const { baseUrl, authorization } = JSON.parse(process.argv[2] ?? '');
const headers = { authorization };
const body = { from: '${NUMBER}', to: '${NUMBER}', ring_timeout_sec: 30 };`;
const CLIENTS = {
  'openapi-typescript': {
    generate: ['node_modules/.bin/openapi-typescript', 'openapi.json', '-o', 'schema.d.ts'],
    program: `import createClient from 'openapi-fetch';
import type { paths } from './schema.d.ts';
declare const process: { argv: string[] };
${START}
const client = createClient<paths>({ baseUrl, headers });
const { data, error } = await client.POST('/v1/sessions:dial', { body });
if (data === undefined) throw new Error(error.message);
const session: string = data.session_uuid;
console.log(session);`,
  },
  '@hey-api/openapi-ts': {
    generate: ['node_modules/.bin/openapi-ts', '-i', 'openapi.json', '-o', 'hey'],
    program: `import { dial } from './hey/index.ts';
import { client } from './hey/client.gen.ts';
declare const process: { argv: string[] };
${START}
client.setConfig({ baseUrl, headers });
const { data, error } = await dial({ body });
if (data === undefined) throw new Error(error.message);
const session: string = data.session_uuid;
console.log(session);`,
  },
} as const;

describe.skipIf(process.env.LONG_TESTS !== '1')('clients of other generators', () => {
  let platform: Platform;
  let app: Credentials;
  let folder = '';
  const receiver = new Receiver();

  const run = (command: readonly string[]) => {
    const [program = '', ...args] = command;
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${command.join(' ')}: ${stdout}${stderr}`);
    return stdout.trim();
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sidetone-generators-'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}');
    run(['npm', 'install', '--no-audit', '--no-fund', ...PACKAGES]);
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    writeFileSync(join(folder, 'openapi.json'), await (await fetch(`${platform.url}/openapi.json`)).text());
  }, 300_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const [name, { generate, program }] of Object.entries(CLIENTS))
    test(`the one of ${name} compiles and places a call`, async () => {
      run(generate);
      writeFileSync(join(folder, 'program.ts'), program);
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...TSCONFIG, files: ['program.ts'] }));
      expect(run(['node_modules/.bin/tsc', '-p', '.'])).toBe('');
      const options = JSON.stringify({ baseUrl: platform.url, authorization: `Bearer ${app.appUuid}:${app.apiKey}` });
      const session = run([process.execPath, 'program.ts', options]);
      await receiver.event('session.ringing_started', session);
      await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
      await receiver.event('session.ended', session);
    }, 120_000);
});
