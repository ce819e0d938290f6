/**
 * CPU of a leg in the whole product, in the bare reflector and in Janus AudioBridge, all talking in rooms of ten, in
 * interleaved rounds of one run: legs of plain RTP, then WebRTC legs, which the bare reflector has not. Janus is
 * Debian's `janus`; without it the product is measured alone.
 *
 *   npm run bench -- peers [LEGS] [ROUNDS] [SECONDS] [WEBRTC LEGS]      100 legs, 3 rounds of 4 s, 30 WebRTC legs
 */
import { hostAddress } from '../test/support/host-address.ts';
import { janus, janusInstalled, janusWebrtc } from './support/janus.ts';
import { buildReflector, floor, interleaved, product, type Side } from './support/legs.ts';
import { interleavedWebrtc, productWebrtc } from './support/webrtc-legs.ts';

const [legs = 100, rounds = 3, seconds = 4, webrtcLegs = 30] = process.argv.slice(2).map(Number);

async function plain(): Promise<void> {
  const sides: Side[] = [await floor(legs, 29_000, 32_702), await product(legs, 26_000, 32_700)];
  if (janusInstalled) sides.push(await janus(legs, 20_000, 32_706, 32_704));
  const costs = await interleaved(sides, rounds, seconds);
  const least = costs.get('floor') ?? Number.NaN;
  for (const [name, us] of costs)
    console.log(`${legs} legs, ${name}: ${us.toFixed(1)} us a leg and second, ${(us / least).toFixed(2)} times the floor`);
  for (const side of sides) await side.stop();
}

async function webrtc(address: string): Promise<void> {
  const sides = [await productWebrtc(webrtcLegs, address)];
  if (janusInstalled) sides.push(await janusWebrtc(webrtcLegs, 32_708, address));
  const costs = await interleavedWebrtc(sides, rounds, 2 * seconds);
  const ours = costs.get('product') ?? Number.NaN;
  for (const [name, us] of costs)
    console.log(`${webrtcLegs} WebRTC legs, ${name}: ${us.toFixed(1)} us a leg and second, ${(us / ours).toFixed(2)} times ours`);
  for (const side of sides) await side.stop();
}

buildReflector();
if (!janusInstalled) console.log('janus is not installed and is left out (Debian: apt-get install janus)');
if (legs > 0) await plain();
if (hostAddress === undefined) console.log('WebRTC legs are left out: Janus needs an address of the machine beyond loopback');
else if (webrtcLegs > 0) await webrtc(hostAddress);
process.exit(0);
