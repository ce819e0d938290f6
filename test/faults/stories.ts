/**
 * The stories of a load: what applications do with calls, Rooms, recordings, digits, cards and messages. A call is two
 * Sessions, over the loopback trunk through real SIP and RTP, or a Session and a SIP peer that is written by hand.
 */
import { field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import type { Answered } from '../support/platform.ts';
import { oneOf } from '../support/random.ts';
import type { Client, Tenant } from './client.ts';
import { CutOff, type Heard, type Witness } from './witness.ts';

interface Scene {
  readonly client: Client;
  readonly witness: Witness;
  readonly tenant: Tenant;
  readonly random: () => number;
  /** The URL of a WAV that takes some seconds to play, and of one that is over at once. */
  readonly sounds: { readonly long: string; readonly short: string };
  readonly sipPort: number;
}

/** The two Sessions of a call that is up. */
interface Pair {
  readonly caller: string;
  readonly callee: string;
}

type Story = (scene: Scene) => Promise<void>;
type Act = (scene: Scene, pair: Pair) => Promise<void>;

export const TERMINAL = '1234567';
const CARD = '4111111111111111#';
const CVV = '123#';
const STORY = 'X-Story';

const session = (body: Readonly<Record<string, unknown>>) => [`session ${body.session_uuid}`];
const room = (body: Readonly<Record<string, unknown>>) => [`room ${body.room_id}`];
const operation = (kind: string) => (body: Readonly<Record<string, unknown>>) => [`${kind} ${body.operation_uuid}`];

/** The answer's body, where the command was admitted. A story whose command is refused is over. */
function admitted({ status, body }: Answered): Readonly<Record<string, unknown>> {
  if (status > 299) throw new CutOff(`refused with ${status}`);
  return body;
}

function storyOf({ body }: Heard): unknown {
  const { client_state: state, sip } = body;
  if (typeof state === 'string' && state !== '') return state;
  if (typeof sip !== 'object' || sip === null || !('headers' in sip)) return undefined;
  const { headers } = sip;
  return typeof headers === 'object' && headers !== null && STORY in headers ? headers[STORY] : undefined;
}

/** Waits for an event of a Session. A story whose Session ends instead is over. */
async function told({ witness }: Scene, sessionUuid: string, matches: (heard: Heard) => boolean): Promise<Heard> {
  const heard = await witness.until(sessionUuid, (each) => matches(each) || each.event === 'session.ended');
  if (!matches(heard)) throw new CutOff('the Session has ended');
  return heard;
}
const named =
  (...names: string[]) =>
  ({ event }: Heard) =>
    names.includes(event);
const ofOperation = (operationUuid: unknown) => (heard: Heard) => heard.body.operation_uuid === operationUuid;

/** Dials this platform's own number, and resolves when the call has come in. */
async function ring(scene: Scene, more: object = {}): Promise<Pair> {
  const { client, tenant, witness } = scene;
  const name = crypto.randomUUID();
  using arrival = witness.expect(
    (heard) => storyOf(heard) === name && (heard.event === 'session.created' || heard.event === 'session.ended'),
  );
  const order = { from: tenant.number, to: tenant.number, trunk: 'loop', ring_timeout_sec: 20 };
  const dialled = await client.send(
    tenant,
    'POST',
    '/v1/sessions:dial',
    { ...order, client_state: name, sip_headers: { [STORY]: name }, ...more },
    session,
  );
  const { session_uuid: caller } = admitted(dialled);
  const { event, body } = await arrival.promise;
  if (event !== 'session.created') throw new CutOff('the call did not come in');
  return { caller: String(caller), callee: String(body.session_uuid) };
}

const command = (scene: Scene, uuid: string, path: string, body: unknown = {}, kind?: string) =>
  scene.client.send(scene.tenant, 'POST', `/v1/sessions/${uuid}${path}`, body, kind === undefined ? undefined : operation(kind));

/** A call that is up. */
async function talk(scene: Scene, more?: object): Promise<Pair> {
  const pair = await ring(scene, more);
  admitted(
    await scene.client.send(scene.tenant, 'POST', `/v1/sessions/${pair.callee}/answer`, {}, () =>
      session({ session_uuid: pair.callee }),
    ),
  );
  await told(scene, pair.callee, named('session.answered'));
  await told(scene, pair.caller, named('session.answered'));
  return pair;
}

async function hangUp(scene: Scene, { caller, callee }: Pair): Promise<void> {
  const { client, tenant, witness, random } = scene;
  const who = oneOf(random, [caller, callee]);
  admitted(await client.send(tenant, 'DELETE', `/v1/sessions/${who}`, undefined, () => session({ session_uuid: who })));
  await witness.until(caller, named('session.ended'));
  await witness.until(callee, named('session.ended'));
}

const plays: Act = async (scene, { callee }) => {
  const isLong = scene.random() < 0.5;
  const play = { type: 'files', urls: [isLong ? scene.sounds.long : scene.sounds.short] };
  const { operation_uuid: playing } = admitted(await command(scene, callee, '/playback/play', play, 'playback'));
  if (isLong) {
    await told(scene, callee, (heard) => heard.event === 'playback.started' && ofOperation(playing)(heard));
    await command(scene, callee, '/playback/pause');
    await command(scene, callee, '/playback/resume');
    await command(scene, callee, '/playback/seek', { offset_ms: 500 });
    await command(scene, callee, '/playback/stop');
  }
  await told(scene, callee, (heard) => /^playback\.(ended|failed)$/.test(heard.event) && ofOperation(playing)(heard));
};

const records: Act = async (scene, { callee }) => {
  const { client, tenant, random } = scene;
  const path = `/v1/sessions/${callee}/recordings`;
  const made = await client.send(
    tenant,
    'POST',
    path,
    { direction: 'both', channels: 'mono', include_gaps: random() < 0.5 },
    (body) => [`recording ${body.recording_uuid}`],
  );
  const { recording_uuid: recording } = admitted(made);
  await told(scene, callee, ({ event, body }) => event === 'recording.became_available' && body.recording_uuid === recording);
  await command(scene, callee, `/recordings/${recording}/mask`);
  await command(scene, callee, `/recordings/${recording}/unmask`);
  if (random() < 0.5) return;
  admitted(await command(scene, callee, `/recordings/${recording}/stop`));
  await told(scene, callee, ({ event, body }) => event === 'recording.ended' && body.recording_uuid === recording);
};

const collects: Act = async (scene, { caller, callee }) => {
  const order = { max_digits: 4, first_digit_timeout_ms: 5_000 };
  const { operation_uuid: collecting } = admitted(await command(scene, callee, '/dtmf/collect', order, 'collection'));
  admitted(await command(scene, caller, '/dtmf/send', { digits: '1234', duration_ms: 60, gap_ms: 60 }, 'digits'));
  await told(scene, callee, ofOperation(collecting));
};

const pays: Act = async (scene, { caller, callee }) => {
  const { client, tenant } = scene;
  const references: string[] = [];
  for (const [kind, digits] of [
    ['card', CARD],
    ['cvv', CVV],
  ] as const) {
    const { operation_uuid: collecting } = admitted(await command(scene, callee, `/payment/${kind}/collect`, {}, 'card'));
    admitted(await command(scene, caller, '/dtmf/send', { digits, duration_ms: 40, gap_ms: 40 }, 'digits'));
    const { body } = await told(scene, callee, ofOperation(collecting));
    if (body.status !== 'collected') return;
    references.push(String(body[`${kind}_uuid`]));
  }
  const [card, cvv] = references;
  const charge = { card_uuid: card, cvv_uuid: cvv, exp_month: 12, exp_year: 2099, amount: 1000, currency: 'ils' };
  const order = { ...charge, provider: 'sandbox', terminal_number: TERMINAL };
  admitted(await client.send(tenant, 'POST', `/v1/sessions/${callee}/payment/charges`, order, operation('charge')));
  await told(scene, callee, named('payment.charge.completed'));
};

const meets: Act = async (scene, { caller, callee }) => {
  const { client, tenant, witness, random, sounds } = scene;
  const { room_id: id } = admitted(await client.send(tenant, 'POST', '/api/v1/rooms', {}, room));
  const path = `/api/v1/rooms/${id}`;
  for (const each of [caller, callee]) {
    admitted(await client.send(tenant, 'POST', `${path}/members`, { session_uuid: each }));
    await told(scene, each, named('room.member.joined'));
  }
  await command(scene, caller, '/room/mute');
  await client.send(tenant, 'POST', `${path}/playback/volume`, { volume: Math.floor(random() * 200) });
  const play = { type: 'files', urls: [sounds.long] };
  await client.send(tenant, 'POST', `${path}/playback/play`, play, operation('room_playback'));
  await client.send(tenant, 'POST', `${path}/playback/record`, {}, (body) => [`recording ${body.recording_uuid}`]);
  await command(scene, caller, '/room/unmute');
  await command(scene, callee, '/room/volume', { volume: 50, direction: 'both' }, 'volume');
  await client.send(tenant, 'POST', `${path}/playback/volume`, { volume: Math.floor(random() * 200) });
  if (random() < 0.3) admitted(await client.send(tenant, 'DELETE', `${path}/members/${caller}`, undefined));
  await command(scene, callee, '/dtmf/send', { digits: '1', duration_ms: 40 }, 'digits');
  admitted(await client.send(tenant, 'DELETE', path, undefined, () => [`room_end ${id}`]));
  await witness.until(String(id), named('room.deleted'));
};

/** A call into a Room: its answer is told when it is heard there. */
const joins: Act = async (scene, { caller }) => {
  const { client, tenant, witness } = scene;
  const { room_id: id } = admitted(await client.send(tenant, 'POST', '/api/v1/rooms', {}, room));
  const guest = await talk(scene, { room_id: id });
  await hangUp(scene, guest);
  await command(scene, caller, '/hold');
  await command(scene, caller, '/unhold');
  admitted(await client.send(tenant, 'DELETE', `/api/v1/rooms/${id}`, undefined, () => [`room_end ${id}`]));
  await witness.until(String(id), named('room.deleted'));
};

const ACTS: readonly Act[] = [plays, records, collects, pays, meets, joins];

const call: Story = async (scene) => {
  const pair = await talk(scene);
  await oneOf(scene.random, ACTS)(scene, pair);
  await hangUp(scene, pair);
};

/** A call that is never answered: refused by its callee, cancelled by its caller, or hung up on while it rings. */
const refusal: Story = async (scene) => {
  const { caller, callee } = await ring(scene);
  const way = Math.floor(scene.random() * 3);
  if (way === 0) await command(scene, callee, '/reject', { reason: 'busy' });
  else if (way === 1) await command(scene, caller, '/cancel');
  else await scene.client.send(scene.tenant, 'DELETE', `/v1/sessions/${callee}`, undefined);
  await scene.witness.until(caller, named('session.ended'));
  await scene.witness.until(callee, named('session.ended'));
};

const message: Story = async ({ client, tenant, witness }) => {
  const order = { from: tenant.number, to: '+15550199', text: crypto.randomUUID() };
  const sent = await client.send(tenant, 'POST', '/v1/messages', order, (body) => [`message ${body.message_uuid}`]);
  const { message_uuid: uuid } = admitted(sent);
  await witness.until(String(uuid), ({ body }) => body.status === 'delivered');
};

/** A SIP peer calls and hangs up, before the answer or after it. */
const stranger: Story = async (scene) => {
  const { witness, tenant, random, sipPort } = scene;
  const name = crypto.randomUUID();
  const peer = await RawPeer.udp(sipPort);
  try {
    using arrival = witness.expect((heard) => heard.event === 'session.created' && storyOf(heard) === name);
    const parts = { id: name, number: tenant.number, fields: `${STORY}: ${name}\r\n` };
    const invite = peer.request('INVITE', { ...parts, body: sdp('m=audio 9 RTP/AVP 0') });
    peer.send(invite);
    const callee = String((await arrival.promise).body.session_uuid);
    if (random() < 0.3) {
      peer.send(
        invite
          .replace(/^INVITE/, 'CANCEL')
          .replace('1 INVITE', '1 CANCEL')
          .replace(/Content-[\s\S]*$/, 'Content-Length: 0\r\n\r\n'),
      );
    } else {
      admitted(await command(scene, callee, '/answer'));
      await told(scene, callee, named('session.answered'));
      const to = field(peer.heard.find((text) => text.startsWith('SIP/2.0 200')) ?? '', 'To');
      peer.send(peer.request('ACK', { ...parts, to }));
      peer.send(peer.request('BYE', { ...parts, to, cseq: 2 }));
    }
    await witness.until(callee, named('session.ended'));
  } finally {
    peer.close();
  }
};

/** Every story, as often as it should be told among the others. */
export const STORIES: readonly Story[] = [call, call, call, call, call, refusal, message, message, stranger];
