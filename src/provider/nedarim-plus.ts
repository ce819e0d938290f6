/**
 * Nedarim Plus: a form POST to its DebitCard service, answered in JSON. One attempt on a connection of its own, so that
 * what a broken server sends after one answer can never be taken for the answer to another charge.
 */
import type { Config } from '../config.ts';
import { CHARGE_ANSWER_MAX_BYTES, CHARGE_PROVIDER_TIMEOUT_MS } from '../limits.ts';
import type { ChargeGateway, ChargeOrder, ChargeOutcome } from '../machine/payment/charge.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../outbound/outbound.ts';
import { outcomeOf } from './nedarim-answer.ts';

type Settings = Extract<Config['paymentProvider'], { kind: 'nedarim_plus' }>;

const PATH = '/V6/Files/WebServices/DebitCard.aspx';

/** Makes the provider. `timeoutMs` is the limit of the whole attempt; only tests have a reason to change it. */
export function nedarimPlus(
  settings: Settings,
  outbound: Outbound,
  now: () => number,
  timeoutMs = CHARGE_PROVIDER_TIMEOUT_MS,
): ChargeGateway {
  const apiValid = (terminal: string) => settings.apiValid.get(terminal) ?? settings.apiValid.get('');
  return {
    identifier: 'nedarim_plus',
    serves: (terminal) => apiValid(terminal) !== undefined,
    async charge(order) {
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(), timeoutMs);
      const body = formOf(order, apiValid(order.terminalNumber) ?? '', settings.clientName);
      try {
        const response = await outbound.fetch({
          url: settings.url + PATH,
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json', connection: 'close' },
          body,
          signal: abort.signal,
        });
        return await answerOf(response, order, now());
      } catch (error) {
        return abort.signal.aborted ? { status: 'indeterminate', reason: 'provider_timeout' } : lost(error);
      } finally {
        clearTimeout(timer);
        body.fill(0);
      }
    },
  };
}

/** Built as bytes, so that neither number is ever part of a string. */
function formOf(order: ChargeOrder, apiValid: string, clientName: string): Uint8Array<ArrayBuffer> {
  const { chargeUuid, operationUuid, sessionUuid, terminalNumber, expMonth, expYear, amount, installments } = order;
  const expiry = `${String(expMonth).padStart(2, '0')}${String(expYear % 100).padStart(2, '0')}`;
  const open = new URLSearchParams({
    Mosad: terminalNumber,
    ApiValid: apiValid,
    ClientName: clientName,
    Tokef: expiry,
    // Shekels: admission takes whole ones only.
    Amount: String(amount / 100),
    Currency: '1',
    Tashloumim: String(installments),
    PaymentType: 'RAGIL',
    Param1: sessionUuid,
    Param2: operationUuid,
    // The service takes a second request with the same AjaxId for the first one sent again, so no two charges share it.
    AjaxId: chargeUuid,
  });
  const parts = [Buffer.from(`${open}&CardNumber=`), order.card, Buffer.from('&CVV='), order.cvv];
  const body = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

async function answerOf(response: OutboundResponse, order: ChargeOrder, now: number): Promise<ChargeOutcome> {
  const text = await bounded(response);
  // An error page tells nothing of what the service did before it failed.
  if (response.status !== 200 || text === undefined) return { status: 'indeterminate', reason: 'provider_response_invalid' };
  return outcomeOf(text, order, now);
}

/** The body's text, undefined where it is too long. Rejects when it breaks off. */
async function bounded({ body }: OutboundResponse): Promise<string | undefined> {
  if (body === undefined) return '';
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    // A byte order mark, which servers of this kind like to send, is no part of the text.
    if (done) return new TextDecoder().decode(Buffer.concat(chunks));
    bytes += value.length;
    if (bytes > CHARGE_ANSWER_MAX_BYTES) {
      reader.cancel().catch(() => {});
      return undefined;
    }
    chunks.push(value);
  }
}

/**
 * Decides the outcome of a failed request. Only one that failed before there was a connection, or one to a far end that
 * is not trusted, has certainly not left the platform.
 */
function lost(error: unknown): ChargeOutcome {
  if (!(error instanceof OutboundError)) return { status: 'indeterminate', reason: 'provider_unreachable' };
  const { failure, message } = error;
  if (failure === 'rejected' || failure === 'dns') return { status: 'failed', reason: 'provider_unreachable', retryable: true };
  if ((failure === 'unreachable' && NOT_CONNECTED.has(message)) || (failure === 'tls' && NOT_TRUSTED.has(message)))
    return { status: 'failed', reason: 'provider_unreachable', retryable: true };
  if (failure === 'timeout') return { status: 'indeterminate', reason: 'provider_timeout' };
  return {
    status: 'indeterminate',
    reason: failure === 'invalid_response' ? 'provider_response_invalid' : 'provider_unreachable',
  };
}

/**
 * The faults that this side finds in a certificate (X509_verify_cert_error_string, and the name), before anything is
 * sent. What the far end says of TLS may come after it has the request.
 */
const NOT_TRUSTED: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_SIGNATURE_FAILURE',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

const NOT_CONNECTED: ReadonlySet<string> = new Set(['ConnectionRefused', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH']);
