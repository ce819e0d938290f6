/**
 * Kamailio as the carrier's edge: TLS with a private authority, a registrar and digest, Record-Route, encrypted audio.
 * Behind it is a telephone (baresip).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { certificate, Kamailio, kamailioInstalled } from '../support/kamailio.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';
import { PhoneCalls } from './phone-calls.ts';

describe.skipIf(!kamailioInstalled || !baresipInstalled)('behind Kamailio', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kamailio-'));
  const file = (name: string) => join(folder, name);
  let calls: PhoneCalls;
  let kamailio: Kamailio;
  let phone: Baresip;
  let settings: Record<string, unknown> = {};

  beforeAll(async () => {
    for (const name of ['kamailio', 'platform', 'renewed']) certificate(folder, name);
    use('platform');
    calls = await PhoneCalls.open({
      SIP_LISTEN: 'udp:127.0.0.1:0,tcp:127.0.0.1:0,tls:127.0.0.1:0',
      SIP_TLS_CERT: file('tls.crt'),
      SIP_TLS_KEY: file('tls.key'),
      MEDIA_TIMEOUT_SEC: '120',
    });
    phone = await calls.phone({ account: ';mediaenc=srtp-mand;answermode=auto' });
    kamailio = await Kamailio.open({
      folder,
      config: 'kamailio.cfg',
      // A registration lasts 20 s at most.
      values: { phonePort: String(phone.port), expires: '20' },
    });
    settings = {
      username: 'platform',
      password: 'secret',
      register: true,
      srtp: 'required',
      tls: { ca: readFileSync(file('ca.crt'), 'utf8') },
    };
    await calls.trunk(`sip:localhost:${kamailio.tlsPort};transport=tls`, settings);
    await registered();
  }, 60_000);
  afterAll(async () => {
    await kamailio?.stop();
    await calls?.close();
    rmSync(folder, { recursive: true });
  });

  /** Makes a certificate the platform's. */
  function use(name: string): void {
    copyFileSync(file(`${name}.key`), file('tls.key'));
    copyFileSync(file(`${name}.crt`), file('tls.crt'));
  }
  const status = async (): Promise<Record<string, unknown>> => {
    const { body } = await calls.platform.operator('GET', '/trunks/carrier');
    return typeof body.status === 'object' && body.status !== null ? { ...body.status } : {};
  };
  /** Resolves when the platform is registered, and that until later than `since`. */
  async function registered(since = ''): Promise<void> {
    const until = performance.now() + 60_000;
    for (;;) {
      const { registered: is, registered_until: end } = await status();
      if (is === true && String(end) > since) return;
      if (performance.now() > until) throw new Error(`not registered\n${kamailio.log}\n${calls.platform.output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  const fromPhone = () => calls.callIn(phone, `127.0.0.1:${kamailio.port}`);

  test('A call from a telephone is held and resumed from either side, and goes on encrypted', async () => {
    const uuid = await fromPhone();
    phone.command('hold');
    expect((await calls.receiver.event('session.held', uuid)).body).toMatchObject({ by: 'far_end' });
    phone.command('resume');
    expect((await calls.receiver.event('session.resumed', uuid)).body).toMatchObject({ by: 'far_end' });
    expect((await calls.api(`/v1/sessions/${uuid}/hold`)).status).toBe(202);
    const own = (name: string) => () =>
      calls.receiver.of(uuid).some(({ event, body }) => event === name && body.by === 'application');
    await calls.receiver.until(own('session.held'), 'our hold');
    expect((await calls.api(`/v1/sessions/${uuid}/unhold`)).status).toBe(202);
    await calls.receiver.until(own('session.resumed'), 'our resume');
    // The telephone writes down no sound any more after a hold, but it still tells the keys that it hears.
    expect((await calls.api(`/v1/sessions/${uuid}/dtmf/send`, { digits: '42' })).status).toBe(202);
    await phone.until(() => /received event: '4'[\s\S]*received event: '2'/.test(phone.log), 'our keys');
    const ended = await calls.hangUp(uuid, phone);
    expect(ended).toMatchObject({ quality: { packets_lost: 0 } });
    const trace = await calls.kept(uuid, 'sip.txt');
    expect(trace).toContain('Record-Route: <sip:127.0.0.1');
    expect(trace).not.toContain('inline:');
  }, 30_000);

  test('A call from a telephone is heard on both sides', async () => {
    await calls.hearEachOther(await fromPhone(), phone);
  }, 30_000);

  test('A call to a telephone is challenged, has a session timer, and is heard on both sides', async () => {
    const uuid = await calls.callOut(phone);
    await calls.hearEachOther(uuid, phone);
    const trace = await calls.kept(uuid, 'sip.txt');
    expect(trace).toMatch(/^SIP\/2\.0 407 /m);
    expect(trace).toMatch(/^Proxy-Authorization: \(not kept\)/im);
    expect(trace).toMatch(/^Session-Expires: /im);
  }, 30_000);

  test('A call that the telephone hangs up ends on this side', async () => {
    const uuid = await fromPhone();
    expect(await calls.hangUpBy(phone, uuid)).toMatchObject({
      hangup_cause: 'completed',
      hangup_by: 'caller',
    });
  }, 30_000);

  test('A telephone is transferred to another one', async () => {
    const other = await calls.phone({ account: ';mediaenc=srtp-mand;answermode=auto' });
    const uuid = await calls.callOut(phone);
    expect((await calls.api(`/v1/sessions/${uuid}/transfer`, { to: other.uri, timeout_sec: 10 })).status).toBe(202);
    await other.event('CALL_ESTABLISHED');
    await calls.receiver.event('session.transfer.completed', uuid);
    await calls.receiver.event('session.ended', uuid);
  }, 40_000);

  // RFC 4028 knows no session shorter than 90 s: it is refreshed after 45. `npm run test:foreign` takes that time.
  if (process.env.LONG_TESTS === '1' && sippInstalled)
    test('A session is refreshed through the proxy before its timer runs out', async () => {
      const caller = await sipp({ scenario: 'caller-is-refreshed', to: `127.0.0.1:${kamailio.port}`, timeoutSec: 80 });
      const before = calls.receiver.count('session.created');
      await calls.receiver.until(() => calls.receiver.count('session.created') > before, 'session.created');
      const uuid = String(calls.receiver.events.findLast(({ event }) => event === 'session.created')?.body.session_uuid);
      await calls.api(`/v1/sessions/${uuid}/answer`);
      expect([await caller.done, caller.errors()]).toEqual([true, expect.anything()]);
      expect((await calls.receiver.event('session.ended', uuid)).body).toMatchObject({
        hangup_cause: 'completed',
        hangup_by: 'caller',
      });
    }, 100_000);

  test('New certificates are used while calls come and go, and no call is lost', async () => {
    const shown = () =>
      new Promise<string>((resolve, reject) => {
        const [host, tls] = calls.platform.sipTls.split(':');
        const socket = connect({ host, port: Number(tls), servername: 'localhost', rejectUnauthorized: false }, () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.destroy();
        });
        socket.on('error', reject);
      });
    for (let i = 0; i < 8; i++) {
      const up = await fromPhone();
      const name = i % 2 === 0 ? 'renewed' : 'platform';
      use(name);
      process.kill(calls.platform.pid, 'SIGHUP');
      // The signal may be handled after a connection that was made behind it.
      for (const until = performance.now() + 5_000; (await shown()) !== name; )
        if (performance.now() > until) throw new Error(`the certificate "${name}" was not used\n${calls.platform.output}`);
      expect(await calls.hangUpBy(phone, up)).toMatchObject({ hangup_cause: 'completed' });
    }
  }, 60_000);

  test('When the proxy stops, a call goes over the next trunk; when it is back, the platform registers and calls come in again', async () => {
    await calls.trunk(
      `sip:127.0.0.1:${phone.port}`,
      { inbound_cidrs: ['192.0.2.0/24'], priority: 1, srtp: 'optional', srtp_without_tls: true },
      'backup',
    );
    await registered();
    const { registered_until: before } = await status();
    await kamailio.stop();
    const uuid = await calls.callOut(phone);
    const answered = await calls.receiver.event('session.answered', uuid);
    expect(answered.body.sip).toMatchObject({ trunk: 'backup' });
    await calls.hangUp(uuid, phone);
    await kamailio.start();
    await registered(String(before));
    await calls.hangUp(await fromPhone(), phone);
  }, 120_000);
});
