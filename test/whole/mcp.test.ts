/**
 * An assistant on the running platform, by the protocol's own client: it dials, sees the call end, and looks around.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550064';

let platform: Platform;
let app: Credentials;
const receiver = new Receiver();

beforeAll(async () => {
  platform = await Platform.start({ MCP_WRITE: 'on' });
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  // A replayed event comes after later ones.
  receiver.isJudged = false;
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

async function connect(credentials: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '0' });
  const requestInit = { headers: { authorization: `Bearer ${credentials}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${platform.url}/mcp`), { requestInit }));
  return client;
}

/** The texts that a tool told: the sentences, then the records. */
async function use(client: Client, name: string, given: Record<string, unknown> = {}): Promise<readonly [string, string]> {
  const { content, isError } = await client.callTool({ name, arguments: given });
  const [said = '', records = ''] = Array.isArray(content) ? content.map((each) => String(each.text)) : [];
  if (isError === true) throw new Error(said);
  return [said, records];
}

test('an assistant of an application dials, hangs up, explains the call and sends an event of it again', async () => {
  const client = await connect(`${app.appUuid}:${app.apiKey}`);
  const [, dialled] = await use(client, 'dial', { from: NUMBER, to: NUMBER });
  const session = /"session_uuid":"([^"]+)"/.exec(dialled)?.[1] ?? '';
  await receiver.event('session.ringing_started', session);
  expect((await use(client, 'list_calls', { state: 'live' }))[0]).toBe('2 calls.');
  await use(client, 'hang_up', { session_uuid: session });
  const ended = await receiver.event('session.ended', session);
  const [said, record] = await use(client, 'explain_call', { session_uuid: session });
  expect(said).toMatch(/^An outbound phone call that was never answered: it ended after [0-9.]+ s as cancelled, by caller\./);
  for (const kind of ['command', 'sip', 'event']) expect(record).toContain(`"kind":"${kind}"`);
  const attempts = receiver.attempts;
  // The outcome of its delivery is written a moment after the receiver has it, which is waited for.
  await use(client, 'replay_event', { webhook_id: ended.webhookId });
  while (receiver.attempts === attempts) await new Promise((resolve) => setImmediate(resolve));
  await client.close();
}, 40_000);

test('the doctor examines the platform that it runs in', async () => {
  const token = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
  const client = await connect(token);
  const [, findings] = await use(client, 'doctor');
  for (const [name, status] of [
    ['platform', 'ok'],
    ['trunk:loop', 'ok'],
    ['http_port', 'ok'],
    ['webhook:test', 'ok'],
  ])
    expect(findings).toContain(`"name":"${name}","status":"${status}"`);
  await client.close();
}, 40_000);
