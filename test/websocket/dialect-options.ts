import type { DialectOptions } from '../../src/websocket/dialect.ts';

/** The connection of a bot at 8 kHz mu-law that takes all, and all that is said to it. */
export function boundBot(): { readonly options: DialectOptions; readonly said: unknown[] } {
  const said: unknown[] = [];
  const format = { encoding: 'mulaw', rateHz: 8000 } as const;
  const options: DialectOptions = {
    sessionUuid: 's',
    appUuid: 'a',
    fromSession: format,
    toSession: format,
    parameters: {},
    phoneSessionUuid: undefined,
    order: async () => undefined,
    send: (text) => void said.push(JSON.parse(text)),
    sendBinary: () => {},
    write: () => true,
    clear: () => {},
    pause: () => {},
    mark: () => true,
  };
  return { options, said };
}
