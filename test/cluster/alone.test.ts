/** The start of a process: one owns its database, or a cluster does. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { copyFileSync, rmSync } from 'node:fs';
import postgres from 'postgres';
import { createSeal } from '../../src/database/vault/seal.ts';
import { openTestStore } from '../database/open.ts';
import { blocksOf } from '../docs/blocks.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { natsInstalled, TestCluster } from './harness.ts';

const refusal = async (environment: Record<string, string>): Promise<string> => {
  const error: unknown = await Platform.start(environment).then(
    () => new Error('it started'),
    (reason: unknown) => reason,
  );
  return (error instanceof Error ? error.message : String(error))
    .split('\n')
    .filter((line) => line.startsWith('sidetone: '))
    .join('\n');
};

describe('a process without NATS_URL', () => {
  let first: Platform;
  beforeAll(async () => {
    first = await Platform.start();
  }, 60_000);
  afterAll(() => first?.stop());

  test('is refused in one line where another works on the same DATA_DIR, which goes on', async () => {
    expect(await refusal({ DATA_DIR: first.dataDir })).toBe(
      'sidetone: another process works on this database: give each its own, or set NATS_URL on all to make them one cluster',
    );
    expect((await first.operator('GET', '/apps')).status).toBe(200);
  }, 30_000);

  test('starts at once after a kill -9, and is the only node then', async () => {
    await first.kill();
    await first.start();
    expect((await first.operator('GET', '/apps')).status).toBe(200);
  }, 30_000);

  test('is refused with NATS_URL and without DATABASE_URL', async () => {
    expect(await refusal({ NATS_URL: 'nats://127.0.0.1:4222' })).toBe(
      'sidetone: DATABASE_URL: expected the database of the cluster, because NATS_URL is set',
    );
  });
});

test('with another MASTER_KEY than its database a process is refused, until what was sealed is removed as the documentation says', async () => {
  const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
  const database = await openTestStore();
  const environment = { DATABASE_URL: database.url, MASTER_KEY: key(1) };
  const platforms: Platform[] = [];
  try {
    platforms[0] = await Platform.start(environment);
    const trunk = { uri: 'sip:127.0.0.1:1', inbound_cidrs: ['127.0.0.1/32'], username: 'u', password: 'p' };
    await platforms[0].operator('PUT', '/trunks/acme', trunk);
    const { app_uuid: app } = (await platforms[0].operator('POST', '/apps', { name: 'mine' })).body;
    await platforms[0].terminate();
    const refused = await refusal({ ...environment, MASTER_KEY: key(2) });
    expect(refused).toStartWith('sidetone: MASTER_KEY: another than that which sealed the secrets in this database');
    const sql = postgres({
      path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`,
      user: 'sidetone',
      database: 'postgres',
      max: 1,
    });
    for (const { text } of blocksOf('sql')) await sql.unsafe(text);
    await sql.end();
    platforms[1] = await Platform.start({ ...environment, MASTER_KEY: key(2) });
    expect((await platforms[1].operator('POST', `/apps/${app}/webhook-secrets`, {})).status).toBe(201);
    await platforms[1].terminate();
    expect(await refusal(environment)).toBe(refused);
  } finally {
    for (const each of platforms) await each.stop();
    await database.close();
  }
}, 60_000);

test('A start with MASTER_KEY_BEFORE seals all secrets under the new key: what waits is signed as before, and nothing opens under the old key', async () => {
  const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
  const database = await openTestStore();
  const receiver = new Receiver();
  const sql = postgres({
    path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`,
    user: 'sidetone',
    database: 'postgres',
    max: 1,
  });
  const environment = { DATABASE_URL: database.url };
  let platform = await Platform.start({ ...environment, MASTER_KEY: key(1) });
  try {
    const app = await platform.application(receiver.url, '+15550061');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    receiver.misbehave = () => new Response(null, { status: 503 });
    const trunk = { uri: 'sip:127.0.0.1:1', inbound_cidrs: ['127.0.0.1/32'], username: 'u', password: 'p of trunk' };
    await platform.operator('PUT', '/trunks/acme', trunk);
    await platform.operator('PUT', `/apps/${app.appUuid}/devices/alice`, { password: 'p of alice' });
    await platform.api(app, 'POST', '/api/v1/rooms', {});
    await platform.stop();
    const sealed = () => sql<{ owner: string; sealed: Buffer }[]>`
      SELECT app_uuid AS owner, sealed FROM webhook_secrets UNION ALL SELECT 'device ' || username, secrets FROM devices
      UNION ALL SELECT 'trunk ' || name, password FROM trunks`;
    const before = await sealed();
    expect(before.length).toBe(4);

    const wrong = { ...environment, MASTER_KEY: key(2), MASTER_KEY_BEFORE: key(3) };
    expect(await refusal(wrong)).toStartWith('sidetone: MASTER_KEY_BEFORE: neither this nor MASTER_KEY opens what');
    const node = { ...environment, OPERATOR_TOKEN: 'operator-token-of-the-node', NATS_URL: 'nats://127.0.0.1:1' };
    expect(await refusal({ ...node, MASTER_KEY: key(2), MASTER_KEY_BEFORE: key(1) })).toBe(
      'sidetone: MASTER_KEY: another than that of the cluster, give every node the same',
    );
    expect(await sealed()).toEqual(before);
    platform = await Platform.start({ ...environment, MASTER_KEY: key(2), MASTER_KEY_BEFORE: key(1) });
    receiver.misbehave = undefined;
    await receiver.event('room.created');
    expect(receiver.badSignatures).toBe(0);
    const [old, anew] = [1, 2].map((byte) => createSeal(new Uint8Array(32).fill(byte)));
    for (const { owner, sealed: bytes } of await sealed()) {
      expect(anew?.open(new Uint8Array(bytes), owner)).not.toBe('');
      expect(() => old?.open(new Uint8Array(bytes), owner)).toThrow();
    }
    await sql`CHECKPOINT`;
    for (const table of ['webhook_secrets', 'devices', 'trunks']) {
      const [file] = await sql<{ bytes: Buffer }[]>`SELECT pg_read_binary_file(pg_relation_filepath(${table})) AS bytes`;
      expect(before.filter(({ sealed: bytes }) => file?.bytes.includes(bytes))).toEqual([]);
    }
  } finally {
    await platform.stop();
    await sql.end();
    await database.close();
    await receiver.stop();
  }
}, 60_000);

test('A trunk and a device whose secrets the key does not open are up without them, and are set anew', async () => {
  const receiver = new Receiver();
  const platform = await Platform.start();
  const sql = postgres({
    path: `${platform.dataDir}/postgres-socket/.s.PGSQL.5432`,
    user: 'sidetone',
    database: 'postgres',
    max: 1,
  });
  try {
    const app = await platform.application(receiver.url, '+15550062');
    const [trunks, devices] = ['/trunks', `/apps/${app.appUuid}/devices`];
    const trunk = { uri: 'sip:127.0.0.1:1', inbound_cidrs: ['127.0.0.1/32'], username: 'u', password: 'p' };
    for (const name of ['acme', 'other']) await platform.operator('PUT', `${trunks}/${name}`, trunk);
    for (const name of ['alice', 'bob']) await platform.operator('PUT', `${devices}/${name}`, { password: `p of ${name}` });
    // A row looks so that came back from a backup, or was sealed on a machine with another key.
    const strange = Buffer.from(createSeal(new Uint8Array(32).fill(3)).close('p', 'trunk acme'));
    await sql`UPDATE trunks SET password = ${strange} WHERE name = 'acme'`;
    await sql`UPDATE devices SET secrets = ${strange} WHERE username = 'alice'`;
    await sql.end();
    await platform.terminate();
    await platform.start();
    expect((await platform.operator('GET', trunks)).body.trunks).toMatchObject([
      { name: 'acme', has_password: false },
      { name: 'other', has_password: true },
    ]);
    expect(platform.output).toContain('"trunks":1,"first":"acme"');
    expect(platform.output).toContain('"devices":1,"first":"alice"');
    const unset = { ...trunk, register: true, password: undefined };
    expect((await platform.operator('PUT', `${trunks}/acme`, unset)).status).toBe(400);
    expect((await platform.operator('PUT', `${trunks}/acme`, trunk)).status).toBe(204);
    expect((await platform.operator('GET', `${trunks}/acme`)).body.has_password).toBe(true);
    expect((await platform.operator('PUT', `${devices}/alice`, { password: 'another one' })).status).toBe(204);
  } finally {
    await sql.end();
    await platform.stop();
    await receiver.stop();
  }
}, 60_000);

describe.skipIf(!natsInstalled)('a node', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start(1);
  }, 60_000);
  afterAll(() => cluster?.stop());

  test.concurrent('is refused in one line with another MASTER_KEY than the cluster', async () => {
    const key = Buffer.alloc(32, 9).toString('base64');
    expect(await refusal({ ...cluster.environment(), MASTER_KEY: key })).toBe(
      'sidetone: MASTER_KEY: another than that of the cluster, give every node the same',
    );
  }, 30_000);

  test.concurrent('is refused on a copy of the DATA_DIR of a living one, as on a cloned machine', async () => {
    const { dataDir } = cluster.node(0).platform;
    const copy = dataDirectory('sidetone-copy-');
    try {
      // A copy that was made before the other was started again does not name the process that lives.
      copyFileSync(`${dataDir}/volume.id`, `${copy}/volume.id`);
      expect(await refusal({ ...cluster.environment(), DATA_DIR: copy })).toMatch(
        /^sidetone: DATA_DIR: is a copy of that of the node at 127\.0\.0\.1:\d+: give each its own, or remove volume\.id/,
      );
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }, 30_000);

  test.concurrent('is refused where NODE_HOST is no address of the machine, and no other node takes it for a lost one', async () => {
    for (const [host, reason] of [
      ['198.51.100.7', 'NODE_HOST: no port of 198.51.100.7 can be bound'],
      ['nowhere.invalid', 'NODE_HOST: there is no address for nowhere.invalid'],
    ] as const)
      expect(await refusal({ ...cluster.environment(), NODE_HOST: host })).toStartWith(`sidetone: ${reason}`);
    const told = await cluster.nodes[0]?.platform.operator('GET', '/nodes');
    expect(JSON.stringify(told?.body)).not.toMatch(/198\.51\.100\.7|nowhere/);
  }, 30_000);

  test.concurrent('keeps a process without NATS_URL off its database', async () => {
    const { NATS_URL: _, ...alone } = cluster.environment();
    expect(await refusal(alone)).toStartWith('sidetone: another process works on this database');
  }, 30_000);

  // By itself: a node whose beat is late by more than half a second, as the others start, is taken for gone.
  test('is refused on the DATA_DIR of a living one', async () => {
    const { dataDir } = cluster.nodes[0]?.platform ?? {};
    expect(await refusal({ ...cluster.environment(), DATA_DIR: dataDir ?? '' })).toBe(
      'sidetone: DATA_DIR: is in use by another node, give each its own',
    );
  }, 30_000);
});
