/** The targets to which calls of a trunk are transferred. */
import type { TransferTarget } from '../../machine/session/input.ts';
import { escapeUser, parseUri } from '../../sip/message/uri.ts';
import { dialledUsers, numberOf, phoneForm } from '../leg/identity.ts';
import type { PhoneLegOptions } from '../leg/phone-leg.ts';
import { type Trunk, trunkAddress, trunkDomain } from './trunk.ts';

/** The trunk's part in transfers: the hosts that it permits, and numbers in its form. */
export function transfersOf(trunk: Trunk): PhoneLegOptions['transfers'] {
  const { transfer_hosts: hosts } = trunk.settings;
  return {
    permits(uri) {
      const { host, parameters } = parseUri(uri) ?? {};
      const isPermitted = (name: string) => hosts === undefined || hosts.some((each) => isSameHost(each, name));
      // With a maddr the call goes there, whatever the host is (RFC 3261 §19.1.1).
      const maddr = parameters?.get('maddr');
      return host !== undefined && isPermitted(host) && (maddr === undefined || isPermitted(maddr));
    },
    dialled(uri) {
      const { user = '' } = parseUri(uri) ?? {};
      return numberOf(user, trunk) ?? user;
    },
    referTo: (target, ownDomain) => referTo(trunk, target, ownDomain),
  };
}

/** Whether two hosts are one, in any case of letters and with or without the brackets of an IPv6 address. */
function isSameHost(one: string, other: string): boolean {
  const [a, b] = [one, other].map((host) => host.replace(/^\[|\]$/g, '').toLowerCase());
  return a === b;
}

/** A device has no trunk: it dials numbers at our own domain, as it always does. */
function referTo(trunk: Trunk, target: TransferTarget, ownDomain: string): string {
  if ('referTo' in target) return target.referTo;
  if ('uri' in target) return `<${target.uri}>`;
  const address = trunkAddress(trunk.uri);
  const { to } = dialledUsers(trunk, { to: target.number, from: target.number });
  return `<sip:${escapeUser(to)}@${address === undefined ? ownDomain : trunkDomain(address)}${phoneForm(trunk.settings)}>`;
}
