// search: the same moves as the heuristic's, chosen by the clock (MOTE_BEAM=n).
//
// A schedule is a short list of words, which can be printed, kept on disk and replayed:
//
//   "tile 2, l2 262144, unroll 5 4, swap 1 0"
//
// The first words say how the heuristic is to see the target and which of its tiles it takes; the
// others are moves upon what it made. From the n fastest lists so far each list that is one word
// longer is a candidate; a model of the time, fitted to what was measured before, says which of
// them are worth a measurement. It ends when a round brings nothing.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "kernel/kernel.h"

namespace mote {

using Seconds = double;

struct Word {
  enum class Kind : std::uint8_t {
    tile,       // the heuristic takes the number-th best tile
    registers,  // the heuristic is to believe that the target has so many vector registers,
    l2,         // so many bytes of the second cache,
    bytes,      // so many bytes in a vector
    unroll,     // of the range with this id, so many copies
    lanes,      // of the range with this id
    split,      // the range with this id, by this number
    swap,       // in the nest of this number, the loop at this place and the next
  } kind;
  std::int64_t which = 0;  // the id of a range, the number of a nest; 0 where there is neither
  std::int64_t number = 0;
  bool operator==(const Word&) const = default;
};
using Words = std::vector<Word>;

std::string to_text(const Words&);
std::optional<Words> parse_words(std::string_view);  // nullopt for what to_text does not print

// The kernel that the words make; InternalError where a move is refused.
Kernel replay(const Kernel& opened, const Words&, const Target&);

struct SearchOptions {
  int beam = 1;         // how many lists are kept from round to round
  Seconds limit = 4.5;  // no round begins later
  // The time of each kernel, measured in turns; infinity for one that the compiler refuses. One
  // that takes more than `give_up` may be measured once only.
  std::function<std::vector<Seconds>(std::span<const Kernel>, Seconds give_up)> measure;
  std::function<bool(const Kernel&)> verify;  // are its results right? Asked of the winner alone
};

struct Found {
  Words words;  // empty: the heuristic's own kernel
  Seconds before = 0, after = 0;
  int measured = 0;
};

// The fastest list found; never one that is slower than the heuristic's kernel.
Found search(const Kernel& opened, const Target&, const SearchOptions&);

}  // namespace mote
