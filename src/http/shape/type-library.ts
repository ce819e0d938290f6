/**
 * Arktype. Its own words are not compiled, as that would take a tenth of a second; our types are, when they are first
 * used. Only `type.ts` loads this file.
 */
import './type-settings.ts';
import { scope } from 'arktype';

export const { type } = scope({}, { jitless: false });
