import { expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { freePort, sipp, sippInstalled } from './sipp.ts';

test.skipIf(!sippInstalled)("a SIPp whose port is somebody else's is started again until it has it", async () => {
  const port = await freePort();
  const other = createSocket('udp4');
  await new Promise<void>((resolve) => other.bind(port, '127.0.0.1', resolve));
  const starting = sipp({ scenario: 'callee-hangs-up', port });
  // Long enough for a start or two that fail; were it shorter, the test would still hold.
  await Bun.sleep(30);
  await new Promise<void>((resolve) => other.close(resolve));
  const peer = await starting;
  const probe = createSocket('udp4');
  const taken = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(true));
    probe.bind(port, '127.0.0.1', () => resolve(false));
  });
  peer.stop();
  await peer.done;
  expect([taken, peer.errors()]).toEqual([true, '']);
});
