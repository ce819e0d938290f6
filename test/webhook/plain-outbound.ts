/** An Outbound without screening, for receivers on loopback. */
import { type Outbound, OutboundError } from '../../src/outbound/outbound.ts';

export const plainOutbound: Outbound = {
  async fetch({ url, method, headers, body, signal }) {
    try {
      const response = await fetch(url, {
        method,
        headers: { ...headers },
        redirect: 'manual',
        body: body ?? null,
        signal,
      });
      return { status: response.status, headers: response.headers, body: response.body ?? undefined };
    } catch (error) {
      throw new OutboundError('unreachable', String(error));
    }
  },
};
