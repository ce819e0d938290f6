/** The carrier of short messages that `SMS_PROVIDER` names. */
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import type { SmsGateway } from '../machine/message/gateway.ts';
import { sandboxSms } from './sandbox-sms.ts';

/** Makes the gateway of short messages, or undefined when they are off. SMPP is loaded only where it is used. */
export async function createSmsGateway(settings: Config['smsProvider'], clock: Clock, log: Log): Promise<SmsGateway | undefined> {
  switch (settings.kind) {
    case 'off':
      return undefined;
    case 'sandbox':
      return sandboxSms(clock);
    case 'smpp': {
      const { SmppGateway } = await import('./smpp-gateway.ts');
      return new SmppGateway(settings, clock, log);
    }
  }
}
