/** Hours of calls between drifting clocks over bad networks, on virtual time: `npm run bench -- media-drift`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-C', 'native', 'bench'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
process.exit(spawnSync(join(root, 'build/drift'), { stdio: 'inherit' }).status ?? 1);
