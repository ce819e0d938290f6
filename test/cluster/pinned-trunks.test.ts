/** Dials in a cluster whose trunks are of some nodes only. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { asUser } from '../carrier/device-peer.ts';
import { RawPeer } from '../carrier/raw-peer.ts';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';

const NUMBER = '+15550002';

describe.skipIf(!natsInstalled)('where one node alone may use a trunk', () => {
  let cluster: TestCluster;
  let app: Credentials;
  let carrier: RawPeer;
  const receiver = new Receiver();
  const dials: string[] = [];

  beforeAll(async () => {
    cluster = await TestCluster.start(1);
    await cluster.add({ NODE_LABELS: 'edge' });
    await cluster.add({ NODE_LABELS: 'other' });
    app = await cluster.application(receiver, NUMBER);
    await cluster.node(2).platform.operator('PUT', `/apps/${app.appUuid}/devices/desk`, { password: "desk's secret" });
    carrier = await RawPeer.udp(cluster.node(1).platform.sipUdpPort);
  }, 60_000);

  beforeEach(async () => {
    for (const session of dials.splice(0)) await cluster.node(0).platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  });

  afterAll(async () => {
    carrier?.close();
    await cluster?.stop();
    await receiver.stop();
  });

  /** Has these trunks alone, at every node, to one carrier that says nothing. */
  const trunks = async (set: Readonly<Record<string, object>>) => {
    const first = cluster.node(0).platform;
    const names = async (at: number) => {
      const { body } = await cluster.node(at).platform.operator('GET', '/trunks');
      return Array.isArray(body.trunks) ? body.trunks.map(({ name }) => String(name)).sort() : [];
    };
    for (const name of await names(0)) if (set[name] === undefined) await first.operator('DELETE', `/trunks/${name}`);
    for (const [name, terms] of Object.entries(set)) {
      const { status } = await first.operator('PUT', `/trunks/${name}`, {
        ...{ uri: `sip:${carrier.host}:${carrier.port}`, inbound_cidrs: ['192.0.2.1/32'] },
        ...terms,
      });
      expect(status).toBe(204);
    }
    const wanted = Object.keys(set).sort().join();
    for (const at of [0, 1, 2]) await eventually(async () => (await names(at)).join() === wanted, `the trunks at node ${at}`);
  };

  /** Dials at a node. Resolves with the status, and the trunk that the call went to. */
  const dial = async (at: number, terms: object = {}) => {
    const { platform } = cluster.node(at);
    const order = { from: NUMBER, to: NUMBER, ring_timeout_sec: 60, ...terms };
    const { status, body, headers } = await platform.api(app, 'POST', '/v1/sessions:dial', order);
    const session = String(body.session_uuid);
    if (status === 202) dials.push(session);
    return { status, session, retryAfter: headers.get('retry-after') };
  };
  const trunkOf = async (session: string) => {
    const { body } = await cluster.node(0).platform.operator('GET', `/sessions/${session}/timeline`);
    return typeof body.session === 'object' && body.session !== null && 'trunk' in body.session ? body.session.trunk : undefined;
  };

  test('a dial at any node goes over it, and not over a loopback trunk beside it', async () => {
    await trunks({ far: { nodes: ['edge'] }, loop: { uri: 'loopback:', inbound_cidrs: [] } });
    for (const at of [0, 1, 2]) {
      const { status, session } = await dial(at);
      expect(status).toBe(202);
      await eventually(async () => (await trunkOf(session)) !== '', 'the call to be placed');
      expect(await trunkOf(session)).toBe('far');
    }
  });

  test('a dial while that node drains is 503 with Retry-After at any node, with its name or without', async () => {
    await trunks({ far: { nodes: ['edge'] } });
    const first = cluster.node(0).platform;
    const { port } = new URL(cluster.node(1).platform.url);
    const { body } = await first.operator('GET', '/nodes');
    const edge = Array.isArray(body.nodes) ? body.nodes.find((each) => each.http_port === Number(port))?.node_id : undefined;
    const order = async (name: 'drain' | 'undrain') =>
      expect((await first.operator('POST', `/nodes/${edge}/${name}`, {})).status).toBe(202);
    /** The answer once a node has seen the order, a beat later. Too many may be asked for until then. */
    const answer = async (at: number, terms: object, seen: (status: number) => boolean) => {
      let last = await dial(at, terms);
      await eventually(async () => {
        if (!seen(last.status)) last = await dial(at, terms);
        return seen(last.status);
      }, 'the order to be seen');
      return last;
    };
    await order('drain');
    for (const terms of [{}, { trunk: 'far' }])
      for (const at of [0, 1, 2]) {
        const { status, retryAfter } = await answer(at, terms, (each) => each !== 202 && each !== 429);
        expect([at, status, Number(retryAfter) > 0]).toEqual([at, 503, true]);
      }
    await order('undrain');
    for (const at of [0, 1, 2]) await answer(at, {}, (each) => each === 202);
  });

  test('a device that is connected to another node is called, since it needs no trunk', async () => {
    await trunks({ far: { nodes: ['edge'] } });
    const { platform } = cluster.node(2);
    const phone = await RawPeer.tcp(Number(platform.sipTcp.split(':')[1]));
    const contact = `<sip:desk@127.0.0.1:${phone.port};transport=tcp>`;
    expect((await asUser(phone, 'REGISTER', 'desk', { contact })).response).toMatch(/^SIP\/2.0 200/);
    for (const at of [0, 1, 2]) {
      expect((await dial(at, { to: 'sip:desk' })).status).toBe(202);
      expect(await phone.until(/^INVITE /)).toContain('sip:desk@');
    }
    phone.close();
  });
});
