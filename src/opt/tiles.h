// Sums of products in which each factor is used many times: matmul, convolution, their gradients.
//
//   for (outer loops of A, in blocks that keep A's part in the second cache)
//     for (blocks of the sum)                          accumulate
//       for (panels of B, as wide as the tile)         B is packed panel by panel
//         for (the block of A, `copies` at a time)     A is packed where that pays
//           for (the sum) copies x vectors accumulators
//
// B is the factor that varies along the vectors, A the other one.
#pragma once
#include "kernel/kernel.h"

namespace mote {

// The kernel with the nest in tiles; as it was where its hottest sum has no two such factors.
// `rank`: which tile is taken, by rising estimate of its time.
Kernel with_tiles(Kernel, std::size_t nest, const Target&, int rank = 0);
// The same for the filling of a table, of which one range is named.
Kernel with_tiles(Kernel, const Expr& range_of_table, const Target&, int rank = 0);

// A table that each iteration of a loop fills for itself, with a sum of products in it (the scores
// of one query), is filled for a block of iterations at once, and what it is made of becomes tables
// too: then those products run in tiles.
Kernel with_rows(Kernel, std::size_t nest, const Target&);

}  // namespace mote
