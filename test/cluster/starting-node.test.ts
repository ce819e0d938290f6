/** What other nodes ask of a node that has reached NATS and does not serve them yet. */
import { expect, test } from 'bun:test';
import { TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { Bus } from '../../src/cluster/bus/bus.ts';
import type { OpenTransport, TransportMessage } from '../../src/cluster/bus/transport.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import type { LocalWork } from '../../src/cluster/peer/commands.ts';
import type { NodeRow } from '../../src/database/node/nodes.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

/** NATS, as far as requests go. */
function hub(clock: VirtualClock): OpenTransport {
  const heard: { readonly prefix: string; readonly hear: (message: TransportMessage) => void }[] = [];
  return async () => ({
    subscribe: (subject, hear) => void heard.push({ prefix: subject.replace('>', ''), hear }),
    publish() {},
    async request(subject, text, timeoutMs) {
      const found = heard.find(({ prefix }) => subject.startsWith(prefix));
      if (found === undefined) return 'nobody';
      return await new Promise((resolve) => {
        clock.at(clock.now() + timeoutMs, () => resolve('unknown'));
        found.hear({ subject, text, respond: (answer) => resolve({ text: answer }) });
      });
    },
    close: async () => {},
  });
}

test('A command for a node that does not serve yet is not delivered, so that it may be tried elsewhere at once', async () => {
  const clock = new VirtualClock();
  const open = hub(clock);
  const masterKey = new Uint8Array(32).fill(1);
  const { promise: beat, resolve: read } = Promise.withResolvers<readonly NodeRow[]>();
  const asker = new Bus({ open, masterKey, nodeId: 'a', cluster: 'c', clock, log: silentLog, onBack() {} });
  void asker.start();
  const ask = async () => {
    const asked = asker.ask('b', 'cmd', {}, 2_000, 1_750);
    for (let turn = 0; turn < 5; turn++) await settle();
    await clock.advance(2_000);
    return (await asked).outcome;
  };
  const nodes = {
    nodeId: 'b',
    beat: () => beat,
    bury: async () => false,
  };
  const cluster = new Cluster({
    settings: { node: { host: '', labels: [], burialSec: 15, takesOver: false }, orphanTimeoutSec: 120, masterKey },
    ...{ shared: {}, open, name: 'c', pipeHost: '127.0.0.1', nodes, clock, log: silentLog },
  });
  const started = cluster.start({
    load: () => '{}',
    takeOver: async () => {},
    ...{ async onForsaken() {}, onBack() {}, onOwn() {} },
  });
  await settle();
  expect(await ask()).toBe('not_delivered');
  read([nodeRow('a'), nodeRow('b')]);
  await started;
  const work: LocalWork = {
    sessions: {
      isDraining: false,
      isHere: () => false,
      owner: async () => undefined,
      obey: async () => undefined,
      replacement: () => undefined,
      named: () => undefined,
    },
    rooms: { isHere: () => false, home: async () => undefined, settle: async () => {} },
    tokens: new TokenBuckets(),
    trunks: () => [],
    flows: async () => [],
    release: async () => {},
    perform: async () => 'moved',
  };
  cluster.serve(work);
  await settle();
  expect(await ask()).toBe('answered');
  cluster.stop();
});
