/** NATS core as the transport of the bus. The client connects again by itself. */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { OpenTransport, Transport, TransportMessage } from './transport.ts';

/** `url`: `nats://[user:password@]host:port`, or `tls://`. */
export const natsTransport =
  (url: string): OpenTransport =>
  async (name, onChange) => {
    const { connect, errors } = await import('@nats-io/transport-node');
    const { protocol, host, username, password } = new URL(url);
    const connection = await connect({
      servers: host,
      name,
      ...(username === ''
        ? {}
        : password === ''
          ? { token: decodeURIComponent(username) }
          : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
      ...(protocol === 'tls:' ? { tls: {} } : {}),
      waitOnFirstConnect: true,
      maxReconnectAttempts: -1,
      // Two refusals in a row are no reason to give up for good: a password may be put right.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: 100,
      reconnectJitter: 50,
      pingInterval: 1_000,
      maxPingOut: 2,
    });
    void watch(connection, onChange);
    const isNobody = (error: unknown): boolean =>
      error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
    return overNats(connection, isNobody);
  };

async function watch(connection: NatsConnection, onChange: (isUp: boolean) => void): Promise<void> {
  for await (const { type } of connection.status()) {
    if (type === 'disconnect' || type === 'staleConnection' || type === 'close') onChange(false);
    else if (type === 'reconnect') onChange(true);
  }
  onChange(false);
}

const overNats = (connection: NatsConnection, isNobody: (error: unknown) => boolean): Transport => ({
  subscribe(subject, heard) {
    connection.subscribe(subject, { callback: (_, message) => heard(messageOf(message)) });
  },
  publish: (subject, text) => connection.publish(subject, text),
  async request(subject, text, timeout) {
    try {
      return { text: (await connection.request(subject, text, { timeout })).string() };
    } catch (error) {
      return isNobody(error) ? 'nobody' : 'unknown';
    }
  },
  close: () => connection.close(),
});

const messageOf = (message: Msg): TransportMessage => ({
  subject: message.subject,
  text: message.string(),
  respond: (text) => void message.respond(text),
});
