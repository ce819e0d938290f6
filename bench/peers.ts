/**
 * CPU of a leg in the whole product, in the bare reflector and in Janus AudioBridge, all talking in rooms of ten, in
 * interleaved rounds of one run. Janus is Debian's `janus`; without it only the first two are measured.
 *
 *   npm run bench -- peers [LEGS] [ROUNDS] [SECONDS]      100 legs, 3 rounds of 4 s
 */
import { janus, janusInstalled } from './support/janus.ts';
import { buildReflector, floor, interleaved, product, type Side } from './support/legs.ts';

const legs = Number(process.argv[2] ?? 100);
const rounds = Number(process.argv[3] ?? 3);
const seconds = Number(process.argv[4] ?? 4);
buildReflector();
if (!janusInstalled) console.log('janus is not installed and is left out (Debian: apt-get install janus)');
const sides: Side[] = [await floor(legs, 29_000, 32_702), await product(legs, 26_000, 32_700)];
if (janusInstalled) sides.push(await janus(legs, 20_000, 32_706, 32_704));
const costs = await interleaved(sides, rounds, seconds);
const least = costs.get('floor') ?? Number.NaN;
for (const [name, us] of costs)
  console.log(`${legs} legs, ${name}: ${us.toFixed(1)} us a leg and second, ${(us / least).toFixed(2)} times the floor`);
for (const side of sides) await side.stop();
