/**
 * The package `ws`, as it is published. Bun answers an import of that name with a port of its own, which reads every
 * frame of a packet in one turn of the event loop and knows neither `allowSynchronousEvents` nor `maxFragments`; so the
 * package's file is loaded by its path. The path is a literal, so that the one file of `npm run binary` carries it.
 */
export const WebSocket: typeof import('ws').WebSocket = require('../../node_modules/ws/lib/websocket.js');
export type WebSocket = import('ws').WebSocket;
export type { ClientOptions } from 'ws';
