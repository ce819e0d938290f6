/** The resampler beside the libraries whose headers are installed: `npm run bench -- media-resamplers`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-C', 'native', 'bench'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
process.exit(spawnSync(join(root, 'build/resamplers'), { stdio: 'inherit' }).status ?? 1);
