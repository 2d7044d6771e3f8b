// Every operation of mote, one row each: the lazy graph, the AST of a kernel and symbolic integers
// share them. Adding an operation is one row here, then whatever the rooms must say about it:
// evaluate (ir), gradient (graph), text (render).
#pragma once
#include <cstdint>
#include <string_view>

namespace mote {

enum class Kind : std::uint8_t {
  leaf,         // no sources
  elementwise,  // a value of the sources' values at the same place
  binder,       // binds ranges: reduce, scan, stage
  memory,       // load, store, sink, stage_at
  movement,     // graph: a view
  graph,        // graph: computes or places, not elementwise
};

// clang-format off
// row(name, kind, arity (-1: any number), commutes)
#define MOTE_OPS(row)                                                                              \
  row(hole,       leaf,        0, false)  /* matches anything in a rule; text = its name */        \
  row(constant,   leaf,        0, false)  /* arg = the bits of a Scalar of this dtype */           \
  row(variable,   leaf,        0, false)  /* a symbolic integer: text = name, arg..arg2 bounds */  \
  row(range,      leaf,        1, false)  /* a loop index 0..extent-1: arg = id, src = extent */   \
  row(slot,       leaf,        0, false)  /* an argument: arg = number, arg2 = elements */         \
  row(neg,        elementwise, 1, false)                                                           \
  row(sqrt,       elementwise, 1, false)                                                           \
  row(exp,        elementwise, 1, false)                                                           \
  row(log,        elementwise, 1, false)                                                           \
  row(sin,        elementwise, 1, false)                                                           \
  row(cos,        elementwise, 1, false)                                                           \
  row(tanh,       elementwise, 1, false)                                                           \
  row(erf,        elementwise, 1, false)                                                           \
  row(trunc,      elementwise, 1, false)  /* toward zero, floats only */                           \
  row(not_,       elementwise, 1, false)  /* bitwise; of a bool: logical */                        \
  row(cast,       elementwise, 1, false)                                                           \
  row(bitcast,    elementwise, 1, false)  /* equal sizes */                                        \
  row(add,        elementwise, -1, true)  /* n-ary for dtype index (a canonical sum), else 2 */    \
  row(mul,        elementwise, 2, true)                                                            \
  row(div,        elementwise, 2, false)  /* floats: exactly rounded */                            \
  row(idiv,       elementwise, 2, false)  /* integers: floor; x // 0 is 0 */                       \
  row(mod,        elementwise, 2, false)  /* integers: sign of the divisor; x % 0 is 0 */          \
  row(tdiv,       elementwise, 2, false)  /* integers: toward zero; by 0 is 0 */                   \
  row(tmod,       elementwise, 2, false)  /* integers: sign of the dividend; by 0 is 0 */          \
  row(max,        elementwise, 2, true)   /* a > b or a is NaN ? a : b */                          \
  row(min,        elementwise, 2, true)   /* a < b or a is NaN ? a : b */                          \
  row(lt,         elementwise, 2, false)  /* -> bool; false with NaN */                            \
  row(eq,         elementwise, 2, true)   /* -> bool; false with NaN */                            \
  row(and_,       elementwise, 2, true)                                                            \
  row(or_,        elementwise, 2, true)                                                            \
  row(xor_,       elementwise, 2, true)                                                            \
  row(shl,        elementwise, 2, false)  /* by >= width or negative: 0 */                         \
  row(shr,        elementwise, 2, false)  /* the same; signed: all sign bits */                    \
  row(where,      elementwise, 3, false)  /* (bool, a, b) */                                       \
  row(reduce,     binder,      -1, false) /* arg = op; src = body, ranges.. ; graph: src = x */    \
  row(scan,       binder,      3, false)  /* arg = op; src = body, range, at: body over 0..at */   \
  row(stage,      binder,      -1, false) /* a table: src = body, ranges.. */                      \
  row(stage_at,   memory,      -1, false) /* src = stage, indices.. */                             \
  row(load,       memory,      -1, false) /* src = slot, index [, gate]: 0 where not gate */       \
  row(store,      memory,      -1, false) /* arg = op; src = slot, index, value [, gate] */        \
  row(sink,       memory,      -1, false) /* a kernel: its stores, in order */                     \
  row(buffer,     graph,       0, false)  /* bytes that exist */                                   \
  row(iota,       graph,       0, false)  /* 1-D: its value is its index */                        \
  row(reshape,    movement,    1, false)                                                           \
  row(permute,    movement,    1, false)                                                           \
  row(expand,     movement,    1, false)                                                           \
  row(shrink,     movement,    1, false)                                                           \
  row(pad,        movement,    1, false)  /* with 0 */                                             \
  row(flip,       movement,    1, false)                                                           \
  row(windows,    movement,    1, false)  /* overlapping strided view of the last axes */          \
  row(contiguous, graph,       1, false)  /* the same value, stored in row-major order */          \
  row(copy,       graph,       1, false)  /* to another device */                                  \
  row(assign,     graph,       2, false)  /* (target, value): value, in target's memory */         \
  row(scatter,    graph,       3, false)  /* (target, index, value), arg = op */                   \
  row(custom,     graph,       -1, false) /* a user's kernel */
// clang-format on

enum class Op : std::uint8_t {
#define row(name, kind, arity, commutes) name,
  MOTE_OPS(row)
#undef row
};

inline constexpr int op_count = static_cast<int>(Op::custom) + 1;

std::string_view name_of(Op);  // "and", "not", "reduce": without a trailing underscore
Kind kind_of(Op);
int arity_of(Op);
bool commutes(Op);
inline bool is_elementwise(Op op) { return kind_of(op) == Kind::elementwise; }
inline bool is_movement(Op op) { return kind_of(op) == Kind::movement; }

}  // namespace mote
