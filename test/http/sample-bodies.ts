/** Bodies that several tests send or are answered with. */
import { newUuid } from '../../src/id.ts';

/** A Room without members, as RoomSummary shows it. */
export const roomSummary = (roomId: string) =>
  ({
    room_id: roomId,
    created_at: '2026-01-01T00:00:00.000Z',
    member_count: 0,
    playback_status: 'stopped',
    playback_operation_uuid: '',
    playback_urls: [],
    playback_volume: 0,
    voice_activity_events: false,
  }) as const;

/** A charge of 1.00 ILS, with references of nobody. */
export const chargeBody = () => ({
  card_uuid: `card_${newUuid()}`,
  cvv_uuid: `cvv_${newUuid()}`,
  exp_month: 1,
  exp_year: 2030,
  amount: 100,
  currency: 'ils',
  provider: 'sandbox',
  terminal_number: '1234567',
});
