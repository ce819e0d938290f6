/** µs a packet that encryption costs, in each suite: `npm run bench -- media-srtp`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-C', 'native', '../build/srtp'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
process.exit(spawnSync(join(root, 'build/srtp'), { stdio: 'inherit' }).status ?? 1);
