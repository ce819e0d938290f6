/**
 * A process of its own that uploads what waits in a folder, until it is killed: `uploader.ts ENDPOINT PREFIX DATA_DIR
 * PART_BYTES`.
 */
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { createStorage } from '../../src/recording-storage/create.ts';
import { CREDENTIALS } from './bucket.ts';
import { SMALL } from './harness.ts';

const [endpoint = '', prefix = '', dataDir = '', partBytes] = process.argv.slice(2);
const settings = { kind: 's3', bucket: 'calls', prefix, endpoint, ...CREDENTIALS } as const;
const limits = { ...SMALL, partBytes: Number(partBytes) };
await createStorage(settings, { dataDir, clock: systemClock(), log: silentLog, limits });
process.stdin.resume().on('end', () => process.exit());
