/** The seat that a Session is to have in a Room. */
export interface SeatWish {
  readonly roomId: string;
  readonly appUuid: string;
  readonly sessionUuid: string;
  readonly isBot: boolean;
  /** The Session has not been answered yet. */
  readonly reserved: boolean;
  readonly coach: string | undefined;
}
