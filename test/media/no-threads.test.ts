/** The system permits no more threads, by a limit of a container, of a unit of systemd or of a user. */
import { expect, test } from 'bun:test';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native } from '../../src/media/native.ts';
import { NOTICE, NOTICE_WORDS, REPORT_WORDS } from '../../src/media/worker/notice.ts';

/** Makes the process an ordinary user's that may have no more threads, as it may not be held to a limit as root. */
const WITHOUT_THREADS = `
  const { symbols } = dlopen('libc.so.6', { setrlimit: { args: ['int', 'ptr'] }, setresuid: { args: ['u32', 'u32', 'u32'] } });
  const RLIMIT_NPROC = 6;
  symbols.setrlimit(RLIMIT_NPROC, ptr(new BigUint64Array([0n, 0n])));
  if (process.getuid() === 0) symbols.setresuid(65534, 65534, 65534);`;

const PROGRAM = `
  import { dlopen, ptr } from 'bun:ffi';
  import { silentLog } from './src/log.ts';
  import { openWebrtcPort } from './src/media/leg/linked-leg.ts';
  import { native } from './src/media/native.ts';
  const plane = native.planeCreate(30_000);
  native.roomOpen(plane, 1);
  ${WITHOUT_THREADS}
  let webrtc;
  try {
    openWebrtcPort({ host: '127.0.0.1', port: 0, isDefault: false }, 30_000, silentLog);
  } catch (error) {
    webrtc = error.message;
  }
  native.record(plane, 1, 2, process.argv.at(-1), '', 8000, true, false, 50, 100, 500);
  const notices = new Uint32Array(65 * ${NOTICE_WORDS});
  let count = 0;
  for (let ticks = 0; ticks < 500 && count === 0; ticks++) count = native.planeRun(plane, notices);
  const [kind, recording, fault] = notices.slice(${REPORT_WORDS});
  console.log(JSON.stringify({ webrtc, kind, recording, fault }));
  process.exit(0);`;

const CANNOT_OPEN = 1;

test('a recording that no thread would serve fails, and a port of WebRTC is not opened: the process goes on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-no-threads-'));
  chmodSync(folder, 0o777);
  try {
    const child = Bun.spawn([process.execPath, '-e', PROGRAM, join(folder, 'r.wav')], { cwd: join(import.meta.dir, '../..') });
    const [told, status] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    expect(status).toBe(0);
    const { webrtc, ...heard } = JSON.parse(told);
    if (native.webrtcSupported()) expect(webrtc).toContain('(EAGAIN): the system permits no more threads');
    expect(heard).toEqual({ kind: NOTICE.recordingFailed, recording: 2, fault: CANNOT_OPEN });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
