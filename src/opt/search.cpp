#include "opt/search.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/text.h"
#include "mote/error.h"
#include "opt/nest.h"
#include "opt/opt.h"

namespace mote {
namespace {

constexpr std::array<std::string_view, 8> names{"tile",   "registers", "l2",    "bytes",
                                                "unroll", "lanes",     "split", "swap"};

bool names_a_place(Word::Kind k) { return k >= Word::Kind::unroll; }
bool is_number_of_target(Word::Kind k) { return !names_a_place(k); }

std::vector<Expr> ranges_of(const Kernel& k) {
  std::vector<Expr> stores, out;
  for (const Nest& n : k.nests) stores.insert(stores.end(), n.stores.begin(), n.stores.end());
  for (const Expr& e : topological(stores))
    if (e->op == Op::range) out.push_back(e);
  return out;
}

Expr range_with(const Kernel& k, std::int64_t id) {
  for (const Expr& r : ranges_of(k))
    if (r->arg == id) return r;
  throw InternalError(cat("search: the kernel has no range ", id));
}

Kernel swapped(Kernel k, const Word& w) {
  const auto nest = static_cast<std::size_t>(w.which), at = static_cast<std::size_t>(w.number);
  if (nest >= k.nests.size() || at + 1 >= k.nests[nest].loops.size())
    throw InternalError(cat("search: there are no loops ", at, " and ", at + 1));
  std::vector<Expr> loops = k.nests[nest].loops;
  std::swap(loops[at], loops[at + 1]);
  return order(std::move(k), nest, loops);
}

Kernel moved(Kernel k, const Word& w) {
  if (w.kind == Word::Kind::swap) return swapped(std::move(k), w);
  const Expr r = range_with(k, w.which);
  if (w.kind == Word::Kind::split) return split(std::move(k), r, w.number);
  if (w.number < 1 || w.number > 64) throw InternalError("search: more copies than 64");
  const int n = static_cast<int>(w.number);
  return w.kind == Word::Kind::unroll ? unroll(std::move(k), r, n) : vectorize(std::move(k), r, n);
}

// ---- a model of the time

constexpr std::size_t features = 7;
using Features = std::array<double, features>;

double trips(const CodePhase& phase, const Instruction& loop) {
  if (loop.kind == Ins::chunk)
    return static_cast<double>(std::max<std::int64_t>(phase.tasks->hi, 1));
  double bounds[2] = {0, 4};  // where the end is not known: a few
  for (std::size_t i = 0; i < 2; ++i) {
    const Instruction& made = phase.body[static_cast<std::size_t>(loop.args[i])];
    if (made.kind == Ins::constant) bounds[i] = made.imm.as_double();
  }
  return std::max(bounds[1] - bounds[0], 1.0);
}

std::size_t feature_of(const Instruction& i) {
  if (i.kind == Ins::load) return i.lanes > 1 ? 1 : 2;
  if (i.kind == Ins::store) return 3;
  if (i.kind == Ins::loop) return 4;
  if (i.kind == Ins::elementwise && is_float(i.dtype)) return 5;
  return 6;
}

// How often instructions of each kind run; and one, for what a launch takes.
Features features_of(const Code& code) {
  Features out{1};
  for (const CodePhase& phase : code.phases) {
    std::vector<double> times{1};  // of each open block
    for (const Instruction& i : phase.body) {
      if (i.kind == Ins::end) times.pop_back();
      if (i.kind == Ins::constant || i.kind == Ins::end || i.kind == Ins::otherwise) continue;
      const bool loops = i.kind == Ins::loop || i.kind == Ins::chunk;
      if (loops) times.push_back(times.back() * trips(phase, i));
      if (i.kind == Ins::branch) times.push_back(times.back() / 2);
      out[feature_of(i)] += times.back() * 1e-9;
    }
  }
  return out;
}

// time = weights . features, by least squares of the relative errors with a little damping.
class Model {
 public:
  void learn(const Features& x, Seconds time) {
    if (!std::isfinite(time) || time <= 0) return;
    for (std::size_t i = 0; i < features; ++i) {
      for (std::size_t j = 0; j < features; ++j) products_[i][j] += x[i] * x[j] / (time * time);
      right_[i] += x[i] / time;
    }
    ++samples_;
  }

  bool is_ready() const { return samples_ >= 2 * static_cast<int>(features); }

  // Gauss's elimination; damping keeps every pivot positive.
  Features weights() const {
    auto a = products_;
    Features w = right_;
    for (std::size_t i = 0; i < features; ++i) a[i][i] += 1e-6 * products_[i][i] + 1e-12;
    for (std::size_t i = 0; i < features; ++i)
      for (std::size_t row = i + 1; row < features; ++row) {
        const double by = a[row][i] / a[i][i];
        for (std::size_t j = i; j < features; ++j) a[row][j] -= by * a[i][j];
        w[row] -= by * w[i];
      }
    for (std::size_t i = features; i-- > 0;) {
      for (std::size_t j = i + 1; j < features; ++j) w[i] -= a[i][j] * w[j];
      w[i] /= a[i][i];
    }
    return w;
  }

 private:
  std::array<Features, features> products_{};
  Features right_{};
  int samples_ = 0;
};

double predicted(const Features& weights, const Features& x) {
  double time = 0;
  for (std::size_t i = 0; i < features; ++i) time += weights[i] * x[i];
  return time;
}

// ---- the candidates

struct Candidate {
  Words words;
  Kernel kernel;
  Features features{};
  Seconds time = std::numeric_limits<double>::infinity();
};

// Other targets that the heuristic may believe in, and other tiles.
std::vector<Words> beginnings(const Target& t) {
  using K = Word::Kind;
  std::vector<Words> out;
  for (int rank = 1; rank <= 5; ++rank) out.push_back({{K::tile, 0, rank}});
  for (std::int64_t l2 : {t.l2_bytes / 4, t.l2_bytes / 2, t.l2_bytes * 2})
    out.push_back({{K::l2, 0, l2}});
  for (int n : {t.vector_registers / 2, t.vector_registers * 2})
    out.push_back({{K::registers, 0, n}});
  for (int bytes : {t.vector_bytes / 2, t.vector_bytes * 2}) out.push_back({{K::bytes, 0, bytes}});
  return out;
}

// What one more word can say of the kernel.
std::vector<Words> next_words(const Kernel& k) {
  using K = Word::Kind;
  constexpr std::size_t most_ranges_looked_at = 16;
  std::vector<Words> out;
  for (std::size_t n = 0; n < k.nests.size(); ++n)
    for (std::size_t j = 0; j + 1 < k.nests[n].loops.size(); ++j)
      out.push_back({{K::swap, static_cast<std::int64_t>(n), static_cast<std::int64_t>(j)}});
  std::vector<Expr> ranges = ranges_of(k);
  if (ranges.size() > most_ranges_looked_at) ranges.resize(most_ranges_looked_at);
  int widest = 1;
  for (const auto& [id, c] : k.choices) widest = std::max(widest, c.lanes);
  for (const Expr& r : ranges) {
    const auto at = k.choices.find(static_cast<int>(r->arg));
    const LoopChoice now = at == k.choices.end() ? LoopChoice{} : at->second;
    for (int n : {1, 2, 3, 4, 6, 8})
      if (n != now.unroll && n <= extent(r)) out.push_back({{K::unroll, r->arg, n}});
    for (std::int64_t by : {8, 32, 128})
      if (extent(r) >= 2 * by) out.push_back({{K::split, r->arg, by}});
    if (now.lanes > 1) {
      out.push_back({{K::lanes, r->arg, 1}});
      for (const Expr& other : ranges)  // the vectors lie along another range
        if (other != r && extent(other) >= now.lanes)
          out.push_back({{K::lanes, r->arg, 1}, {K::lanes, other->arg, now.lanes}});
    } else if (widest > 1 && extent(r) >= widest) {
      out.push_back({{K::lanes, r->arg, widest}});
    }
  }
  return out;
}

class Search {
 public:
  Search(const Kernel& opened, const Target& target, const SearchOptions& options)
      : opened_(opened), target_(target), options_(options) {}

  Found run() {
    std::vector<Words> lists{{}};
    for (Words& w : beginnings(target_)) lists.push_back(std::move(w));
    std::vector<Candidate> best;
    if (!round(lists, best)) return {};
    const Candidate heuristic = first_;
    while (elapsed() < options_.limit) {
      const Seconds before = best[0].time;
      lists.clear();
      for (const Candidate& c : best)
        for (const Words& more : next_words(c.kernel)) {
          lists.push_back(c.words);
          lists.back().insert(lists.back().end(), more.begin(), more.end());
        }
      if (!round(lists, best) || best[0].time > before * 0.99) break;
    }
    return decided(heuristic, best);
  }

 private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

  // Measures what the lists make and is new; keeps the fastest. False where nothing ran.
  bool round(const std::vector<Words>& lists, std::vector<Candidate>& best) {
    std::vector<Candidate> fresh;
    for (const Words& w : lists) {
      if (elapsed() > options_.limit) break;
      if (auto c = made(w)) fresh.push_back(std::move(*c));
    }
    const std::size_t most = static_cast<std::size_t>(options_.beam) * 8 + 8;
    if (model_.is_ready()) {
      const Features weights = model_.weights();
      std::ranges::sort(fresh, [&](const Candidate& a, const Candidate& b) {
        return std::pair(predicted(weights, a.features), to_text(a.words)) <
               std::pair(predicted(weights, b.features), to_text(b.words));
      });
      if (fresh.size() > most) fresh.resize(most);
    }
    if (fresh.empty()) return false;
    std::vector<Kernel> kernels;
    for (const Candidate& c : fresh) kernels.push_back(c.kernel);
    const Seconds give_up =
        best.empty() ? std::numeric_limits<double>::infinity() : best[0].time * 1.5;
    const std::vector<Seconds> times = options_.measure(kernels, give_up);
    measured_ += static_cast<int>(times.size());
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      fresh[i].time = times[i];
      model_.learn(fresh[i].features, times[i]);
    }
    if (best.empty()) first_ = fresh[0];
    best.insert(best.end(), fresh.begin(), fresh.end());
    std::ranges::sort(best, [](const Candidate& a, const Candidate& b) {
      return std::pair(a.time, to_text(a.words)) < std::pair(b.time, to_text(b.words));
    });
    if (best.size() > static_cast<std::size_t>(options_.beam))
      best.resize(static_cast<std::size_t>(options_.beam));
    return std::isfinite(best[0].time);
  }

  // The kernel of a list, unless a move is refused, or it is one that was made before, or long.
  std::optional<Candidate> made(const Words& words) {
    constexpr std::size_t most_instructions = 4000;
    try {
      Candidate c{words, replay(opened_, words, target_), {}, 0};
      const Code code = linearize(c.kernel, target_);
      std::size_t instructions = 0;
      for (const CodePhase& phase : code.phases) instructions += phase.body.size();
      if (!words.empty() && instructions > most_instructions) return {};
      if (!seen_.insert(to_text(code)).second) return {};
      c.features = features_of(code);
      return c;
    } catch (const InternalError&) {  // refused: no candidate
      return {};
    }
  }

  // The fastest against the heuristic's once more, side by side; it has to be faster by 2 % and
  // right, or the heuristic's kernel stays.
  Found decided(const Candidate& heuristic, const std::vector<Candidate>& best) const {
    Found out{{}, heuristic.time, heuristic.time, measured_};
    for (const Candidate& c : best) {
      if (c.words.empty()) break;
      const Kernel both[] = {heuristic.kernel, c.kernel};
      const auto again = options_.measure(both, std::numeric_limits<double>::infinity());
      if (!(again[1] < again[0] * 0.98) || !options_.verify(c.kernel)) continue;
      out.words = c.words;
      out.before = again[0];
      out.after = again[1];
      break;
    }
    return out;
  }

  const Kernel& opened_;
  const Target& target_;
  const SearchOptions& options_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::unordered_set<std::string> seen_;
  Model model_;
  Candidate first_;
  int measured_ = 0;
};

}  // namespace

std::string to_text(const Words& words) {
  std::string out;
  for (const Word& w : words) {
    out += cat(out.empty() ? "" : ", ", std::string(names[static_cast<std::size_t>(w.kind)]));
    if (names_a_place(w.kind)) out += cat(" ", w.which);
    out += cat(" ", w.number);
  }
  return out;
}

std::optional<Words> parse_words(std::string_view text) {
  Words out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size()), space = text.find(' ');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 2));
    if (space >= one.size()) return {};
    const auto name = std::ranges::find(names, one.substr(0, space));
    if (name == names.end()) return {};
    Word w{static_cast<Word::Kind>(name - names.begin()), 0, 0};
    const char *at = one.data() + space + 1, *stop = one.data() + one.size();
    if (names_a_place(w.kind)) {
      const auto [rest, error] = std::from_chars(at, stop, w.which);
      if (error != std::errc() || rest == stop || *rest != ' ') return {};
      at = rest + 1;
    }
    const auto [rest, error] = std::from_chars(at, stop, w.number);
    if (error != std::errc() || rest != stop) return {};
    out.push_back(w);
  }
  return out;
}

Kernel replay(const Kernel& opened, const Words& words, const Target& target) {
  Target seen = target;
  int tile = 0;
  std::size_t moves = 0;
  for (; moves < words.size() && is_number_of_target(words[moves].kind); ++moves) {
    const Word& w = words[moves];
    if (w.number < 1 || w.number > 1 << 30) throw InternalError("search: no such target");
    if (w.kind == Word::Kind::tile) tile = static_cast<int>(w.number);
    else if (w.kind == Word::Kind::registers) seen.vector_registers = static_cast<int>(w.number);
    else if (w.kind == Word::Kind::l2) seen.l2_bytes = w.number;
    else seen.vector_bytes = static_cast<int>(w.number);
  }
  if ((seen.vector_bytes & (seen.vector_bytes - 1)) != 0 || seen.vector_bytes < 16)
    throw InternalError("search: no such vectors");
  Kernel k = optimize(opened, seen, tile);
  for (; moves < words.size(); ++moves) {
    if (is_number_of_target(words[moves].kind))
      throw InternalError("search: a word about the target comes after a move");
    k = moved(std::move(k), words[moves]);
  }
  return k;
}

Found search(const Kernel& opened, const Target& target, const SearchOptions& options) {
  return Search(opened, target, options).run();
}

}  // namespace mote
