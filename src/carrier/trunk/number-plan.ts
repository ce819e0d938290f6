/**
 * Telephone numbers as a trunk writes them, and E.164. The plan of the trunk's country decides what bare digits are
 * (libphonenumber). A number that cannot be told for certain is no number: nothing is guessed.
 */

import type { CountryCode, PhoneNumber } from 'libphonenumber-js/max';
import { isE164 } from '../../phone-number.ts';

let plans: typeof import('./number-plan-library.ts') | undefined;

/** Loads the numbering plans, which take a tenth of a start, where one of these trunks has a country. */
export async function loadNumberPlans(
  trunks: readonly { readonly settings: { readonly country_code?: string } }[],
): Promise<void> {
  if (trunks.some(({ settings }) => settings.country_code !== undefined)) plans ??= await import('./number-plan-library.ts');
}

/** Whether `code` is the calling code of a country, without `+`. */
export async function isCountryCode(code: string): Promise<boolean> {
  plans ??= await import('./number-plan-library.ts');
  return mainCountry(code) !== undefined;
}

export type InboundFormat = 'auto' | 'e164' | 'national';
export type OutboundFormat = 'plus_e164' | 'e164' | 'national' | 'international_00';

/** Bare digits are taken for an international number without a country code only when there are so many. */
const BARE_INTERNATIONAL_MIN_DIGITS = 11;

/**
 * The E.164 form of the user part of a SIP or tel URI. Visual separators are ignored (RFC 3966 §5.1.1). Undefined when
 * it is no number, or not one that the format makes certain.
 */
export function normaliseNumber(user: string, format: InboundFormat, countryCode: string | undefined): string | undefined {
  const bare = user.split(';', 1)[0]?.replace(/[-.()\s]/g, '') ?? '';
  if (!/^\+?[0-9]{1,20}$/.test(bare)) return undefined;
  if (bare.startsWith('+')) return international(bare.slice(1));
  if (format === 'e164') return international(bare);
  if (isOfAnotherCountry(user, countryCode)) return undefined;
  const country = countryCode === undefined ? undefined : mainCountry(countryCode);
  if (country === undefined || countryCode === undefined) {
    if (bare.startsWith('00')) return international(bare.slice(2));
    return format === 'auto' && bare.length >= BARE_INTERNATIONAL_MIN_DIGITS ? international(bare) : undefined;
  }
  const dialled = possible(parsed(bare, country));
  if (bare.startsWith('00')) {
    // The country's own prefix may begin with 00 and be longer, such as Australia's 0011.
    const plain = possible(parsed(`+${bare.slice(2)}`));
    const abroad = dialled?.countryCallingCode === countryCode ? undefined : dialled;
    return plain?.number ?? abroad?.number ?? international(bare.slice(2));
  }
  // The 1 of North America is its calling code and its national prefix: both readings are the same number.
  const hasCode = countryCode !== '1' && bare === `${countryCode}${dialled?.nationalNumber ?? ''}`;
  if (format === 'national') return hasCode ? undefined : dialled?.number;
  // Digits that could be both are national, unless only the other reading is a number of the plan.
  const coded = bare.startsWith(countryCode) ? possible(parsed(`+${bare}`)) : undefined;
  return coded?.isValid() === true && dialled?.isValid() !== true ? coded.number : (dialled ?? coded)?.number;
}

/** Whether a local number says that it is one of another country than the trunk's (RFC 3966 §5.1.5). */
function isOfAnotherCountry(user: string, countryCode: string | undefined): boolean {
  const context = /;phone-context=\+([0-9.()-]+)/i.exec(user)?.[1]?.replace(/[^0-9]/g, '');
  return context !== undefined && (countryCode === undefined || !context.startsWith(countryCode));
}

const possible = (number: PhoneNumber | undefined): PhoneNumber | undefined =>
  number?.isPossible() === true && isE164(number.number) ? number : undefined;

/** The user part that a trunk wants for an E.164 number. */
export function formatNumber(e164: string, format: OutboundFormat, countryCode: string | undefined): string {
  const digits = e164.slice(1);
  switch (format) {
    case 'plus_e164':
      return e164;
    case 'e164':
      return digits;
    case 'international_00':
      return `00${digits}`;
    case 'national':
      return countryCode === undefined ? `00${digits}` : nationalForm(e164, countryCode);
  }
}

/**
 * The digits that are dialled within the country, `00…` for other countries, and `+…` where both would be read as
 * another number.
 */
function nationalForm(e164: string, countryCode: string): string {
  const number = parsed(e164);
  const isOwn = number?.countryCallingCode === countryCode;
  const national = isOwn ? number.formatNational().replace(/[^0-9]/g, '') : '';
  const forms = [national, `00${e164.slice(1)}`];
  const isCertain = (form: string) =>
    normaliseNumber(form, 'national', countryCode) === e164 && normaliseNumber(form, 'auto', countryCode) === e164;
  return forms.find(isCertain) ?? e164;
}

function international(digits: string): string | undefined {
  const number = `+${digits}`;
  return isE164(number) ? number : undefined;
}

/** The number that a text is, by the plan of `country` where it has no code of its own. */
const parsed = (text: string, country?: CountryCode): PhoneNumber | undefined =>
  plans?.parsePhoneNumberFromString(text, country === undefined ? {} : { defaultCountry: country });

/** The country that gives a calling code its plan: the United States for 1. */
function mainCountry(countryCode: string): CountryCode | undefined {
  if (plans === undefined) return undefined;
  const codes: Readonly<Record<string, readonly string[]>> = plans.metadata.country_calling_codes;
  const [country] = Object.hasOwn(codes, countryCode) ? (codes[countryCode] ?? []) : [];
  return country !== undefined && plans.isSupportedCountry(country) ? country : undefined;
}
