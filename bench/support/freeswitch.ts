/**
 * FreeSWITCH's mod_conference with SIP calls in conferences of ten, as a side of a comparison. It is built from a
 * source tree, with what a conference needs; SIPp places the calls.
 */
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, type Sipp, sipp } from '../../test/support/sipp.ts';
import { boundPorts, type Side } from './legs.ts';
import { builtFrom } from './source-tree.ts';

const ROOM = 10;
const START_MS = 30_000;
/** Calls are refused for some tenths of a second after OPTIONS are answered with 200. */
const SETTLED_MS = 2_000;
const MODULES = [
  ...['applications/mod_conference', 'applications/mod_dptools', 'dialplans/mod_dialplan_xml', 'endpoints/mod_sofia'],
  ...['loggers/mod_console', 'timers/mod_timerfd'],
];

/**
 * Builds FreeSWITCH from its source tree. It needs spandsp 3 and sofia-sip 1.13.17, newer than Debian's: where they are
 * elsewhere `PKG_CONFIG_PATH` and `LD_LIBRARY_PATH` name their folders.
 */
const buildFreeswitch = (tree: string): string =>
  builtFrom('freeswitch', tree, [
    'test -x configure || ./bootstrap.sh -j',
    `printf '%s\\n' ${MODULES.join(' ')} > modules.conf`,
    './configure --prefix="$PREFIX" --disable-core-odbc-support --disable-core-pgsql-support --disable-libvpx --disable-libyuv',
    'make -j"$JOBS"',
    'make install',
  ]);

const param = (name: string, value: string | number) => `<param name="${name}" value="${value}"/>`;

/** The whole configuration: every call to digits joins the conference of that number. */
const configuration = (sipPort: number, legs: number, firstPort: number): string => `<document type="freeswitch/xml">
<section name="configuration">
<configuration name="modules.conf"><modules>
${MODULES.map((each) => `<load module="${each.split('/')[1]}"/>`).join('\n')}
</modules></configuration>
<configuration name="switch.conf"><settings>
${param('sessions-per-second', 1_000)}${param('max-sessions', 2 * legs)}${param('loglevel', 'err')}
${param('rtp-start-port', firstPort)}${param('rtp-end-port', firstPort + 2 * legs)}
</settings></configuration>
<configuration name="sofia.conf"><profiles><profile name="bench"><settings>
${param('sip-ip', '127.0.0.1')}${param('rtp-ip', '127.0.0.1')}${param('sip-port', sipPort)}
${param('auth-calls', 'false')}${param('context', 'default')}${param('dialplan', 'XML')}${param('inbound-codec-prefs', 'PCMU')}
</settings></profile></profiles></configuration>
<configuration name="conference.conf"><profiles><profile name="default">
${param('rate', 8_000)}${param('interval', 20)}${param('energy-level', 0)}
</profile></profiles></configuration>
</section>
<section name="dialplan"><context name="default"><extension name="conference">
<condition field="destination_number" expression="^(\\d+)$">
<action application="answer"/><action application="conference" data="$1@default"/>
</condition></extension></context></section>
</document>
`;

/** Whether OPTIONS are answered with 200: while it starts they, and calls, are refused with 503. */
async function takesCalls(sipPort: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    const { port } = socket.address();
    const token = crypto.randomUUID();
    const answer = new Promise<string>((resolve) => socket.once('message', (bytes) => resolve(bytes.toString('latin1'))));
    socket.send(
      [
        `OPTIONS sip:127.0.0.1:${sipPort} SIP/2.0`,
        `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bK${token}`,
        `From: <sip:bench@127.0.0.1>;tag=${token}`,
        `To: <sip:127.0.0.1:${sipPort}>`,
        `Call-ID: ${token}`,
        'CSeq: 1 OPTIONS',
        'Max-Forwards: 70',
        'Content-Length: 0',
        '\r\n',
      ].join('\r\n'),
      sipPort,
      '127.0.0.1',
    );
    return (await Promise.race([answer, Bun.sleep(1_000).then(() => '')])).startsWith('SIP/2.0 200');
  } finally {
    socket.close();
  }
}

/** Starts FreeSWITCH with so many talking calls, PCMU at 8 kHz, which send to `peerPort`. */
export async function freeswitch(tree: string, legs: number, firstPort: number, peerPort: number): Promise<Side> {
  const prefix = buildFreeswitch(tree);
  const folder = mkdtempSync(join(tmpdir(), 'freeswitch-'));
  const own = ['db', 'log', 'run'].map((name) => join(folder, name));
  for (const each of own) mkdirSync(each);
  const [db = '', log = '', run = ''] = own;
  const sipPort = await freePort();
  writeFileSync(join(folder, 'freeswitch.xml'), configuration(sipPort, legs, firstPort));
  const child = Bun.spawn(
    [join(prefix, 'bin/freeswitch'), '-nonat', '-nf', '-nc', '-conf', folder, '-db', db, '-log', log, '-run', run],
    { stdout: 'ignore', stderr: 'ignore' },
  );
  const callers: Sipp[] = [];
  const stop = async () => {
    for (const caller of callers) caller.stop();
    child.kill('SIGKILL');
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const end = performance.now() + START_MS; !(await takesCalls(sipPort)); await Bun.sleep(200))
      if (performance.now() > end) throw new Error(`FreeSWITCH did not start within ${START_MS / 1000} s`);
    await Bun.sleep(SETTLED_MS);
    for (let at = 0; at < legs; at += ROOM)
      callers.push(
        await sipp({
          scenario: 'caller-waits',
          to: `127.0.0.1:${sipPort}`,
          number: `${1_000 + at / ROOM}`,
          calls: Math.min(ROOM, legs - at),
          rate: ROOM,
          timeoutSec: 3_600,
          keys: { rtp_port: `${peerPort}` },
        }),
      );
    const ports = await boundPorts(legs, firstPort);
    return { name: 'FreeSWITCH', pid: child.pid, ports, peerPort, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
