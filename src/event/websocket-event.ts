/** The events of a WebSocket Session (interface, WebSocket Session events; contract §2). */
export type WebSocketFailure =
  /** Refused by our own rules. */
  | 'connection_precondition_failed'
  | 'connect_timeout'
  | 'connection_refused'
  | 'dns_failed'
  | 'tls_failed'
  | 'handshake_rejected';

export type WebSocketError = 'timeout' | 'network' | 'tls' | 'http_4xx' | 'http_5xx' | 'policy' | 'internal';

export type WebSocketClosed = 'remote_closed' | 'local_closed' | 'keepalive_timeout' | 'protocol_error' | 'network_error';

export type WebSocketEvent =
  | { event: 'websocket.connected'; session_uuid: string; operation_uuid: string; subprotocol?: string }
  | { event: 'websocket.disconnected'; session_uuid: string; reason: WebSocketClosed; close_code: number }
  | { event: 'websocket.failed'; session_uuid: string; operation_uuid: string; reason: WebSocketFailure; error: WebSocketError }
  | { event: 'websocket.audio_playback_completed'; session_uuid: string; duration_ms: number };
