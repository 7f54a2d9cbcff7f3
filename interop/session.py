"""A transfer step by step: the messages of a sender of files, with every number chosen by the caller."""

import os
import socket
import time
from typing import Any, Callable, List, Optional, Tuple, Type, TypeVar

from layout import Record

from interop import handshake, messages, ticket
from interop.connection import Connection
from interop.crypto import blake3
from interop.messages import Incoming, Root, write_entries, write_message
from interop.outgoing import OutgoingObject

RECEIVE_BUFFER = 4 << 20
LOOPBACK = ("127.0.0.1", 0)

Kind = TypeVar("Kind", bound="Session")


class TimedOut(Exception):
    """The peer did not send the expected message."""


def udp_socket(address: Tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    udp.bind(address)
    return udp


class Session:
    """A connection, and the program messages on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.incoming = Incoming()
        self.root = Root()
        # Messages that arrived and were not taken yet: name and fields.
        self.arrived: List[Tuple[str, Record]] = []
        # Entries that a receiver reports as not published.
        self.failed = 0
        # How long an attack lasts that has no end of its own.
        self.seconds = 0.0

    @classmethod
    def connect(cls: Type[Kind], text: str, role: int) -> Kind:
        """To the listener of a ticket."""
        given = ticket.read(text)
        host, port = given.addresses[0]
        udp = udp_socket(("::" if ":" in host else "0.0.0.0", 0))
        agreed = handshake.connect(udp, [(host, port)], given.key, messages.application(role))
        return cls(Connection(udp, agreed))

    @classmethod
    def listen(cls: Type[Kind], role: int, tell: Callable[[str], None]) -> Kind:
        """For the holder of a fresh ticket, which is passed to the caller once this side listens."""
        udp = udp_socket(LOOPBACK)
        made = ticket.fresh(role, udp.getsockname()[:2])
        tell(ticket.write(made))
        agreed, second = handshake.accept(udp, made.key, messages.application(role), ticket.HOUR)
        return cls(Connection(udp, agreed, second))

    @property
    def peers_application(self) -> bytes:
        return self.connection.agreed.peer["application"]

    def poll(self) -> None:
        self.connection.poll()
        for name, fields, whole in self.incoming.feed(self.connection.read()):
            self.hear(name, fields, whole)

    def hear(self, name: str, fields: Record, whole: bytes) -> None:
        self.arrived.append((name, fields))
        self.failed = fields["failed"] if name == "complete" else self.failed

    def wait(self, condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        """Polls until the condition is true, and returns it."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > end:
                raise TimedOut(f"{seconds} s are over")
            self.poll()
        return found

    def wait_for(self, name: str, seconds: float = 60.0) -> Record:
        """The fields of the next message of that name, which is taken."""

        def found() -> Optional[Tuple[str, Record]]:
            return next((one for one in self.arrived if one[0] == name), None)

        message = self.wait(found, seconds)
        self.arrived.remove(message)
        return message[1]

    # --- Messages ---------------------------------------------------------------------------------------------------

    def say(self, name: str, **fields: Any) -> None:
        self.raw_message(write_message(name, **fields))

    def raw_message(self, whole: bytes) -> None:
        """Bytes on flow 0; the root covers them if they begin a message that it covers."""
        if len(whole) > 4 and whole[4] in messages.MESSAGES:
            self.root.update(whole)
        self.connection.write(whole)

    def raw_frame(self, frame: bytes) -> None:
        """The plaintext of one control packet."""
        self.connection.send_plaintext(frame)

    def begin(self, source: Optional[bytes] = None) -> None:
        self.say("begin", source=source if source is not None else os.urandom(16))

    def manifest(self, entries: List[Record], batch: int = 0, last: bool = True, length: Optional[int] = None) -> None:
        total = sum(one["size"] for one in entries if one["kind"] in (messages.FILE, messages.HASHED_FILE))
        length = total if length is None else length
        self.say("manifest", batch=batch, last=int(last), length=length, entries=write_entries(entries))

    def scanned(self) -> None:
        self.say("scanned")

    def object(self, data: bytes, batch: int = 0) -> Optional[OutgoingObject]:
        """The bytes of a batch, and the digest of each of its blocks."""
        if not data:
            return None
        opened = self.connection.send_object(batch, data)
        for block in range(opened.blocks):
            self.digest(blake3(opened.bytes_of(block)), block, batch)
        return opened

    def digest(self, digest: bytes, block: int = 0, batch: int = 0) -> None:
        self.say("digest", batch=batch, block=block, digest=digest)

    def end(self, batches: int, entries: int, total: int, skipped: int = 0, root: Optional[bytes] = None) -> None:
        root = self.root.digest() if root is None else root
        self.say("end", batches=batches, entries=entries, bytes=total, skipped=skipped, root=root)

    def close(self, code: int = 0, reason: str = "") -> None:
        self.connection.close(code, reason)
