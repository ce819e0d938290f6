/** Times, in UTC or in the reader's own zone, and spans of time. */
import { createContext } from 'preact';

export type Zone = 'utc' | 'local';

/** The zone that the reader has chosen. */
export const ZoneContext = createContext<Zone>('local');

const KEY = 'sidetone.zone';
export const storedZone = (): Zone => (localStorage.getItem(KEY) === 'utc' ? 'utc' : 'local');
export const storeZone = (zone: Zone): void => localStorage.setItem(KEY, zone);

const two = (value: number): string => String(value).padStart(2, '0');

/** `2026-01-31 14:05:09`, with milliseconds if asked. */
export function dayAndTime(text: string, zone: Zone, precise = false): string {
  const at = new Date(text);
  return `${dayOf(at, zone)} ${clockOf(at, zone, precise)}`;
}

/** `14:05:09.123`. */
export const clockTime = (text: string, zone: Zone): string => clockOf(new Date(text), zone, true);

function dayOf(at: Date, zone: Zone): string {
  return zone === 'utc' ? at.toISOString().slice(0, 10) : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

function clockOf(at: Date, zone: Zone, precise: boolean): string {
  const [hours, minutes, seconds] =
    zone === 'utc'
      ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
      : [at.getHours(), at.getMinutes(), at.getSeconds()];
  const ms = precise ? `.${String(at.getUTCMilliseconds()).padStart(3, '0')}` : '';
  return `${two(hours)}:${two(minutes)}:${two(seconds)}${ms}`;
}

/**
 * What a field of a day and a time shows of an instant, in the chosen zone: `2026-01-31T14:05`. A text that is no
 * instant is empty there.
 */
export function fieldOf(instant: string, zone: Zone): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return '';
  const clock = clockOf(at, zone, false);
  return `${dayOf(at, zone)}T${clock.endsWith(':00') ? clock.slice(0, 5) : clock}`;
}

/** The instant that such a field means, in UTC; empty for an empty field. */
export function instantOf(field: string, zone: Zone): string {
  const at = new Date(zone === 'utc' && field !== '' ? `${field}Z` : field);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

/** `1:02:03` or `2:03`, of seconds. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
