/**
 * CPU of a leg in the whole product: real SIP calls in Rooms of ten, all talking, against a bare UDP reflector on the
 * same load (native/bench/reflector.cc), in interleaved rounds.
 *
 *   npm run bench -- product-legs [LEGS] [ROUNDS] [SECONDS]      100 legs, 5 rounds of 4 s
 */
import { buildReflector, floor, interleaved, product } from './support/legs.ts';

const legs = Number(process.argv[2] ?? 100);
const rounds = Number(process.argv[3] ?? 5);
const seconds = Number(process.argv[4] ?? 4);
buildReflector();
const bare = await floor(legs, 29_000, 32_702);
const ours = await product(legs, 26_000, 32_700);
const costs = await interleaved([ours, bare], rounds, seconds);
const [a, b] = [costs.get('floor') ?? Number.NaN, costs.get('product') ?? Number.NaN];
console.log(
  `${legs} legs of real calls in Rooms of ten: floor ${a.toFixed(1)}, product ${b.toFixed(1)} us a leg and second: ${(b / a).toFixed(2)} times the floor`,
);
await ours.stop();
await bare.stop();
