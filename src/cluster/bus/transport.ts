/** What the bus needs of a carrier of messages. `nats.ts` is the one of the product. */

/** A message that was published, or a request. */
export interface TransportMessage {
  readonly subject: string;
  readonly text: string;
  /** Answers a request. No effect where nobody asked. */
  respond(text: string): void;
}

export interface Transport {
  /** Hears what is published and asked under a subject. `>` at its end stands for any further words. */
  subscribe(subject: string, heard: (message: TransportMessage) => void): void;
  publish(subject: string, text: string): void;
  /**
   * Resolves with the answer. `nobody`: no one hears that subject. `unknown`: no answer came in time. Never rejects.
   */
  request(subject: string, text: string, timeoutMs: number): Promise<{ readonly text: string } | 'nobody' | 'unknown'>;
  close(): Promise<void>;
}

/**
 * Connects, for as long as it takes. `onChange` tells of each loss of the connection, and of its return, and `onDenied`
 * of each subject that the user of the connection may not hear or publish to.
 */
export type OpenTransport = (
  name: string,
  onChange: (isUp: boolean) => void,
  onDenied?: (subject: string) => void,
) => Promise<Transport>;
