#include "design/remez.h"

#include <algorithm>
#include <cmath>

namespace sidetone::design {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr size_t density = 32;  // places of the grid for each unknown
constexpr int exchanges_max = 100;
constexpr double settled = 1e-9;  // how much the largest error may differ from the least

struct Place {
  double x;  // cos(2 pi f)
  double wanted;
  double weight;
  bool edge;
};

/** The polynomial in x = cos(2 pi f) that misses its places by the same weighted error, each to the other side than its
 * neighbours. */
class Levelled {
 public:
  explicit Levelled(const std::vector<Place>& places) {
    for (const Place& place : places) {
      double product = 1;
      for (const Place& other : places) {
        if (other.x != place.x) product *= 2 * (place.x - other.x);
      }
      factors_.push_back(1 / product);
    }
    double above = 0;
    double below = 0;
    double sign = 1;
    for (size_t i = 0; i < places.size(); i++, sign = -sign) {
      above += factors_[i] * places[i].wanted;
      below += sign * factors_[i] / places[i].weight;
    }
    error_ = above / below;
    sign = 1;
    for (size_t i = 0; i < places.size(); i++, sign = -sign) {
      xs_.push_back(places[i].x);
      values_.push_back(places[i].wanted - sign * error_ / places[i].weight);
    }
  }
  double error() const { return std::fabs(error_); }
  double at(double x) const {
    double above = 0;
    double below = 0;
    for (size_t i = 0; i < xs_.size(); i++) {
      if (x == xs_[i]) return values_[i];
      const double part = factors_[i] / (x - xs_[i]);
      above += part * values_[i];
      below += part;
    }
    return above / below;
  }

 private:
  double error_ = 0;
  std::vector<double> xs_;
  std::vector<double> values_;
  std::vector<double> factors_;
};

// A filter of even length is zero at half of the rate: cos(pi f) times a polynomial in x, where one of odd length is a
// polynomial.
double factor(size_t taps, double f) { return taps % 2 == 1 ? 1 : std::cos(pi * f); }

std::vector<Place> grid_of(size_t taps, size_t unknowns, const std::vector<Band>& bands) {
  std::vector<Place> grid;
  for (const Band& band : bands) {
    const size_t steps =
        static_cast<size_t>(std::ceil((band.to - band.from) * 2 * static_cast<double>(unknowns * density)));
    for (size_t i = 0; i <= steps; i++) {
      const double f = band.from + (band.to - band.from) * static_cast<double>(i) / static_cast<double>(steps);
      const double part = factor(taps, f);
      grid.push_back({std::cos(2 * pi * f), band.wanted / part, band.weight * part, i == 0 || i == steps});
    }
  }
  return grid;
}

/** The places where the error is largest, on alternate sides, `count` of them where there are so many. */
std::vector<size_t> extremes(const std::vector<Place>& grid, const std::vector<double>& errors, size_t count) {
  std::vector<size_t> found;
  for (size_t i = 0; i < grid.size(); i++) {
    const double side = errors[i] < 0 ? -1 : 1;
    const bool before = i == 0 || (grid[i].edge && grid[i - 1].edge) || side * errors[i] >= side * errors[i - 1];
    const bool after =
        i + 1 == grid.size() || (grid[i].edge && grid[i + 1].edge) || side * errors[i] > side * errors[i + 1];
    if (!before || !after) continue;
    if (!found.empty() && errors[found.back()] * errors[i] > 0) {
      if (std::fabs(errors[i]) > std::fabs(errors[found.back()])) found.back() = i;
    } else {
      found.push_back(i);
    }
  }
  while (found.size() > count) {  // the lesser end goes
    if (std::fabs(errors[found.front()]) < std::fabs(errors[found.back()])) {
      found.erase(found.begin());
    } else {
      found.pop_back();
    }
  }
  return found;
}

/** The taps of a response that is real and even about the middle, from its values at `taps` equidistant frequencies. */
std::vector<double> taps_of(size_t taps, const Levelled& polynomial) {
  std::vector<double> result(taps, 0.0);
  const double middle = static_cast<double>(taps - 1) / 2;
  for (size_t k = 0; k <= (taps - 1) / 2; k++) {
    const double f = static_cast<double>(k) / static_cast<double>(taps);
    const double gain =
        factor(taps, f) * polynomial.at(std::cos(2 * pi * f)) * (k == 0 ? 1 : 2) / static_cast<double>(taps);
    for (size_t n = 0; n < taps; n++) result[n] += gain * std::cos(2 * pi * f * (static_cast<double>(n) - middle));
  }
  return result;
}

}  // namespace

std::vector<double> remez(size_t taps, const std::vector<Band>& bands) {
  const size_t unknowns = (taps + 1) / 2;
  const std::vector<Place> grid = grid_of(taps, unknowns, bands);
  std::vector<Place> places;
  for (size_t i = 0; i <= unknowns; i++) places.push_back(grid[i * (grid.size() - 1) / unknowns]);
  for (int exchange = 0; exchange < exchanges_max; exchange++) {
    const Levelled polynomial(places);
    std::vector<double> errors;
    double most = 0;
    for (const Place& place : grid) {
      errors.push_back(place.weight * (place.wanted - polynomial.at(place.x)));
      most = std::max(most, std::fabs(errors.back()));
    }
    if (most <= polynomial.error() * (1 + settled)) return taps_of(taps, polynomial);
    const std::vector<size_t> found = extremes(grid, errors, unknowns + 1);
    if (found.size() <= unknowns) return {};
    for (size_t i = 0; i <= unknowns; i++) places[i] = grid[found[i]];
  }
  return {};
}

}  // namespace sidetone::design
