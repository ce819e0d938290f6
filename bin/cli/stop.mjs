/** What stops a command, in one line. `status` is that of the operator API's refusal, where there was one. */
export class Stop extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}
