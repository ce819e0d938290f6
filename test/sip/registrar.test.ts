/** What a REGISTER does to the contacts of a user (RFC 3261 §10.3). */
import { describe, expect, test } from 'bun:test';
import { DEVICE_CONTACTS_MAX, DEVICE_INSTANCE_MAX_CHARS, DEVICE_URI_MAX_CHARS } from '../../src/limits.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { Headers, NO_BODY, type SipRequest } from '../../src/sip/message/message.ts';
import { type Binding, contactFields, register } from '../../src/sip/registrar.ts';
import fc from '../support/fast-check.ts';

const SOURCE: Peer = { transport: 'udp', host: '203.0.113.5', port: 40_000, flow: 1 };
const NOW = 1_000_000;

function request(contacts: readonly string[], more: { expires?: string; cseq?: number; callId?: string } = {}): SipRequest {
  const headers = new Headers()
    .add('to', '<sip:alice@x>')
    .add('call-id', more.callId ?? 'one')
    .add('cseq', `${more.cseq ?? 1} REGISTER`)
    .add('user-agent', 'phone/1.0');
  for (const contact of contacts) headers.add('contact', contact);
  if (more.expires !== undefined) headers.add('expires', more.expires);
  return { kind: 'request', method: 'REGISTER', uri: 'sip:x', headers, body: NO_BODY };
}

/** The bindings after a REGISTER that was answered 200. */
function after(bindings: readonly Binding[], ...given: Parameters<typeof request>): readonly Binding[] {
  const outcome = register(request(...given), bindings, SOURCE, NOW);
  if (outcome.status !== 200) throw new Error(String(outcome.status));
  return outcome.bound;
}

/** The Contacts of an answer that tells these, which none of its request changed. */
const fieldsOf = (bound: readonly Binding[]) => contactFields({ bound, stored: [], removed: [] }, NOW).map(([, value]) => value);

describe('a REGISTER', () => {
  test('binds a contact to the address that it came from, for as long as was asked, an hour at most', () => {
    const [bound] = after([], ['<sip:alice@10.0.0.5:5060>;expires=120']);
    expect(bound).toEqual({
      key: 'sip:alice@10.0.0.5:5060',
      uri: 'sip:alice@10.0.0.5:5060',
      callId: 'one',
      cseq: 1,
      expiresAt: NOW + 120_000,
      transport: 'udp',
      host: '203.0.113.5',
      port: 40_000,
      userAgent: 'phone/1.0',
      instance: '',
      regId: 0,
      path: '',
    });
    expect(after([], ['<sip:a@h>'], { expires: '90' })[0]?.expiresAt).toBe(NOW + 90_000);
    expect(after([], ['<sip:a@h>'])[0]?.expiresAt).toBe(NOW + 3_600_000);
    expect(after([], ['<sip:a@h>'], { expires: '999999' })[0]?.expiresAt).toBe(NOW + 3_600_000);
  });

  test('over a connection binds for a quarter of an hour at most, because the connection may break before', () => {
    for (const transport of ['tcp', 'tls'] as const) {
      const outcome = register(request(['<sip:a@h>;expires=3600']), [], { ...SOURCE, transport }, NOW);
      expect(outcome).toMatchObject({ bound: [{ expiresAt: NOW + 900_000 }] });
    }
  });

  test('of less than a minute is too brief, and one that is malformed is refused', () => {
    expect(register(request(['<sip:a@h>;expires=59']), [], SOURCE, NOW).status).toBe(423);
    expect(register(request(['<sip:a@h>;expires=1']), [], SOURCE, NOW).status).toBe(423);
    expect(register(request(['<sip:a@h>;expires=60']), [], SOURCE, NOW).status).toBe(200);
    const numberless = request(['<sip:a@h>']);
    numberless.headers.set('cseq', 'one REGISTER');
    expect(register(numberless, [], SOURCE, NOW).status).toBe(400);
    expect(register(request(['nonsense']), [], SOURCE, NOW).status).toBe(400);
    expect(register(request(['*'], { expires: '60' }), [], SOURCE, NOW).status).toBe(400);
    expect(register(request(['*', '<sip:a@h>'], { expires: '0' }), [], SOURCE, NOW).status).toBe(400);
  });

  test('with expiry 0 removes its contact, with a star all of them, and without a contact tells what is bound', () => {
    const two = after(after([], ['<sip:a@h>']), ['<sip:b@h>'], { cseq: 2 });
    expect(two.map(({ uri }) => uri)).toEqual(['sip:a@h', 'sip:b@h']);
    expect(after(two, ['<sip:a@h>;expires=0'], { cseq: 3 }).map(({ uri }) => uri)).toEqual(['sip:b@h']);
    expect(after(two, ['*'], { cseq: 3, expires: '0' })).toEqual([]);
    expect(after(two, [])).toEqual(two);
    expect(fieldsOf(two)).toEqual(['<sip:a@h>;expires=3600', '<sip:b@h>;expires=3600']);
  });

  test('with a star that was overtaken by a later one of its Call-ID is 500, whatever other devices have bound', () => {
    const two = after(after([], ['<sip:a@h>'], { cseq: 5 }), ['<sip:b@h>'], { callId: 'two', cseq: 1 });
    const star = (cseq: number) => register(request(['*'], { expires: '0', cseq }), two, SOURCE, NOW).status;
    expect([star(4), star(5), star(6)]).toEqual([500, 500, 200]);
  });

  test('is taken within bounds: of its URI, its instance and its user agent', () => {
    const uri = (length: number) => `sip:${'a'.repeat(length - 'sip:@h'.length)}@h`;
    expect(after([], [`<${uri(DEVICE_URI_MAX_CHARS)}>`])).toHaveLength(1);
    expect(register(request([`<${uri(DEVICE_URI_MAX_CHARS + 1)}>`]), [], SOURCE, NOW).status).toBe(400);
    const instance = (length: number, regId = '1') =>
      after([], [`<sip:a@h>;+sip.instance="${'i'.repeat(length)}";reg-id=${regId}`]).map(
        ({ instance: { length: kept }, regId: id }) => [kept, id],
      )[0];
    expect([instance(DEVICE_INSTANCE_MAX_CHARS), instance(DEVICE_INSTANCE_MAX_CHARS + 1)]).toEqual([
      [DEVICE_INSTANCE_MAX_CHARS, 1],
      [0, 0],
    ]);
    expect(['2147483647', '2147483648', 'x'].map((regId) => instance(3, regId))).toEqual([
      [3, 2_147_483_647],
      [3, 0],
      [3, 0],
    ]);
    const long = request(['<sip:a@h>']);
    long.headers.set('user-agent', `a\tb${'x'.repeat(300)}`);
    const outcome = register(long, [], SOURCE, NOW);
    expect(outcome.status === 200 && outcome.bound[0]?.userAgent).toBe(`a b${'x'.repeat(125)}`);
    // Half a surrogate pair cannot be stored.
    long.headers.set('user-agent', `${'x'.repeat(127)}😀`);
    const cut = register(long, [], SOURCE, NOW);
    expect(cut.status === 200 && cut.bound[0]?.userAgent).toBe(`${'x'.repeat(127)}\ufffd`);
  });

  test('tells what is bound with what is left of its time, rounded up, and what the device calls itself', () => {
    const [bound] = after([], ['<sip:a@h>;expires=120;+sip.instance="<urn:x>";reg-id=2']);
    if (bound === undefined) throw new Error('nothing is bound');
    const field = (more: Partial<Binding>, ms: number) =>
      contactFields({ bound: [{ ...bound, ...more }], stored: [], removed: [] }, NOW + ms)[0]?.[1];
    expect(field({}, 500)).toBe('<sip:a@h>;expires=120;+sip.instance="<urn:x>";reg-id=2');
    expect(field({ regId: 0 }, 119_001)).toBe('<sip:a@h>;expires=1;+sip.instance="<urn:x>"');
    expect(field({ instance: '' }, 130_000)).toBe('<sip:a@h>;expires=0');
  });

  test('that gives a contact twice binds it once: the last counts', () => {
    const one = register(request(['<sip:a@h>, <sip:a@h>;expires=120']), [], SOURCE, NOW);
    const once = [{ uri: 'sip:a@h', expiresAt: NOW + 120_000 }];
    expect(one).toMatchObject({ bound: once, stored: once, removed: [] });
    const back = register(request(['<sip:a@h>;expires=0', '<sip:a@h>;expires=120']), [], SOURCE, NOW);
    expect(back).toMatchObject({ stored: [{ uri: 'sip:a@h' }], removed: [] });
    const gone = register(request(['<sip:a@h>;expires=120', '<sip:a@h>;expires=0']), [], SOURCE, NOW);
    expect(gone).toMatchObject({ bound: [], stored: [], removed: [] });
  });

  test('names a contact whatever the case of its host, and binds no URI headers', () => {
    const bound = after([], ['<SIP:Al@EXAMPLE.com:5070;Ob?Route=%3Csip:evil%3E>']);
    expect(bound.map(({ uri }) => uri)).toEqual(['sip:Al@example.com:5070;Ob']);
    expect(after(bound, ['<sip:Al@Example.COM:5070;Ob>'], { cseq: 2 })).toHaveLength(1);
    expect(register(request(['<sip:Al@EXAMPLE.COM:5070;Ob>']), bound, SOURCE, NOW).status).toBe(500);
    expect(after(bound, ['<sip:Al@EXAMPLE.COM:5070;Ob>;expires=0'], { cseq: 2 })).toEqual([]);
    expect(after([], ['<sip:[2001:DB8::1]?a=b>'])[0]?.uri).toBe('sip:[2001:db8::1]');
    expect(after([], ['<sip:a?b@H>'])[0]?.uri).toBe('sip:a?b@h');
    for (const contact of ['<sip:a@h?x=@evil>', '<tel:+1555>']) {
      expect(register(request([contact]), [], SOURCE, NOW).status).toBe(400);
    }
  });

  test('that was overtaken by a later one of its Call-ID changes nothing; a phone that started anew may', () => {
    const bound = after([], ['<sip:a@h>'], { cseq: 5 });
    expect(register(request(['<sip:a@h>'], { cseq: 5 }), bound, SOURCE, NOW).status).toBe(500);
    expect(register(request(['*'], { cseq: 4, expires: '0' }), bound, SOURCE, NOW).status).toBe(500);
    expect(after(bound, ['<sip:a@h>'], { cseq: 1, callId: 'two' })[0]?.cseq).toBe(1);
  });

  const A = ';+sip.instance="<urn:uuid:a>"';
  const B = ';+sip.instance="<urn:uuid:b>"';
  const urisAfter = (...given: Parameters<typeof after>) => after(...given).map(({ uri }) => uri);

  test('of a device that names itself replaces its own binding, whatever the Contact, and none of another device', () => {
    const two = after(after([], [`<sip:a@h:1>${A}`]), [`<sip:b@h:2>${B}`], { callId: 'b' });
    expect(urisAfter(two, [`<sip:a@h:3>${A}`], { callId: 'restarted' })).toEqual(['sip:b@h:2', 'sip:a@h:3']);
    const outcome = register(request([`sip:a@h:3${A}`], { callId: 'restarted' }), two, SOURCE, NOW);
    expect(outcome).toMatchObject({ stored: [{ uri: 'sip:a@h:3', instance: '<urn:uuid:a>', regId: 0 }], removed: ['sip:a@h:1'] });
    expect(urisAfter(two, [`<sip:a@h:3>${A};expires=0`], { callId: 'restarted' })).toEqual(['sip:b@h:2']);
    expect(urisAfter(two, ['<sip:c@h:3>'])).toHaveLength(3);
    // A name that cannot be written back as it came is none.
    for (const instance of ['"a b"', '"a\\"b"', `"${'a'.repeat(129)}"`, '""'])
      expect(after([], [`<sip:a@h>;+sip.instance=${instance};reg-id=1`])[0]).toMatchObject({ instance: '', regId: 0 });
  });

  test('keeps one binding for each way to a device that numbers them, and shows both names in the answer', () => {
    const two = after(after([], [`<sip:a@h:1>${A};reg-id=1`]), [`<sip:a@h:2>${A};reg-id=2`], { cseq: 2 });
    expect(urisAfter(two, [`<sip:a@h:3>${A};reg-id=1`], { cseq: 3 })).toEqual(['sip:a@h:2', 'sip:a@h:3']);
    expect(fieldsOf(two)[1]).toBe(`<sip:a@h:2>;expires=3600${A};reg-id=2`);
    expect(after([], [`<sip:a@h>${A};reg-id=9999999999`])[0]).toMatchObject({ regId: 0 });
  });

  test('that binds a new address and removes the old one of a device keeps the new, whichever comes first', () => {
    const bound = after([], [`<sip:a@h:1>${A}`]);
    const [fresh, old] = [`<sip:a@h:2>${A}`, `<sip:a@h:1>${A};expires=0`];
    for (const contacts of [
      [fresh, old],
      [old, fresh],
    ])
      expect(urisAfter(bound, contacts, { cseq: 2 })).toEqual(['sip:a@h:2']);
    expect(urisAfter(bound, [`<sip:a@h:2>${A}`, `<sip:a@h:3>${A}`], { cseq: 2 })).toEqual(['sip:a@h:3']);
  });

  test('of an earlier address of a device that comes late changes nothing', () => {
    const bound = after(after([], [`<sip:a@h:1>${A}`]), [`<sip:a@h:2>${A}`], { cseq: 3 });
    expect(register(request([`<sip:a@h:1>${A}`], { cseq: 2 }), bound, SOURCE, NOW).status).toBe(500);
  });

  test('beyond the limit takes the place of a contact out of reach, the first to expire, and of no other', () => {
    const full = Array.from({ length: DEVICE_CONTACTS_MAX }, (_, i): Binding => {
      const [contact] = after([], [`<sip:a@h:${5_000 + i}>;expires=${3_600 - i}`]);
      if (contact === undefined) throw new Error('not bound');
      return contact;
    });
    const one = request(['<sip:b@h>'], { callId: 'b' });
    const lost = new Set(['sip:a@h:5003', 'sip:a@h:5006']);
    const isLost = ({ uri }: Binding) => lost.has(uri);
    expect(register(one, full, SOURCE, NOW).status).toBe(403);
    expect(register(one, full, SOURCE, NOW, isLost)).toMatchObject({ status: 200, removed: ['sip:a@h:5006'] });
    expect(register(one, full.slice(1), SOURCE, NOW, isLost)).toMatchObject({ status: 200, removed: [] });
    const three = request(['<sip:b@h>, <sip:c@h>, <sip:d@h>'], { callId: 'b' });
    expect(register(three, full, SOURCE, NOW, isLost).status).toBe(403);
  });

  test('with more contacts than can be replaced at once is refused unread', () => {
    const contacts = (count: number) => Array.from({ length: count }, (_, i) => `<sip:a@h:${i + 1}>;expires=0`);
    expect(register(request(contacts(2 * DEVICE_CONTACTS_MAX)), [], SOURCE, NOW).status).toBe(200);
    expect(register(request([...contacts(2 * DEVICE_CONTACTS_MAX), '*malformed']), [], SOURCE, NOW).status).toBe(403);
  });

  test('never leaves more contacts than a user may have, nor one that has expired, whatever comes', () => {
    const contact = fc.record({
      user: fc.constantFrom(...'abcdefghijklmnop'),
      expires: fc.constantFrom(0, 60, 3_600),
      name: fc.constantFrom('', A, B, `${A};reg-id=1`),
    });
    fc.assert(
      fc.property(fc.array(fc.array(contact, { maxLength: 4 }), { maxLength: 30 }), (requests) => {
        let bound: readonly Binding[] = [];
        for (const [i, contacts] of requests.entries()) {
          const now = NOW + i * 30_000;
          const values = contacts.map(({ user, expires, name }) => `<sip:${user}@h>;expires=${expires}${name}`);
          const host = `203.0.113.${i % 3}`;
          const outcome = register(request(values, { cseq: i + 1, callId: `boot ${i % 5}` }), bound, { ...SOURCE, host }, now);
          if (outcome.status === 200) bound = outcome.bound;
          expect(new Set(bound.map(({ key }) => key)).size).toBe(bound.length);
          const names = bound.filter(({ instance }) => instance !== '').map(({ instance, regId }) => `${instance} ${regId}`);
          expect(new Set(names).size).toBe(names.length);
          expect(bound.length).toBeLessThanOrEqual(DEVICE_CONTACTS_MAX);
          if (outcome.status === 200) expect(bound.every(({ expiresAt }) => expiresAt > now)).toBe(true);
        }
      }),
    );
  });
});

describe('two phones with one private Contact', () => {
  const CONTACT = '<sip:alice@192.168.1.10:5060>';
  const URI = 'sip:alice@192.168.1.10:5060';
  const [HOME, OFFICE, MOBILE] = ['203.0.113.5', '198.51.100.7', '192.0.2.9'];

  /** A registrar of one user. `from` sends a REGISTER, and tells the Contacts of its answer, or its status. */
  function registrar() {
    let bound: readonly Binding[] = [];
    let cseq = 0;
    let now = NOW;
    return {
      wait: (ms: number) => {
        now += ms;
      },
      from: (host: string, callId: string, contact = CONTACT, port = 40_000) => {
        const outcome = register(request([contact], { callId, cseq: ++cseq }), bound, { ...SOURCE, host, port }, now);
        if (outcome.status !== 200) return outcome.status;
        bound = outcome.bound;
        return contactFields(outcome, now).map(([, value]) => value);
      },
      places: () => bound.filter(({ expiresAt }) => expiresAt > now).map(({ key, host, port }) => `${key} ${host}:${port}`),
      uris: () => new Set(bound.map(({ uri }) => uri)),
    };
  }
  const home = `${URI} ${HOME}:40000`;
  const office = `${URI};sidetone-contact=2 ${OFFICE}:40000`;

  test('are both bound, and reached by their own Contact', () => {
    const alice = registrar();
    alice.from(HOME, 'one');
    // It finds its own Contact in the answer, once.
    expect(alice.from(OFFICE, 'two', `${CONTACT};expires=120`)).toEqual([`<${URI}>;expires=120`]);
    expect(alice.places()).toEqual([home, office]);
    for (let refresh = 0; refresh < 3; refresh++) {
      alice.wait(60_000);
      alice.from(OFFICE, 'two', `${CONTACT};expires=120`);
      alice.from(HOME, 'one');
    }
    expect(alice.places().toSorted()).toEqual([home, office]);
    expect([...alice.uris()]).toEqual([URI]);
  });

  test('sign off for themselves alone, and see nothing of the other then', () => {
    const alice = registrar();
    alice.from(HOME, 'one');
    alice.from(OFFICE, 'two');
    expect(alice.from(OFFICE, 'two', `${CONTACT};expires=0`)).toEqual([]);
    expect(alice.places()).toEqual([home]);
    // A phone that starts signs off first, in case that it was cut off before.
    alice.from(OFFICE, 'three', `${CONTACT};expires=0`);
    expect(alice.places()).toEqual([home]);
    alice.from(OFFICE, 'three');
    alice.from(HOME, 'one', `${CONTACT};expires=0`);
    expect(alice.places()).toEqual([office]);
    // The first one comes back, and takes the place that is free.
    alice.from(HOME, 'four');
    expect(alice.places().toSorted()).toEqual([home, office]);
  });

  test('keep their bindings when their NAT takes another port or address, or they start anew behind the same one', () => {
    const alice = registrar();
    alice.from(HOME, 'one');
    alice.from(OFFICE, 'two');
    alice.from(HOME, 'one', CONTACT, 41_000);
    alice.from(MOBILE, 'two');
    expect(alice.places()).toEqual([`${URI} ${HOME}:41000`, `${URI};sidetone-contact=2 ${MOBILE}:40000`]);
    alice.from(HOME, 'restarted', CONTACT, 42_000);
    expect(alice.places().toSorted()).toEqual([`${URI} ${HOME}:42000`, `${URI};sidetone-contact=2 ${MOBILE}:40000`]);
    // One that starts anew at another address leaves the old binding, until that expires.
    alice.wait(1_800_000);
    alice.from(OFFICE, 'restarted again');
    expect(alice.places()).toHaveLength(3);
    alice.wait(1_800_000);
    expect(alice.places()).toEqual([`${URI};sidetone-contact=3 ${OFFICE}:40000`]);
  });

  test('are told apart by their names, and a name of its own is followed wherever the phone goes', () => {
    const alice = registrar();
    const [one, two] = ['a', 'b'].map((name) => `${CONTACT};+sip.instance="<urn:uuid:${name}>"`);
    alice.from(HOME, 'one', one);
    alice.from(OFFICE, 'two', two);
    expect(alice.places()).toEqual([home, office]);
    alice.from(MOBILE, 'restarted', one);
    expect(alice.places()).toEqual([office, `${URI} ${MOBILE}:40000`]);
    // A phone that was reset has another name at the same place.
    alice.from(MOBILE, 'reset', `${CONTACT};+sip.instance="<urn:uuid:c>"`);
    expect(alice.places()).toEqual([office, `${URI} ${MOBILE}:40000`]);
    // Another port of the NAT is another phone behind it.
    alice.from(MOBILE, 'beside', `${CONTACT};+sip.instance="<urn:uuid:d>"`, 41_000);
    expect(alice.places()).toEqual([office, `${URI} ${MOBILE}:40000`, `${URI};sidetone-contact=3 ${MOBILE}:41000`]);
  });

  test('that is one phone without a name, at more addresses than a user may have contacts, is bound at the last ones', () => {
    const alice = registrar();
    for (let i = 0; i < 2 * DEVICE_CONTACTS_MAX; i++) {
      alice.wait(1_000);
      expect(alice.from(`203.0.113.${i}`, `boot ${i}`)).toEqual([`<${URI}>;expires=3600`]);
    }
    expect(alice.places()).toHaveLength(DEVICE_CONTACTS_MAX);
    expect(alice.places().at(-1)).toContain(`203.0.113.${2 * DEVICE_CONTACTS_MAX - 1}:`);
  });

  test('that a node of a release before has told with their marks take these back', () => {
    const alice = registrar();
    alice.from(HOME, 'one');
    alice.from(OFFICE, 'two');
    alice.from(OFFICE, 'two', `<${URI};sidetone-contact=2>;expires=0`);
    expect(alice.places()).toEqual([home]);
  });
});
