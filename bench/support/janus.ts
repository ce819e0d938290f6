/** Janus AudioBridge (Debian's `janus`) with participants of plain RTP in rooms of ten, as a side of a comparison. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Side } from './legs.ts';

const ROOM = 10;
const START_MS = 15_000;

/** The folder of its plugins and transports, or undefined where it is not installed. */
function libraries(): string | undefined {
  const listed = spawnSync('dpkg', ['-L', 'janus'], { encoding: 'utf8' });
  const plugin = listed.stdout?.split('\n').find((line) => line.endsWith('libjanus_audiobridge.so'));
  return plugin === undefined || !existsSync(plugin) ? undefined : dirname(dirname(plugin));
}

export const janusInstalled = libraries() !== undefined;

/** Starts Janus with so many talking participants, PCMU at 8 kHz, which send to `peerPort`. */
export async function janus(legs: number, firstPort: number, httpPort: number, peerPort: number): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), 'janus-'));
  const lib = libraries();
  if (lib === undefined) throw new Error('janus is not installed (Debian: apt-get install janus)');
  const config = (name: string, text: string) => writeFileSync(join(folder, `${name}.jcfg`), text);
  config(
    'janus',
    `general: { configs_folder = "${folder}" plugins_folder = "${lib}/plugins" transports_folder = "${lib}/transports" session_timeout = 0 debug_level = 2 }
nat: { ice_lite = true ice_enforce_list = "lo" }
plugins: { disable = "libjanus_duktape.so,libjanus_echotest.so,libjanus_lua.so,libjanus_nosip.so,libjanus_recordplay.so,libjanus_sip.so,libjanus_streaming.so,libjanus_textroom.so,libjanus_videocall.so,libjanus_videoroom.so,libjanus_voicemail.so" }
transports: { disable = "libjanus_mqtt.so,libjanus_nanomsg.so,libjanus_pfunix.so,libjanus_rabbitmq.so,libjanus_websockets.so" }
`,
  );
  config('janus.transport.http', `general: { http = true port = ${httpPort} ip = "127.0.0.1" https = false json = "compact" }\n`);
  config(
    'janus.plugin.audiobridge',
    `general: { local_ip = "127.0.0.1" rtp_port_range = "${firstPort}-${firstPort + 8 * legs}" }\n`,
  );
  const child = Bun.spawn(['janus', '-F', folder], { stdout: 'ignore', stderr: 'ignore' });
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return {
      name: 'Janus',
      pid: child.pid,
      ports: await participants(`http://127.0.0.1:${httpPort}/janus`, legs, peerPort),
      peerPort,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Reply {
  readonly data?: { readonly id: number };
  readonly plugindata?: { readonly data: { readonly rtp?: { readonly port: number }; readonly error?: string } };
}

async function participants(url: string, legs: number, peerPort: number): Promise<readonly number[]> {
  const post = async (path: string, body: Record<string, unknown>): Promise<Reply> => {
    const response = await fetch(url + path, {
      method: 'POST',
      body: JSON.stringify({ transaction: crypto.randomUUID(), ...body }),
    });
    return response.json() as Promise<Reply>;
  };
  const until = performance.now() + START_MS;
  let session: Reply | undefined;
  while (session === undefined) {
    session = await post('', { janus: 'create' }).catch(() => undefined);
    if (session === undefined && performance.now() > until) throw new Error('Janus did not start');
    if (session === undefined) await Bun.sleep(100);
  }
  const path = `/${session.data?.id}`;
  const ports: number[] = [];
  for (let at = 0; at < legs; at += 1) {
    const handle = await post(path, { janus: 'attach', plugin: 'janus.plugin.audiobridge' });
    const say = (body: Record<string, unknown>) => post(`${path}/${handle.data?.id}`, { janus: 'message', body });
    const room = 1_000 + Math.floor(at / ROOM);
    if (at % ROOM === 0)
      await say({ request: 'create', room, sampling_rate: 8_000, allow_rtp_participants: true, audiolevel_event: false });
    await say({ request: 'join', room, codec: 'pcmu', rtp: { ip: '127.0.0.1', port: peerPort, payload_type: 0 } });
    // What came of it is an event of the session.
    const joined: number | undefined = await event(`${url}${path}`);
    if (joined === undefined) throw new Error('Janus lets no participant of plain RTP in');
    ports.push(joined);
  }
  return ports;
}

/** The RTP port that the next event about a participant names. */
async function event(session: string): Promise<number | undefined> {
  const until = performance.now() + START_MS;
  while (performance.now() < until) {
    const said = (await (await fetch(`${session}?maxev=1`)).json()) as Reply | readonly Reply[];
    const reply = Array.isArray(said) ? said[0] : said;
    const port = reply?.plugindata?.data.rtp?.port;
    if (port !== undefined) return port;
    if (reply?.plugindata?.data.error !== undefined) throw new Error(`Janus: ${reply.plugindata.data.error}`);
  }
  return undefined;
}
