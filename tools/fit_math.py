"""The coefficients of src/kernel/decompose_math.cpp: Q of erf, and pi/2 and ln2 in parts.

Needs mpmath. Prints the fit's greatest error, then the numbers.
"""
import mpmath as mp

mp.mp.dps = 40


def scaled_erfc(t):  # erfc(x) e^(x^2) with x = 2.5 (1 + t) / (1 - t)
    x = 2.5 * (1 + t) / (1 - t)
    return mp.erfc(x) * mp.exp(x * x)


low, high = (mp.mpf(1) - 2.5) / (1 + 2.5), (mp.mpf(6.5) - 2.5) / (6.5 + 2.5)
coefficients, error = mp.chebyfit(scaled_erfc, [low, high], 22, error=True)
print("Q, highest power first, error", mp.nstr(error, 3))
for c in coefficients:
    print("  ", mp.nstr(c, 20))

rest = mp.pi / 2
for _ in range(3):  # parts of 23 bits: 2^30 times one is exact in 53
    unit = mp.mpf(2) ** (mp.floor(mp.log(rest, 2)) - 22)
    part = mp.floor(rest / unit) * unit
    rest -= part
    print("pi/2 part", mp.nstr(part, 25))
print("pi/2 rest", mp.nstr(rest, 25))

for bits in (32, 12):  # float64, float32
    unit = mp.mpf(2) ** -bits
    part = mp.floor(mp.log(2) / unit) * unit
    print("ln2", mp.nstr(part, 25), mp.nstr(mp.log(2) - part, 25))
