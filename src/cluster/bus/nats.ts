/** NATS core as the transport of the bus. The client connects again by itself. */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { OpenTransport, Transport, TransportMessage } from './transport.ts';

/**
 * `urls`: `nats://[user:password@]host:port`, or `tls://`; the servers of one cluster of NATS, any of which will do.
 */
export const natsTransport =
  (urls: readonly string[]): OpenTransport =>
  async (name, onChange, onDenied) => {
    const { connect, errors } = await import('@nats-io/transport-node');
    const servers = urls.map((url) => new URL(url));
    const { username, password } = servers.find((server) => server.username !== '') ?? { username: '', password: '' };
    const connection = await connect({
      servers: servers.map(({ host }) => host),
      name,
      ...(username === ''
        ? {}
        : password === ''
          ? { token: decodeURIComponent(username) }
          : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
      ...(servers.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
      waitOnFirstConnect: true,
      maxReconnectAttempts: -1,
      // Two refusals in a row are no reason to give up for good: a password may be put right.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: 100,
      reconnectJitter: 50,
      pingInterval: 1_000,
      maxPingOut: 2,
    });
    void watch(connection, onChange, (error) => {
      if (error instanceof errors.PermissionViolationError) onDenied?.(error.subject);
    });
    const isNobody = (error: unknown): boolean =>
      error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
    return overNats(connection, isNobody);
  };

async function watch(
  connection: NatsConnection,
  onChange: (isUp: boolean) => void,
  onError: (error: unknown) => void,
): Promise<void> {
  for await (const status of connection.status()) {
    const { type } = status;
    if (type === 'error') onError(status.error);
    else if (type === 'disconnect' || type === 'staleConnection' || type === 'close') onChange(false);
    else if (type === 'reconnect') onChange(true);
  }
  onChange(false);
}

const overNats = (connection: NatsConnection, isNobody: (error: unknown) => boolean): Transport => ({
  subscribe(subject, heard) {
    connection.subscribe(subject, {
      // The message is none where the server denies the subject, which is told by the status of the connection.
      callback: (error, message) => void (error === null && heard(messageOf(message))),
    });
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
