/**
 * The demo application of `sidetone dev`: an ordinary application of the platform, on Node. It answers its number,
 * plays a melody, then says back what it hears, and records all of it. Its page calls that number: the browser's audio
 * goes over a WebSocket to this program, and from here, as a WebSocket Session of the platform, into a Room with the
 * call.
 *
 *   page ── WebSocket ── demo ── WebSocket Session ─┐
 *                                                   Room ── call out ── loopback trunk ── call in ── melody, echo
 */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { melody } from './melody.mjs';

const FORMAT = { encoding: 'pcm_s16le', sample_rate: 16_000 };
const BODY_MAX_BYTES = 1024 * 1024;
/** Audio that waits for a page or for the platform; past it the newest is left out. */
const BEHIND_MAX_BYTES = 64 * 1024;
const PAGES_MAX = 16;
const FILES = {
  '/': ['page.html', 'text/html'],
  '/page.js': ['page.js', 'text/javascript'],
  '/audio.js': ['audio.js', 'text/javascript'],
};
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; media-src *; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/**
 * Starts the demo. `platform` is the origin of the API; `credentials` are `{appUuid, apiKey, webhookSecret}`; `number`
 * is the number that it answers and calls. Returns `{url, hook, close}`. Where the platform cannot be asked, it rejects
 * and does not listen any more.
 */
export async function startDemo({ platform, credentials, number, port }) {
  const demo = new Demo(platform, credentials, number);
  await demo.listen(port);
  await demo.tidy().catch(async (error) => {
    await demo.close();
    throw error;
  });
  return { url: demo.url, hook: `${demo.url}hook`, close: () => demo.close() };
}

class Demo {
  #platform;
  #credentials;
  #number;
  #server = createServer((request, response) => this.#answer(request, response).catch(() => response.destroy()));
  #sockets = new WebSocketServer({ noServer: true, maxPayload: BODY_MAX_BYTES });
  /** Pages that are open, and calls that came in. */
  #pages = new Set();
  #calls = new Map();
  /** WebSocket Sessions that are expected, by the secret in their URL. */
  #expected = new Map();

  constructor(platform, credentials, number) {
    this.#platform = platform;
    this.#credentials = credentials;
    this.#number = number;
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  /** Listens on that port of loopback, or on any when it is taken. */
  async listen(port) {
    const bind = (at) =>
      new Promise((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(at, '127.0.0.1', () => {
          this.#server.off('error', reject);
          resolve();
        });
      });
    await bind(port).catch(() => bind(0));
  }

  /** Deletes the Rooms that a run before this one left behind, however it ended: nobody is in a call at the start. */
  async tidy() {
    const { rooms } = await this.command('GET', '/api/v1/rooms');
    for (const { room_id } of rooms) await this.command('DELETE', `/api/v1/rooms/${room_id}`).catch(() => {});
  }

  async close() {
    for (const page of this.#pages) await page.hangUp();
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async command(method, path, body) {
    const { appUuid, apiKey } = this.#credentials;
    const response = await fetch(`${this.#platform}${path}`, {
      method,
      headers: { authorization: `Bearer ${appUuid}:${apiKey}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const answer = response.status === 204 ? {} : await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer.message}`);
    return answer;
  }

  /** Joins a WebSocket of this program to a Room. `connected` gets the socket. Returns the Session. */
  async connect(roomId, connected) {
    const secret = randomUUID();
    this.#expected.set(secret, connected);
    setTimeout(() => this.#expected.delete(secret), 15_000).unref();
    const { session_uuid } = await this.command('POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: `${this.url.replace('http', 'ws')}session/${secret}` },
      media_format: { from_session: FORMAT, to_session: FORMAT },
      room_id: roomId,
    });
    return session_uuid;
  }

  get number() {
    return this.#number;
  }

  /** The origin of the API, where the console and the documentation are too. */
  get platform() {
    return this.#platform;
  }

  async #answer(request, response) {
    const { pathname } = new URL(request.url, this.url);
    if (request.method === 'POST' && pathname === '/hook') return this.#hook(request, response);
    if (request.method !== 'GET') return response.writeHead(405).end();
    if (pathname === '/melody.wav') return response.writeHead(200, { 'content-type': 'audio/wav' }).end(melody());
    const [file, type] = FILES[pathname] ?? [];
    if (file === undefined) return response.writeHead(404).end();
    const headers = {
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
    };
    response.writeHead(200, headers).end(readFileSync(join(import.meta.dirname, file)));
  }

  async #hook(request, response) {
    const chunks = [];
    let bytes = 0;
    for await (const chunk of request) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > BODY_MAX_BYTES) return response.writeHead(413).end();
    }
    // A letter of several bytes may lie in two chunks.
    const text = Buffer.concat(chunks).toString();
    if (!this.#isSigned(request.headers, text)) return response.writeHead(401).end();
    // 2xx at once: the next event of this call is sent when this one is settled.
    response.writeHead(204).end();
    const event = JSON.parse(text);
    for (const page of this.#pages) page.tell({ type: 'event', event });
    if (event.test !== true) await this.#onEvent(event).catch((error) => this.#complain(error));
  }

  /** Verifies a webhook (Standard Webhooks): HMAC-SHA256 over id, time and body. */
  #isSigned(headers, body) {
    const key = Buffer.from(this.#credentials.webhookSecret.slice('whsec_'.length), 'base64');
    const signed = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest();
    return String(headers['webhook-signature'])
      .split(' ')
      .map((each) => Buffer.from(each.replace(/^v1,/, ''), 'base64'))
      .some((each) => each.length === signed.length && timingSafeEqual(each, signed));
  }

  #complain(error) {
    for (const page of this.#pages) page.tell({ type: 'error', message: error.message });
  }

  /** The application itself: what it does about each event of a call that came in. */
  async #onEvent(event) {
    const { session_uuid: uuid } = event;
    if (event.event === 'session.created') {
      this.#calls.set(uuid, {});
      await this.command('POST', `/v1/sessions/${uuid}/answer`, {});
    }
    const call = this.#calls.get(uuid);
    if (call === undefined) return;
    if (event.event === 'session.answered') {
      await this.command('POST', `/v1/sessions/${uuid}/recordings`, { direction: 'both', channels: 'mono' });
      await this.command('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls: [`${this.url}melody.wav`] });
    }
    if (event.event === 'playback.ended') await this.#echo(uuid, call);
    if (event.event === 'session.ended') {
      this.#calls.delete(uuid);
      await this.end([call.bot], call.roomId);
    }
  }

  /** Says back what the caller says: each binary message is 20 ms of audio. */
  async #echo(uuid, call) {
    try {
      call.roomId = (await this.command('POST', '/api/v1/rooms', {})).room_id;
      await this.command('POST', `/api/v1/rooms/${call.roomId}/members`, { session_uuid: uuid });
      call.bot = await this.connect(call.roomId, (socket) => socket.on('message', (audio) => pass(audio, socket)));
    } finally {
      // The caller may have hung up meanwhile.
      if (!this.#calls.has(uuid)) await this.end([call.bot], call.roomId);
    }
  }

  /** Ends these Sessions, of which none ends with another, and their Room, as far as there are any. */
  async end(sessions, roomId) {
    for (const uuid of sessions) if (uuid !== undefined) await this.command('DELETE', `/v1/sessions/${uuid}`).catch(() => {});
    if (roomId !== undefined) await this.command('DELETE', `/api/v1/rooms/${roomId}`).catch(() => {});
  }

  #upgrade(request, socket, head) {
    const { pathname } = URL.canParse(request.url, this.url) ? new URL(request.url, this.url) : { pathname: '' };
    const secret = /^\/session\/([0-9a-f-]{36})$/.exec(pathname)?.[1];
    const connected = this.#expected.get(secret);
    // A page of another origin must not call on somebody's behalf.
    const isOwnPage = pathname === '/page' && `${request.headers.origin}/` === this.url && this.#pages.size < PAGES_MAX;
    if (connected === undefined && !isOwnPage) {
      socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
      return;
    }
    this.#expected.delete(secret);
    this.#sockets.handleUpgrade(request, socket, head, (open) => {
      open.on('error', () => {});
      if (connected !== undefined) connected(open);
      else this.#open(open);
    });
  }

  #open(socket) {
    const page = new Page(this, socket);
    this.#pages.add(page);
    socket.on('close', () => {
      this.#pages.delete(page);
      void page.hangUp();
    });
  }
}

/** One browser page, and the call that it has placed. */
class Page {
  #demo;
  #socket;
  #call;
  #session;
  /** Settles when the call that was placed last is dialled, or cannot be. */
  #placing;

  constructor(demo, socket) {
    this.#demo = demo;
    this.#socket = socket;
    socket.on('message', (data, isBinary) => {
      if (isBinary) pass(data, this.#session);
      else void this.#take(String(data)).catch((error) => this.tell({ type: 'error', message: error.message }));
    });
    this.tell({ type: 'ready', number: demo.number, platform: demo.platform });
  }

  tell(message) {
    if (
      this.#call !== undefined &&
      message.event?.event === 'session.ended' &&
      message.event.session_uuid === this.#call.session
    ) {
      void this.hangUp();
    }
    if (this.#socket.readyState === 1 && this.#socket.bufferedAmount < BEHIND_MAX_BYTES)
      this.#socket.send(JSON.stringify(message));
  }

  async #take(text) {
    const message = JSON.parse(text);
    if (message.type === 'call' && this.#call === undefined) {
      this.#placing = this.#place();
      await this.#placing.catch(async (error) => {
        await this.hangUp();
        throw error;
      });
    }
    if (message.type === 'hangup') await this.hangUp();
    if (message.type === 'key' && this.#call?.session !== undefined && /^[0-9*#]$/.test(message.key))
      await this.#demo.command('POST', `/v1/sessions/${this.#call.session}/dtmf/send`, { digits: message.key });
  }

  /** Dials the number over the loopback trunk and puts the call and this page into one Room. */
  async #place() {
    const demo = this.#demo;
    const call = {};
    this.#call = call;
    call.roomId = (await demo.command('POST', '/api/v1/rooms', {})).room_id;
    call.audio = await demo.connect(call.roomId, (socket) => {
      this.#session = socket;
      socket.on('message', (audio, isBinary) => isBinary && pass(audio, this.#socket));
    });
    const dialled = await demo.command('POST', '/v1/sessions:dial', {
      from: demo.number,
      to: demo.number,
      trunk: 'loopback',
      ring_timeout_sec: 30,
      room_id: call.roomId,
    });
    call.session = dialled.session_uuid;
    this.tell({ type: 'calling', session_uuid: call.session });
  }

  async hangUp() {
    // What there is to end is known when a call that is being placed is.
    await this.#placing?.catch(() => {});
    const call = this.#call;
    this.#call = undefined;
    this.#session = undefined;
    if (call === undefined) return;
    await this.#demo.end([call.session, call.audio], call.roomId);
    this.tell({ type: 'over' });
  }
}

/** Passes audio on, unless the one that it is for is behind. */
function pass(audio, socket) {
  if (socket?.readyState === 1 && socket.bufferedAmount < BEHIND_MAX_BYTES) socket.send(audio, { binary: true });
}
