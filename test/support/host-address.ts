import { networkInterfaces } from 'node:os';

/** An IPv4 address of this machine beyond loopback, or undefined. */
export const hostAddress: string | undefined = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
