/**
 * Debian's Firefox, headless, driven by WebDriver BiDi over its own WebSocket (https://w3c.github.io/webdriver-bidi/).
 * This class opens a page and evaluates expressions in it; it uses nothing else of the protocol.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostAddress } from '../support/host-address.ts';
import { environmentOfBrowser } from './chromium.ts';

const EXECUTABLE = '/usr/bin/firefox-esr';
const START_MS = 60_000;
const WAIT_MS = 10_000;

/** Firefox gathers no candidates on loopback, whatever `media.peerconnection.ice.loopback` says. */
export const firefoxUsable = existsSync(EXECUTABLE) && hostAddress !== undefined;
if (!existsSync(EXECUTABLE)) console.log('skipped: firefox-esr (Debian package firefox-esr) is not installed');
else if (hostAddress === undefined) console.log('skipped: Firefox needs an IPv4 address of the machine beside loopback');

/** The tone in Hz that Firefox's fake microphone says. */
export const MICROPHONE_HZ = 700;

/** The microphone is fake and given without a question; addresses are not hidden behind mDNS. */
const PREFERENCES = {
  'media.navigator.streams.fake': true,
  'media.navigator.audio.fake_frequency': MICROPHONE_HZ,
  'media.navigator.permission.disabled': true,
  'media.peerconnection.ice.obfuscate_host_addresses': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'app.normandy.enabled': false,
  'browser.region.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
};

interface Reply {
  readonly id?: number;
  readonly error?: string;
  readonly message?: string;
  readonly result?: {
    readonly contexts?: readonly { readonly context: string }[];
    readonly result?: { readonly value?: unknown };
    readonly exceptionDetails?: { readonly text: string };
  };
}

export class Firefox {
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #sent = 0;
  #context = '';

  private constructor(child: ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child;
    this.#profile = profile;
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const reply: Reply = JSON.parse(String(data));
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply);
    };
  }

  /** Starts the browser with a profile of its own, and opens a session. */
  static async launch(): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), 'firefox-'));
    const lines = Object.entries(PREFERENCES).map((each) => `user_pref(${each.map((part) => JSON.stringify(part)).join()});\n`);
    writeFileSync(join(profile, 'user.js'), lines.join(''));
    const child = spawn(EXECUTABLE, ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...environmentOfBrowser(), HOME: profile },
    });
    try {
      const socket = new WebSocket(`${await listening(child)}/session`);
      await new Promise((resolve, reject) => {
        socket.onopen = resolve;
        socket.onerror = () => reject(new Error('Firefox takes no connection of WebDriver BiDi'));
      });
      const firefox = new Firefox(child, profile, socket);
      await firefox.#send('session.new', { capabilities: {} });
      const tree = await firefox.#send('browsingContext.getTree', {});
      firefox.#context = tree.result?.contexts?.[0]?.context ?? '';
      return firefox;
    } catch (error) {
      await end(child, profile);
      throw error;
    }
  }

  async #send(method: string, params: object): Promise<Reply> {
    const id = ++this.#sent;
    const reply = await new Promise<Reply>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
    this.#waiting.delete(id);
    if (reply.error !== undefined) throw new Error(`${method}: ${reply.error}: ${reply.message}`);
    return reply;
  }

  async goto(url: string): Promise<void> {
    await this.#send('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  /** The value of an expression in the page, which is a string, number or boolean, or a promise of one. */
  async evaluate(expression: string): Promise<unknown> {
    const target = { context: this.#context };
    const { result } = await this.#send('script.evaluate', { expression, target, awaitPromise: true });
    if (result?.exceptionDetails !== undefined) throw new Error(`${expression}: ${result.exceptionDetails.text}`);
    return result?.result?.value;
  }

  /** Waits until an expression is true, which the page looks at a few times a second. */
  async until(expression: string): Promise<void> {
    const held = await this.evaluate(`new Promise((resolve) => {
      const until = performance.now() + ${WAIT_MS};
      const look = () => {
        if (${expression}) resolve(true);
        else if (performance.now() > until) resolve(false);
        else setTimeout(look, 50);
      };
      look();
    })`);
    if (held !== true) throw new Error(`waited for ${expression}`);
  }

  async close(): Promise<void> {
    this.#socket.close();
    await end(this.#child, this.#profile);
  }
}

/** The address at which the browser says that it listens. */
async function listening(child: ChildProcess): Promise<string> {
  let said = '';
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Firefox did not start: ${said}`)), START_MS);
    child.once('exit', () => reject(new Error(`Firefox ended: ${said}`)));
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-10_000);
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    });
  });
}

async function end(child: ChildProcess, profile: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill();
    await ended;
  }
  rmSync(profile, { recursive: true, force: true });
}
