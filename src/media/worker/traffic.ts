/** The RTP counters of all ended legs, added up for `/metrics`. */
import { counter, type Reading } from '../../metrics.ts';
import type { LegCounters } from '../audio.ts';

/** MOS below which many users are dissatisfied (ITU-T G.107, annex B: R under 70). */
const POOR_MOS = 3.6;

export class Traffic {
  packetsReceived = 0;
  packetsSent = 0;
  packetsLost = 0;
  packetsLate = 0;
  srtpForged = 0;
  srtpReplayed = 0;
  /** Legs that heard something of their far ends. */
  legsHeard = 0;
  /** The legs among them with an estimate under `POOR_MOS`. */
  legsPoor = 0;

  /** Adds a leg that has ended. */
  add(leg: LegCounters): void {
    this.packetsReceived += leg.packetsReceived;
    this.packetsSent += leg.packetsSent;
    this.packetsLost += leg.packetsLost;
    this.packetsLate += leg.packetsLate;
    this.srtpForged += leg.srtpForged;
    this.srtpReplayed += leg.srtpReplayed;
    if (leg.mos > 0) this.legsHeard++;
    if (leg.mos > 0 && leg.mos < POOR_MOS) this.legsPoor++;
  }
}

export function trafficReadings(traffic: Traffic): readonly Reading[] {
  return [
    counter('rtp_packets_received_total', 'RTP packets of calls that have ended: taken', () => traffic.packetsReceived),
    counter('rtp_packets_sent_total', 'RTP packets of calls that have ended: sent', () => traffic.packetsSent),
    counter(
      'rtp_packets_lost_total',
      'RTP packets of calls that have ended: lost on their way to here',
      () => traffic.packetsLost,
    ),
    counter('rtp_packets_late_total', 'RTP packets of calls that have ended: too late to be heard', () => traffic.packetsLate),
    counter(
      'srtp_packets_forged_total',
      'SRTP and SRTCP packets of calls that have ended: dropped, as their authentication failed',
      () => traffic.srtpForged,
    ),
    counter(
      'srtp_packets_replayed_total',
      'SRTP and SRTCP packets of calls that have ended: dropped, as they had come before',
      () => traffic.srtpReplayed,
    ),
    counter('calls_heard_total', 'Calls that have ended of whose far end anything was heard', () => traffic.legsHeard),
    counter('calls_poor_total', `Of these, calls with an estimated MOS under ${POOR_MOS}`, () => traffic.legsPoor),
  ];
}
