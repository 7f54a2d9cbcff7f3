"""BLAKE3, plain and with a derived key. The other primitives are in docs/vectors/sealing.py."""

from typing import List, Sequence

from sealing import LANE, gather, spread

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
MIXED = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
DERIVE_KEY_CONTEXT, DERIVE_KEY_MATERIAL = 32, 64
BLOCK, CHUNK = 64, 1024


def blake3(data: bytes) -> bytes:
    """The hash of 32 bytes."""
    return _hash(data, IV, 0)


def blake3_derived(context: bytes, data: bytes) -> bytes:
    """The hash in key derivation mode: of `data`, with the key that belongs to `context`."""
    key = _hash(context, IV, DERIVE_KEY_CONTEXT)
    return _hash(data, [int.from_bytes(key[at : at + 4], "little") for at in range(0, 32, 4)], DERIVE_KEY_MATERIAL)


def _hash(data: bytes, key: Sequence[int], flags: int) -> bytes:
    whole = max(0, (len(data) - 1) // CHUNK)
    last = data[CHUNK * whole :]
    root = 0 if whole else ROOT
    level = _chunks(data[: CHUNK * whole], CHUNK, 0, key, flags) if whole else b""
    level += _chunks(last, len(last), whole, key, flags, root)
    # Pairs from the left, and a single one at the end of a level moves up: the tree of the specification.
    while len(level) > 32:
        pairs = len(level) // 64
        root = ROOT if len(level) == 64 else 0
        words = _words(level[: BLOCK * pairs], BLOCK, 0)
        parents = _compress([spread(word, pairs) for word in key], words, 0, BLOCK, flags | PARENT | root, pairs)
        level = gather(parents, pairs) + level[64 * pairs :]
    return level


def _chunks(data: bytes, size: int, first: int, key: Sequence[int], flags: int, root: int = 0) -> bytes:
    """The chaining values of chunks of `size` bytes each, the first of which has the number `first`."""
    lanes = max(1, len(data) // max(1, size))
    value = [spread(word, lanes) for word in key]
    counter = int.from_bytes(b"".join((first + lane).to_bytes(LANE, "little") for lane in range(lanes)), "little")
    starts = range(0, max(1, size), BLOCK)
    # Only a single chunk can end with a partial block.
    stride = BLOCK * len(starts)
    padded = data.ljust(stride * lanes, b"\0")
    for start in starts:
        length = min(BLOCK, size - start)
        here = flags | (CHUNK_START if start == 0 else 0)
        here |= CHUNK_END | root if start == starts[-1] else 0
        value = _compress(value, _words(padded, stride, start), counter, length, here, lanes)
    return gather(value, lanes)


def _words(data: bytes, stride: int, start: int) -> List[int]:
    """The 16 words at `start` of each piece of `stride` bytes, a lane each."""
    lanes = len(data) // stride
    words = []
    for word in range(start, start + BLOCK, 4):
        column = bytearray(LANE * lanes)
        for byte in range(4):
            column[byte::LANE] = data[word + byte :: stride]
        words.append(int.from_bytes(column, "little"))
    return words


def _compress(value: List[int], block: List[int], counter: int, length: int, flags: int, lanes: int) -> List[int]:
    low = spread(0xFFFFFFFF, lanes)
    state = value + [spread(word, lanes) for word in IV[:4]]
    state += [counter & low, counter >> 32 & low, spread(length, lanes), spread(flags, lanes)]
    for turn in range(7):
        for index, (i, j, k, m) in enumerate(MIXED):
            a, b, c, d = state[i], state[j], state[k], state[m]
            # The specification rotates to the right by 16, 12, 8 and 7.
            for word, first, second in ((block[2 * index], 16, 20), (block[2 * index + 1], 24, 25)):
                a = a + b + word & low
                d = (d ^ a) << first
                d = (d | d >> 32) & low
                c = c + d & low
                b = (b ^ c) << second
                b = (b | b >> 32) & low
            state[i], state[j], state[k], state[m] = a, b, c, d
        block = [block[at] for at in PERMUTATION]
    return [low_half ^ high_half for low_half, high_half in zip(state[:8], state[8:])]
