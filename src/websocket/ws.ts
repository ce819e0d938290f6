/**
 * The package `ws`, as it is published. Bun answers an import of that name with a port of its own, which reads every
 * frame of a packet in one turn of the event loop and knows neither `allowSynchronousEvents` nor `maxFragments`; so the
 * package's file is loaded by its path.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

export const WebSocket: typeof import('ws').WebSocket = require(
  join(dirname(require.resolve('ws/package.json')), 'lib/websocket.js'),
);
export type WebSocket = import('ws').WebSocket;
export type { ClientOptions } from 'ws';
