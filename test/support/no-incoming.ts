/** A telephone network in which nobody writes to a number of the platform. */
export const noIncoming = { take: async () => false, giveUp: async () => {} };
