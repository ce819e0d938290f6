/** CPU of a WebRTC leg against a plain one, in turns: `npm run bench -- webrtc [LEGS] [ROUNDS]`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-j2', '-C', 'native', '../build/webrtc'], { cwd: root, stdio: 'inherit' }).status !== 0)
  process.exit(1);
process.exit(spawnSync(join(root, 'build/webrtc'), process.argv.slice(2), { stdio: 'inherit' }).status ?? 1);
