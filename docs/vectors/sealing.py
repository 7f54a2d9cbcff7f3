"""Sections 2 and 3 of PROTOCOL.md: the handshake, the keys and the sealing, with nothing but Python's own library.

Not safe against timing attacks: only for test vectors and tests.
"""

import hashlib
import hmac
from typing import List, NamedTuple, Tuple

from layout import require

TAG = 16

# --- HKDF with SHA-256 (RFC 5869) -----------------------------------------------------------------------------------


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.new(salt, secret, hashlib.sha256).digest()


def expand(key: bytes, label: bytes, length: int) -> bytes:
    out, block, count = b"", b"", 1
    while len(out) < length:
        block = hmac.new(key, block + label + bytes([count]), hashlib.sha256).digest()
        out, count = out + block, count + 1
    return out[:length]


# --- ChaCha20-Poly1305 (RFC 8439) -----------------------------------------------------------------------------------

# Several blocks at once: word i of all blocks is one integer, with 64 bits per block and the word in the lower 32.
LANE = 8


def spread(value: int, lanes: int) -> int:
    """`value` in every lane."""
    return value * (((1 << 64 * lanes) - 1) // ((1 << 64) - 1))


def gather(words: List[int], lanes: int) -> bytes:
    """The words of all lanes in little-endian order: those of the first lane, then those of the second, and so on."""
    width = 4 * len(words)
    out = bytearray(width * lanes)
    for index, word in enumerate(words):
        column = word.to_bytes(LANE * lanes, "little")
        for byte in range(4):
            out[4 * index + byte :: width] = column[byte::LANE]
    return bytes(out)


def _chacha20_blocks(key: bytes, nonce: bytes, lanes: int) -> bytes:
    """Blocks 0 to `lanes` - 1 of the key stream."""
    setup = b"expand 32-byte k" + key + bytes(4) + nonce
    start = [spread(int.from_bytes(setup[at : at + 4], "little"), lanes) for at in range(0, 64, 4)]
    start[12] = int.from_bytes(b"".join(count.to_bytes(LANE, "little") for count in range(lanes)), "little")
    low = spread(0xFFFFFFFF, lanes)
    state = list(start)
    for _ in range(10):
        for i, j, k, m in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):  # fmt: skip
            a, b, c, d = state[i], state[j], state[k], state[m]
            for first, second in ((16, 12), (8, 7)):
                a = a + b & low
                d = (d ^ a) << first
                d = (d | d >> 32) & low
                c = c + d & low
                b = (b ^ c) << second
                b = (b | b >> 32) & low
            state[i], state[j], state[k], state[m] = a, b, c, d
    return gather([x + y & low for x, y in zip(state, start)], lanes)


def exclusive_or(x: bytes, y: bytes) -> bytes:
    return (int.from_bytes(x, "little") ^ int.from_bytes(y, "little")).to_bytes(len(x), "little")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16)


def _poly1305_tag(once: bytes, associated: bytes, ciphertext: bytes) -> bytes:
    r = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    message = _padded(associated) + _padded(ciphertext)
    message += len(associated).to_bytes(8, "little") + len(ciphertext).to_bytes(8, "little")
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(once[16:32], "little")) % 2**128).to_bytes(16, "little")


def _key_stream(key: bytes, nonce: bytes, length: int) -> Tuple[bytes, bytes]:
    """The one-time key of the tag, and the stream for `length` bytes."""
    blocks = _chacha20_blocks(key, nonce, 1 + (length + 63) // 64)
    return blocks[:32], blocks[64 : 64 + length]


def chacha20_poly1305_seal(key: bytes, nonce: bytes, associated: bytes, plaintext: bytes) -> bytes:
    once, stream = _key_stream(key, nonce, len(plaintext))
    ciphertext = exclusive_or(plaintext, stream)
    return ciphertext + _poly1305_tag(once, associated, ciphertext)


def chacha20_poly1305_open(key: bytes, nonce: bytes, associated: bytes, sealed: bytes) -> bytes:
    """The plaintext; refused where the tag is not authentic."""
    require(len(sealed) >= TAG, "a message without a tag")
    ciphertext, tag = sealed[:-TAG], sealed[-TAG:]
    once, stream = _key_stream(key, nonce, len(ciphertext))
    require(hmac.compare_digest(tag, _poly1305_tag(once, associated, ciphertext)), "not authentic")
    return exclusive_or(ciphertext, stream)


# --- AES-256-GCM (FIPS 197, NIST SP 800-38D) ------------------------------------------------------------------------


def _double(byte: int) -> int:
    return byte << 1 ^ (0x11B if byte & 0x80 else 0)


def _substitutes() -> List[int]:
    """The S-box: inverses in GF(2^8), from the powers of 3, through the affine map."""
    powers = [1]
    for _ in range(254):
        powers.append(powers[-1] ^ _double(powers[-1]))
    box = [0x63] * 256
    for exponent, value in enumerate(powers):
        inverse = powers[-exponent % 255]
        turned = [inverse << turn | inverse >> (8 - turn) for turn in range(5)]
        box[value] = (turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63) & 0xFF
    return box


SUBSTITUTE = _substitutes()


def _aes256_round_keys(key: bytes) -> List[bytes]:
    words, constant = [key[at : at + 4] for at in range(0, 32, 4)], 1
    while len(words) < 60:
        word = words[-1]
        if len(words) % 8 == 0:
            word = bytes(SUBSTITUTE[byte] for byte in word[1:] + word[:1])
            word, constant = bytes([word[0] ^ constant]) + word[1:], _double(constant)
        elif len(words) % 8 == 4:
            word = bytes(SUBSTITUTE[byte] for byte in word)
        words.append(bytes(x ^ y for x, y in zip(words[-8], word)))
    return [b"".join(words[at : at + 4]) for at in range(0, 60, 4)]


def _aes_block(round_keys: List[bytes], block: bytes) -> bytes:
    state = bytes(x ^ y for x, y in zip(block, round_keys[0]))
    for round_key in round_keys[1:]:
        # ShiftRows: row r of column c comes from column c + r.
        state = bytes(SUBSTITUTE[state[(at + at % 4 * 4) % 16]] for at in range(16))
        if round_key is not round_keys[-1]:
            mixed = []
            for at in range(0, 16, 4):
                column, every = state[at : at + 4], 0
                for byte in column:
                    every ^= byte
                mixed += [column[row] ^ every ^ _double(column[row] ^ column[(row + 1) % 4]) for row in range(4)]
            state = bytes(mixed)
        state = bytes(x ^ y for x, y in zip(state, round_key))
    return state


def _multiply(x: int, y: int) -> int:
    """In GF(2^128), the most significant bit first."""
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return product


def aes_256_gcm_seal(key: bytes, nonce: bytes, associated: bytes, plaintext: bytes) -> bytes:
    round_keys = _aes256_round_keys(key)
    blocks = range(1, 3 + len(plaintext) // 16)
    stream = [_aes_block(round_keys, nonce + count.to_bytes(4, "big")) for count in blocks]
    ciphertext = exclusive_or(plaintext, b"".join(stream[1:])[: len(plaintext)])
    message = _padded(associated) + _padded(ciphertext)
    message += (8 * len(associated)).to_bytes(8, "big") + (8 * len(ciphertext)).to_bytes(8, "big")
    subkey, total = int.from_bytes(_aes_block(round_keys, bytes(16)), "big"), 0
    for at in range(0, len(message), 16):
        total = _multiply(total ^ int.from_bytes(message[at : at + 16], "big"), subkey)
    return ciphertext + (total ^ int.from_bytes(stream[0], "big")).to_bytes(16, "big")


# --- Section 3: keys and packets ------------------------------------------------------------------------------------

# Name and number on the wire, then how it seals.
CIPHERS = {"aes-256-gcm": (1, aes_256_gcm_seal), "chacha20-poly1305": (2, chacha20_poly1305_seal)}
EPOCH_BITS = 22
CLEAR_HEADER = 17


def key_id(pre_shared: bytes) -> bytes:
    return expand(extract(b"downpour v1", pre_shared), b"key id", 8)


def noise_psk(pre_shared: bytes) -> bytes:
    return expand(extract(b"downpour v1", pre_shared), b"noise psk", 32)


def secret_of(epoch: int, secret: bytes) -> bytes:
    """A direction's secret, from that of epoch 0."""
    for _ in range(epoch):
        secret = expand(secret, b"downpour epoch", 32)
    return secret


def key_and_iv(code: int, secret: bytes) -> Tuple[bytes, bytes]:
    """Of the epoch with this secret."""
    return expand(secret, b"downpour key" + bytes([code]), 32), expand(secret, b"downpour iv" + bytes([code]), 12)


def packet_nonce(iv: bytes, packet_number: int) -> bytes:
    return iv[:4] + (int.from_bytes(iv[4:], "big") ^ packet_number).to_bytes(8, "big")


def seal_packet(cipher: str, first_secret: bytes, header: bytes, packet_number: int, plaintext: bytes) -> bytes:
    """A whole packet, header included."""
    code, seal = CIPHERS[cipher]
    key, iv = key_and_iv(code, secret_of(packet_number >> EPOCH_BITS, first_secret))
    return header + seal(key, packet_nonce(iv, packet_number), header, plaintext)


def open_packet(cipher: str, first_secret: bytes, packet: bytes) -> bytes:
    """The plaintext of a packet. Both ciphers XOR a stream, so that sealing a sealed packet opens it."""
    require(len(packet) >= CLEAR_HEADER + TAG, "a packet without a tag")
    header, sealed = packet[:CLEAR_HEADER], packet[CLEAR_HEADER:-TAG]
    packet_number = int.from_bytes(header[9:], "big")
    plaintext = seal_packet(cipher, first_secret, header, packet_number, sealed)[CLEAR_HEADER:-TAG]
    again = seal_packet(cipher, first_secret, header, packet_number, plaintext)
    require(again == packet, "not authentic")
    return plaintext


# --- Section 2: Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s (Noise Protocol Framework, revision 34) ------------------------

NOISE_NAME = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s"
FIELD = 2**255 - 19
BASE_POINT = (9).to_bytes(32, "little")


def x25519(scalar: bytes, point: bytes) -> bytes:
    """RFC 7748 section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(1 << 255) | 1 << 254
    u = int.from_bytes(point, "little") & ~(1 << 255)
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in range(254, -1, -1):
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus, minus = (x2 + z2) % FIELD, (x2 - z2) % FIELD
        cross, other = (x3 - z3) * plus, (x3 + z3) * minus
        x3, z3 = (cross + other) ** 2 % FIELD, u * (cross - other) ** 2 % FIELD
        squares = plus * plus - minus * minus
        x2, z2 = plus * plus * minus * minus % FIELD, squares * (plus * plus + 121_665 * squares) % FIELD
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, FIELD - 2, FIELD) % FIELD).to_bytes(32, "little")


def _blake2s(data: bytes) -> bytes:
    return hashlib.blake2s(data).digest()


def _noise_hkdf(chaining: bytes, material: bytes, outputs: int) -> List[bytes]:
    def hashed(key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, hashlib.blake2s).digest()

    key, out = hashed(chaining, material), [b""]
    for count in range(1, outputs + 1):
        out.append(hashed(key, out[-1] + bytes([count])))
    return out[1:]


class Symmetric:
    """Noise's SymmetricState. Every key seals one message at most, so its nonce is 0."""

    def __init__(self, prologue: bytes, pre_shared: bytes) -> None:
        self.hash = self.chaining = _blake2s(NOISE_NAME)
        self.key = b""
        self.mix_hash(prologue)
        self.chaining, mixed, self.key = _noise_hkdf(self.chaining, pre_shared, 3)
        self.mix_hash(mixed)

    def mix_hash(self, data: bytes) -> None:
        self.hash = _blake2s(self.hash + data)

    def mix_key(self, material: bytes) -> None:
        self.chaining, self.key = _noise_hkdf(self.chaining, material, 2)

    def ephemeral(self, public: bytes) -> None:
        self.mix_hash(public)
        self.mix_key(public)

    def seal(self, payload: bytes) -> bytes:
        sealed = chacha20_poly1305_seal(self.key, bytes(12), self.hash, payload)
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        payload = chacha20_poly1305_open(self.key, bytes(12), self.hash, sealed)
        self.mix_hash(sealed)
        return payload

    def split(self) -> Tuple[bytes, bytes]:
        """The secrets of epoch 0: of the initiator's packets, then of the responder's."""
        first, second = _noise_hkdf(self.chaining, b"", 2)
        return first, second


class Handshake(NamedTuple):
    """Both Noise messages, and the secrets of epoch 0."""

    message1: bytes
    message2: bytes
    initiator_to_responder: bytes
    responder_to_initiator: bytes


def handshake(
    prologue: bytes, pre_shared: bytes, private: Tuple[bytes, bytes], payloads: Tuple[bytes, bytes]
) -> Handshake:
    """The whole handshake of an initiator and a responder with these ephemeral private keys."""
    state = Symmetric(prologue, noise_psk(pre_shared))
    publics = [x25519(one, BASE_POINT) for one in private]
    state.ephemeral(publics[0])
    message1 = publics[0] + state.seal(payloads[0])
    state.ephemeral(publics[1])
    state.mix_key(x25519(private[0], publics[1]))
    message2 = publics[1] + state.seal(payloads[1])
    first, second = state.split()
    return Handshake(message1, message2, first, second)

