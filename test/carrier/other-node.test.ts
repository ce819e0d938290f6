/** A request within a call that comes to another node than the call's, from carrier to carrier. */
import { expect, test } from 'bun:test';
import type { Peer } from '../../src/sip/flow.ts';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

test('A BYE that comes to another node ends the call, and is answered by the node that it came to; one of no call is 481', async () => {
  const carriers = new Map<string, TestCarrier>();
  const otherDialogs = (own: string) => ({
    take: async (bytes: Uint8Array, source: Peer) =>
      [...carriers].some(([name, { carrier }]) => name !== own && carrier.takeStray(bytes, { ...source, via: own })),
    answer: (name: string, bytes: Uint8Array, peer: Peer) => carriers.get(name)?.carrier.sendFor(bytes, peer),
  });
  for (const name of ['here', 'there'])
    carriers.set(name, await TestCarrier.open([trunkTo('sip:127.0.0.1:9')], { otherDialogs: otherDialogs(name) }));
  const [here, there] = [...carriers.values()];
  if (here === undefined || there === undefined) throw new Error('not open');
  const answered = new Promise<Incoming>((resolve) => {
    here.onIncoming = (incoming) => {
      incoming.call.leg.answer();
      resolve(incoming);
    };
  });
  const caller = await RawPeer.udp(here.port('udp'));
  const elsewhere = await RawPeer.udp(there.port('udp'));
  const terms = { id: 'spread', body: sdp() };
  caller.send(caller.request('INVITE', terms));
  const { signals } = await answered;
  const to = field(await caller.until(/^SIP\/2.0 200/), 'To');
  caller.send(caller.request('ACK', { ...terms, to, body: '' }));
  await signals.until('leg.answered');
  elsewhere.send(elsewhere.request('BYE', { id: 'unknown', to, cseq: 2 }));
  await elsewhere.until(/^SIP\/2.0 481/);
  elsewhere.send(elsewhere.request('BYE', { id: 'spread', to, cseq: 2 }));
  await elsewhere.until(/^SIP\/2.0 200[\s\S]* BYE\r/);
  expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'completed', by: 'caller' } });
  expect(caller.heard.filter((message) => / BYE\r/.test(message))).toEqual([]);
  for (const each of [caller, elsewhere, here, there]) await each.close();
});
