#!/usr/bin/env python3
"""Writes golden.npz: inputs and right values of the operations of tensor.h.

    python3 -m venv VENV && VENV/bin/pip install numpy && VENV/bin/python golden.py

The member index.txt has a line for each case, `op/variant 3 4 -> 17:bfloat16`: its inputs and its
outputs are the arrays 3.npy, 4.npy and 17.npy; golden_test.cpp runs the row `op` of its tables on
the inputs. What NumPy does not have (bfloat16, float8) is stored as bits, with its dtype after a
colon. Where docs/semantics.md differs from NumPy, it decides.
"""
import io
import itertools
import math
import os
import zipfile
from fractions import Fraction

import numpy as np

np.seterr(all="ignore")
arrays = {}  # (dtype, shape, bytes) -> (number, array): equal ones are stored once
cases = {}   # name -> line of the index
random = np.random.default_rng(7)

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# name -> (bits of the mantissa, least exponent, greatest exponent)
FORMATS = {
    "float8_e4m3": (3, -6, 8), "float8_e5m2": (2, -14, 15), "float16": (10, -14, 15),
    "bfloat16": (7, -126, 127), "float32": (23, -126, 127), "float64": (52, -1022, 1023),
}
EXTRA = {"bfloat16": (8, 16), "float8_e4m3": (4, 8), "float8_e5m2": (5, 8)}


class Typed:
    """Values with a dtype that NumPy may not have: float64 values that are exact in it."""

    def __init__(self, values, dtype):
        self.values, self.dtype = np.asarray(values), dtype

    def __getattr__(self, name):
        return getattr(self.values, name)


def greatest(dtype):
    bits, _, emax = FORMATS[dtype]
    if dtype == "float8_e4m3":
        return Fraction(448)
    return (2 - Fraction(1, 2**bits)) * Fraction(2)**emax


def nearest(v, dtype):
    """v (a float, int or Fraction) rounded once to dtype, ties to even."""
    if isinstance(v, (float, np.floating)):
        v = float(v)
        if math.isnan(v) or (math.isinf(v) and dtype != "float8_e4m3"):
            return v
        if math.isinf(v):
            return math.nan
        if v == 0:
            return v
    exact = Fraction(v)
    if exact == 0:
        return 0.0
    bits, emin, _ = FORMATS[dtype]
    size = abs(exact)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2)**e > size:
        e -= 1
    step = Fraction(2)**(max(e, emin) - bits)
    result = round(size / step) * step  # Fraction rounds halves to even
    if result > greatest(dtype):
        result = math.nan if dtype == "float8_e4m3" else math.inf
    sign = -1.0 if exact < 0 else 1.0
    return sign * float(result)


def rounded(values, dtype):
    a = np.asarray(values)
    if dtype == "float64" and a.dtype == np.float64:
        return a
    if dtype in ("float32", "float16") and a.dtype in (np.float64, np.float32, np.float16):
        return a.astype(dtype)  # the hardware's rounding is single here
    out = np.array([nearest(v if a.dtype.kind == "f" else int(v), dtype) for v in a.ravel()])
    out = out.astype(np.float64).reshape(a.shape)
    return out.astype(dtype) if dtype not in EXTRA else Typed(out, dtype)


def bits_of(values, dtype):
    exponent_bits, width = EXTRA[dtype]
    mantissa, emin, _ = FORMATS[dtype]
    out = []
    for v in values.ravel():
        v = float(v)
        sign = 1 << (width - 1) if math.copysign(1, v) < 0 else 0
        top = (1 << exponent_bits) - 1
        if math.isnan(v):
            code = 0x7F if dtype == "float8_e4m3" else (top << mantissa) | (1 << (mantissa - 1))
        elif math.isinf(v):
            code = top << mantissa
        elif v == 0:
            code = 0
        else:
            e = max(math.frexp(abs(v))[1] - 1, emin)
            whole = int(Fraction(abs(v)) / Fraction(2)**(e - mantissa))
            code = whole if whole < (1 << mantissa) else ((e - emin + 1) << mantissa) + whole - (1 << mantissa)
        out.append(sign | code)
    return np.array(out, np.uint16 if width == 16 else np.uint8).reshape(values.shape)


def store(a):
    bits = bits_of(a.values, a.dtype) if isinstance(a, Typed) else np.array(a, order="C")
    number, _ = arrays.setdefault((bits.dtype.str, bits.shape, bits.tobytes()), (len(arrays), bits))
    return f"{number}:{a.dtype}" if isinstance(a, Typed) else str(number)


def case(name, inputs, outputs):
    assert name not in cases, name
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    cases[name] = " ".join([name, *map(store, inputs), "->", *map(store, outputs)])


def values(a):
    return a.values if isinstance(a, Typed) else a


# ---- samples

def float_samples(dtype, many=True):
    bits, emin, _ = FORMATS[dtype]
    least = float(Fraction(2)**(emin - bits))
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, least, -3 * least, 2.0**emin,
               float(greatest(dtype)), -float(greatest(dtype))]
    plain = [1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -7.25, 100.25]
    more = [0.1, -0.3, 0.7, -0.9, 1e-3, -1e-3, 2.0**-bits, 5.7, -5.7, 9.5, -9.5, 20, -20, 30, -30,
            50, -50, 88, -88, 0.999, -0.999, 1.001, 12.5, -12.5, 4.5, 0.25, -0.75, 1e4, -1e4]
    return rounded(np.array(special + plain + (more if many else []), np.float64), dtype)


def int_samples(dtype):
    i = np.iinfo(dtype)
    if i.min < 0:
        picked = [i.min, i.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, i.max - 1, i.max]
    else:
        picked = [0, 1, 2, 3, 7, 100, i.max // 2, i.max // 2 + 1, i.max - 1, i.max]
    return np.array(picked, dtype)


def pick(a, keep):
    return Typed(a.values[keep], a.dtype) if isinstance(a, Typed) else a[keep]


def grid(a):
    """All pairs of values: (n, 1) and (1, n), so that broadcasting is tested too."""
    if isinstance(a, Typed):
        return Typed(a.values[:, None], a.dtype), Typed(a.values[None, :], a.dtype)
    return a[:, None], a[None, :]


# ---- elementwise

def c_erf(x):
    return np.array([math.nan if math.isnan(v) else math.erf(v) for v in x.ravel()]).reshape(x.shape)


def rint_even(x):
    return np.rint(x)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def softplus(x, beta=1.0):
    return np.where(x <= 0, 0, x) + np.log1p(np.exp(-np.abs(x * beta))) / beta


def clip(x, low, high):
    return np.where(x < low, low, np.where(x > high, high, x))


PRIMITIVE = {  # tested in every float dtype
    "neg": lambda x: -x, "abs": np.abs, "sign": lambda x: np.where(np.isnan(x), x, np.sign(x)),
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "erf": c_erf, "trunc": np.trunc, "floor": np.floor, "ceil": np.ceil, "round": rint_even,
    "square": lambda x: x * x, "relu": lambda x: np.where(x <= 0, 0, x),
}
COMPOSED = {  # float32 and float64
    "exp2": np.exp2, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "expm1": np.expm1,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "relu6": lambda x: clip(x, 0, 6), "clip": lambda x: clip(x, -1.5, 2.0),
    "clip_low": lambda x: np.where(x < -0.5, -0.5, x), "hardtanh": lambda x: clip(x, -1, 1),
    "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "gelu": lambda x: x * 0.5 * (1 + c_erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "leaky_relu": lambda x: np.where(x < 0, x * 0.01, x),
    "elu": lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0) / 1.5)),
    "selu": lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "softplus": softplus, "softplus_beta": lambda x: softplus(x, 2.0),
    "softsign": lambda x: x / (1 + np.abs(x)), "mish": lambda x: x * np.tanh(softplus(x)),
    "hardsigmoid": lambda x: clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * (clip(x + 3, 0, 6) / 6),
    "logsigmoid": lambda x: -softplus(-x),
}
EXPLODE = {"silu", "quick_gelu", "gelu", "gelu_tanh", "mish", "hardswish", "softsign"}  # inf * 0


def unary():
    for dtype in FLOATS:
        x = float_samples(dtype)
        wide = values(x).astype(np.float64)
        functions = dict(PRIMITIVE)
        if dtype in ("float32", "float64"):
            functions |= COMPOSED
        huge = np.isfinite(wide) & (np.abs(wide) > 1e9)
        for name, f in functions.items():
            keep = np.ones(wide.shape, bool)
            if name in EXPLODE:
                keep = np.isfinite(wide) & ~huge
            if name in ("sin", "cos", "tan") and huge.any():
                keep = ~huge
                case(f"{name}/huge-{dtype}", [pick(x, huge)], rounded(f(wide[huge]), dtype))
            case(f"{name}/{dtype}", [pick(x, keep)], rounded(f(wide[keep]), dtype))
        for name, f in [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite),
                        ("logical_not", lambda v: v == 0)]:
            case(f"{name}/{dtype}", [x], f(wide))
    for dtype in INTS:
        x = int_samples(dtype)
        case(f"neg/{dtype}", [x], -x)
        case(f"abs/{dtype}", [x], np.abs(x))
        case(f"sign/{dtype}", [x], np.sign(x))
        case(f"square/{dtype}", [x], x * x)
        case(f"bitwise_not/{dtype}", [x], ~x)
        case(f"logical_not/{dtype}", [x], x == 0)
        case(f"relu/{dtype}", [x], np.where(x <= 0, x.dtype.type(0), x))
        case(f"floor/{dtype}", [x], x)
        case(f"round/{dtype}", [x], x)
        case(f"isnan/{dtype}", [x], np.zeros(x.shape, bool))
        case(f"isinf/{dtype}", [x], np.zeros(x.shape, bool))
        case(f"sqrt/{dtype}", [x], np.sqrt(x.astype(np.float32).astype(np.float64)).astype(np.float32))
    b = np.array([True, False])
    case("logical_not/bool", [b], ~b)
    case("bitwise_not/bool", [b], ~b)
    case("exp/bool", [b], np.exp(b.astype(np.float32)))


def float_pairs(a, b):
    """Right values in float64 of operations on float64 arrays, by rules of semantics.md."""
    nan = np.isnan(a) | np.isnan(b)
    quotient = np.array([exact_floor(x, y) for x, y in zip(a.ravel(), b.ravel())]).reshape(a.shape)
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "div": a / b,
        "maximum": np.where(nan, math.nan, np.maximum(a, b)),
        "minimum": np.where(nan, math.nan, np.minimum(a, b)),
        "fmod": np.fmod(a, b), "remainder": np.remainder(a, b), "floor_divide": quotient,
        "copysign": np.copysign(a, b), "logaddexp": np.logaddexp(a, b), "pow": np.power(a, b),
        "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b,
    }


def exact_floor(x, y):
    if not (math.isfinite(x) and math.isfinite(y)) or y == 0:
        if math.isinf(y) and math.isfinite(x):
            return -1.0 if x != 0 and (x < 0) != (y < 0) else 0.0
        return math.nan if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y)) \
            or (x == 0 and y == 0) else np.float64(x) / np.float64(y)
    q = math.floor(Fraction(float(x)) / Fraction(float(y)))
    try:
        return float(q)
    except OverflowError:
        return -math.inf if q < 0 else math.inf


def int_pairs(dtype):
    x = int_samples(dtype)
    a, b = grid(x)
    wide = np.vectorize(lambda n: int(n), otypes=[object])
    A, B = np.broadcast_arrays(wide(a), wide(b))
    info = np.iinfo(dtype)
    width = info.bits

    def wrap(f):
        out = []
        for p, q in zip(A.ravel(), B.ravel()):
            v = f(int(p), int(q)) & ((1 << width) - 1)
            out.append(v - (1 << width) if info.min < 0 and v >> (width - 1) else v)
        return np.array(out, dtype).reshape(A.shape)

    def tdiv(p, q):
        return 0 if q == 0 else abs(p) // abs(q) * (-1 if (p < 0) != (q < 0) else 1)

    results = {
        "add": wrap(lambda p, q: p + q), "sub": wrap(lambda p, q: p - q),
        "mul": wrap(lambda p, q: p * q), "maximum": wrap(max), "minimum": wrap(min),
        "floor_divide": wrap(lambda p, q: p // q if q else 0),
        "remainder": wrap(lambda p, q: p % q if q else 0), "trunc_divide": wrap(tdiv),
        "fmod": wrap(lambda p, q: p - q * tdiv(p, q) if q else 0),
        "and": wrap(lambda p, q: p & q), "or": wrap(lambda p, q: p | q),
        "xor": wrap(lambda p, q: p ^ q),
        "div": (a.astype(np.float32) / b.astype(np.float32)),
        "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b,
    }
    for name, value in results.items():
        case(f"{name}/{dtype}", [a, b], value)
    by = [0, 1, 3, width - 1, width, width + 1, 100] + ([-1, -width, int(info.min)] if info.min else [])
    shift = np.array(by, dtype)[None, :]
    A, B = np.broadcast_arrays(wide(a), wide(shift))
    case(f"shl/{dtype}", [a, shift], wrap(lambda p, q: p << q if 0 <= q < width else 0))
    sign = lambda p: -1 if p < 0 else 0
    case(f"shr/{dtype}", [a, shift], wrap(lambda p, q: p >> q if 0 <= q < width else sign(p)))
    powers = np.array([0, 1, 2, 3, 5, 7], dtype)[None, :]
    A, B = np.broadcast_arrays(wide(a), wide(powers))
    case(f"pow/{dtype}", [a, powers], wrap(lambda p, q: p**q))


def binary():
    for dtype in FLOATS:
        x = float_samples(dtype, many=False)
        a, b = grid(x)
        A, B = np.broadcast_arrays(values(a).astype(np.float64), values(b).astype(np.float64))
        for name, v in float_pairs(A, B).items():
            if name == "logaddexp" and dtype in ("float16", "bfloat16"):
                continue
            if name in ("fmod", "remainder", "floor_divide") and dtype == "float64":
                keep = ~(np.abs(A / B) >= 2.0**150) | (B == 0) | np.isinf(A)  # more is not promised
                case(f"{name}/{dtype}", [A[keep], B[keep]], v[keep])
                continue
            case(f"{name}/{dtype}", [a, b], v if v.dtype == bool else rounded(v, dtype))
        near = rounded(np.array([20.999999999999996, 1.0, 0.3, 1e10, 7.0, -7.0]), dtype), \
            rounded(np.array([3.0, 0.1, 0.1, 3.0, -0.7, 0.7]), dtype)
        A, B = (values(n).astype(np.float64) for n in near)
        v = float_pairs(A, B)
        for name in ("fmod", "remainder", "floor_divide"):
            case(f"{name}/near-{dtype}", list(near), rounded(v[name], dtype))
    for dtype in INTS:
        int_pairs(dtype)
    t = np.array([True, False])
    a, b = grid(t)
    for name, v in {"add": a | b, "mul": a & b, "and": a & b, "or": a | b, "xor": a ^ b,
                    "maximum": a | b, "minimum": a & b, "lt": a < b, "eq": a == b, "ne": a != b,
                    "le": a <= b}.items():
        case(f"{name}/bool", [a, b], v)
    x = np.array([[1.5, -2, np.nan], [0, 3, np.inf]], np.float32)
    y = np.array([10, -0.0, -np.inf], np.float32)
    c = np.array([[True], [False]])
    case("where/float32", [c, x, y], np.where(c, x, y))
    case("where/scalar", [np.array(True), x, np.array(2, np.float32)], x)
    case("where/int64", [c, np.array([2**60 + 1]), np.array([-1, 2, 3])],
         np.where(c, np.array([2**60 + 1]), np.array([-1, 2, 3])))
    for name, p, q in [("a", (3, 1, 4), (2, 1)), ("b", (), (2, 3)), ("c", (0, 3), (1, 3)),
                       ("d", (5,), (2, 1, 1)), ("e", (1, 0), (4, 1))]:
        p, q = random.normal(size=p), random.normal(size=q)
        case(f"add/broadcast-{name}", [p, q], p + q)
    p, q = random.normal(size=(3, 4)), random.normal(size=(4,))
    case("lerp/float64", [p, q, np.array(0.25)], p + (q - p) * 0.25)
    e = np.array([1.0, 1.00001, np.inf, np.inf, np.nan, 0, -np.inf], np.float64)
    f = np.array([1.0, 1.0, np.inf, -np.inf, np.nan, 1e-9, 5], np.float64)
    case("isclose/float64", [e, f], [np.isclose(e, f), np.isclose(e, f, equal_nan=True)])


# ---- casts

def float_to_int(v, dtype):
    v = float(v)
    i = np.iinfo(dtype)
    if not math.isfinite(v):
        return 0
    t = int(v)
    if i.min <= t <= i.max:
        return t
    if i.bits <= 16 and abs(v) < 2**31:
        t &= (1 << i.bits) - 1
        return t - (1 << i.bits) if i.min < 0 and t >> (i.bits - 1) else t
    return 0


def cast_sources():
    yield "bool", np.array([True, False])
    for dtype in INTS:
        i = np.iinfo(dtype)
        more = [v for v in (257, 2049, 4097, 65535, 65519, 65520, 2**24 + 1, 2**24 + 3, 2**31,
                            2**53 + 1, 2**63 - 513, 0x8080_0001, 0x0101_0000_0001, -129, -32769,
                            448, 465, 464) if i.min <= v <= i.max]
        yield dtype, np.concatenate([int_samples(dtype), np.array(more, dtype)])
    for dtype in ["float8_e4m3", "float8_e5m2"] + FLOATS:
        x = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.99, -0.99, 1.5, -1.5, 2.7, -2.7, 126.9,
             -127.9, 128, 200.5, 255.9, 256, 300, -300, 464, 465, 32767.5, 32768, -32769, 65519,
             65520, 65535.5, 65536, 1e6 + 0.5, -1e6, 2.0**31 - 1, 2.0**31, -2.0**31, -2.0**31 - 1,
             2.0**32 - 1, 2.0**32, 2.0**63, -2.0**63, 2.0**63 - 1024, 2.0**64 - 2048, 2.0**64, -1,
             1e20, -1e20, 1e300, 3.3895314e38, 3.4e38, 1e-8, 6e-8, 2.9e-8, 3e-8, 1e-40, 1e-45,
             5e-324, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-30, 1 + 2.0**-11 + 2.0**-30,
             1 + 2.0**-11, 1 + 2.0**-4 + 2.0**-30, 1 + 2.0**-3 + 2.0**-30, 1 + 2.0**-24 + 2.0**-50,
             0.0009765625, 0.001953125, 0.0146, 57344, 61440, 61441, 3.14, 448]
        yield dtype, rounded(np.array(x, np.float64), dtype)


def casts():
    for source, x in cast_sources():
        v = values(x)
        case(f"to_bool/{source}", [x], np.isnan(v) | (v != 0) if v.dtype.kind == "f" else v != 0)
        for dtype in INTS:
            if v.dtype.kind == "f":
                out = np.array([float_to_int(e, dtype) for e in v.ravel()], dtype)
            else:
                out = v.astype(dtype)
            case(f"to_{dtype}/{source}", [x], out)
        for dtype in FORMATS:
            whole = v.astype(np.float64) if v.dtype.kind in "fb" else v
            exact = np.array([nearest(e if v.dtype.kind == "f" else int(e), dtype) for e in whole])
            case(f"to_{dtype}/{source}", [x],
                 Typed(exact, dtype) if dtype in EXTRA else exact.astype(dtype))
    f = np.array([1.0, -0.0, np.inf, np.nan, 3.14], np.float32)
    case("bitcast_int32/float32", [f], f.view(np.int32))
    case("bitcast_float32/int32", [f.view(np.int32)], f)
    case("bitcast_uint64/float64", [np.array([1.0, -2.5])], np.array([1.0, -2.5]).view(np.uint64))
    case("bitcast_bfloat16/uint16", [np.array([0x3F80, 0xC000], np.uint16)],
         Typed(np.array([1.0, -2.0]), "bfloat16"))


# ---- reductions

def ways(ndim):
    """The axes and keepdim that the C++ test walks through, in the same order."""
    yield None, False
    yield None, True
    for a in range(ndim):
        yield a, False
        yield a - ndim, True
    if ndim >= 2:
        yield (0, ndim - 1), False
        yield (0, -1), True


def reduction(name, dtype, label, x, f, to=None):
    outs = []
    for axis, keep in ways(x.ndim):
        v = np.asarray(f(values(x), axis, keep))
        outs.append(rounded(v, to) if to in FORMATS else v)
    case(f"{name}/{dtype}-{label}", [x], outs)


def in_double(f):
    return lambda x, axis, keep: f(x.astype(np.float64), axis=axis, keepdims=keep)


def log_sum_exp(x, axis, keep):
    top = np.max(x, axis=axis, keepdims=True)
    base = np.where(np.isinf(top), 0, top)
    r = np.log(np.sum(np.exp(x - base), axis=axis, keepdims=True)) + base
    return r if keep else r.reshape(np.sum(x, axis=axis).shape)


def reductions():
    shapes = {"0d": (), "1d": (7,), "2d": (3, 5), "3d": (2, 3, 4), "one": (1, 1)}
    for dtype in FLOATS:
        for label, shape in shapes.items():
            x = rounded(random.normal(size=shape) * 2, dtype)
            r = lambda name, f: reduction(name, dtype, label, x, f, dtype)
            r("sum", in_double(np.sum))
            r("mean", in_double(np.mean))
            r("max", in_double(np.max))
            r("min", in_double(np.min))
            if dtype in ("float32", "float64"):
                r("prod", in_double(np.prod))
                r("norm", lambda v, axis, keep: np.sqrt(np.sum(v.astype(np.float64)**2, axis=axis, keepdims=keep)))
                r("norm1", lambda v, axis, keep: np.sum(np.abs(v.astype(np.float64)), axis=axis, keepdims=keep))
                r("norm3", lambda v, axis, keep: np.sum(np.abs(v.astype(np.float64))**3, axis=axis, keepdims=keep)**(1 / 3))
                r("norm_inf", lambda v, axis, keep: np.max(np.abs(v.astype(np.float64)), axis=axis, keepdims=keep))
                r("var0", in_double(np.var))
                r("var1", lambda v, axis, keep: np.var(v.astype(np.float64), axis=axis, keepdims=keep, ddof=1))
                r("std1", lambda v, axis, keep: np.std(v.astype(np.float64), axis=axis, keepdims=keep, ddof=1))
                r("logsumexp", lambda v, axis, keep: log_sum_exp(v.astype(np.float64), axis, keep))
    for dtype in INTS + ["bool"]:
        for label, shape in {"1d": (7,), "3d": (2, 3, 4)}.items():
            x = random.integers(0, 2, size=shape).astype(bool) if dtype == "bool" else \
                random.choice(int_samples(dtype), size=shape)
            total = np.uint64 if dtype.startswith("u") else np.int64
            s = lambda f: lambda v, axis, keep: f(v.astype(total), axis=axis, keepdims=keep)
            reduction("sum", dtype, label, x, s(np.sum))
            reduction("prod", dtype, label, x, s(np.prod))
            reduction("max", dtype, label, x, lambda v, axis, keep: np.max(v, axis=axis, keepdims=keep))
            reduction("min", dtype, label, x, lambda v, axis, keep: np.min(v, axis=axis, keepdims=keep))
            reduction("any", dtype, label, x, lambda v, axis, keep: np.any(v, axis=axis, keepdims=keep))
            reduction("all", dtype, label, x, lambda v, axis, keep: np.all(v, axis=axis, keepdims=keep))
            if dtype in ("bool", "int8", "uint8", "int16"):
                reduction("mean", dtype, label, x, in_double(np.mean), "float32")
    odd = np.array([[1, np.nan, 3], [np.inf, -np.inf, 2], [-np.inf, -np.inf, -np.inf],
                    [0.0, -0.0, 0.0], [5, 5, 1]], np.float32)
    for name, f in [("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min),
                    ("prod", np.prod)]:
        reduction(name, "float32", "odd", odd, in_double(f), "float32")
    reduction("logsumexp", "float32", "odd", odd, lambda v, axis, keep: log_sum_exp(v.astype(np.float64), axis, keep), "float32")
    reduction("any", "float32", "odd", odd, lambda v, axis, keep: np.any(v != 0, axis=axis, keepdims=keep))
    reduction("all", "float32", "odd", odd, lambda v, axis, keep: np.all(v != 0, axis=axis, keepdims=keep))
    for label, shape in {"0": (0,), "0x3": (0, 3), "2x0x3": (2, 0, 3)}.items():
        x = np.zeros(shape, np.float32)
        for name, f in [("sum", np.sum), ("mean", np.mean), ("prod", np.prod)]:
            reduction(name, "float32", "empty-" + label, x, in_double(f), "float32")
        for name, f in [("any", np.any), ("all", np.all)]:
            reduction(name, "float32", "empty-" + label, x, lambda v, axis, keep: f(v, axis=axis, keepdims=keep))
        reduction("sum", "int32", "empty-" + label, x.astype(np.int32), lambda v, axis, keep: np.sum(v, axis=axis, keepdims=keep, dtype=np.int64))
    x = np.zeros((0, 2), np.float32)
    case("max_last/empty", [x], np.zeros((0,), np.float32))
    y = np.zeros((2, 3, 0), np.float32)
    case("max_first/empty", [y], np.zeros((3, 0), np.float32))

    long = rounded(random.normal(size=70001) + 1, "float32")
    case("sum_of_ones/float32", [np.array(1, np.float32)], np.array(2.0**25, np.float32))
    case("mean_of_halves/float16", [np.array(0.5, np.float16)], np.array(0.5, np.float16))
    case("row_sum/float32-long", [long[:5000]], np.array(long[:5000].astype(np.float64).sum(), np.float32))

    ties = (np.arange(30).reshape(6, 5) * 7 % 3).astype(np.int32)
    for label, x in {"ties": ties, "3d": random.normal(size=(2, 3, 4)).astype(np.float32),
                     "nan": np.array([[1, np.nan, 9, np.nan], [4, 4, 2, 4], [-np.inf] * 4, [np.inf, 1, np.inf, 0]], np.float32),
                     "bool": np.array([[False, True, True], [False, False, False]]),
                     "uint8": np.array([[0, 255, 255], [3, 3, 3]], np.uint8),
                     "min": np.array([[np.iinfo(np.int64).min] * 2, [np.iinfo(np.int64).max] * 2]),
                     "one": np.array([3.0]), "0d": np.array(3.0)}.items():
        for name, f in [("argmax", np.argmax), ("argmin", np.argmin)]:
            outs = [np.asarray(f(x)), np.asarray(f(x)).reshape((1,) * x.ndim)]
            for a in range(x.ndim):
                outs += [np.asarray(f(x, a)), np.asarray(f(x, a, keepdims=True))]
            case(f"{name}/{label}", [x], outs)

    def softmax(x, axis=-1):
        e = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    def log_softmax(x, axis=-1):
        off = x - np.max(x, axis=axis, keepdims=True)
        return off - np.log(np.exp(off).sum(axis=axis, keepdims=True))

    for dtype in FLOATS:
        for label, shape in {"1d": (5,), "3d": (2, 3, 4)}.items():
            x = rounded(random.normal(size=shape) * 3, dtype)
            w = values(x).astype(np.float64)
            n = len(shape)
            for name, f in [("softmax", softmax), ("log_softmax", log_softmax),
                            ("softmin", lambda v, a: softmax(-v, a))]:
                case(f"{name}/{dtype}-{label}", [x], [rounded(f(w, a), dtype) for a in range(n)])
    rows = np.array([[-np.inf, 0, 1], [-np.inf] * 3, [1000, 1000, -1000], [np.nan, 0, 0]], np.float32)
    case("softmax/odd", [rows], [softmax(rows.astype(np.float64), a).astype(np.float32) for a in (0, 1)])
    finite = np.array([[-1e4, 0, 1], [1000, 1000, -1000]], np.float32)
    case("log_softmax/odd", [finite], [log_softmax(finite.astype(np.float64), a).astype(np.float32) for a in (0, 1)])
    x = random.normal(size=(2, 3, 4))
    case("layernorm/float64", [x], [
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
        (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)])
    case("normalize/float64", [x], [x / np.maximum(np.sqrt((x * x).sum(1, keepdims=True)), 1e-12),
                                    x / np.maximum(np.abs(x).sum(2, keepdims=True), 1e-12)])

    def scan(name, label, x, f, to=None):
        outs = [f(values(x), a) for a in range(x.ndim)]
        case(f"{name}/{label}", [x], [rounded(o, to) if to else o for o in outs])

    def running(op):
        def f(v, a):
            out = np.copy(v)
            view, src = np.moveaxis(out, a, 0), np.moveaxis(v, a, 0)
            for i in range(1, view.shape[0]):
                both = np.stack([view[i - 1], src[i]])
                view[i] = np.where(np.isnan(both).any(0), np.nan, op(both, 0)) if v.dtype.kind == "f" else op(both, 0)
            return out
        return f

    for dtype in ["float16", "float32", "float64"]:
        x = rounded(random.normal(size=(2, 5, 3)), dtype)
        scan("cumsum", dtype, x, lambda v, a: np.cumsum(v.astype(np.float64), a), dtype)
        scan("cumprod", dtype, x, lambda v, a: np.cumprod(v.astype(np.float64), a), dtype)
        scan("cummax", dtype, x, running(np.max))
        scan("cummin", dtype, x, running(np.min))
    x = np.array([[False, True, False], [True, False, True]])
    scan("cummax", "bool", x, np.maximum.accumulate)
    scan("cummin", "bool", x, np.minimum.accumulate)
    x = rounded(random.normal(size=(2, 5)), "bfloat16")
    scan("cummax", "bfloat16", x, np.maximum.accumulate, "bfloat16")
    for dtype in ["int8", "uint8", "int32", "int64", "uint64"]:
        x = random.choice(int_samples(dtype), size=(3, 4))
        total = np.uint64 if dtype.startswith("u") else np.int64
        scan("cumsum", dtype, x, lambda v, a: np.cumsum(v.astype(total), a))
        scan("cumprod", dtype, x, lambda v, a: np.cumprod(v.astype(total), a))
        scan("cummax", dtype, x, running(np.max))
        scan("cummin", dtype, x, running(np.min))
    x = np.array([1, 3, np.nan, 5, -np.inf, 4], np.float32)
    scan("cummax", "nan", x, running(np.max))
    scan("cummin", "nan", x, running(np.min))
    scan("cumsum", "bool", np.array([True, False, True, True]), lambda v, a: np.cumsum(v.astype(np.int64), a))
    scan("cumsum", "empty", np.zeros((0, 2), np.float32), lambda v, a: np.cumsum(v, a))
    long = random.normal(size=3000).astype(np.float32)
    scan("cumsum", "long", long, lambda v, a: np.cumsum(v.astype(np.float64), a).astype(np.float32))
    x = np.array([[0.5, -2, 3, -np.inf, 1], [-np.inf, -np.inf, 0, 1, -1], [-1000, -999, 0, 1, 700]], np.float32)
    scan("logcumsumexp", "float32", x,
         lambda v, a: np.logaddexp.accumulate(v.astype(np.float64), a).astype(np.float32))


# ---- movement

def windows(x, size, step, axis):
    v = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return np.take(v, np.arange(0, v.shape[axis], step), axis)


MOVES = {
    "reshape": lambda x: [x.reshape(4, 6), x.reshape(24), x.reshape(2, 1, 3, 4), x.reshape(-1, 8)],
    "permute": lambda x: [x.transpose(2, 0, 1), x.transpose(1, 0, 2), x.transpose(0, 2, 1)],
    "transpose": lambda x: [x.swapaxes(0, 1), x.swapaxes(-1, 0)],
    "permute_reshape": lambda x: [x.transpose(2, 0, 1).reshape(3, 8), x.transpose(2, 1, 0).reshape(-1)],
    "expand": lambda x: [np.broadcast_to(x, (5, 2, 3, 4)), np.broadcast_to(x[:, :1], (2, 6, 4))],
    "shrink": lambda x: [x[0:1, 1:3, 2:4], x[:, 1:1], x[1:2]],
    "pad": lambda x: [np.pad(x, ((1, 0), (0, 2), (1, 1))), np.pad(x, ((0, 0), (1, 1), (2, 0)), constant_values=x.dtype.type(7)),
                      np.pad(x, ((0, 0), (0, 0), (1, 2)))[:, 1:, :]],
    "pad_crop": lambda x: [np.pad(x[:, 1:, :-2], ((0, 1), (0, 1), (2, 0)), constant_values=x.dtype.type(3))],
    "pad_slice": lambda x: [np.pad(x, ((0, 0), (0, 0), (0, 3)), constant_values=x.dtype.type(5))[:, :, 4:][:, :, ::-1]],
    "flip": lambda x: [x[::-1], x[:, ::-1, ::-1], x[::-1, ::-1, ::-1]],
    "squeeze": lambda x: [x[:, None], x[..., None], x[None], x[:1].squeeze(), x[:1, :, :1].squeeze(2)],
    "flatten": lambda x: [x.reshape(-1), x.reshape(6, 4), x.reshape(2, 12)],
    "unflatten": lambda x: [x.reshape(2, 3, 2, 2), x.reshape(1, 2, 3, 4)],
    "split": lambda x: [x[..., :3], x[..., 3:], x[:, :1], x[:, 1:]],
    "chunk": lambda x: [x[..., :2], x[..., 2:], x[:1], x[1:]],
    "cat": lambda x: [np.concatenate([x, x[:1], x[:, :, ::-1]], 0), np.concatenate([x, x[:, :1]], 1),
                      np.concatenate([x, x[..., :0], x[..., 1:]], -1)],
    "stack": lambda x: [np.stack([x, x[::-1]]), np.stack([x, x[::-1]], -1), np.stack([x[0], x[1], x[0]], 1)],
    "repeat": lambda x: [np.tile(x, (2, 1, 3)), np.tile(x, (2, 1, 1, 1))],
    "repeat_interleave": lambda x: [np.repeat(x, 2, 1), np.repeat(x, 3)],
    "roll": lambda x: [np.roll(x, 1, 2), np.roll(x, (1, -2), (0, 1)), np.roll(x, 9, 1)],
    "unfold": lambda x: [windows(x, 2, 1, 2), windows(x, 2, 2, 2), windows(x, 2, 1, 1)],
    "tril": lambda x: [np.tril(x), np.tril(x, 1), np.tril(x, -1), np.tril(x, -9)],
    "triu": lambda x: [np.triu(x), np.triu(x, 2), np.triu(x, -1), np.triu(x, 9)],
    "diagonal": lambda x: [np.diagonal(x[:, :, :3], axis1=1, axis2=2), np.diag(x[0, :, :3]), np.diag(x[0, 0])],
    "slices": lambda x: [x[:, 1], x[-1, :, 2], x[:, ::2], x[:, ::-1, ::-2], x[..., 3:0:-1], x[..., -3:-1],
                         x[1:0], x[:, 5:], x[None, :, None, 1], x[..., 0], x[0, ..., 1], x[1, 2, 3], x[..., ::3, ::3]],
    "slice_chain": lambda x: [x[:, ::2][:, ::-1][..., 1:][..., ::2], x.transpose(2, 0, 1)[1:3, ::-1, ::2].reshape(-1)],
    "contiguous": lambda x: [x.transpose(2, 1, 0)],
}


def movement():
    x = random.normal(size=(2, 3, 4)).astype(np.float32)
    x[0, 0, 1], x[0, 1, 2], x[1, 2, 0], x[1, 0, 0] = -0.0, np.nan, np.inf, -np.inf
    inputs = {"float32": x, "int16": random.integers(-999, 999, (2, 3, 4)).astype(np.int16),
              "float64": random.normal(size=(2, 3, 4)), "uint8": random.integers(0, 256, (2, 3, 4)).astype(np.uint8)}
    for dtype, v in inputs.items():
        for name, f in MOVES.items():
            if dtype in ("float64", "uint8") and name not in ("pad", "cat", "slices", "roll"):
                continue
            case(f"{name}/{dtype}", [v], f(v))
    b = random.integers(0, 2, (2, 3, 4)).astype(bool)
    case("cat/bool", [b], MOVES["cat"](b))
    case("flip/bool", [b], MOVES["flip"](b))
    e = np.zeros((0, 3), np.float32)
    case("empty_moves/float32", [e], [e.reshape(3, 0), e.T, np.pad(e, ((1, 1), (0, 0))), e[::-1],
                                      np.concatenate([e, np.ones((2, 3), np.float32)]), np.tile(e, (2, 2)), e[:, 1]])
    s = np.array(4.0, np.float32)
    case("scalar_moves/float32", [s], [s.reshape(1, 1), np.broadcast_to(s, (2, 3)), s.reshape(1)])
    case("cat_mixed/int8-float16", [np.array([1, 2], np.int8), np.array([0.5], np.float16)], np.array([1, 2, 0.5], np.float16))
    a, c = np.arange(3), np.arange(4) * 10
    case("meshgrid/int64", [a, c], np.meshgrid(a, c, indexing="ij"))
    case("arange/int64", [], [np.arange(5), np.arange(2, 9, 3), np.arange(5, -2, -2), np.arange(0), np.arange(3, 3)])
    case("arange_float/float32", [], [np.arange(0, 1, 0.25, dtype=np.float32), np.arange(5, dtype=np.float32)])
    case("linspace/float32", [], [np.linspace(-1, 2, 7, dtype=np.float32), np.linspace(3, 9, 1, dtype=np.float32), np.linspace(0, 1, 0, dtype=np.float32)])
    case("eye/float32", [], [np.eye(3, dtype=np.float32), np.eye(2, 4, dtype=np.float32), np.eye(0, dtype=np.float32)])


# ---- indexing

def indexing():
    for dtype in ["float32", "int64", "bool"]:
        x = random.normal(size=(4, 5, 3)).astype(np.float32) if dtype == "float32" else \
            random.integers(-2**40, 2**40, (4, 5, 3)) if dtype == "int64" else random.integers(0, 2, (4, 5, 3)).astype(bool)
        if dtype == "float32":
            x[0, 0] = [np.nan, np.inf, -0.0]
        i, j = np.array([0, -1, 2]), np.array([[1], [-2]])
        mask = random.integers(0, 2, (4, 5)).astype(bool)
        case(f"fancy/{dtype}", [x, i, j], [x[i], x[:, i], x[..., np.array([0, -1, 2])], x[i, i], x[:, j, i % 3], x[j, :, 1],
                                           x[i, :, i % 3], x[1, i], x[i, 1], x[:, None, i], x[j], x[1:3, i, ::-1]])
        case(f"mask/{dtype}", [x, mask], [x[mask], x[mask[:, 0]], x[:, mask[0]], x[np.zeros(4, bool)]])
        idx = random.integers(-3, 3, (4, 5, 2))
        case(f"gather/{dtype}", [x, idx], [np.take_along_axis(x, idx, 2)])
        along = random.integers(-4, 4, (6, 5, 3))
        case(f"gather0/{dtype}", [x, along], [np.take_along_axis(x, along, 0)])
        case(f"index_select/{dtype}", [x, np.array([3, 0, -1])], [x[[3, 0, -1]], x[:, [3, 0, -1]]])
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out_of_range = np.array([[0, 4], [-5, 3], [99, -1]])
    case("gather_out/float32", [x, out_of_range], np.array([[0, 0], [0, 7], [0, 11]], np.float32))
    case("gather_short/float32", [x, np.array([[1], [-1]])], np.array([[1], [7]], np.float32))
    case("one_hot/int64", [np.array([0, 2, -1, 5, -6])], np.array([[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0] * 5, [0] * 5]))
    case("one_hot/uint8", [np.array([[1], [4]], np.uint8)], np.array([[[0, 1, 0, 0, 0]], [[0, 0, 0, 0, 1]]]))
    case("masked_fill/float32", [x, x > 5], np.where(x > 5, np.float32(-np.inf), x))

    for dtype in ["float32", "int32", "float64"]:
        t = (random.normal(size=(4, 3)) * 10).astype(dtype)
        s = (random.normal(size=(5, 3)) * 10).astype(dtype)
        index = random.integers(-4, 4, (5, 3))
        index[2, 1] = 7  # writes nothing
        full = lambda: itertools.product(range(5), range(3))
        def run(init, f):
            out = init.copy()
            for a, b in full():
                n = index[a, b]
                if -4 <= n < 4:
                    out[n, b] = f(out[n, b], s[a, b])
            return out
        hit = run(np.zeros((4, 3)), lambda o, v: 1).astype(bool)
        ident = {"sum": 0, "prod": 1, "amax": -np.inf if dtype != "int32" else np.iinfo(np.int32).min,
                 "amin": np.inf if dtype != "int32" else np.iinfo(np.int32).max}
        fs = {"sum": lambda o, v: o + v, "prod": lambda o, v: o * v, "amax": max, "amin": min}
        case(f"scatter/{dtype}", [t, index, s], run(t, lambda o, v: v))
        outs, alone = [], []
        wide = np.float64 if dtype != "int32" else np.int32
        for name, f in fs.items():
            outs.append(run(t.astype(wide), f).astype(dtype))
            start = np.where(hit, np.array(ident[name]).astype(wide), t.astype(wide))
            alone.append(run(start.astype(wide), f).astype(dtype))
        count = run(np.zeros((4, 3), int), lambda o, v: o + 1)
        def mean(total, n):
            n = np.where(n == 0, 1, n)
            return (total / n if dtype != "int32" else total // n).astype(dtype)
        outs.append(mean(run(t.astype(wide), fs["sum"]), count + 1))
        alone.append(mean(run(np.where(hit, 0, t).astype(wide), fs["sum"]), count))
        case(f"scatter_reduce/{dtype}", [t, index, s], outs)
        case(f"scatter_reduce_alone/{dtype}", [t, index, s], alone)
    t = np.zeros((3, 4), np.float32)
    case("scatter_axis1/float32", [t, np.array([[0, 1], [2, -1]]), np.array([[1, 2, 9], [3, 4, 9]], np.float32)],
         [np.array([[1, 2, 0, 0], [0, 0, 3, 4], [0] * 4], np.float32),
          np.array([[7, 7, 0, 0], [0, 0, 7, 7], [0] * 4], np.float32)])

    # setitem: each output is a fresh copy written in one way
    for dtype in ["float32", "int16"]:
        x = (np.arange(24) * 3 % 17).reshape(4, 6).astype(dtype)
        v = np.array([100, 101, 102, 103, 104, 105], dtype)
        outs = []
        def write(f):
            y = x.copy()
            f(y)
            outs.append(y)
        write(lambda y: y.__setitem__((0,), 5))
        write(lambda y: y.__setitem__((slice(None), 1), 7))
        write(lambda y: y.__setitem__((1,), v))
        write(lambda y: y.__setitem__((slice(None, None, 2), slice(None, None, -1)), v))
        write(lambda y: y.__setitem__((slice(1, 3), slice(4, 1, -2)), np.array([[1], [2]], dtype)))
        write(lambda y: y.__setitem__(([0, 0, -1], [1, 1, 2]), np.array([50, 51, 52], dtype)))
        write(lambda y: y.__setitem__(([3, 1],), v))
        write(lambda y: y.__setitem__((slice(None), [5, 0]), np.array([[8, 9]], dtype)))
        write(lambda y: y.__setitem__((y > 8,), 0))
        write(lambda y: y.__setitem__((slice(1, 1),), 3))
        write(lambda y: y.__setitem__((Ellipsis, 2), y[..., 3] + y[..., 2]))
        write(lambda y: y.__setitem__((slice(1, None),), y[:-1].copy()))
        write(lambda y: y.__setitem__((slice(None), slice(None, None, -1)), y.copy()))
        case(f"setitem/{dtype}", [x, v], outs)


# ---- products, convolution, pooling, losses

def conv_nd(x, w, stride, padding, dilation, groups):
    """Plainly: (N, C, ..) by (O, C/g, ..); padding is pairs."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + list(padding))
    out = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.float64 if x.dtype.kind == "f" else x.dtype)
    per, outs = w.shape[1], w.shape[0] // groups
    for at in np.ndindex(*out):
        for k in np.ndindex(*w.shape[2:]):
            place = tuple(at[i] * stride[i] + k[i] * dilation[i] for i in range(n))
            piece = x[(slice(None), slice(None)) + place]
            for g in range(groups):
                y[(slice(None), slice(g * outs, (g + 1) * outs)) + at] += \
                    piece[:, g * per:(g + 1) * per] @ w[(slice(g * outs, (g + 1) * outs), slice(None)) + k].T
    return y


def conv_transpose_nd(x, w, stride, padding, dilation, groups, extra):
    n = w.ndim - 2
    size = [(x.shape[2 + i] - 1) * stride[i] + dilation[i] * (w.shape[2 + i] - 1) + 1 + extra[i] for i in range(n)]
    outs, per = w.shape[1], x.shape[1] // groups
    y = np.zeros((x.shape[0], outs * groups, *size))
    for at in np.ndindex(*x.shape[2:]):
        for k in np.ndindex(*w.shape[2:]):
            place = tuple(at[i] * stride[i] + k[i] * dilation[i] for i in range(n))
            for g in range(groups):
                y[(slice(None), slice(g * outs, (g + 1) * outs)) + place] += \
                    x[(slice(None), slice(g * per, (g + 1) * per)) + at] @ w[(slice(g * per, (g + 1) * per), slice(None)) + k]
    cut = tuple(slice(padding[i][0], size[i] - padding[i][1]) for i in range(n))
    return y[(slice(None), slice(None)) + cut]


CONVS = [  # label, x, w, stride, padding, dilation, groups; the C++ table has the same numbers
    ("1d", (2, 3, 9), (4, 3, 3), [1], [(0, 0)], [1], 1),
    ("1d_stride", (2, 4, 11), (6, 2, 3), [2], [(2, 2)], [2], 2),
    ("2d", (2, 3, 6, 7), (4, 3, 3, 3), [1, 1], [(0, 0), (0, 0)], [1, 1], 1),
    ("2d_pad", (1, 2, 5, 5), (3, 2, 3, 3), [1, 1], [(1, 1), (1, 1)], [1, 1], 1),
    ("2d_stride", (1, 2, 7, 8), (3, 2, 3, 2), [2, 3], [(1, 1), (2, 2)], [1, 1], 1),
    ("2d_dilate", (1, 4, 8, 9), (4, 2, 3, 2), [1, 2], [(0, 1), (2, 0)], [2, 3], 2),
    ("2d_depthwise", (2, 4, 5, 5), (8, 1, 2, 3), [1, 1], [(1, 0), (1, 1)], [1, 1], 4),
    ("2d_one", (2, 3, 4, 4), (5, 3, 1, 1), [1, 1], [(0, 0), (0, 0)], [1, 1], 1),
    ("3d", (1, 2, 4, 5, 4), (3, 2, 2, 3, 2), [1, 2, 1], [(1, 1), (0, 0), (1, 1)], [1, 1, 2], 1),
]
TRANSPOSED = [  # label, x, w, stride, padding, dilation, groups, output padding
    ("1d", (2, 3, 5), (3, 4, 3), [2], [(1, 1)], [1], 1, [1]),
    ("2d", (1, 4, 3, 4), (4, 2, 3, 2), [2, 1], [(1, 1), (0, 0)], [1, 2], 2, [0, 0]),
    ("2d_odd", (1, 1, 3, 4), (1, 1, 3, 2), [2, 1], [(2, 2), (1, 1)], [3, 1], 1, [0, 0]),
    ("2d_plain", (2, 2, 3, 3), (2, 3, 2, 2), [1, 1], [(0, 0), (0, 0)], [1, 1], 1, [0, 0]),
    ("3d", (1, 2, 2, 3, 2), (2, 2, 2, 2, 3), [2, 2, 1], [(0, 0), (1, 1), (0, 0)], [1, 1, 1], 1, [1, 1, 0]),
]


def pool_windows(x, kernel, stride, padding, dilation, ceil):
    """For each output place, the clipped windows of the last axes: real values and padded count."""
    n = len(kernel)
    counts = []
    for i in range(n):
        size = x.shape[x.ndim - n + i]
        reach = dilation[i] * (kernel[i] - 1) + 1
        room = size + 2 * padding[i] - reach
        c = (-(-room // stride[i]) if ceil else room // stride[i]) + 1
        if ceil and (c - 1) * stride[i] >= size + padding[i]:
            c -= 1
        counts.append(c)
    for at in np.ndindex(*counts):
        real, padded = [], 1
        for i in range(n):
            size = x.shape[x.ndim - n + i]
            places = [at[i] * stride[i] - padding[i] + k * dilation[i] for k in range(kernel[i])]
            real.append([p for p in places if 0 <= p < size])
            padded *= len([p for p in places if p < size + padding[i]])
        yield at, x[(Ellipsis,) + np.ix_(*real)].reshape(x.shape[:x.ndim - n] + (-1,)), padded
    return


def pooled(x, kernel, stride, padding, dilation, ceil, f):
    all_ = [(at, f(v, c)) for at, v, c in pool_windows(x, kernel, stride, padding, dilation, ceil)]
    shape = tuple(max(at[i] for at, _ in all_) + 1 for i in range(len(kernel)))
    out = np.zeros(x.shape[:x.ndim - len(kernel)] + shape)
    for at, v in all_:
        out[(Ellipsis,) + at] = v
    return out


POOLS = [  # label, x, kernel, stride, padding, dilation, ceil
    ("2d", (2, 3, 6, 7), [2, 2], [2, 2], [0, 0], [1, 1], False),
    ("2d_over", (1, 2, 7, 6), [3, 2], [2, 1], [1, 0], [1, 1], False),
    ("2d_ceil", (1, 1, 5, 5), [2, 2], [2, 2], [1, 1], [1, 1], True),
    ("2d_ceil_b", (2, 1, 6, 7), [3, 3], [2, 2], [0, 1], [1, 1], True),
    ("1d_dilate", (2, 3, 9), [3], [1], [1], [2], False),
    ("3d", (1, 2, 4, 5, 4), [2, 2, 2], [1, 2, 2], [0, 1, 0], [1, 1, 1], False),
]


def products():
    shapes = [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)),
              ((2, 3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)),
              ((1, 1), (1, 1)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((2, 0, 3), (3, 2)), ((17, 33), (33, 9))]
    for n, (p, q) in enumerate(shapes):
        for dtype in ["float32", "float64"]:
            a, b = rounded(random.normal(size=p), dtype), rounded(random.normal(size=q), dtype)
            case(f"matmul/{dtype}-{n}", [a, b], rounded(np.matmul(a.astype(np.float64), b.astype(np.float64)), dtype))
    for dtype in ["float16", "bfloat16"]:
        a, b = rounded(random.normal(size=(5, 40)), dtype), rounded(random.normal(size=(40, 3)), dtype)
        v = values(a).astype(np.float64) @ values(b).astype(np.float64)
        case(f"matmul/{dtype}", [a, b], rounded(v, dtype))
        case(f"matmul_wide/{dtype}", [a, b], rounded(v, "float32"))
    for dtype in INTS:
        a, b = random.choice(int_samples(dtype), size=(3, 4)), random.choice(int_samples(dtype), size=(4, 2))
        case(f"matmul/{dtype}", [a, b], np.matmul(a, b))
    a, b = random.integers(-9, 9, (2, 3)).astype(np.int8), random.normal(size=(3, 2)).astype(np.float32)
    case("matmul/int8-float32", [a, b], (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))
    a, w, c = random.normal(size=(2, 3, 4)), random.normal(size=(5, 4)), random.normal(size=5)
    case("linear/float64", [a, w, c], [a @ w.T, a @ w.T + c])
    t = random.normal(size=(6, 4))
    case("matmul_views/float64", [t], [t.T @ t, t[::2, ::-1] @ t[1:5, :2], t[:1] @ np.broadcast_to(t[0, 1], (4, 3))])

    for label, xs, ws, stride, padding, dilation, groups in CONVS:
        x, w, bias = random.normal(size=xs), random.normal(size=ws), random.normal(size=ws[0])
        line = (1, -1) + (1,) * (len(ws) - 2)
        y = conv_nd(x, w, stride, padding, dilation, groups)
        case(f"conv_{label}/float64", [x, w, bias], [y, y + bias.reshape(line)])
        x, w = x.astype(np.float32), w.astype(np.float32)
        y = conv_nd(x.astype(np.float64), w.astype(np.float64), stride, padding, dilation, groups)
        case(f"conv_{label}/float32", [x, w, bias.astype(np.float32)], [y.astype(np.float32), (y + bias.astype(np.float32).reshape(line)).astype(np.float32)])
    x, w = random.integers(-5, 5, (1, 2, 4, 4)).astype(np.int32), random.integers(-5, 5, (2, 2, 3, 3)).astype(np.int32)
    case("conv_int/int32", [x, w], conv_nd(x, w, [1, 1], [(1, 1), (1, 1)], [1, 1], 1))
    for label, xs, ws, stride, padding, dilation, groups, extra in TRANSPOSED:
        x, w, bias = random.normal(size=xs), random.normal(size=ws), random.normal(size=ws[1] * groups)
        y = conv_transpose_nd(x, w, stride, padding, dilation, groups, extra)
        case(f"conv_transpose_{label}/float64", [x, w, bias], [y, y + bias.reshape((1, -1) + (1,) * (len(ws) - 2))])
    for label, xs, kernel, stride, padding, dilation, ceil in POOLS:
        x = random.normal(size=xs)
        p = lambda f: pooled(x, kernel, stride, padding, dilation, ceil, f)
        case(f"max_pool_{label}/float64", [x], p(lambda v, c: v.max(-1)))
        case(f"avg_pool_{label}/float64", [x], [p(lambda v, c: v.sum(-1) / c), p(lambda v, c: v.mean(-1))])
    x = np.array([[1, np.nan, 2, -np.inf], [3, 4, -np.inf, -np.inf]], np.float32)
    case("max_pool_nan/float32", [x], np.array([[np.nan, 2]], np.float32))
    x = random.integers(0, 99, (4, 4)).astype(np.int32)
    case("max_pool_int/int32", [-x], pooled(-x, [3, 3], [1, 1], [1, 1], [1, 1], False, lambda v, c: v.max(-1)).astype(np.int32))

    q, k, v = (random.normal(size=(2, 3, 5, 4)) for _ in range(3))
    mask = random.integers(0, 2, (5, 5)).astype(bool)
    mask[2] = False
    bias = random.normal(size=(5, 5))
    def attention(allowed=None, add=0):
        s = q @ k.swapaxes(-1, -2) / 2 + add
        if allowed is not None:
            s = np.where(allowed, s, -np.inf)
        top = s.max(-1, keepdims=True)
        e = np.exp(s - np.where(np.isinf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        return (e / np.where(total == 0, 1, total)) @ v
    lower = np.tril(np.ones((5, 5), bool))
    case("attention/float64", [q, k, v, mask, bias], [attention(), attention(lower), attention(mask), attention(mask & lower), attention(None, bias)])

    logits, target = random.normal(size=(4, 3)), np.array([0, 2, -100, 1])
    weight = np.array([0.5, 1.0, 2.0])
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    each = np.array([-log_p[i, t] if t >= 0 else 0 for i, t in enumerate(target)])
    counted = target >= 0
    w = np.where(counted, weight[np.where(counted, target, 0)], 0)
    smooth = np.where(counted, 0.9 * each + 0.1 * -log_p.mean(1), 0)
    case("cross_entropy/float64", [logits, target, weight], [
        np.array(each.sum() / 3), np.array(each.sum()), each, np.array((each * w).sum() / w.sum()), np.array(smooth.sum() / 3)])
    case("nll_loss/float64", [log_p, target, weight], [np.array(each.sum() / 3), np.array((each * w).sum() / w.sum()), each])
    p = np.exp(random.normal(size=(4, 3)))
    p /= p.sum(1, keepdims=True)
    soft = -(log_p * p).sum(1)
    case("cross_entropy_soft/float64", [logits, p], [np.array(soft.mean()), soft])
    image, classes = random.normal(size=(2, 3, 2, 2)), random.integers(0, 3, (2, 2, 2))
    lp = image - np.log(np.exp(image).sum(1, keepdims=True))
    case("cross_entropy_image/float64", [image, classes], np.array(-np.take_along_axis(lp, classes[:, None], 1).mean()))
    x, y = random.uniform(0.05, 0.95, (3, 4)), random.uniform(size=(3, 4))
    bce = -(y * np.log(x) + (1 - y) * np.log(1 - x))
    case("binary_cross_entropy/float64", [x, y], [np.array(bce.mean()), bce])
    case("binary_cross_entropy/edge", [np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])],
         [np.array(50.0), np.array([0.0, 0, 100, 100])])
    z = random.normal(size=(3, 4)) * 5
    pos = np.array([1.0, 2.0, 0.5, 3.0])
    full = lambda pw: pw * y * softplus(-z) + (1 - y) * softplus(z)
    case("bce_logits/float64", [z, y, pos], [np.array(full(1).mean()), full(1), np.array(full(pos).sum())])
    case("mse_loss/float64", [z, y], [np.array(((z - y)**2).mean()), np.array(((z - y)**2).sum()), (z - y)**2])
    case("l1_loss/float64", [z, y], [np.array(np.abs(z - y).mean()), np.abs(z - y)])


def write(path):
    def member(name):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # equal files for equal values
        info.compress_type = zipfile.ZIP_DEFLATED
        return info

    with zipfile.ZipFile(path, "w", compresslevel=9) as out:
        out.writestr(member("index.txt"), "".join(line + "\n" for line in cases.values()), compresslevel=9)
        for number, a in arrays.values():
            npy = io.BytesIO()
            np.lib.format.write_array(npy, a)
            out.writestr(member(f"{number}.npy"), npy.getvalue(), compresslevel=9)


if __name__ == "__main__":
    for make in (unary, binary, casts, reductions, movement, indexing, products):
        make()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.npz")
    write(path)
    print(f"{len(cases)} cases, {len(arrays)} arrays, {os.path.getsize(path)} bytes")
