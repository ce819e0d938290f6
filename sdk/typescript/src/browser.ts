/**
 * Calls from a browser by WebRTC. The application's server makes a token (`webrtcTokens.create`) and gives it to its
 * page; the page calls with it. This file needs nothing but a browser.
 */

export interface ConnectBrowserOptions {
  /** `url` and `token` of a token. */
  readonly url: string;
  readonly token: string;
  /** What the caller says. By default the microphone is asked for. */
  readonly audio?: MediaStream;
}

/** A call from this browser. */
export interface BrowserCall {
  /** The Session, as the application's webhooks name it. */
  readonly sessionUuid: string;
  readonly connection: RTCPeerConnection;
  /** What the caller hears: `element.srcObject = call.audio`. */
  readonly audio: MediaStream;
  /** Resolves when the call is over, whoever ended it. */
  readonly ended: Promise<void>;
  /** Presses keys: 0 to 9, A to D, `*`, `#`, and `,` for a pause. */
  sendDigits(digits: string): void;
  mute(on: boolean): void;
  /**
   * Holds the call, or no longer: nothing is said or heard meanwhile, and `session.held` tells the application. Rejects
   * when the platform cannot be asked within five seconds, or refuses; the call is as it was then.
   */
  hold(on: boolean): Promise<void>;
  /**
   * Finds a new way after the network changed. It is done by itself when the connection is lost, and again for two
   * minutes while it stays lost; then the call is over. Rejects when the platform cannot be asked within five seconds, or refuses.
   */
  reconnect(): Promise<void>;
  hangUp(): Promise<void>;
}

const HANG_UP_MS = 2_000;
/** A lost connection is tried again for so long; the platform ends a call of which it hears nothing long before. */
const RECOVERY_MAX_MS = 120_000;
const RECOVERY_PAUSE_MS = 1_000;
/** How long a platform that was asked has, to answer and then to be found. */
const ANSWER_MAX_MS = 5_000;
/** A call that is not connected after so long may be over already. */
const BEGINNING_MS = 2_000;
const FRAGMENT = 'application/trickle-ice-sdpfrag';

/** Calls. It rings until the application answers, or ends. Rejects when the platform refuses the call. */
export async function connectBrowser({ url, token, audio }: ConnectBrowserOptions): Promise<BrowserCall> {
  const microphone = audio ?? (await navigator.mediaDevices.getUserMedia({ audio: true }));
  const connection = new RTCPeerConnection();
  const heard = new MediaStream();
  connection.ontrack = ({ track }) => heard.addTrack(track);
  for (const track of microphone.getAudioTracks()) connection.addTrack(track, microphone);
  const request: Ask = (to, method, body, headers = {}, withinMs, keepalive = false) =>
    fetch(to, {
      method,
      keepalive,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body }),
      ...(withinMs === undefined ? {} : { signal: AbortSignal.timeout(withinMs) }),
    });
  let location: string | undefined;
  try {
    await connection.setLocalDescription();
    const sdp = { 'content-type': 'application/sdp' };
    const response = await request(url, 'POST', connection.localDescription?.sdp ?? '', sdp);
    if (response.status !== 201) throw new Error(`the call was refused: ${response.status} ${await response.text()}`);
    location = new URL(response.headers.get('location') ?? '', url).href;
    await connection.setRemoteDescription({ type: 'answer', sdp: await response.text() });
    return new Call({ connection, microphone, isOurs: audio === undefined, audio: heard, location, request });
  } catch (error) {
    connection.close();
    if (audio === undefined) for (const track of microphone.getTracks()) track.stop();
    // The call rings already where only its answer could not be taken.
    if (location !== undefined) await request(location, 'DELETE', undefined, {}, HANG_UP_MS).catch(() => {});
    throw error;
  }
}

type Ask = (
  to: string,
  method: string,
  body?: string,
  headers?: Record<string, string>,
  withinMs?: number,
  /** The request outlives the page. */
  keepalive?: boolean,
) => Promise<Response>;

interface Parts {
  readonly connection: RTCPeerConnection;
  readonly microphone: MediaStream;
  /** Whether the microphone was asked for here, and is given back at the end. */
  readonly isOurs: boolean;
  readonly audio: MediaStream;
  readonly location: string;
  readonly request: Ask;
}

class Call implements BrowserCall {
  readonly sessionUuid: string;
  readonly connection: RTCPeerConnection;
  readonly audio: MediaStream;
  readonly ended: Promise<void>;
  readonly #parts: Parts;
  #end: () => void = () => {};
  #over = false;
  /** Settles, without ever rejecting, when the last offer is answered or given up. */
  #turn: Promise<void> = Promise.resolve();
  #isReconnecting = false;
  #isRecovering = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.connection = parts.connection;
    this.audio = parts.audio;
    this.sessionUuid = parts.location.split('/').at(-1) ?? '';
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.connection.onconnectionstatechange = () => {
      const { connectionState } = this.connection;
      if (connectionState === 'closed') this.#close();
      else if (connectionState === 'disconnected' || connectionState === 'failed') void this.#recover();
    };
    // The platform says goodbye with the handshake's connection.
    for (const { transport } of this.connection.getSenders())
      transport?.addEventListener('statechange', () => {
        if (transport.state === 'closed' || transport.state === 'failed') this.#close();
      });
    addEventListener('pagehide', this.#leave);
    void this.#watchBeginning();
  }

  /** A page that is closed has no time for the goodbye of its connection. Its browser sends this after it is gone. */
  readonly #leave = (): void => {
    const { location, request } = this.#parts;
    request(location, 'DELETE', undefined, {}, undefined, true).catch(() => {});
  };

  /**
   * A call that ends before the handshake has nothing to say goodbye with, so its location is asked. It is asked at once
   * as well, so that the browser knows what another origin takes (CORS) before the page is closed: Chromium may drop a
   * `DELETE` that has to ask first, as its page is gone by then.
   */
  async #watchBeginning(): Promise<void> {
    const { location, request } = this.#parts;
    const headers = { 'content-type': FRAGMENT, 'if-match': '*' };
    let isBeginning = true;
    while (isBeginning) {
      // A fragment without names restarts nothing.
      const fragment = `m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:${this.connection.getTransceivers()[0]?.mid ?? ''}\r\n`;
      const response = await request(location, 'PATCH', fragment, headers, ANSWER_MAX_MS).catch(() => undefined);
      if (response?.status === 404) this.#close();
      await this.#connected(BEGINNING_MS);
      const { connectionState } = this.connection;
      isBeginning = !this.#over && (connectionState === 'new' || connectionState === 'connecting');
    }
  }

  sendDigits(digits: string): void {
    this.connection.getSenders()[0]?.dtmf?.insertDTMF(digits);
  }

  mute(on: boolean): void {
    for (const track of this.#parts.microphone.getAudioTracks()) track.enabled = !on;
  }

  hold(on: boolean): Promise<void> {
    return this.#inTurn(async () => {
      for (const transceiver of this.connection.getTransceivers()) transceiver.direction = on ? 'inactive' : 'sendrecv';
      await this.connection.setLocalDescription();
      const { location, request } = this.#parts;
      const offer = this.connection.localDescription?.sdp ?? '';
      const response = await request(location, 'PATCH', offer, { 'content-type': 'application/sdp' }, ANSWER_MAX_MS);
      if (response.status !== 200) throw new Error(`the hold was refused: ${response.status}`);
      await this.connection.setRemoteDescription({ type: 'answer', sdp: await response.text() });
    });
  }

  async reconnect(): Promise<void> {
    if (this.#over || this.#isReconnecting) return;
    this.#isReconnecting = true;
    await this.#inTurn(() => this.#restart()).finally(() => {
      this.#isReconnecting = false;
    });
  }

  /** An ICE restart: both sides take new names, and the audio goes on under the same keys. */
  async #restart(): Promise<void> {
    const before = this.connection.currentRemoteDescription?.sdp;
    if (this.#over || before === undefined) return;
    await this.connection.setLocalDescription(await this.connection.createOffer({ iceRestart: true }));
    const offer = this.connection.localDescription?.sdp ?? '';
    const line = (name: string, sdp: string) => new RegExp(`^a=${name}:.*$`, 'm').exec(sdp)?.[0]?.trim() ?? '';
    const ours = `${line('ice-ufrag', offer)}\r\n${line('ice-pwd', offer)}\r\n`;
    const fragment = `${ours}m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n${line('mid', offer)}\r\n`;
    const { location, request } = this.#parts;
    const headers = { 'content-type': FRAGMENT, 'if-match': '*' };
    const response = await request(location, 'PATCH', fragment, headers, ANSWER_MAX_MS);
    if (response.status === 404) this.#close();
    if (response.status !== 200) throw new Error(`the restart was refused: ${response.status}`);
    const theirs = await response.text();
    const sdp = before
      .replace(/^a=ice-ufrag:.*$/gm, line('ice-ufrag', theirs))
      .replace(/^a=ice-pwd:.*$/gm, line('ice-pwd', theirs));
    await this.connection.setRemoteDescription({ type: 'answer', sdp: sdp.replace(/\r?\n/g, '\r\n') });
  }

  /** Offers once the offers before are answered or given up: each begins with what is agreed on. */
  #inTurn(offer: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(() => this.#orNothing(offer));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** An offer that fails leaves nothing behind: neither a pending one, whose names nobody knows, nor other directions. */
  async #orNothing(offer: () => Promise<void>): Promise<void> {
    const { connection } = this;
    const before = connection.getTransceivers().map((transceiver) => ({ transceiver, direction: transceiver.direction }));
    try {
      await offer();
    } catch (error) {
      if (connection.signalingState === 'have-local-offer')
        await connection.setLocalDescription({ type: 'rollback' }).catch(() => {});
      if (!this.#over)
        for (const { transceiver, direction } of before)
          if (transceiver.direction !== direction) transceiver.direction = direction;
      throw error;
    }
  }

  /**
   * Restarts until the connection is there again: the network may be away for a while, for the request too. The call is
   * over where it does not come back: the platform has given it up long before.
   */
  async #recover(): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    const until = performance.now() + RECOVERY_MAX_MS;
    for (let pause = RECOVERY_PAUSE_MS; this.#isLost() && performance.now() < until; ) {
      const isAsked = await this.reconnect().then(
        () => true,
        () => false,
      );
      await this.#connected(isAsked ? ANSWER_MAX_MS : pause);
      pause = Math.min(2 * pause, ANSWER_MAX_MS);
    }
    this.#isRecovering = false;
    if (this.#isLost()) this.#close();
  }

  #isLost(): boolean {
    return !this.#over && this.connection.connectionState !== 'connected';
  }

  /** Waits until the connection is there or the call is over, `ms` at most. */
  #connected(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.connection.removeEventListener('connectionstatechange', look);
        resolve();
      };
      const look = (): void => {
        if (!this.#isLost()) done();
      };
      const timer = setTimeout(done, ms);
      this.connection.addEventListener('connectionstatechange', look);
      look();
    });
  }

  async hangUp(): Promise<void> {
    if (this.#over) return;
    const { location, request } = this.#parts;
    // The connection is closed last: its goodbye ends the call too. A network that is gone is not waited for.
    const patience = new Promise<void>((resolve) => setTimeout(resolve, HANG_UP_MS));
    await Promise.race([request(location, 'DELETE').catch(() => {}), patience]);
    this.#close();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    removeEventListener('pagehide', this.#leave);
    this.connection.close();
    if (this.#parts.isOurs) for (const track of this.#parts.microphone.getTracks()) track.stop();
    this.#end();
  }
}
