// Takes a card by telephone: number, CVV, charge. The digits never reach this program: it gets references and the last four.
// Plain Node: APP=app_… KEY=… SECRET=… node card-payment.mjs
// The terminal is the operator's to give: bin/sidetone terminals add $APP 1234567
// There are no prompts: when the call is answered, key in 4111111111111111# and then 123#. The sandbox charges that card.
import { createServer } from 'node:http';
import { received, send } from './platform.mjs';

const { PORT = '9000', TERMINAL = '1234567', PROVIDER = 'sandbox' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

const order = async (event, path, body = {}, headers = {}) => {
  const { ok } = await send('POST', `/v1/sessions/${event.session_uuid}${path}`, body, headers);
  // Nothing more would come of this call, as where the terminal is not assigned.
  if (!ok && path.startsWith('/payment/')) await hangUp(event);
};
const hangUp = (event) => send('DELETE', `/v1/sessions/${event.session_uuid}`);
const giveUp = (event, what) => {
  console.log(`no ${what}: ${event.reason}`);
  return hangUp(event);
};

/** The card of each call that is up, until it is charged. */
const cards = new Map();

// A real one asks by prompt_files: "please key in your card number, and then the hash key".
const steps = {
  'session.created': (event) => order(event, '/answer'),
  'session.answered': (event) => order(event, '/payment/card/collect', { max_attempts: 2, accepted_brands: ['visa', 'mastercard'] }),
  'payment.card.collected': (event) => {
    if (event.status !== 'collected') return giveUp(event, 'card');
    const { brand, last4 } = event.payment_method_details.card;
    console.log(`card: ${brand} that ends in ${last4}`);
    cards.set(event.session_uuid, event.card_uuid);
    return order(event, '/payment/cvv/collect', { card_uuid: event.card_uuid });
  },
  'payment.cvv.collected': (event) => {
    if (event.status !== 'collected') return giveUp(event, 'CVV');
    const charge = {
      card_uuid: cards.get(event.session_uuid),
      cvv_uuid: event.cvv_uuid,
      exp_month: 12,
      exp_year: 2030, // A real one collects it too: dtmf/collect with four digits.
      amount: 1000, // In agorot: ten shekels.
      currency: 'ils',
      provider: PROVIDER,
      terminal_number: TERMINAL,
    };
    // The key makes sure that the card is charged once, however often this event is delivered.
    return order(event, '/payment/charges', charge, { 'idempotency-key': `charge-${event.cvv_uuid}` });
  },
  'payment.charge.completed': (event) => {
    // `indeterminate`: look into the provider's books before you charge again.
    console.log(`charge: ${event.status}${event.failure_reason ? ` (${event.failure_reason})` : ''}`);
    return hangUp(event);
  },
  'session.ended': (event) => cards.delete(event.session_uuid),
};

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid);
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
