/** A bug in the work for one call is not the end of others. The agent is a real one that fails as the test says. */
import { expect, test } from 'bun:test';
import { AgentDriver } from '../../src/carrier/agent-driver.ts';
import { SIP_T1_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countingAgent } from './harness.ts';

const PEER = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 0 } as const;
const OPTIONS =
  'OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKo\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\n';

function driven() {
  const clock = new VirtualClock();
  const agent = countingAgent('192.0.2.2');
  const sent: string[] = [];
  const told: string[] = [];
  const driver = new AgentDriver(
    agent,
    clock,
    { ...silentLog, error: (_, message) => void told.push(message) },
    {
      ...{ onInvite() {}, onRefused() {}, onProbed() {}, onVia() {} },
      onMessage: (direction, bytes) => {
        if (direction === 'out') sent.push(Buffer.from(bytes).toString().split('\r\n', 1)[0] ?? '');
      },
    },
  );
  const probe = () => driver.run((now) => agent.probe({ whom: 'trunk', name: 'far' }, 'sip:far', PEER, now));
  return { agent, driver, clock, sent, told, probe };
}

test('A bug in a timer is told in the log, and what is due is done all the same', async () => {
  const { agent, clock, sent, told, probe } = driven();
  probe();
  expect(sent).toEqual(['OPTIONS sip:far SIP/2.0']);
  const { advance } = agent;
  agent.advance = () => {
    agent.advance = advance;
    throw new Error('a bug');
  };
  await clock.advance(SIP_T1_MS);
  expect([told, sent.length]).toEqual([['a timer of SIP could not be worked on'], 2]);
});

test('A bug in the work on a message is told in the log, and what that has brought about goes out', () => {
  const { agent, driver, sent, told } = driven();
  const { receive } = agent;
  agent.receive = (...message) => {
    receive.call(agent, ...message);
    throw new Error('a bug');
  };
  driver.receive(Buffer.from(`${OPTIONS}Call-ID: c\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n`), PEER);
  expect([told, sent]).toEqual([['a SIP message could not be worked on'], ['SIP/2.0 200 OK']]);
});
