/**
 * Arktype. Its own words are not compiled, as that would take a tenth of a second of every start; our types are, when
 * they are first used.
 */
import './type-settings.ts';
import { scope } from 'arktype';

export type { ArkErrors } from 'arktype';
export const { type } = scope({}, { jitless: false });
