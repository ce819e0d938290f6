/**
 * CPU of a leg in the whole product, in the bare reflector, in Janus AudioBridge, Asterisk's ConfBridge and
 * FreeSWITCH's conference, all talking in rooms of ten, in interleaved rounds of one run: legs of plain RTP, then
 * WebRTC legs, which only the product and Janus have here. Janus is Debian's `janus`; Asterisk and FreeSWITCH are built
 * from the source trees that are named. What is not there is left out.
 *
 *   npm run bench -- peers [LEGS] [ROUNDS] [SECONDS] [WEBRTC LEGS]      100 legs, 3 rounds of 4 s, 30 WebRTC legs
 *     --asterisk TREE    --freeswitch TREE    --install (of Debian's janus, as root)
 */
import { parseArgs } from 'node:util';
import { hostAddress } from '../test/support/host-address.ts';
import { sippInstalled } from '../test/support/sipp.ts';
import { asterisk } from './support/asterisk.ts';
import { freeswitch } from './support/freeswitch.ts';
import { installJanus, janus, janusInstalled, janusWebrtc } from './support/janus.ts';
import { buildReflector, floor, interleaved, product, type Side } from './support/legs.ts';
import { interleavedWebrtc, productWebrtc, type WebrtcSide } from './support/webrtc-legs.ts';

const { positionals, values: trees } = parseArgs({
  allowPositionals: true,
  options: { asterisk: { type: 'string' }, freeswitch: { type: 'string' }, install: { type: 'boolean' } },
});
const [legs = 100, rounds = 3, seconds = 4, webrtcLegs = 30] = positionals.map(Number);

/** Opens the sides one after the other, has them measured, and stops those that were opened, whatever happens. */
async function measured<S extends { stop(): Promise<void> }>(
  openers: readonly (() => Promise<S>)[],
  measure: (sides: readonly S[]) => Promise<void>,
): Promise<void> {
  const sides: S[] = [];
  try {
    for (const open of openers) sides.push(await open());
    await measure(sides);
  } finally {
    for (const side of sides) await side.stop();
  }
}

async function plain(): Promise<void> {
  const openers: (() => Promise<Side>)[] = [() => floor(legs, 29_000, 32_702), () => product(legs, 26_000, 32_700)];
  const { asterisk: asteriskTree, freeswitch: freeswitchTree } = trees;
  if (janusInstalled()) openers.push(() => janus(legs, 20_000, 32_706, 32_704));
  if (asteriskTree !== undefined) openers.push(() => asterisk(asteriskTree, legs, 15_000, 32_710));
  if (freeswitchTree !== undefined) openers.push(() => freeswitch(freeswitchTree, legs, 10_000, 32_712));
  await measured(openers, async (sides) => {
    const costs = await interleaved(sides, rounds, seconds);
    const least = costs.get('floor') ?? Number.NaN;
    for (const [name, us] of costs)
      console.log(
        Number.isNaN(us)
          ? `${legs} legs, ${name}: no round had 99 % of its packets`
          : `${legs} legs, ${name}: ${us.toFixed(1)} us a leg and second, ${(us / least).toFixed(2)} times the floor`,
      );
  });
}

async function webrtc(address: string): Promise<void> {
  const openers: (() => Promise<WebrtcSide>)[] = [() => productWebrtc(webrtcLegs, address)];
  if (janusInstalled()) openers.push(() => janusWebrtc(webrtcLegs, 32_708, address));
  await measured(openers, async (sides) => {
    const costs = await interleavedWebrtc(sides, rounds, 2 * seconds);
    const ours = costs.get('product') ?? Number.NaN;
    for (const [name, us] of costs)
      console.log(
        `${webrtcLegs} WebRTC legs, ${name}: ${us.toFixed(1)} us a leg and second, ${(us / ours).toFixed(2)} times ours`,
      );
  });
}

buildReflector();
if (trees.freeswitch !== undefined && !sippInstalled)
  throw new Error('FreeSWITCH is called by SIPp (Debian: apt-get install sip-tester)');
if (trees.asterisk === undefined) console.log('Asterisk is left out: `--asterisk TREE` names its source tree');
if (trees.freeswitch === undefined) console.log('FreeSWITCH is left out: `--freeswitch TREE` names its source tree');
if (!janusInstalled() && trees.install === true) installJanus();
if (!janusInstalled()) console.log('janus is not installed and is left out: `--install` installs that of Debian, as root');
if (legs > 0) await plain();
if (hostAddress === undefined) console.log('WebRTC legs are left out: Janus needs an address of the machine beyond loopback');
else if (webrtcLegs > 0) await webrtc(hostAddress);
process.exit(0);
