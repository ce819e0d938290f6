/** The numbering plans of all countries. Only `number-plan.ts` loads this file, where a trunk has a country. */
export { isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js/max';
export { default as metadata } from 'libphonenumber-js/max/metadata';
