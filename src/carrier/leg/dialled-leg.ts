/**
 * The leg of a call that we place: there is nothing to ring or to answer at our side, and to refuse it is to hang up.
 */
import { PhoneLeg } from './phone-leg.ts';

export abstract class DialledLeg extends PhoneLeg {
  ring(): void {}
  startEarlyMedia(): void {}
  answer(): void {}

  reject(): void {
    this.hangup();
  }

  cancel(): void {
    this.hangup();
  }
}
