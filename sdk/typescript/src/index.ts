/** The client of a Sidetone platform, for Node, Bun, Deno and workers at the edge. */
import { App, Messages, Recordings, Rooms, Sessions, WebrtcTokens } from './api.ts';
import { type SidetoneOptions, Transport } from './transport.ts';

export type * from './api.ts';
export { type BrowserCall, type ConnectBrowserOptions, connectBrowser } from './browser.ts';
export { Listing, type RequestOptions, SidetoneError, type SidetoneOptions } from './transport.ts';
export {
  expressWebhook,
  honoWebhook,
  verifyWebhook,
  type WebhookDelivery,
  WebhookVerificationError,
  webhookHandler,
} from './webhook.ts';

/** `new Sidetone({ baseUrl, appUuid, apiKey }).sessions.dial({ from, to, ring_timeout_sec: 30 })` */
export class Sidetone {
  readonly sessions: Sessions;
  readonly rooms: Rooms;
  readonly recordings: Recordings;
  readonly messages: Messages;
  readonly webrtcTokens: WebrtcTokens;
  readonly app: App;

  constructor(options: SidetoneOptions) {
    const transport = new Transport(options);
    this.sessions = new Sessions(transport);
    this.rooms = new Rooms(transport);
    this.recordings = new Recordings(transport);
    this.messages = new Messages(transport);
    this.webrtcTokens = new WebrtcTokens(transport);
    this.app = new App(transport);
  }
}
