"""Section 8.2 of PROTOCOL.md: tickets."""

import base64
import ipaddress
import os
import time
from typing import List, NamedTuple, Tuple

from layout import Reader, require

from interop.crypto import blake3_derived

PREFIX = "downpour1"
CONTEXT = b"downpour 2026 ticket checksum v1"
CHECKSUM = 4
MAX_ADDRESSES = 16
SENDS, RECEIVES = 1, 2
HOUR = 3600


class Ticket(NamedTuple):
    listener: int  # what the listening side does: SENDS or RECEIVES
    expires: int  # seconds since 1970
    key: bytes
    addresses: List[Tuple[str, int]]


def fresh(listener: int, address: Tuple[str, int]) -> Ticket:
    """A ticket with a random key for a listener at `address`."""
    return Ticket(listener, int(time.time()) + HOUR, os.urandom(32), [address])


def write(ticket: Ticket) -> str:
    data = bytes([ticket.listener]) + ticket.expires.to_bytes(8, "big") + ticket.key + bytes([len(ticket.addresses)])
    for host, port in ticket.addresses:
        address = ipaddress.ip_address(host)
        data += bytes([address.version]) + address.packed + port.to_bytes(2, "big")
    data += _checksum(data)
    return PREFIX + base64.b32encode(data).decode().rstrip("=").lower()


def read(text: str) -> Ticket:
    text = "".join(text.split()).lower()
    require(text.startswith(PREFIX), f"a ticket begins with {PREFIX}")
    coded = text[len(PREFIX) :].upper()
    data = base64.b32decode(coded + "=" * (-len(coded) % 8))
    fields, checksum = data[:-CHECKSUM], data[-CHECKSUM:]
    require(_checksum(fields) == checksum, "a damaged ticket")
    reader = Reader(fields)
    listener, expires, key, count = reader.number(1), reader.number(8), reader.take(32), reader.number(1)
    require(listener in (SENDS, RECEIVES) and count <= MAX_ADDRESSES, "a damaged ticket")
    addresses = []
    for _ in range(count):
        version = reader.number(1)
        require(version in (4, 6), "a damaged ticket")
        host = ipaddress.ip_address(reader.take(4 if version == 4 else 16))
        addresses.append((str(host), reader.number(2)))
    require(reader.left == 0, "a damaged ticket")
    return Ticket(listener, expires, key, addresses)


def _checksum(fields: bytes) -> bytes:
    return blake3_derived(CONTEXT, fields)[:CHECKSUM]
