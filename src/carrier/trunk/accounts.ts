/** Trunks that share an address, as the accounts of one carrier do. */
import { parseUri } from '../../sip/message/uri.ts';
import { plainUser, type Trunk } from './trunk.ts';

/** The accounts by their users. Whom a call is for is asked some times a message, however many accounts there are. */
export class Accounts {
  readonly #first: Trunk | undefined;
  readonly #byUser = new Map<string, Trunk>();

  constructor(trunks: readonly Trunk[]) {
    this.#first = trunks[0];
    for (const trunk of trunks) {
      const { contact_user, from_user } = trunk.settings;
      for (const user of [contact_user, trunk.username, from_user]) {
        const own = user === undefined ? undefined : bare(plainUser(user));
        if (own !== undefined && !this.#byUser.has(own)) this.#byUser.set(own, trunk);
      }
    }
  }

  /**
   * The one whose own user a Request-URI has: `contact_user`, `username` or `from_user`, with or without the + of a
   * number, and the parameters of one (`;npdi`, RFC 4694) aside. Where it has none of them, the first.
   */
  meant(uri: string): Trunk | undefined {
    const user = bare(parseUri(uri)?.user ?? '');
    const [number = ''] = user.split(';', 1);
    return this.#byUser.get(user) ?? this.#byUser.get(number) ?? this.#first;
  }
}

const bare = (user: string): string => user.replace(/^\+/, '');
