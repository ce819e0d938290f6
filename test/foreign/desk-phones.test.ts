/**
 * desk-phones.mjs of docs/examples with telephones that are not ours: linphonec is the agent's, baresip the caller's
 * and the colleague's.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { toneShare } from '../media/sound.ts';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { Example } from '../support/example.ts';
import { Linphone, linphoneInstalled } from '../support/linphone.ts';
import { PhoneCalls } from './phone-calls.ts';

const NUMBER = '+15550002';
const PASSWORD = 'open-sesame';
const [CALLER_HZ, COLLEAGUE_HZ] = [440, 700];
/** The music of the example. */
const MUSIC_HZ = 330;

describe.skipIf(!baresipInstalled || !linphoneInstalled)('desk-phones.mjs', () => {
  let calls: PhoneCalls;
  let example: Example;
  let agent: Linphone;
  let caller: Baresip;
  let colleague: Baresip;

  beforeAll(async () => {
    calls = await PhoneCalls.open();
    for (const username of ['alice', 'bob'])
      await calls.platform.operator('PUT', `/apps/${calls.app.appUuid}/devices/${username}`, { password: PASSWORD });
    example = await Example.start('desk-phones.mjs', calls.platform, calls.app, { FROM: NUMBER, AGENT: 'sip:alice' });
  }, 60_000);
  afterEach(() => calls.hangUpPhones());
  afterAll(async () => {
    example?.[Symbol.dispose]();
    await calls?.close();
  });

  /** Resolves when a device user is registered, or no longer. */
  async function registered(username: string, isBound = true): Promise<void> {
    for (let looks = 0; looks < 500; looks++) {
      const { body } = await calls.platform.operator('GET', `/apps/${calls.app.appUuid}/devices`);
      const devices: readonly Readonly<Record<string, unknown>>[] = Array.isArray(body.devices) ? body.devices : [];
      if (devices.some((each) => each.username === username && (each.registered_until !== '') === isBound)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${username} is ${isBound ? 'not' : 'still'} registered\n${agent.log}`);
  }

  /** The agent and a colleague are at their desks; somebody calls the number, and the agent answers. */
  async function talking(): Promise<void> {
    agent = Linphone.start('udp');
    const host = calls.platform.sipUdp;
    agent.command('soundcard use files');
    agent.command(`register sip:alice@${host} sip:${host} ${PASSWORD}`);
    await registered('alice');
    caller = await calls.phone({ hz: CALLER_HZ });
    const account = `;auth_user=bob;auth_pass=${PASSWORD};regint=60;answermode=auto`;
    colleague = await calls.phone({ address: `bob@${host}`, account, hz: COLLEAGUE_HZ });
    await registered('bob');
    await calls.trunk(`sip:127.0.0.1:${caller.port}`);
    caller.command('dial', `sip:${NUMBER}@${host}`);
    await agent.until(/Receiving new incoming call/i);
    agent.command('answer');
    await agent.until(/Call 1 with .* connected/i);
  }

  /** The agent signs off, so that the next test finds nothing of it. */
  async function leave(): Promise<void> {
    agent.command('unregister');
    await registered('alice', false).finally(() => agent.stop());
  }

  /** The caller and the colleague hear each other, until one hangs up and the platform ends the other. */
  async function together(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    caller.command('hangup');
    await caller.event('CALL_CLOSED');
    await colleague.event('CALL_CLOSED');
    expect(loudest(caller.heard(), COLLEAGUE_HZ)).toBeGreaterThan(0.9);
    expect(loudest(colleague.heard(), CALLER_HZ)).toBeGreaterThan(0.9);
  }

  test('A telephone that connects its two calls leaves the caller with the colleague, and both of its calls are over', async () => {
    await talking();
    try {
      agent.command('pause');
      await agent.until(/paused/i);
      // The caller is not left in silence. The transfer ends its music.
      const [, heard] = await example.prints(/session\.held [\s\S]*playback\.started (\S+)/);
      agent.command(`call sip:bob@${calls.platform.sipUdp}`);
      await agent.until(/Call 2 with .* connected/i);
      await colleague.event('CALL_ESTABLISHED');
      agent.command('transfer 1 --to-call 2');
      await example.prints(/connected sip:\S*Replaces=/i);
      await example.prints(new RegExp(`playback\\.ended ${heard}`));
      await agent.until(/Call 1 with .* ended/i);
      await agent.until(/Call 2 with .* ended/i);
      await together();
    } finally {
      await leave();
    }
  }, 60_000);

  test('A telephone that holds its call and takes it back leaves the caller with music meanwhile', async () => {
    const before = example.output.length;
    await talking();
    try {
      agent.command('pause');
      const [, heard] = await example.prints(/session\.held [\s\S]*playback\.started (\S+)/, before);
      // So long the caller listens.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      agent.command('resume');
      await example.prints(new RegExp(`session\\.resumed [\\s\\S]*playback\\.ended ${heard}`), before);
      caller.command('hangup');
      await caller.event('CALL_CLOSED');
      expect(loudest(caller.heard(), MUSIC_HZ)).toBeGreaterThan(0.9);
    } finally {
      await leave();
    }
  }, 60_000);

  test('A telephone that transfers its call to another one is rid of it', async () => {
    await talking();
    try {
      agent.command(`transfer 1 sip:bob@${calls.platform.sipUdp}`);
      await example.prints(/transferred to sip:bob@/);
      await colleague.event('CALL_ESTABLISHED');
      await agent.until(/Call 1 with .* ended/i);
      await together();
    } finally {
      await leave();
    }
  }, 60_000);
});

/** The share of a tone in the tenth of a second that has most of it. */
function loudest(samples: readonly number[], hz: number): number {
  let most = 0;
  for (let at = 0; at + 800 <= samples.length; at += 800) {
    const part = samples.slice(at, at + 800);
    if (part.some((sample) => Math.abs(sample) > 500)) most = Math.max(most, toneShare(part, hz, 8_000));
  }
  return most;
}
