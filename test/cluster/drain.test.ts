/** Nodes that are drained, taken into use again and restarted; work that one node of all does. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { Smsc } from '../provider/smsc.ts';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { eventually, natsInstalled, TestCluster, type TestNode } from './harness.ts';

/** A registrar that accepts or refuses every REGISTER, and tells the Contact of each. */
async function registrar(status = '200 OK') {
  const socket = createSocket('udp4');
  const contacts: { readonly contact: string; readonly expires: string; readonly at: number }[] = [];
  socket.on('message', (bytes, from) => {
    const text = bytes.toString();
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)\\r$`, 'im').exec(text)?.[1] ?? '';
    if (text.startsWith('REGISTER'))
      contacts.push({ contact: field('contact'), expires: field('expires'), at: performance.now() });
    const lines = ['via', 'from', 'call-id', 'cseq'].map((name) => `${name}: ${field(name)}\r\n`);
    const answer = `SIP/2.0 ${status}\r\n${lines.join('')}to: ${field('to')};tag=r\r\ncontact: ${field('contact')};expires=300\r\ncontent-length: 0\r\n\r\n`;
    socket.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { contacts, port: socket.address().port, close: () => socket.close() };
}

describe.skipIf(!natsInstalled || !sippInstalled)('a node', () => {
  let cluster: TestCluster;
  let app: Credentials;
  let smsc: Smsc;
  const receiver = new Receiver();
  const running: LiveCalls[] = [];

  const node = (at: number): TestNode => cluster.node(at);
  type Listed = {
    node_id: string;
    http_port: number;
    draining_at: string;
    dead_at: string;
    suspect: boolean;
    load: { load: number };
    settings_apart: string[];
  };
  const nodes = async (at: number): Promise<Listed[]> =>
    JSON.parse(JSON.stringify((await node(at).platform.operator('GET', '/nodes')).body.nodes));
  const idOf = async (at: number): Promise<string> => {
    const { port } = new URL(node(at).platform.url);
    return (await nodes(at)).find(({ http_port, dead_at }) => http_port === Number(port) && dead_at === '')?.node_id ?? '';
  };
  /** Asks as a client does that is told to come again: a node whose beats are late is not used for a while. */
  const ask = async (at: number, method: string, path: string, body?: unknown) => {
    const request = () => node(at).platform.api(app, method, path, body);
    let answer = await request();
    await eventually(async () => {
      if (answer.status === 503) answer = await request();
      return answer.status !== 503;
    }, 'the other node');
    return answer;
  };
  const ended = (sessions: readonly string[]) => sessions.filter((each) => receiver.names(each).includes('session.ended'));

  beforeAll(async () => {
    smsc = await Smsc.open();
    smsc.permitsOneBind = true;
    const times = { WEBHOOK_RETRY_SCALE: '0.1', SHUTDOWN_GRACE_SEC: '20', NODE_BURIAL_SEC: '8' };
    cluster = await TestCluster.start(1, { ...times, SMS_PROVIDER: `smpp://user:secret@127.0.0.1:${smsc.port}` });
    await cluster.add({ CALL_HISTORY_DAYS: '7' });
    app = await cluster.application(receiver, '+15550002');
  }, 60_000);

  afterAll(async () => {
    for (const each of running) each.sipp.stop();
    await cluster?.stop();
    await smsc?.close();
    await receiver.stop();
  });

  test('is listed with its address, its load and its state', async () => {
    // A node whose beats are late, as beside much other work, is suspect for a while.
    await eventually(async () => (await nodes(1)).every(({ suspect }) => !suspect), 'beats of both nodes');
    const listed = await nodes(1);
    expect(listed).toHaveLength(2);
    expect(listed[0]).toMatchObject({ http_host: '127.0.0.1', labels: [], draining_at: '', dead_at: '', suspect: false });
    const metrics = await (await fetch(`${node(0).platform.url}/metrics`)).text();
    const load = Number(/^sidetone_node_load ([0-9.e-]+)$/m.exec(metrics)?.[1]);
    expect([load >= 0, listed[0]?.load.load]).toEqual([true, expect.any(Number)]);
    expect((await node(0).platform.operator('POST', `/nodes/${crypto.randomUUID()}/drain`, {})).status).toBe(404);
  });

  test('that drains takes no new call, serves those that it has, and is in use again when it is told so', async () => {
    const calls = await callsTo(node(0).platform, app, receiver, 3);
    running.push(calls);
    // Ordered at the other node.
    const order = await node(1).platform.operator('POST', `/nodes/${await idOf(0)}/drain`, {});
    expect([order.status, order.body.status]).toEqual([202, 'draining']);
    await eventually(async () => (await nodes(0)).some(({ draining_at }) => draining_at !== ''), 'the drain');
    await eventually(async () => {
      const refused = await sipp({ scenario: 'caller-is-refused', to: node(0).platform.sipUdp, status: '503', timeoutSec: 5 });
      return await refused.done;
    }, 'the refusal of a call');
    const [first = '', ...rest] = calls.sessions;
    expect((await ask(1, 'DELETE', `/v1/sessions/${first}`)).status).toBe(202);
    await receiver.event('session.ended', first);
    expect(ended(rest)).toEqual([]);
    // What would be made on it is made on the other one.
    const made = await ask(0, 'POST', '/api/v1/rooms', {});
    expect(made.status).toBe(201);
    expect((await ask(1, 'DELETE', `/api/v1/rooms/${made.body.room_id}`)).status).toBe(202);

    expect((await node(1).platform.operator('POST', `/nodes/${await idOf(0)}/undrain`, {})).status).toBe(202);
    await eventually(async () => (await nodes(0)).every(({ draining_at }) => draining_at === ''), 'the end of the drain');
    await Bun.sleep(1_100);
    running.push(await callsTo(node(0).platform, app, receiver, 1));
    expect(ended(rest)).toEqual([]);
  }, 60_000);

  test('that drains leaves the one bind that an SMSC permits to another node', async () => {
    const send = async (text: string) => {
      const before = smsc.submissions.length;
      const sent = await node(0).platform.api(app, 'POST', '/v1/messages', { from: '+15550002', to: '+972500000001', text });
      expect(sent.status).toBe(202);
      await smsc.until(() => smsc.submissions.length > before, `"${text}"`);
    };
    const order = async (at: number, what: 'drain' | 'undrain') =>
      expect((await node(0).platform.operator('POST', `/nodes/${await idOf(at)}/${what}`, {})).status).toBe(202);
    await send('at first');
    for (const at of [0, 1]) await order(at, 'drain');
    await smsc.until(() => smsc.bound === 0, 'the unbind of the last');
    const { unbinds } = smsc;
    await order(1, 'undrain');
    await send('by node 1');
    await order(0, 'undrain');
    await order(1, 'drain');
    await smsc.until(() => smsc.unbinds > unbinds, 'the unbind of node 1');
    await send('by node 0');
    await order(1, 'undrain');
  }, 60_000);

  test('that drains with a deadline ends what is left by then', async () => {
    const sessions = running.flatMap((each) => each.sessions).filter((each) => ended([each]).length === 0);
    expect(sessions).toHaveLength(3);
    // The second order has another deadline than the first.
    for (const order of [{}, { deadline_sec: 1 }])
      expect((await node(0).platform.operator('POST', `/nodes/${await idOf(0)}/drain`, order)).status).toBe(202);
    await receiver.until(() => ended(sessions).length === 3, 'the ends');
    for (const each of sessions) expect(receiver.of(each).at(-1)?.body).toMatchObject({ hangup_by: 'system' });
    await node(0).platform.operator('POST', `/nodes/${await idOf(0)}/undrain`, {});
  }, 30_000);

  test('is restarted without an end by the system: it waits for its calls, and exits 0', async () => {
    const calls = await callsTo(node(0).platform, app, receiver, 2);
    running.push(calls);
    const before = await idOf(0);
    node(0).platform.signal('SIGTERM');
    const exit = node(0).platform.ended();
    await eventually(async () => (await nodes(1)).find(({ node_id }) => node_id === before)?.draining_at !== '', 'the drain');
    expect(ended(calls.sessions)).toEqual([]);
    for (const each of calls.sessions)
      expect((await node(1).platform.api(app, 'DELETE', `/v1/sessions/${each}`)).status).toBe(202);
    expect(await exit).toBe(0);
    for (const each of calls.sessions) {
      expect(receiver.of(each).at(-1)?.body).toMatchObject({ event: 'session.ended', answered: true });
      expect(receiver.of(each).at(-1)?.body.hangup_by).not.toBe('system');
    }
    expect((await nodes(1)).find(({ node_id }) => node_id === before)?.dead_at).not.toBe('');
    await node(0).platform.start();
    expect((await nodes(1)).filter(({ dead_at }) => dead_at === '')).toHaveLength(2);
  }, 60_000);

  test('that has another value of a setting is named by the others, with the setting', async () => {
    const told = async () => (await nodes(1)).filter(({ dead_at }) => dead_at === '').map((each) => each.settings_apart);
    await eventually(async () => JSON.stringify(await told()).includes('CALL_HISTORY_DAYS'), 'the comparison');
    expect((await told()).toSorted()).toEqual([[], ['CALL_HISTORY_DAYS']]);
    expect(node(1).platform.output).toContain('"settings":"CALL_HISTORY_DAYS"');
  }, 30_000);

  test('that registers a trunk does so at once when it is set again as it was, at any node, after a refusal', async () => {
    const { contacts, port, close } = await registrar('403 Forbidden');
    const trunk = { uri: `sip:127.0.0.1:${port}`, inbound_cidrs: [], username: 'u', password: 'p', register: true };
    const refused = async () => {
      const read = await Promise.all([0, 1].map((at) => node(at).platform.operator('GET', '/trunks/refused')));
      return read.some(({ body }) => JSON.stringify(body).includes('"register_sip_status":403'));
    };
    for (const [at, count] of [
      [0, 1],
      [0, 2],
      [1, 3],
    ] as const) {
      expect((await node(at).platform.operator('PUT', '/trunks/refused', trunk)).status).toBe(204);
      await eventually(() => contacts.length === count, `REGISTER number ${count}`);
      await eventually(refused, 'the refusal');
    }
    expect((await node(0).platform.operator('DELETE', '/trunks/refused')).status).toBe(204);
    close();
  });

  test('registers a trunk alone, and another one takes over when it is killed', async () => {
    const { contacts, port, close } = await registrar();
    const trunk = { uri: `sip:127.0.0.1:${port}`, inbound_cidrs: [], username: 'u', password: 'p', register: true };
    expect((await node(0).platform.operator('PUT', '/trunks/registered', trunk)).status).toBe(204);
    await eventually(() => contacts.length > 0, 'a REGISTER');
    await Bun.sleep(2_500);
    const first = contacts[0]?.contact;
    expect(new Set(contacts.map(({ contact }) => contact))).toEqual(new Set([first ?? '']));
    // Each node tells that the trunk is registered, whichever has done it.
    for (const at of [0, 1])
      await eventually(async () => {
        const { body } = await node(at).platform.operator('GET', '/trunks/registered');
        const { status }: { status: { registered: boolean; registered_until: string } } = JSON.parse(JSON.stringify(body));
        return status.registered && Date.parse(status.registered_until) > Date.now();
      }, `the registration at node ${at}`);
    const holder = [0, 1].find((at) => first?.includes(node(at).platform.sipUdp.split(':')[1] ?? 'none')) ?? 0;
    await node(holder).platform.kill();
    const killedAt = performance.now();
    await eventually(() => contacts.some(({ contact }) => contact !== first), 'another REGISTER');
    expect((contacts.find(({ contact }) => contact !== first)?.at ?? 0) - killedAt).toBeLessThan(9_000);
    expect((await node(1 - holder).platform.operator('DELETE', '/trunks/registered')).status).toBe(204);
    close();
  }, 60_000);
});
