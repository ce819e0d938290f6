/** The form of a lowercase RFC 4122 version 4 UUID. */
export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A lowercase RFC 4122 version 4 UUID. */
export const newUuid = (): string => crypto.randomUUID();

export const newAppUuid = (): string => `app_${newUuid()}`;
export const newWebhookId = (): string => `evt_${newUuid()}`;

/** Tells whether `text` is a lowercase RFC 4122 version 4 UUID (interface, Identifier shapes). */
export const isUuid = (text: string): boolean => UUID_V4.test(text);

/** The form of `app_<uuid-v4>`. */
export const APP_UUID = new RegExp(`^app_${UUID_V4.source.slice(1)}`);

/** Tells whether `text` is `app_<uuid-v4>`. */
export const isAppUuid = (text: string): boolean => text.startsWith('app_') && isUuid(text.slice(4));

/** Tells whether `text` is `rec_<uuid-v4>`. */
export const isRecordingUuid = (text: string): boolean => text.startsWith('rec_') && isUuid(text.slice(4));
