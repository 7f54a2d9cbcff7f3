"""Sections 1.1, 1.2, 2 and 5 of PROTOCOL.md: from a UDP socket and a ticket to a connection."""

import os
import select
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from layout import Record, Refused, require, write_record
from sealing import key_id
from wire import MESSAGE1, MESSAGE2, MIN_MESSAGE1, VERSION, read_datagram, read_parameters, write_parameters

from interop import noise
from interop.packet import CIPHER

Address = Tuple[Any, ...]
ROUNDS = [0, 0.02, 0.06, 0.1, 0.15, 0.2, 0.25, 0.5, 1, 2, 3, 4, 5]
TIMEOUT = 10.0
PLENTY = 1 << 40
LARGEST_K, LARGEST_T = 8192, 8192
CONTROL_CREDIT = 1 << 22
FEEDBACK = {"flags": 2, "timing": 1, "per round trip": 4, "least time": 5000}
GREASE = 0x3A4A
MAX_DATAGRAM = 65_507


class HandshakeFailed(Exception):
    pass


class Agreed(NamedTuple):
    """The shared state after the handshake."""

    initiator: bool
    address: Address
    own_id: bytes
    peer_id: bytes
    secrets: Tuple[bytes, bytes]  # of what this side sends, then of what it receives
    peer: Dict[str, Any]  # the peer's parameters
    size: int  # of the datagrams that crossed the path


def own_parameters(connection: bytes, application: bytes) -> bytes:
    return write_parameters(
        [
            (1, {"connection": connection}),
            (2, {"ciphers": bytes([CIPHER])}),
            (3, {"credit in symbols": PLENTY}),
            (4, {"credit of control": CONTROL_CREDIT}),
            (5, {"largest k": LARGEST_K}),
            (6, {"largest T": LARGEST_T}),
            (7, {"feedback": FEEDBACK}),
            (8, {"application": application}),
            (GREASE, {"unknown": os.urandom(2)}),
        ]
    )


def _flat(payload: bytes) -> Dict[str, Any]:
    parameters: Dict[str, Any] = {"application": b""}
    for _, record in read_parameters(payload):
        parameters.update(record)
    return parameters


def connect(udp: socket.socket, addresses: List[Address], key: bytes, application: bytes) -> Agreed:
    """The initiator's side."""
    connection = os.urandom(8)
    side = noise.Initiator(noise.prologue(key_id(key), connection), key)
    message: Record = {"type": 1, "version": VERSION, "key id": key_id(key), "connection": connection, "padding": b""}
    message["Noise message"] = side.first_message(own_parameters(connection, application))
    start = time.monotonic()
    for copy, at in enumerate(ROUNDS):
        datagram = write_record(MESSAGE1, {**message, "copy": copy}).ljust(MIN_MESSAGE1, b"\0")
        for address in addresses:
            udp.sendto(datagram, address)
        until = start + (ROUNDS[copy + 1] if copy + 1 < len(ROUNDS) else TIMEOUT)
        while (received := _next(udp, until)) is not None:
            data, address = received
            try:
                answer = read_datagram(data)
                require(answer["type"] == 2 and answer["connection"] == connection, "another datagram")
                require(address[:2] in [one[:2] for one in addresses], "an answer from another address")
                peer = _flat(side.read_second(answer["Noise message"]))
                require(peer["ciphers"] == bytes([CIPHER]), "a cipher not offered")
            except Refused:
                continue
            secrets = side.state.split()
            return Agreed(True, address, connection, peer["connection"], secrets, peer, len(data))
    raise HandshakeFailed("no answer")


def accept(udp: socket.socket, key: bytes, application: bytes, timeout: float) -> Tuple[Agreed, bytes]:
    """The responder's side; also the second message, which answers every further copy."""
    until = time.monotonic() + timeout
    while (received := _next(udp, until)) is not None:
        data, address = received
        try:
            first = read_datagram(data)
            require(first["type"] == 1 and first["key id"] == key_id(key), "a stranger")
            side = noise.Responder(noise.prologue(first["key id"], first["connection"]), key)
            peer = _flat(side.read_first(first["Noise message"]))
            require(peer["connection"] == first["connection"], "another connection id inside")
            require(CIPHER in peer["ciphers"], "no cipher in common")
        except Refused:
            continue
        own_id = os.urandom(8)
        second = side.second_message(own_parameters(own_id, application))
        ours, theirs = reversed(side.state.split())
        agreed = Agreed(False, address, own_id, peer["connection"], (ours, theirs), peer, len(data))
        answer(udp, agreed, second, data)
        return agreed, second
    raise HandshakeFailed("no peer connected")


def answer(udp: socket.socket, agreed: Agreed, second: bytes, first: bytes) -> None:
    """Answers a copy of the first message, at its size and with its number."""
    copy = read_datagram(first)["copy"]
    message = {"type": 2, "connection": agreed.peer_id, "copy": copy, "Noise message": second, "padding": b""}
    udp.sendto(write_record(MESSAGE2, message).ljust(len(first), b"\0"), agreed.address)


def _next(udp: socket.socket, until: float) -> Optional[Tuple[bytes, Address]]:
    """The next datagram, or None at that time."""
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([udp], [], [], left)[0]:
            return None
        try:
            return udp.recvfrom(MAX_DATAGRAM)
        except ConnectionError:
            continue
