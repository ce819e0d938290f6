/**
 * Asterisk's ConfBridge with channels of plain RTP in conferences of ten, as a side of a comparison. It is built from a
 * source tree, with what a conference needs and no SIP: its own command line makes the channels.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundPorts, type Side } from './legs.ts';
import { builtFrom } from './source-tree.ts';

const ROOM = 10;
const START_MS = 30_000;
/** Between two channels: it died of a hundred that were made as fast as its command line takes them. */
const PACE_MS = 50;
const MODULES = [
  ...['app_confbridge', 'bridge_simple', 'bridge_softmix', 'chan_rtp', 'codec_resample', 'codec_ulaw'],
  ...['res_clioriginate', 'res_rtp_asterisk', 'res_rtp_multicast', 'res_timing_timerfd'],
  ...['res_sorcery_astdb', 'res_sorcery_config', 'res_sorcery_memory'],
];

/**
 * Builds Asterisk from its source tree. Debian's packages for it: libedit-dev libjansson-dev libsqlite3-dev libxml2-dev
 * uuid-dev.
 */
const buildAsterisk = (tree: string): string =>
  builtFrom('asterisk', tree, [
    './configure --prefix="$PREFIX" --without-pjproject --without-pjproject-bundled --disable-xmldoc',
    `make menuselect.makeopts && menuselect/menuselect --disable-all ${MODULES.map((each) => `--enable ${each}`).join(' ')} menuselect.makeopts`,
    'make -j"$JOBS"',
    'make install',
  ]);

/** Writes the configuration. Returns the path of its first file. */
function configure(folder: string, prefix: string, legs: number, firstPort: number): string {
  const file = (name: string, lines: readonly string[]) => writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
  const own = ['dbdir', 'keydir', 'datadir', 'varlibdir', 'spooldir', 'rundir', 'logdir', 'agidir'];
  for (const each of own) mkdirSync(join(folder, each));
  file('asterisk.conf', [
    '[directories]',
    `astetcdir => ${folder}`,
    `astmoddir => ${prefix}/lib/asterisk/modules`,
    ...own.map((each) => `ast${each} => ${join(folder, each)}`),
    '[options]',
    `maxcalls = ${2 * legs}`,
  ]);
  file('modules.conf', ['[modules]', 'autoload = yes']);
  file('rtp.conf', ['[general]', `rtpstart = ${firstPort}`, `rtpend = ${firstPort + 2 * legs - 1}`, 'icesupport = no']);
  file('confbridge.conf', ['[general]', '[bridge]', 'type = bridge', '[user]', 'type = user', 'quiet = yes']);
  file('logger.conf', ['[general]', '[logfiles]', 'messages = error']);
  return join(folder, 'asterisk.conf');
}

/** Starts Asterisk with so many talking channels, PCMU at 8 kHz, which send to `peerPort`. */
export async function asterisk(tree: string, legs: number, firstPort: number, peerPort: number): Promise<Side> {
  const prefix = buildAsterisk(tree);
  const folder = mkdtempSync(join(tmpdir(), 'asterisk-'));
  const config = configure(folder, prefix, legs, firstPort);
  const program = join(prefix, 'sbin/asterisk');
  const child = Bun.spawn([program, '-f', '-C', config], { stdout: 'ignore', stderr: 'ignore' });
  const stop = async () => {
    child.kill('SIGKILL');
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const command = (line: string) => spawnSync(program, ['-C', config, '-rx', line], { encoding: 'utf8' }).stdout;
  try {
    for (
      const end = performance.now() + START_MS;
      !command('core waitfullybooted').includes('fully booted');
      await Bun.sleep(100)
    )
      if (performance.now() > end) throw new Error(`Asterisk did not start within ${START_MS / 1000} s`);
    for (let at = 0; at < legs; at += 1) {
      const room = 1_000 + Math.floor(at / ROOM);
      command(`channel originate UnicastRTP/127.0.0.1:${peerPort}/c(ulaw) application ConfBridge ${room},bridge,user`);
      await Bun.sleep(PACE_MS);
    }
    const ports = await boundPorts(legs, firstPort);
    return { name: 'Asterisk', pid: child.pid, ports, peerPort, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
