"""Section 2 of PROTOCOL.md: the two sides of Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s, each with a key of its own."""

import os
from typing import Tuple

from layout import require
from sealing import BASE_POINT, Symmetric, noise_psk, x25519
from wire import VERSION

PUBLIC_KEY = 32


def prologue(key_id: bytes, connection: bytes) -> bytes:
    return b"downpour" + VERSION.to_bytes(4, "big") + key_id + connection


class Side:
    """The common part of initiator and responder."""

    def __init__(self, prologue: bytes, pre_shared: bytes) -> None:
        self.state = Symmetric(prologue, noise_psk(pre_shared))
        self.private = os.urandom(32)

    def _own_key(self) -> bytes:
        public = x25519(self.private, BASE_POINT)
        self.state.ephemeral(public)
        return public

    def _read_key(self, message: bytes) -> Tuple[bytes, bytes]:
        """The peer's public key, and the sealed payload behind it."""
        require(len(message) >= PUBLIC_KEY, "a Noise message without a key")
        self.state.ephemeral(message[:PUBLIC_KEY])
        return message[:PUBLIC_KEY], message[PUBLIC_KEY:]

    def _agree(self, public: bytes) -> None:
        self.state.mix_key(x25519(self.private, public))


class Initiator(Side):
    def first_message(self, payload: bytes) -> bytes:
        return self._own_key() + self.state.seal(payload)

    def read_second(self, message: bytes) -> bytes:
        """The responder's payload. Refused without any effect where it is not authentic."""
        before = vars(self.state).copy()
        try:
            public, sealed = self._read_key(message)
            self._agree(public)
            return self.state.open(sealed)
        except Exception:
            vars(self.state).update(before)
            raise


class Responder(Side):
    def read_first(self, message: bytes) -> bytes:
        """The initiator's payload."""
        self.public, sealed = self._read_key(message)
        return self.state.open(sealed)

    def second_message(self, payload: bytes) -> bytes:
        own = self._own_key()
        self._agree(self.public)
        return own + self.state.seal(payload)
