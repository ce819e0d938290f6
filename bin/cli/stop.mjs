/** What stops a command, in one line. */
export class Stop extends Error {}
