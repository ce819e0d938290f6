/**
 * What stands in deploy/ and compose.yaml: the Helm chart is rendered and read, the systemd unit is verified, every
 * metric of the dashboard and of the alerts is one that a running platform has, and the drain that Kubernetes begins
 * with waits for calls.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { webrtc } from '../../src/settings/webrtc.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Context, render } from './template.ts';

const ROOT = join(import.meta.dir, '../..');
const CHART = join(ROOT, 'deploy/helm/sidetone');
const NUMBER = '+15550066';
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
type Yaml = ReturnType<typeof JSON.parse>;

/** Settings that a file of deployment names, against those that the platform, and Bun itself, reads. */
const settings = new Set([
  'BUN_CONFIG_MAX_HTTP_REQUESTS',
  ...['src/settings/load.ts', 'src/settings/provider.ts', 'src/settings/webrtc.ts'].flatMap((path) =>
    [...read(path).matchAll(/'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|RECORDINGS)'/g)].map(([, name]) => name ?? ''),
  ),
]);

describe('the Helm chart', () => {
  const values: Yaml = Bun.YAML.parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  const chart: Yaml = Bun.YAML.parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  /** Every template with these values, read as YAML, by its kind. */
  const rendered = (more: object = {}): Record<string, Yaml> => {
    const context: Context = {
      Values: { ...values, ...more },
      Release: { Name: 'voice' },
      Chart: { AppVersion: chart.appVersion },
    };
    const made = readdirSync(join(CHART, 'templates')).map(
      (name): Yaml => Bun.YAML.parse(render(readFileSync(join(CHART, 'templates', name), 'utf8'), context)),
    );
    return Object.fromEntries(made.map((each) => [each.kind, each]));
  };

  test('is of the release that it starts', () => {
    const { version } = JSON.parse(read('package.json'));
    expect([chart.version, chart.appVersion, values.image.tag]).toEqual([version, version, version]);
  });

  test('runs each node on the network of its own machine, and drains it before it ends', () => {
    const { StatefulSet: set, Service: service } = rendered();
    const pod = set.spec.template.spec;
    expect([pod.hostNetwork, pod.dnsPolicy]).toEqual([true, 'ClusterFirstWithHostNet']);
    expect(set.spec.selector.matchLabels).toEqual(set.spec.template.metadata.labels);
    expect(service.spec.selector).toEqual(set.spec.selector.matchLabels);
    const [rule] = pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
    expect(rule.topologyKey).toBe('kubernetes.io/hostname');
    const [container] = pod.containers;
    expect(container.lifecycle.preStop.exec.command.slice(1)).toEqual(['bin/sidetone', 'drain', '--deadline', '3600']);
    expect(pod.terminationGracePeriodSeconds).toBe(3600 + 30 + 30);
    // A busy machine is no reason to end its calls.
    expect(container.livenessProbe).toMatchObject({ timeoutSeconds: 5, failureThreshold: 6 });
    const environment = Object.fromEntries(container.env.map((each: Yaml) => [each.name, each.value ?? '']));
    expect(Object.keys(environment).filter((name) => !settings.has(name))).toEqual([]);
    expect(environment).toMatchObject({ SIP_LISTEN: 'udp:0.0.0.0:5060,tcp:0.0.0.0:5060', SIP_ADVERTISE: '$(NODE_HOST)' });
    expect(environment).toMatchObject({ PUBLIC_URL: 'http://$(NODE_HOST):8080', SHUTDOWN_GRACE_SEC: '30' });
    const volumes = [...pod.volumes, ...set.spec.volumeClaimTemplates.map((each: Yaml) => each.metadata)].map(({ name }) => name);
    expect(container.volumeMounts.map((each: Yaml) => each.name).every((name: string) => volumes.includes(name))).toBe(true);
    // The program and the folder are those of the image.
    const image = read('Dockerfile');
    expect(image).toContain(`CMD ["${container.lifecycle.preStop.exec.command[0]}", "--no-env-file", "src/main.ts"]`);
    expect(image).toContain(`VOLUME ${container.volumeMounts[0].mountPath}`);
    expect(image).toContain(`--uid ${pod.securityContext.runAsUser}`);
  });

  test('takes the values that are empty by default', () => {
    const { StatefulSet: set } = rendered({
      nodeSelector: { 'sidetone/voice': 'yes' },
      tolerations: [{ key: 'voice', operator: 'Exists' }],
      publicUrl: 'https://voice.example.com',
      drain: { deadlineSeconds: 60, shutdownSeconds: 120 },
      sip: { port: 5070, advertise: '203.0.113.5', tls: { secret: '', port: 5061 } },
      storage: { size: '1Gi', className: 'fast' },
      env: { NATS_URL: 'nats://nats:4222', NODE_LABELS: 'eu: "x"' },
    });
    const pod = set.spec.template.spec;
    expect(pod.nodeSelector).toEqual({ 'sidetone/voice': 'yes' });
    expect(pod.tolerations).toEqual([{ key: 'voice', operator: 'Exists' }]);
    expect(set.spec.volumeClaimTemplates[0].spec.storageClassName).toBe('fast');
    const environment = Object.fromEntries(pod.containers[0].env.map((each: Yaml) => [each.name, each.value]));
    expect(pod.terminationGracePeriodSeconds).toBe(60 + 120 + 30);
    expect(environment).toMatchObject({ PUBLIC_URL: 'https://voice.example.com', SHUTDOWN_GRACE_SEC: '120' });
    expect(environment).toMatchObject({ SIP_ADVERTISE: '203.0.113.5', NATS_URL: 'nats://nats:4222', NODE_LABELS: 'eu: "x"' });
  });

  test('gives the pod the certificate of SIP over TLS, and files of its own', () => {
    const { StatefulSet: set } = rendered({
      sip: { port: 5060, advertise: '', tls: { secret: 'sip-cert', port: 5071 } },
      volumes: [{ name: 'ca', configMap: { name: 'ca' } }],
      volumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
    });
    const { volumes, containers } = set.spec.template.spec;
    expect(volumes.slice(-2)).toEqual([
      { name: 'sip-tls', secret: { secretName: 'sip-cert' } },
      { name: 'ca', configMap: { name: 'ca' } },
    ]);
    const [{ env, ports, volumeMounts }] = containers;
    const environment = Object.fromEntries(env.map((each: Yaml) => [each.name, each.value]));
    expect(environment.SIP_LISTEN).toBe('udp:0.0.0.0:5060,tcp:0.0.0.0:5060,tls:0.0.0.0:5071');
    expect(ports.at(-1)).toEqual({ name: 'sip-tls', containerPort: 5071, protocol: 'TCP' });
    expect(volumeMounts.slice(-2)).toEqual([
      { name: 'sip-tls', mountPath: '/etc/sidetone/tls', readOnly: true },
      { name: 'ca', mountPath: '/etc/ca' },
    ]);
    // The names of the files are those of a Secret of this type.
    expect([environment.SIP_TLS_CERT, environment.SIP_TLS_KEY]).toEqual([
      '/etc/sidetone/tls/tls.crt',
      '/etc/sidetone/tls/tls.key',
    ]);
  });

  const hasHelm = spawnSync('helm', ['version', '--short']).error === undefined;
  test.skipIf(!hasHelm)('passes helm lint, and helm renders what we render', () => {
    expect(spawnSync('helm', ['lint', '--strict', CHART], { encoding: 'utf8' }).status).toBe(0);
    const { stdout } = spawnSync('helm', ['template', 'voice', CHART], { encoding: 'utf8' });
    const theirs = stdout.split(/^---$/m).filter((text) => /^kind:/m.test(text));
    const ours = rendered();
    for (const text of theirs) {
      const document: Yaml = Bun.YAML.parse(text);
      expect(document).toEqual(ours[document.kind]);
    }
    expect(theirs).toHaveLength(Object.keys(ours).length);
  });
});

describe('the systemd unit', () => {
  const unit = read('deploy/systemd/sidetone.service');

  test('starts a program of the repository with a real-time limit', () => {
    expect(unit).toContain('LimitRTPRIO=1');
    // A start without its database ends at once. Five such in ten seconds are given up for good, unless told.
    expect(unit).toContain('StartLimitIntervalSec=0');
    const [, program = '', script = ''] = /^ExecStart=\/opt\/sidetone\/(\S+) (?:\S+ )*(\S+)$/m.exec(unit) ?? [];
    expect([program !== '', existsSync(join(ROOT, program)), existsSync(join(ROOT, script))]).toEqual([true, true, true]);
    for (const [, name = ''] of unit.matchAll(/^Environment=([A-Z_]+)=/gm)) expect(settings.has(name)).toBe(true);
  });

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).error === undefined;
  test.skipIf(!hasSystemd)('is one that systemd understands', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sidetone-unit-'));
    const file = join(folder, 'sidetone.service');
    // On this machine the sources are here, and there is no user of that name.
    writeFileSync(file, unit.replaceAll('/opt/sidetone', ROOT).replace(/^User=.*$/m, 'User=root'));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    rmSync(folder, { recursive: true });
    expect([status, stderr.split('\n').filter((line) => line.includes('sidetone.service'))]).toEqual([0, []]);
  });
});

test('compose.yaml names settings that there are, and services, volumes and ports that fit', () => {
  const compose: Yaml = Bun.YAML.parse(read('compose.yaml'));
  const services = Object.entries<Yaml>(compose.services);
  for (const [name, service] of services) {
    const own = service.build === undefined ? [] : Object.keys(service.environment ?? {});
    expect([name, own.filter((each) => !settings.has(each))]).toEqual([name, []]);
    const needed = Array.isArray(service.depends_on) ? service.depends_on : Object.keys(service.depends_on ?? {});
    expect(needed.filter((each: string) => !(each in compose.services))).toEqual([]);
    const named = (service.volumes ?? []).map((each: string) => each.split(':')[0]);
    expect(named.filter((each: string) => !(each in compose.volumes))).toEqual([]);
  }
  // Docker keeps the log of a container whole, unless it is told how much of it.
  expect(services.filter(([, { build, logging }]) => build !== undefined && !logging?.options?.['max-size'])).toEqual([]);
  // No application reaches PostgreSQL, NATS or MinIO on loopback by its URLs, unless the operator says so.
  const allowed = services.flatMap(([, { build, environment }]) => (build === undefined ? [] : [environment.OUTBOUND_ALLOW]));
  expect(allowed.filter((each: string) => !/^\$\{OUTBOUND_ALLOW:-\}$/.test(each))).toEqual([]);
  // Variables are put in before services are chosen: what one service cannot be without ends the start of all.
  expect(read('compose.yaml').match(/\$\{\w+:?\?/g)).toBeNull();
  const ports = services.flatMap(([, { environment }]) => (environment?.HTTP_PORT === undefined ? [] : [environment.HTTP_PORT]));
  expect(new Set(ports).size).toBe(ports.length);
  // All of them are on the network of one machine, with the HTTP_HOST of the image.
  const browsers = services.flatMap(([, { build, environment }]) =>
    build === undefined ? [] : [webrtc(environment, '0.0.0.0')?.port],
  );
  expect(browsers).toHaveLength(4);
  expect(new Set(browsers).size).toBe(browsers.length);
});

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'));
const LISTENING = [
  ['127.0.0.1', ''],
  ['127.0.0.1', '0.0.0.0'],
  ['127.0.0.3', '127.0.0.3'],
  ['::1', '::'],
  ['::1', '::1'],
  ['::1', '[::1]'],
] as const;
test.each(LISTENING.filter(([address]) => hasIpv6 || !address.includes(':')))(
  'the health check of the image asks where the platform listens: %s for HTTP_HOST=%s',
  async (hostname, HTTP_HOST) => {
    const command: string = /^HEALTHCHECK [^\n]*\n\s+CMD (\[.*\])$/m.exec(read('Dockerfile'))?.[1] ?? '';
    const [, ...args]: string[] = JSON.parse(command);
    const check = async (port: number | undefined) => {
      const env = { PATH: process.env.PATH ?? '', HTTP_HOST, HTTP_PORT: String(port) };
      return await Bun.spawn([process.execPath, ...args], { env, stdout: 'ignore', stderr: 'ignore' }).exited;
    };
    const paths: string[] = [];
    const server = Bun.serve({
      hostname,
      port: 0,
      fetch(request) {
        paths.push(new URL(request.url).pathname);
        return new Response();
      },
    });
    expect([await check(server.port), paths]).toEqual([0, ['/healthz']]);
    await server.stop(true);
    expect(await check(server.port)).not.toBe(0);
  },
  20_000,
);

describe('against a running platform', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    platform.answerEveryCall(app, receiver);
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  test('every metric of the dashboard is one that the platform has', async () => {
    // A request is counted when it is answered.
    await platform.operator('GET', '/apps');
    const exposition = await (await fetch(`${platform.url}/metrics`)).text();
    const known = new Set([...exposition.matchAll(/^(sidetone_[a-z0-9_]+)/gm)].map(([, name]) => name ?? ''));
    const dashboard: Yaml = JSON.parse(read('deploy/grafana/sidetone.json'));
    const expressions: string[] = dashboard.panels.flatMap((panel: Yaml) => panel.targets.map((each: Yaml) => each.expr));
    const asked = expressions.flatMap((each) => each.match(/sidetone_[a-z0-9_]+/g) ?? []);
    expect(asked.length).toBeGreaterThan(25);
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
    // Every reading of the platform's own is on it, apart from those of a cluster.
    const own = [...known].filter((name) => !/_(process|nodejs)_|_(bucket|sum|count)$/.test(name));
    const shown = new Set(asked.map((name) => name.replace(/_bucket$/, '')));
    expect(own.filter((name) => !shown.has(name))).toEqual([]);
  });

  test('every figure of the dashboard is shown in its own unit', () => {
    const units: Record<string, RegExp> = { percentunit: / \/ |_ratio\b/, s: /_seconds/, bytes: /_bytes\b/ };
    const dashboard: Yaml = JSON.parse(read('deploy/grafana/sidetone.json'));
    const wrong = dashboard.panels.flatMap(({ targets, fieldConfig }: Yaml) =>
      targets.filter(({ refId, expr }: Yaml) => {
        const own = fieldConfig.overrides.find(({ matcher }: Yaml) => matcher.options === refId);
        return units[own?.properties[0].value ?? fieldConfig.defaults.unit]?.test(expr) === false;
      }),
    );
    expect(wrong.map(({ expr }: Yaml) => expr)).toEqual([]);
  });

  test('every alert asks for metrics that the platform has, and says what has happened', async () => {
    const exposition = await (await fetch(`${platform.url}/metrics`)).text();
    const known = new Set([...exposition.matchAll(/^(sidetone_[a-z0-9_]+)/gm)].map(([, name]) => name ?? ''));
    for (const [, name] of read('src/compose/cluster.ts').matchAll(/(?:gauge|counter)\(\s*'([a-z_]+)'/g))
      known.add(`sidetone_${name}`);
    const file: Yaml = Bun.YAML.parse(read('deploy/prometheus/sidetone.rules.yml'));
    const rules: Yaml[] = file.groups.flatMap((group: Yaml) => group.rules);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, expr, labels, annotations } of rules) {
      const asked: string[] = expr.match(/sidetone_[a-z0-9_]+/g) ?? [];
      expect({ alert, strange: asked.filter((name) => !known.has(name)) }).toEqual({ alert, strange: [] });
      expect(asked.length > 0 || expr.includes('up{job="sidetone"}')).toBe(true);
      expect(labels.severity).toMatch(/^(page|ticket)$/);
      expect(annotations.summary).toContain('{{ $labels.instance }}');
    }
    expect(rules.some(({ expr }) => expr.includes('sidetone_trunks_down'))).toBe(true);
  });

  test('the alert of late audio is silent while nothing is heard, although the media threads tick', async () => {
    const file: Yaml = Bun.YAML.parse(read('deploy/prometheus/sidetone.rules.yml'));
    const { expr } = file.groups.flatMap((group: Yaml) => group.rules).find(({ alert }: Yaml) => alert === 'SidetoneAudioLate');
    const [, condition] = /sidetone_media_ticks_total\[5m\]\) and max_over_time\((\w+)\[5m\]\) > 0$/.exec(expr) ?? [];
    const exposition = await (await fetch(`${platform.url}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(exposition)?.[1]);
    expect(value('sidetone_media_ticks_total')).toBeGreaterThan(0);
    expect(value(String(condition))).toBe(0);
  });

  test('the alert of RTP ports compares the free ones with all of the range, whatever takes none of them', async () => {
    const file: Yaml = Bun.YAML.parse(read('deploy/prometheus/sidetone.rules.yml'));
    const { expr } = file.groups.flatMap((group: Yaml) => group.rules).find(({ alert }: Yaml) => alert === 'SidetonePortsShort');
    const [, part, of] = /^sidetone_rtp_port_pairs_free < ([0-9.]+) \* (.+)$/.exec(expr) ?? [];
    // A bot has a leg and no port.
    const bot = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, server) => (server.upgrade(request) ? undefined : new Response()),
      websocket: { message() {} },
    });
    const format = { encoding: 'pcm_s16le', sample_rate: 8000 };
    const websocket = { url: `ws://127.0.0.1:${bot.port}/` };
    const about = { websocket, media_format: { from_session: format, to_session: format } };
    const { body } = await platform.api(app, 'POST', '/v1/sessions:connectWebsocket', about);
    await receiver.event('websocket.connected', String(body.session_uuid));
    const exposition = await (await fetch(`${platform.url}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(exposition)?.[1]);
    expect([part, value(String(of))]).toEqual(['0.1', value('sidetone_rtp_port_pairs_free')]);
    expect(value('sidetone_media_legs')).toBe(1);
    await platform.api(app, 'DELETE', `/v1/sessions/${body.session_uuid}`);
    await receiver.event('session.ended', String(body.session_uuid));
    await bot.stop(true);
  });

  test('drain takes no new call, waits for the one that is up, and returns', async () => {
    const dial = { from: NUMBER, to: NUMBER, ring_timeout_sec: 10 };
    const session = String((await platform.api(app, 'POST', '/v1/sessions:dial', dial)).body.session_uuid);
    await receiver.event('session.answered', session);
    const program = spawn(
      process.execPath,
      [join(ROOT, 'bin/sidetone'), 'drain', '--url', platform.url, '--data-dir', platform.dataDir],
      {
        env: { PATH: process.env.PATH },
      },
    );
    let output = '';
    const { promise: waits, resolve } = Promise.withResolvers<void>();
    for (const stream of [program.stdout, program.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
        if (output.includes('2 Sessions are left')) resolve();
      });
    const ended = new Promise<number | null>((done) => program.once('exit', done));
    await Promise.race([waits, ended]);
    expect((await platform.api(app, 'POST', '/v1/sessions:dial', dial)).status).toBe(503);
    await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
    expect([await ended, output]).toEqual([0, expect.stringMatching(/^2 Sessions are left\n(1 Sessions are left\n)?drained\n$/)]);
  }, 30_000);
});
