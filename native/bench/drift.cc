// An hour of a call on virtual time: a far end whose clock runs 200 ppm fast or slow, 2 % loss, up to 40 ms of jitter
// that reorders. Prints the delay of what is heard over the fastest packet, how it moves, how much had to be invented,
// and how far what is heard is from what was said. Then what a tone suffers on its way through a room.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "test/kernel/distortion.h"
#include "test/plane/drifting_call.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

void call(double minutes, const Network& network) {
  const Heard heard = DriftingCall(network).run(minutes);
  const auto minute = [](auto from) {
    double sum = 0;
    for (int i = 0; i < 3000; i++) sum += *from++ / 3000;
    return sum;
  };
  const double first = minute(heard.delay_ms.begin());
  const double last = minute(heard.delay_ms.end() - 3000);
  std::vector<double> delays = heard.delay_ms;
  std::sort(delays.begin(), delays.end());
  const auto at = [&delays](double part) {
    return delays[static_cast<size_t>(part * static_cast<double>(delays.size() - 1))];
  };
  std::printf(
      "%+5.0f ppm, %2.0f %% loss, %2.0f ms jitter, %3.0f min: delay over the fastest packet %5.1f ms median, %5.1f "
      "p99, %5.1f most; first minute %5.1f, last %5.1f\n"
      "    invented %.2f %%; segmental SNR of the rest %.2f dB, of the codec alone %.2f dB; %.2f %% of it 3 dB or more "
      "below the codec; with the invented %.2f dB\n",
      network.ppm, network.loss * 100, network.jitter_ms, minutes, at(0.5), at(0.99), at(1), first, last,
      100 * heard.invented_part, heard.snr_db, heard.codec_snr_db, 100 * heard.disturbed_part, heard.all_snr_db);
}

void tone() {
  constexpr double hz = 1020;
  constexpr double dbov = -13;
  constexpr size_t frames = 250;
  FilterBank filters;
  std::printf("THD+N of 1,020 Hz at %.0f dBov, in dB: resampled and mixed; then also coded; coded only\n", dbov);
  for (size_t from = 0; from < rates; from++) {
    const std::vector<int16_t> said = sine(hz, dbov, rate_table_hz[from], frames);
    for (size_t to = 0; to < 2; to++) {
      const std::vector<int16_t> mixed = heard_in_room(said, from, to, filters);
      const size_t settled = rate_samples(to) * 10;
      std::printf("  %5u to %5u: %6.1f", rate_table_hz[from], rate_table_hz[to],
                  thd_n_db(mixed, settled, hz, rate_table_hz[to]));
      const std::vector<int16_t> plain = sine(hz, dbov, rate_table_hz[to], frames);
      const char* const names[] = {"mu-law", "A-law", "G.722"};
      for (const Codec codec : {Codec::pcmu, Codec::pcma, Codec::g722}) {
        if (codec_rate_hz(codec) != rate_table_hz[to]) continue;
        std::printf("   %s %5.1f; %5.1f", names[static_cast<size_t>(codec)],
                    thd_n_db(through(codec, mixed), settled, hz, rate_table_hz[to]),
                    thd_n_db(through(codec, plain), settled, hz, rate_table_hz[to]));
      }
      std::printf("\n");
    }
  }
}

/** One line a network: mean over ten phases between packets and ticks, ten minutes each. */
void network(const char* name, Network network) {
  constexpr int phases = 10;
  std::vector<double> delays;
  double invented = 0;
  double snr = 0;
  double codec = 0;
  double all = 0;
  double disturbed = 0;
  for (int i = 0; i < phases; i++) {
    network.phase_ms = 20.0 * (i + 0.5) / phases;
    const Heard heard = DriftingCall(network).run(10);
    delays.insert(delays.end(), heard.delay_ms.begin(), heard.delay_ms.end());
    invented += 100 * heard.invented_part / phases;
    snr += heard.snr_db / phases;
    codec += heard.codec_snr_db / phases;
    all += heard.all_snr_db / phases;
    disturbed += 100 * heard.disturbed_part / phases;
  }
  std::sort(delays.begin(), delays.end());
  const auto at = [&delays](double part) {
    return delays[static_cast<size_t>(part * static_cast<double>(delays.size() - 1))];
  };
  std::printf(
      "  %-44s delay %5.1f median %5.1f p99 %5.1f most; invented %5.2f %%; SNR %.2f (%.2f), disturbed %.2f %%, with "
      "the invented %.2f\n",
      name, at(0.5), at(0.99), at(1), invented, snr, codec, disturbed, all);
}

void networks() {
  std::printf("networks, ten phases of ten minutes each\n");
  network("perfect", {0, 0, 0});
  network("jitter of 2 ms", {0, 0, 2});
  network("jitter of 10 ms", {0, 0, 10});
  network("jitter of 40 ms", {0, 0, 40});
  network("exponential jitter, mean 2 ms", {0, 0, 0, 2});
  network("exponential jitter, mean 5 ms", {0, 0, 0, 5});
  network("exponential jitter, mean 20 ms", {0, 0, 0, 20});
  network("60 ms held back each second", {0, 0, 0, 0, 1000, 60});
  network("60 ms held back every 3 s", {0, 0, 0, 0, 3000, 60});
  network("100 ms held back every 10 s, jitter of 5 ms", {0, 0, 5, 0, 10000, 100});
  network("250 ms held back every 20 s", {0, 0, 0, 0, 20000, 250});
  network("one packet of 300 late by 60 ms", {0, 0, 0, 0, 0, 0, 1.0 / 300});
  network("one packet of 50 late by 60 ms", {0, 0, 0, 0, 0, 0, 1.0 / 50});
  network("-200 ppm, jitter of 2 ms", {-200, 0, 2});
  network("+200 ppm, jitter of 2 ms", {200, 0, 2});
}

}  // namespace

int main() {
  tone();
  networks();
  for (const double ppm : {0.0, 200.0, -200.0}) {
    call(60, {ppm, 0, 0});
    call(60, {ppm, 0.02, 40});
  }
  return 0;
}
