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

/** `1:02:03` or `2:03`, of seconds. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
