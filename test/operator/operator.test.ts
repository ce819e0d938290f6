import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import { openPlatform, type Platform } from '../http/platform.ts';
import { testCertificate } from '../support/certificate.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';
import { noCarrier } from '../support/no-carrier.ts';
import { eventOf } from '../webhook/emit.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(() => platform.close());
const operator = (...args: Parameters<Platform['operator']>) => platform.operator(...args);

async function makeApp(): Promise<AppSecrets> {
  const { body } = await operator('POST', '/operator/v1/apps', { name: 'made by a test' });
  return { appUuid: body.app_uuid, apiKey: body.api_key, webhookSecret: body.webhook_secret };
}

describe('the operator API', () => {
  test('is closed without its token, in the same error format', async () => {
    const app = await makeApp();
    expect((await platform.raw('/operator/v1/apps')).body.code).toBe('invalid_authorization_header');
    for (const token of ['wrong', `${OPERATOR_TOKEN}x`, `${app.appUuid}:${app.apiKey}`])
      expect((await platform.raw('/operator/v1/apps', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    expect((await platform.raw('/v1/sessions', { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } })).status).toBe(400);
  });

  test('makes an application whose key works, and never shows a secret again', async () => {
    const made = await operator('POST', '/operator/v1/apps', {
      name: 'shop',
      webhook_url: 'https://shop.example.com/hook',
      blocked_webhook_events: ['playback.*'],
      room_limits: { max_rooms: 5 },
    });
    expect(made.status).toBe(201);
    expect(Object.keys(made.body).sort()).toEqual(['api_key', 'app_uuid', 'webhook_secret']);
    expect(made.body.webhook_secret).toMatch(/^whsec_/);
    const { app_uuid: appUuid, api_key: apiKey, webhook_secret: webhookSecret } = made.body;
    expect((await platform.call({ appUuid, apiKey, webhookSecret }, 'GET', '/api/v1/app')).body).toEqual({
      app_uuid: appUuid,
      inbound_phone_numbers: [],
      outbound_caller_ids: [],
      webhook_url: 'https://shop.example.com/hook',
      webhook_status: { state: 'enabled', since: expect.any(String), last_error: '' },
      blocked_webhook_events: ['playback.*'],
      room_limits: { max_rooms: 5, max_members_per_room: 250 },
    });
    const shown =
      (await operator('GET', `/operator/v1/apps/${appUuid}`)).text + (await operator('GET', '/operator/v1/apps')).text;
    expect(shown).toContain(appUuid);
    for (const secret of [apiKey, webhookSecret]) expect(shown).not.toContain(secret);
    const rows = await platform.testStore.store.credentials.keyHashes(appUuid);
    expect(Buffer.from(rows[0] ?? []).toString()).not.toContain(apiKey);
  });

  test('changes an application, and refuses what is malformed', async () => {
    const { appUuid } = await makeApp();
    expect(
      (await operator('PATCH', `/operator/v1/apps/${appUuid}`, { name: 'new', room_limits: { max_members_per_room: 9 } })).status,
    ).toBe(204);
    expect((await operator('GET', `/operator/v1/apps/${appUuid}`)).body).toMatchObject({
      name: 'new',
      room_limits: { max_members_per_room: 9 },
    });
    for (const body of [
      { webhook_url: 'ftp://x' },
      { webhook_url: 'http://u:p@x' },
      { blocked_webhook_events: ['*'] },
      { name: '' },
      { other: 1 },
    ])
      expect((await operator('PATCH', `/operator/v1/apps/${appUuid}`, body)).status).toBe(400);
    expect((await operator('PATCH', `/operator/v1/apps/app_${newUuid()}`, { name: 'x' })).status).toBe(404);
    expect((await operator('GET', '/operator/v1/apps/nonsense')).status).toBe(404);
  });

  test('adds and revokes API keys, and rotates webhook secrets', async () => {
    const app = await makeApp();
    const added = await operator('POST', `/operator/v1/apps/${app.appUuid}/api-keys`, {});
    expect(added.status).toBe(201);
    const second = { ...app, apiKey: added.body.api_key };
    expect((await platform.call(second, 'GET', '/v1/sessions')).status).toBe(200);
    const key = `/operator/v1/apps/${app.appUuid}/api-keys/${added.body.key_id}`;
    expect((await operator('DELETE', key)).status).toBe(204);
    expect((await operator('DELETE', key)).status).toBe(404);
    expect((await platform.call(second, 'GET', '/v1/sessions')).status).toBe(401);
    const rotated = await operator('POST', `/operator/v1/apps/${app.appUuid}/webhook-secrets`, {});
    expect(await platform.testStore.store.credentials.signingSecrets(app.appUuid)).toEqual([
      rotated.body.webhook_secret,
      app.webhookSecret,
    ]);
  });

  test('lets each replaced webhook secret sign along for its own 24 h, three of them at most', async () => {
    const app = await makeApp();
    const { credentials } = platform.testStore.store;
    const rotate = () => operator('POST', `/operator/v1/apps/${app.appUuid}/webhook-secrets`, {});
    const secrets = [app.webhookSecret];
    for (let n = 0; n < 3; n += 1) secrets.unshift((await rotate()).body.webhook_secret);
    expect(await credentials.signingSecrets(app.appUuid)).toEqual(secrets);
    const refused = await rotate();
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    expect(await credentials.signingSecrets(app.appUuid)).toEqual(secrets);
  });

  test('assigns numbers, caller IDs and terminals', async () => {
    const app = await makeApp();
    const { store } = platform.testStore;
    const own = `/operator/v1/apps/${app.appUuid}`;
    expect((await operator('PUT', '/operator/v1/numbers/+15557001', { app_uuid: app.appUuid })).status).toBe(204);
    expect((await operator('PUT', `${own}/caller-ids/%2B15557002`)).status).toBe(204);
    expect((await operator('PUT', `${own}/payment-terminals/1234567`, {})).status).toBe(204);
    expect(await store.numbers.owner('+15557001')).toBe(app.appUuid);
    expect([
      await store.callerIds.allowed(app.appUuid, '+15557002'),
      await store.terminals.allowed(app.appUuid, '1234567'),
    ]).toEqual([true, true]);
    expect((await platform.call(app, 'GET', '/api/v1/app')).body).toMatchObject({
      inbound_phone_numbers: ['+15557001'],
      outbound_caller_ids: ['+15557002'],
    });
    for (const path of ['/operator/v1/numbers/+15557001', `${own}/caller-ids/+15557002`, `${own}/payment-terminals/1234567`]) {
      expect((await operator('DELETE', path)).status).toBe(204);
      expect((await operator('DELETE', path)).status).toBe(404);
    }
    expect((await operator('PUT', '/operator/v1/numbers/15557001', { app_uuid: app.appUuid })).status).toBe(400);
    expect((await operator('PUT', `${own}/payment-terminals/12345`)).status).toBe(400);
    expect((await operator('PUT', '/operator/v1/numbers/+15557001', { app_uuid: `app_${newUuid()}` })).status).toBe(404);
  });

  test('tells which SIP requests were refused, from whom, why, and what to do', async () => {
    const reply = await operator('GET', '/operator/v1/refusals');
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        refusals: [
          {
            at: '2026-01-02T00:00:00.000Z',
            first_at: '2026-01-01T00:00:00.000Z',
            count: 3,
            source: '203.0.113.9',
            transport: 'udp',
            method: 'INVITE',
            from: 'sip:100@203.0.113.9',
            to: 'sip:+15550002@192.0.2.1',
            status: 403,
            reason: 'The source address is in no trunk',
            remedy: 'Add it',
          },
        ],
      },
    ]);
  });

  test('tells of a trunk everything but its secrets, with its state; a PUT without a secret keeps it, "" removes it', async () => {
    const { cert: pem, key } = testCertificate('carrier');
    const settings = {
      country_code: '972',
      inbound_format: 'national',
      outbound_format: 'national',
      outbound_prefix: '9',
      auth_username: 'auth',
      from_user: 'main',
      from_domain: 'a.example',
      outbound_proxy: 'sip:proxy.example:5070;transport=tcp',
      contact_user: 'main',
      contact_host: 'sbc.example',
      user_phone: true,
      identity: 'pai',
      trust_identity: true,
      inbound_auth: true,
      session_timer: 'off',
      max_cps: 10,
      priority: 1,
      weight: 3,
      apps: [`app_${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`],
      follow_redirects: true,
      transfer_hosts: ['b.example'],
      advertise: '203.0.113.1',
      srtp: 'optional',
      srtp_without_tls: true,
      nodes: ['a', 'b.zone-1'],
      max_channels: 30,
      codecs: ['PCMU', 'G722'],
    };
    const body = { uri: 'sip:carrier.example', username: 'u', inbound_cidrs: [], register: true, ...settings };
    const path = '/operator/v1/trunks/full';
    const put = { ...body, password: 'secret', tls: { ca: pem, cert: pem, key } };
    expect((await operator('PUT', path, put)).status).toBe(204);
    const shown = (await operator('GET', path)).body;
    expect(shown).toEqual({
      name: 'full',
      ...body,
      tls: { ca: pem, cert: pem },
      has_password: true,
      has_tls_key: true,
      status: { registered: false, registered_until: '', channels_in_use: 0, calls_24h: 0, failures_24h: 0 },
    });
    // The document describes each of these fields, and every answer is held against it.
    const { Trunk } = (await platform.raw('/openapi.json')).body.components.schemas;
    expect(Object.keys(Trunk.properties).sort()).toEqual(Object.keys(shown).sort());
    expect(Trunk.additionalProperties).toBe(false);
    const listed = JSON.stringify((await operator('GET', '/operator/v1/trunks')).body);
    expect([listed.includes('secret'), listed.includes('PRIVATE')]).toEqual([false, false]);
    expect((await operator('GET', '/operator/v1/trunks')).body.trunks).toEqual([shown]);
    expect((await operator('PUT', path, body)).status).toBe(204);
    expect((await operator('GET', path)).body).toMatchObject({ has_password: true, has_tls_key: true });
    expect((await platform.testStore.store.trunks.list())[0]?.password).toBe('secret');
    expect((await operator('PUT', path, { ...body, password: '' })).status).toBe(400);
    expect((await operator('PUT', path, { ...body, register: false, password: '' })).status).toBe(400);
    const without = { ...body, register: false, inbound_auth: false, password: '', tls: { key: '' } };
    expect((await operator('PUT', path, without)).status).toBe(204);
    expect((await operator('GET', path)).body).toMatchObject({ has_password: false, has_tls_key: false });
    expect((await operator('DELETE', path)).status).toBe(204);
    expect((await operator('GET', path)).status).toBe(404);
  });

  test('sets SIP devices up and takes them down; a name belongs to one application, and no secret is shown', async () => {
    const [app, other] = [await makeApp(), await makeApp()];
    const path = `/operator/v1/apps/${app.appUuid}/devices`;
    expect((await operator('PUT', `${path}/alice`, { password: 'open sesame' })).status).toBe(204);
    expect(platform.hooks.at(-1)).toBe('device alice');
    expect((await operator('PUT', `${path}/alice`, { password: 'another' })).status).toBe(204);
    expect((await operator('PUT', `/operator/v1/apps/${other.appUuid}/devices/alice`, { password: 'x' })).status).toBe(409);
    expect((await operator('DELETE', `/operator/v1/apps/${other.appUuid}/devices/alice`)).status).toBe(404);
    // A removal that was stored and failed to be told is told by the next try.
    expect((await operator('DELETE', `${path}/bob`)).status).toBe(404);
    expect(platform.hooks.at(-1)).toBe('device bob');
    const { store } = platform.testStore;
    const binding = {
      uri: 'sip:alice@10.0.0.5',
      key: 'sip:alice@10.0.0.5',
      callId: 'one',
      cseq: 7,
      transport: 'udp',
      host: '203.0.113.5',
      port: 5070,
      instance: '',
      regId: 0,
      path: '',
    } as const;
    const expiresAt = Date.now() + 60_000;
    const stored = [{ ...binding, userAgent: 'phone/1', expiresAt }];
    const [alice] = await store.devices.all();
    if (alice === undefined) throw new Error('no device');
    await store.devices.change(alice, () => ({ status: 200, bound: stored, stored, removed: [] }));
    const { devices } = (await operator('GET', path)).body;
    const until = new Date(expiresAt).toISOString();
    const contact = { registered_until: until, address: '203.0.113.5:5070', user_agent: 'phone/1' };
    expect(devices).toEqual([
      {
        username: 'alice',
        created_at: expect.any(String),
        ...contact,
        contacts: [{ uri: binding.uri, transport: 'udp', ...contact }],
      },
    ]);
    const [row] = await store.devices.all();
    expect(row?.secrets.md5).toMatch(/^[0-9a-f]{32}$/);
    expect((await operator('DELETE', `${path}/alice`)).status).toBe(204);
    expect(await store.devices.bindings('alice')).toEqual([]);
    expect((await operator('GET', path)).body).toEqual({ devices: [], after: '' });
    for (const [name, body] of [
      ['bad%20name', { password: 'x' }],
      ['alice', {}],
      ['alice', { password: '' }],
      ['alice', { password: 'x', more: 1 }],
    ] as const)
      expect((await operator('PUT', `${path}/${name}`, body)).status).toBe(400);
    const nobody = `/operator/v1/apps/app_${newUuid()}/devices`;
    expect((await operator('GET', nobody)).status).toBe(404);
    expect((await operator('PUT', `${nobody}/carol`, { password: 'x' })).status).toBe(404);
  });

  test('answers no query parameter of a list with 500, whatever its octets', async () => {
    const app = await makeApp();
    const lists = platform.app.routes.filter(({ method, path, query }) => method === 'GET' && query && !path.endsWith('stream'));
    expect(lists.length).toBeGreaterThan(5);
    for (const { auth, path, query = [] } of lists)
      for (const { name } of query)
        for (const value of ['%00', 'a%00b', '%FF', '%ED%A0%80', '-1', '9'.repeat(30)]) {
          const filled = path.replace(':app_uuid', app.appUuid).replace(/:\w+/g, newUuid());
          const url = `${filled}?${name}=${value}`;
          const { status } = auth === 'operator' ? await operator('GET', url) : await platform.call(app, 'GET', url);
          expect([url, status < 500]).toEqual([url, true]);
        }
  });

  test('lists SIP devices by name, page by page, with all contacts of each, or one alone', async () => {
    const [app, other] = [await makeApp(), await makeApp()];
    const path = `/operator/v1/apps/${app.appUuid}/devices`;
    const names = ['pager1', 'pager2', 'pager3', 'pager4', 'pager5'];
    for (const name of [...names].reverse()) await operator('PUT', `${path}/${name}`, { password: 'x' });
    await operator('PUT', `/operator/v1/apps/${other.appUuid}/devices/pager2a`, { password: 'x' });
    const { store } = platform.testStore;
    const stored = [1, 2, 3].map((n) => ({
      uri: `sip:pager2@10.0.0.${n}`,
      key: `sip:pager2@10.0.0.${n}`,
      callId: 'one',
      cseq: n,
      transport: 'udp' as const,
      host: '203.0.113.5',
      port: 5070 + n,
      instance: '',
      regId: 0,
      path: '',
      userAgent: '',
      expiresAt: Date.now() + n * 60_000,
    }));
    const device = (await store.devices.some(['pager2']))[0];
    if (device === undefined) throw new Error('no device');
    await store.devices.change(device, () => ({ status: 200, bound: stored, stored, removed: [] }));
    const page = async (query: string) => {
      const { devices, after } = (await operator('GET', `${path}?${query}`)).body;
      return [devices.map((each: { username: string; contacts: unknown[] }) => [each.username, each.contacts.length]), after];
    };
    expect(await page('limit=2')).toEqual([
      [
        ['pager1', 0],
        ['pager2', 3],
      ],
      'pager2',
    ]);
    expect(await page('limit=2&after=pager2')).toEqual([
      [
        ['pager3', 0],
        ['pager4', 0],
      ],
      'pager4',
    ]);
    expect(await page('limit=2&after=pager4')).toEqual([[['pager5', 0]], '']);
    expect(await page('limit=5')).toEqual([names.map((name) => [name, name === 'pager2' ? 3 : 0]), '']);
    expect(await page('username=pager2')).toEqual([[['pager2', 3]], '']);
    expect(await page('username=pager2a')).toEqual([[], '']);
    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=x',
      'after=%20',
      'page=2',
      'limit=1&limit=2',
      'username=%00',
      'username=',
    ])
      expect([query, (await operator('GET', `${path}?${query}`)).status]).toEqual([query, 400]);
  });

  test('takes a trunk at a name with underscores, as containers have', async () => {
    const names = { uri: 'sip:stack_kamailio_1:5060', outbound_proxy: 'sip:_edge.my_net', inbound_cidrs: [] };
    expect((await operator('PUT', '/operator/v1/trunks/container', names)).status).toBe(204);
    expect((await operator('DELETE', '/operator/v1/trunks/container')).status).toBe(204);
  });

  test('sets trunks up and takes them down, and tells the carrier', async () => {
    const trunk = { uri: 'sip:carrier.example.com:5061;transport=tls', inbound_cidrs: ['192.0.2.0/24', '2001:db8::/32'] };
    const before = platform.hooks.filter((each) => each === 'trunks').length;
    const full = { ...trunk, username: 'u', password: 'p', register: true, max_channels: 30, codecs: ['PCMU', 'G722'] };
    expect((await operator('PUT', '/operator/v1/trunks/main', full)).status).toBe(204);
    expect(await platform.testStore.store.trunks.list()).toEqual([
      {
        name: 'main',
        uri: trunk.uri,
        username: 'u',
        password: 'p',
        register: true,
        inboundCidrs: trunk.inbound_cidrs,
        maxChannels: 30,
        codecs: ['PCMU', 'G722'],
        settings: {},
        tlsKey: undefined,
      },
    ]);
    const bad: [object, RegExp][] = [
      [{ ...trunk, uri: 'sips:x' }, /^uri: /],
      [{ ...trunk, uri: 'sip:host:99999' }, /^uri: /],
      [{ ...trunk, uri: 'sip:user@host' }, /^uri: /],
      [{ ...trunk, uri: 'sip:host:0' }, /^uri: /],
      [{ ...trunk, uri: 'sip:[....]' }, /^uri: /],
      [{ ...trunk, uri: 'sip:a..b' }, /^uri: /],
      [{ ...trunk, uri: 'sip:192.0.2.256' }, /^uri: /],
      [{ ...trunk, uri: 'sip:192.0.2:5060' }, /^uri: /],
      [{ ...trunk, outbound_proxy: 'sip:192.0.2.07' }, /^outbound_proxy: /],
      [{ ...trunk, from_domain: '1.2.3' }, /^from_domain: /],
      [{ ...trunk, transfer_hosts: ['a..b'] }, /^transfer_hosts\[0\]: /],
      [{ ...trunk, transfer_hosts: ['192.0.2.300'] }, /^transfer_hosts\[0\]: /],
      [{ ...trunk, advertise: '203.0.113' }, /^advertise: /],
      [{ ...trunk, advertise: '0.0.0.0' }, /^advertise: must be .* at which the carrier reaches the platform/],
      [{ ...trunk, advertise: '[::]' }, /^advertise: must be .* at which the carrier reaches the platform/],
      [{ uri: trunk.uri }, /^inbound_cidrs: is required/],
      [
        { ...trunk, inbound_cidrs: ['192.0.2.7'] },
        /^inbound_cidrs\[0\]: must be a CIDR, .* a single address is 203\.0\.113\.7\/32/,
      ],
      [{ ...trunk, inbound_cidrs: ['10.0.0.0/33'] }, /^inbound_cidrs\[0\]: /],
      [{ ...trunk, inbound_cidrs: ['010.0.0.0/8'] }, /^inbound_cidrs\[0\]: /],
      [{ ...trunk, inbound_cidrs: ['::ffff:192.0.2.0/120'] }, /^inbound_cidrs\[0\]: /],
      [{ ...trunk, register: true }, /^register: /],
      [{ ...trunk, register: true, username: 'u' }, /^register: must come with username and password/],
      [{ ...trunk, inbound_auth: true }, /^inbound_auth: must come with username and password/],
      [{ ...trunk, inbound_auth: true, username: 'u' }, /^inbound_auth: must come with username and password/],
      [{ ...trunk, contact_host: '0.0.0.0' }, /^contact_host: /],
      [{ uri: 'loopback:', register: true, username: 'u', password: 'p' }, /^uri: loopback: has neither/],
      [{ ...trunk, tls: { ca: '-----BEGIN CERTIFICATE-----' } }, /^tls\.ca: /],
      [{ ...trunk, codecs: ['speex'] }, /^codecs\[0\]: /],
      [{ ...trunk, max_channels: 0 }, /^max_channels: /],
      [{ ...trunk, country_code: '+972' }, /^country_code: /],
      [{ ...trunk, country_code: '999' }, /^country_code: must be the calling code of a country/],
      [{ ...trunk, inbound_format: 'national' }, /^inbound_format: must come with country_code/],
      [{ ...trunk, outbound_format: 'national' }, /^outbound_format: must come with country_code/],
      [{ ...trunk, outbound_prefix: 'abc' }, /^outbound_prefix: /],
      [{ ...trunk, outbound_proxy: 'proxy.example' }, /^outbound_proxy: /],
      [{ ...trunk, identity: 'both' }, /^identity: /],
      [{ ...trunk, uri: 'sip:carrier.example', srtp: 'required' }, /^srtp: must come with transport=tls/],
      [{ ...trunk, srtp: 'yes' }, /^srtp: /],
      [{ ...trunk, nodes: ['no blanks'] }, /^nodes\[0\]: /],
      [{ ...trunk, uri: 'loopback:' }, /^uri: loopback: has neither/],
      [{ uri: 'loopback:x' }, /^uri: /],
      [{ ...trunk, tls: { ca: 'no certificate' } }, /^tls\.ca: /],
      [{ ...trunk, max_cps: 0 }, /^max_cps: /],
      [{ ...trunk, weight: 0 }, /^weight: /],
      [{ ...trunk, apps: ['mine'] }, /^apps\[0\]: /],
      [{ ...trunk, from_user: 'a b' }, /^from_user: /],
      [{ ...trunk, from_user: '100%' }, /^from_user: /],
      [{ ...trunk, contact_user: 'a%zz' }, /^contact_user: /],
      [{ ...trunk, contact_user: '%ff' }, /^contact_user: /],
    ];
    for (const [body, message] of bad) {
      const reply = await operator('PUT', '/operator/v1/trunks/bad', body);
      expect(reply.status).toBe(400);
      expect(reply.body.message).toMatch(message);
    }
    expect((await operator('PUT', '/operator/v1/trunks/-', trunk)).status).toBe(400);
    // The password that is stored stays.
    const again = { ...trunk, username: 'u', register: true };
    expect((await operator('PUT', '/operator/v1/trunks/main', again)).status).toBe(204);
    expect((await platform.testStore.store.trunks.list())[0]).toMatchObject({ register: true, password: 'p' });
    const probes = ['main', 'none'].map((name) => operator('POST', `/operator/v1/trunks/${name}/probe`));
    expect((await Promise.all(probes)).map(({ status }) => status)).toEqual([202, 404]);
    expect((await operator('PUT', '/operator/v1/trunks/main', { uri: 'loopback:', inbound_cidrs: [] })).status).toBe(204);
    expect((await operator('DELETE', '/operator/v1/trunks/main')).status).toBe(204);
    expect(platform.hooks.filter((each) => each === 'trunks').length).toBe(before + 4);
    // A removal that was stored and failed to be told is told by the next try.
    expect((await operator('DELETE', '/operator/v1/trunks/main')).status).toBe(404);
    expect(platform.hooks.filter((each) => each === 'trunks').length).toBe(before + 5);
  });

  test('refuses encrypted audio with what to do about it where the build has no SRTP', async () => {
    const without = await openPlatform({ carrier: { ...noCarrier, hasSrtp: false } });
    const trunk = { uri: 'sip:carrier.example;transport=tls', inbound_cidrs: [] };
    for (const srtp of ['optional', 'required']) {
      const refused = await without.operator('PUT', '/operator/v1/trunks/main', { ...trunk, srtp });
      expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('install libsrtp2-dev')]);
    }
    expect((await without.operator('PUT', '/operator/v1/trunks/main', { ...trunk, srtp: 'off' })).status).toBe(204);
    await without.close();
  });

  test('reads the event log by pages and filters, and replays what was set aside only', async () => {
    const app = await makeApp();
    const [one, two] = [newUuid(), newUuid()];
    const events = [eventOf(app.appUuid, one, 1), eventOf(app.appUuid, two, 2), eventOf(app.appUuid, one, 3)];
    for (const event of events) await platform.testStore.store.journal.commit({ events: [event] });
    const list = async (query: string) =>
      (await operator('GET', `/operator/v1/events?app_uuid=${app.appUuid}&${query}`)).body.events;
    const all = await list('');
    expect(all.map((each: { payload: { step: number } }) => each.payload.step)).toEqual([1, 2, 3]);
    expect(all[0]).toMatchObject({
      webhook_id: events[0]?.webhookId,
      event: 'session.held',
      session_uuid: one,
      status: 'pending',
      attempts: [],
    });
    expect((await list(`session_uuid=${one}`)).length).toBe(2);
    expect((await list(`after=${all[0].position}&limit=1`))[0].payload.step).toBe(2);
    expect(await list('status=dead')).toEqual([]);
    const latest = await list('before=999999999999999&limit=2');
    expect(latest.map((each: { payload: { step: number } }) => each.payload.step)).toEqual([3, 2]);
    expect(await list(`before=${latest[1].position}`)).toEqual([all[0]]);
    const nextOf = async (query: string) =>
      (await operator('GET', `/operator/v1/events?app_uuid=${app.appUuid}&${query}`)).body.next;
    expect([await nextOf('limit=2'), await nextOf('limit=3')]).toEqual([String(all[1].position), '']);
    expect(await nextOf('before=999999999999999&limit=1')).toBe(String(all[2].position));
    expect((await list('event=session.held')).length).toBe(3);
    expect(await list('event=session.ended')).toEqual([]);
    for (const query of [
      'before=0',
      'before=x',
      'event=no.such',
      'status=lost',
      'after=-1',
      'after=07',
      'limit=0',
      'limit=1001',
      'colour=red',
      'session_uuid=x',
      'status=dead&status=pending',
      'after=1&after=2',
    ])
      expect((await operator('GET', `/operator/v1/events?${query}`)).status).toBe(400);
    const { outbox } = platform.testStore.store;
    await outbox.lease('a test', 60_000);
    const page = (await outbox.read({ xid: '0', eventId: 0 }, 1000)).events;
    const dead = page.find((each) => each.webhookId === events[1]?.webhookId);
    if (dead === undefined) throw new Error('not in the outbox');
    const attempt = { at: 1_700_000_000_000, status: null, error: 'timeout', duration_ms: 10_000, retry_at: null };
    expect(await outbox.settle('a test', [{ xid: dead.xid, eventId: dead.eventId, status: 'dead', attempt }])).toBe(true);
    expect((await list('status=dead'))[0].attempts).toEqual([
      { at: '2023-11-14T22:13:20.000Z', status: 0, error: 'timeout', duration_ms: 10_000, next_attempt_at: '' },
    ]);
    expect((await operator('POST', `/operator/v1/events/${events[1]?.webhookId}/replay`, {})).status).toBe(202);
    expect((await operator('POST', `/operator/v1/events/${events[1]?.webhookId}/replay`, {})).status).toBe(409);
    expect((await operator('POST', `/operator/v1/events/evt_${newUuid()}/replay`)).status).toBe(404);
    const replayed = (await outbox.read({ xid: '0', eventId: 0 }, 1000)).events.at(-1);
    expect([replayed?.webhookId, replayed?.attempts]).toEqual([events[1]?.webhookId, []]);
  });
});
