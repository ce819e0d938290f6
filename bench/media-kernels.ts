/** ns a sample of the native kernels beside plain tables in the same run: `npm run bench -- media-kernels`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-C', 'native', 'bench'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
process.exit(spawnSync(join(root, 'build/kernels'), { stdio: 'inherit' }).status ?? 1);
