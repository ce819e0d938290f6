/** The telephone of docs/first-call.md, set up as it stands there, with free ports and sounds instead of a card. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baresipInstalled, freePair } from '../support/baresip.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { allBlocks, commandsOf, wordsOf } from './blocks.ts';

const NUMBER = '+15550001';
const NO_SOUND_CARD = [
  'audio_player aubridge,ear',
  'audio_source ausine,440',
  'audio_alert aubridge,ear',
  'module aubridge.so',
  'module ausine.so',
  'ausrc_srate 48000',
  'ausrc_channels 2',
];

describe.skipIf(!baresipInstalled)('the telephone of the first call', () => {
  let platform: Platform;
  let app: Credentials;
  let port = 0;
  const receiver = new Receiver();
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-first-call-'));
  const started: ChildProcess[] = [];

  beforeAll(async () => {
    port = await freePair();
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    const trunk = { uri: `sip:127.0.0.1:${port}`, inbound_cidrs: ['127.0.0.0/8'] };
    await platform.operator('PUT', '/trunks/local', trunk);
  }, 60_000);
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await platform?.stop();
    await receiver.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 20_000);

  /** The commands of the page that concern the telephone, with the folder and the ports of this test. */
  const commands = (): readonly string[] => {
    const block = allBlocks.find(({ page, text }) => page === 'docs/first-call.md' && text.includes('-t 1 '));
    if (block === undefined) throw new Error('the page sets no telephone up');
    return commandsOf(block).map((command) =>
      command
        .replaceAll('data/phone', folder)
        .replaceAll('127.0.0.1:5080', `127.0.0.1:${port}`)
        .replaceAll('127.0.0.1:5060', platform.sipUdp),
    );
  };

  test('calls the platform, and is called by it', async () => {
    const [call = '', ...before] = commands().toReversed();
    for (const command of before.toReversed()) execFileSync('bash', ['-c', command], { stdio: 'ignore' });
    const config = join(folder, 'config');
    const written = readFileSync(config, 'utf8').replaceAll(/^audio_(player|source|alert)\s.*$/gm, '');
    writeFileSync(config, written);
    appendFileSync(config, `${NO_SOUND_CARD.join('\n')}\n`);

    const [program = '', ...args] = wordsOf(call);
    started.push(spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] }));
    const created = await receiver.event('session.created');
    expect(created.body).toMatchObject({ did: NUMBER, caller_id: '+15550100' });

    const dial = { from: NUMBER, to: '+15550100', ring_timeout_sec: 20 };
    const session = String((await platform.api(app, 'POST', '/v1/sessions:dial', dial)).body.session_uuid);
    await receiver.event('session.ringing_started', session);
  }, 60_000);
});
