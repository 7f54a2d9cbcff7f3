"""Repair of windows (PROTOCOL.md section 6.1), from the text of RFC 8681 and RFC 8682: TinyMT32, GF(256), a sum."""

from typing import List

WORD = 0xFFFFFFFF


class TinyMT32:
    """RFC 8682, with the one parameter set that it has."""

    MAT1, MAT2, TMAT = 0x8F7011EE, 0xFC78FF1F, 0x3793FDFF

    def __init__(self, seed: int) -> None:
        self.state = [seed, self.MAT1, self.MAT2, self.TMAT]
        for turn in range(1, 8):
            before = self.state[(turn - 1) & 3]
            self.state[turn & 3] ^= (turn + 1812433253 * (before ^ (before >> 30))) & WORD
        for _ in range(8):
            self._step()

    def _step(self) -> None:
        first, second, third, last = self.state
        x = (first & 0x7FFFFFFF) ^ second ^ third
        x = (x ^ (x << 1)) & WORD
        y = last ^ (last >> 1) ^ x
        odd = y & 1
        self.state = [second, third ^ self.MAT1 * odd, (x ^ (y << 10)) & WORD ^ self.MAT2 * odd, y]

    def number(self) -> int:
        self._step()
        total = (self.state[0] + (self.state[2] >> 8)) & WORD
        return self.state[3] ^ total ^ self.TMAT * (total & 1)


def coefficients(key: int, count: int) -> List[int]:
    """RFC 8681, section 3.6, for m = 8 and DT = 15: low octets, skipping zeros."""
    numbers, found = TinyMT32(key), []  # type: TinyMT32, List[int]
    while len(found) < count:
        octet = numbers.number() & 0xFF
        if octet:
            found.append(octet)
    return found


def times(a: int, b: int) -> int:
    """In GF(256) with x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a = (a << 1) ^ (0x11D if a & 0x80 else 0)
        b >>= 1
    return product


def repair(key: int, symbols: List[bytes]) -> bytes:
    """The repair symbol of a window, the oldest symbol first."""
    total = bytearray(len(symbols[0]))
    for factor, symbol in zip(coefficients(key, len(symbols)), symbols):
        for at, octet in enumerate(symbol):
            total[at] ^= times(factor, octet)
    return bytes(total)
