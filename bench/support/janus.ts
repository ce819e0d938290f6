/**
 * Janus AudioBridge (Debian's `janus`) with participants in rooms of ten, as a side of a comparison: of plain RTP, or
 * peers of WebRTC.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { WebrtcPeer } from '../../test/support/webrtc-peer.ts';
import type { Side } from './legs.ts';
import type { WebrtcSide } from './webrtc-legs.ts';

const ROOM = 10;
const START_MS = 15_000;

/** The folder of its plugins and transports, or undefined where it is not installed. */
function libraries(): string | undefined {
  const listed = spawnSync('dpkg', ['-L', 'janus'], { encoding: 'utf8' });
  const plugin = listed.stdout?.split('\n').find((line) => line.endsWith('libjanus_audiobridge.so'));
  return plugin === undefined || !existsSync(plugin) ? undefined : dirname(dirname(plugin));
}

export const janusInstalled = (): boolean => libraries() !== undefined;

/** Installs Debian's package. Throws where that fails, as without the rights for it. */
export function installJanus(): void {
  console.log('installing janus: apt-get install --yes --no-install-recommends janus');
  const command = ['install', '--yes', '--no-install-recommends', 'janus'];
  const { status, stderr, error } = spawnSync('apt-get', command, {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0 || !janusInstalled()) throw new Error(`janus was not installed: ${error?.message ?? stderr.slice(-1_000)}`);
}

interface Reply {
  readonly data?: { readonly id: number };
  readonly jsep?: { readonly sdp: string };
  readonly plugindata?: {
    readonly data: { readonly audiobridge?: string; readonly rtp?: { readonly port: number }; readonly error?: string };
  };
}

interface Running {
  readonly pid: number;
  readonly session: Session;
  stop(): Promise<void>;
}

/** Starts Janus with plain participants in `rtpPorts`, and opens a session. */
async function start(httpPort: number, rtpPorts: string): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'janus-'));
  const lib = libraries();
  if (lib === undefined) throw new Error('janus is not installed (Debian: apt-get install janus)');
  const config = (name: string, text: string) => writeFileSync(join(folder, `${name}.jcfg`), text);
  config(
    'janus',
    `general: { configs_folder = "${folder}" plugins_folder = "${lib}/plugins" transports_folder = "${lib}/transports" session_timeout = 0 debug_level = 2 }
nat: { ice_lite = true }
plugins: { disable = "libjanus_duktape.so,libjanus_echotest.so,libjanus_lua.so,libjanus_nosip.so,libjanus_recordplay.so,libjanus_sip.so,libjanus_streaming.so,libjanus_textroom.so,libjanus_videocall.so,libjanus_videoroom.so,libjanus_voicemail.so" }
transports: { disable = "libjanus_mqtt.so,libjanus_nanomsg.so,libjanus_pfunix.so,libjanus_rabbitmq.so,libjanus_websockets.so" }
`,
  );
  config('janus.transport.http', `general: { http = true port = ${httpPort} ip = "127.0.0.1" https = false json = "compact" }\n`);
  config('janus.plugin.audiobridge', `general: { local_ip = "127.0.0.1" rtp_port_range = "${rtpPorts}" }\n`);
  const child = Bun.spawn(['janus', '-F', folder], { stdout: 'ignore', stderr: 'ignore' });
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { pid: child.pid, session: await Session.open(`http://127.0.0.1:${httpPort}/janus`), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A session of Janus's HTTP API. */
class Session {
  readonly #url: string;

  private constructor(url: string) {
    this.#url = url;
  }

  static async open(url: string): Promise<Session> {
    const until = performance.now() + START_MS;
    for (;;) {
      const made = await post(url, { janus: 'create' }).catch(() => undefined);
      if (made?.data !== undefined) return new Session(`${url}/${made.data.id}`);
      if (performance.now() > until) throw new Error('Janus did not start');
      await Bun.sleep(100);
    }
  }

  /** A handle of the AudioBridge, as what is sent to it. Every tenth one makes the room that it is to join. */
  async participant(at: number): Promise<{
    readonly room: number;
    say(body: Record<string, unknown>, more?: Record<string, unknown>): Promise<Reply>;
  }> {
    const handle = await post(this.#url, { janus: 'attach', plugin: 'janus.plugin.audiobridge' });
    const say = (body: Record<string, unknown>, more: Record<string, unknown> = {}) =>
      post(`${this.#url}/${handle.data?.id}`, { janus: 'message', body, ...more });
    const room = 1_000 + Math.floor(at / ROOM);
    if (at % ROOM === 0)
      await say({ request: 'create', room, sampling_rate: 8_000, allow_rtp_participants: true, audiolevel_event: false });
    return { room, say };
  }

  /** What came of a request is an event of the session: the next one of which `read` makes something. */
  async event<T>(read: (reply: Reply) => T | undefined): Promise<T> {
    const until = performance.now() + START_MS;
    while (performance.now() < until) {
      const said = (await (await fetch(`${this.#url}?maxev=1`)).json()) as Reply | readonly Reply[];
      const reply: Reply = Array.isArray(said) ? said[0] : said;
      const found = read(reply);
      if (found !== undefined) return found;
      if (reply.plugindata?.data.error !== undefined) throw new Error(`Janus: ${reply.plugindata.data.error}`);
    }
    throw new Error('Janus tells nothing of what was asked for');
  }
}

async function post(url: string, body: Record<string, unknown>): Promise<Reply> {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ transaction: crypto.randomUUID(), ...body }),
  });
  return response.json() as Promise<Reply>;
}

/** Starts Janus with so many talking participants, PCMU at 8 kHz, which send to `peerPort`. */
export async function janus(legs: number, firstPort: number, httpPort: number, peerPort: number): Promise<Side> {
  const { pid, session, stop } = await start(httpPort, `${firstPort}-${firstPort + 8 * legs}`);
  const ports: number[] = [];
  try {
    for (let at = 0; at < legs; at += 1) {
      const { room, say } = await session.participant(at);
      await say({ request: 'join', room, codec: 'pcmu', rtp: { ip: '127.0.0.1', port: peerPort, payload_type: 0 } });
      ports.push(await session.event((reply) => reply.plugindata?.data.rtp?.port));
    }
    return { name: 'Janus', pid, ports, peerPort, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts Janus with so many WebRTC peers at an address of this machine, PCMU at 8 kHz. */
export async function janusWebrtc(legs: number, httpPort: number, address: string): Promise<WebrtcSide> {
  const { pid, session, stop: stopJanus } = await start(httpPort, '20000-20100');
  const peers: WebrtcPeer[] = [];
  const stop = async () => {
    for (const peer of peers) peer.close();
    await stopJanus();
  };
  try {
    for (let at = 0; at < legs; at += 1) {
      const { room, say } = await session.participant(at);
      await say({ request: 'join', room, codec: 'pcmu' });
      await session.event((reply) => (reply.plugindata?.data.audiobridge === 'joined' ? true : undefined));
      const signal = async (sdp: string) => {
        await say({ request: 'configure', muted: false }, { jsep: { type: 'offer', sdp } });
        return await session.event((reply) => reply.jsep?.sdp);
      };
      const peer = await WebrtcPeer.meet(signal, { address });
      peers.push(peer);
      await peer.connected();
    }
    return { name: 'Janus', pid, peers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
