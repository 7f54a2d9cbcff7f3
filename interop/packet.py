"""Sections 1.4 and 3.2 to 3.4 of PROTOCOL.md: sealed packets, one object for each direction.

The only cipher is ChaCha20-Poly1305.
"""

from typing import Dict, Set, Tuple

from layout import Record, read_whole, require, write_record
from sealing import (
    CLEAR_HEADER,
    EPOCH_BITS,
    chacha20_poly1305_open,
    chacha20_poly1305_seal,
    expand,
    key_and_iv,
    packet_nonce,
)
from wire import PACKET_HEADER, SYMBOL_HEADER

CIPHER = 2
SYMBOL, CONTROL = 0x10, 0x11
OVERHEAD = CLEAR_HEADER + 16
# A packet of one symbol is this much longer than the symbol.
SYMBOL_OVERHEAD = 43
SYMBOL_HEADER_LENGTH = 10
REMEMBERED = 65_536


class Direction:
    """The secrets of one direction, epoch by epoch."""

    def __init__(self, first_secret: bytes) -> None:
        self.secrets = {0: first_secret}
        self.keys: Dict[int, Tuple[bytes, bytes]] = {}

    def _keys(self, epoch: int) -> Tuple[bytes, bytes]:
        for one in range(max(self.secrets), epoch):
            self.secrets[one + 1] = expand(self.secrets[one], b"downpour epoch", 32)
        if epoch not in self.keys:
            self.keys[epoch] = key_and_iv(CIPHER, self.secrets[epoch])
        return self.keys[epoch]


class Sealer(Direction):
    def seal(self, kind: int, connection: bytes, number: int, plaintext: bytes) -> bytes:
        """A whole packet."""
        header = write_record(PACKET_HEADER, {"type": kind, "connection": connection, "number": number})
        key, iv = self._keys(number >> EPOCH_BITS)
        return header + chacha20_poly1305_seal(key, packet_nonce(iv, number), header, plaintext)


class Opener(Direction):
    def __init__(self, first_secret: bytes) -> None:
        super().__init__(first_secret)
        self.epoch = 0
        self.largest = -1
        self.received: Set[int] = set()

    def open(self, packet: bytes) -> Tuple[Record, bytes]:
        """Header and plaintext; rejected if it is not authentic, was received before, or is too old to know."""
        header = read_whole(PACKET_HEADER, packet[:CLEAR_HEADER])
        number = header["number"]
        epoch = number >> EPOCH_BITS
        require(abs(epoch - self.epoch) <= 1, "a packet of an epoch far away")
        require(number not in self.received and number > self.largest - REMEMBERED, "a replay")
        key, iv = self._keys(epoch)
        sealed, associated = packet[CLEAR_HEADER:], packet[:CLEAR_HEADER]
        plaintext = chacha20_poly1305_open(key, packet_nonce(iv, number), associated, sealed)
        self.epoch, self.largest = max(self.epoch, epoch), max(self.largest, number)
        self.received.add(number)
        if len(self.received) > 2 * REMEMBERED:
            self.received = {one for one in self.received if one > self.largest - REMEMBERED}
        return header, plaintext


def symbol_plaintext(flow: int, block: int, esi: int, plan: int, symbol: bytes) -> bytes:
    header = {"flow": flow, "block": block, "esi": esi, "plan": plan}
    return write_record(SYMBOL_HEADER, header) + symbol


def read_symbol(plaintext: bytes) -> Tuple[Record, bytes]:
    """Header and symbols."""
    return read_whole(SYMBOL_HEADER, plaintext[:SYMBOL_HEADER_LENGTH]), plaintext[SYMBOL_HEADER_LENGTH:]
