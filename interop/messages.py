"""Section 8 of PROTOCOL.md: the messages of the programs on flow 0."""

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from layout import (
    Layout,
    Reader,
    Record,
    counted,
    number,
    octets,
    one_of,
    read_record,
    read_whole,
    require,
    rest,
    when,
    write_record,
)

from interop.crypto import blake3_derived

ROOT_CONTEXT = b"downpour 2026 transfer root v1"
MAX_LENGTH = 1 << 20
SENDS, RECEIVES = 1, 2
APPLICATION_VERSION = 2

FILE, DIRECTORY, SYMLINK, HARD_LINK, HASHED_FILE = 1, 2, 3, 4, 5


def _a_file(entry: Record) -> bool:
    return entry["kind"] in (FILE, HASHED_FILE)


ENTRY: Layout = [
    ("kind", one_of(1, FILE, DIRECTORY, SYMLINK, HARD_LINK, HASHED_FILE)),
    ("mode", number(2, most=0o7777)),
    ("seconds", number(8)),
    ("nanoseconds", number(4, most=10**9 - 1)),
    ("path", counted(2, most=4096)),
    ("size", when(_a_file, number(8))),
    ("version", when(_a_file, number(8))),
    ("hash", when(lambda entry: entry["kind"] == HASHED_FILE, octets(32))),
    ("target", when(lambda entry: entry["kind"] in (SYMLINK, HARD_LINK), counted(2, most=4096))),
]
RANGE: Layout = [("start", number(8)), ("end", number(8))]
PATH = ("path", counted(2, most=4096))


class Message(NamedTuple):
    """A row of the tables of messages."""

    name: str
    layout: Layout
    # Section 8, Order: the root covers it.
    rooted: bool = False


MESSAGES: Dict[int, Message] = {
    7: Message("begin", [("source", octets(16))], rooted=True),
    8: Message("top", [("mode", number(2)), ("seconds", number(8)), ("nanoseconds", number(4))], rooted=True),
    1: Message(
        "manifest",
        [("batch", number(4)), ("last", one_of(1, 0, 1)), ("length", number(8)), ("entries", rest())],
        rooted=True,
    ),
    2: Message("digest", [("batch", number(4)), ("block", number(4)), ("digest", octets(32))], rooted=True),
    3: Message("void", [("batch", number(4)), ("entry", number(4)), ("reason", one_of(1, 1, 2, 3, 4))], rooted=True),
    4: Message("skipped", [("reason", number(1, 1, 12)), PATH], rooted=True),
    6: Message("scanned", []),
    5: Message(
        "end",
        [
            ("batches", number(4)),
            ("entries", number(8)),
            ("bytes", number(8)),
            ("skipped", number(8)),
            ("root", octets(32)),
        ],
    ),
    11: Message(
        "chunks",
        [("batch", number(4)), ("entry", number(4)), ("state", one_of(1, 0, 1, 2)), ("chunks", rest())],
        rooted=True,
    ),
    12: Message("removed", [("names", number(8))]),
    65: Message("accepted", []),
    66: Message("wants", [("batch", number(4)), ("last", one_of(1, 0, 1)), ("ranges", rest())]),
    67: Message(
        "complete",
        [("files", number(8)), ("bytes", number(8)), ("present", number(8)), ("failed", number(8))],
    ),
    68: Message("notice", [("kind", number(1)), PATH]),
    69: Message("limit", [("rate", number(8))]),
    72: Message("list chunks", [("batch", number(4)), ("entries", rest())]),
    73: Message("stored", [("batch", number(4)), ("last", one_of(1, 0, 1)), ("entries", rest())]),
    74: Message("all_stored", []),
    71: Message("strain", [("memory", one_of(1, 0, 1)), ("overflowed", number(8))]),
}
TYPES = {row.name: kind for kind, row in MESSAGES.items()}


def application(role: int, may_hold_some: bool = False) -> bytes:
    """The handshake's application bytes."""
    return bytes([APPLICATION_VERSION, role, int(may_hold_some)])


def write_message(name: str, **fields: Any) -> bytes:
    """A whole message, its length included."""
    kind = TYPES[name]
    body = bytes([kind]) + write_record(MESSAGES[kind].layout, fields)
    return len(body).to_bytes(4, "big") + body


def entry(kind: int, path: bytes, mode: int = 0o644, seconds: int = 0, nanoseconds: int = 0, **more: Any) -> Record:
    """An unchecked entry of a manifest, so that an attacker can send any."""
    given = {"size": 0, "version": 0, "hash": bytes(32), "target": b""}
    given.update(more)
    return {"kind": kind, "mode": mode, "seconds": seconds, "nanoseconds": nanoseconds, "path": path, **given}


def write_entries(entries: List[Record]) -> bytes:
    return b"".join(write_record(ENTRY, one) for one in entries)


def read_entries(data: bytes) -> List[Record]:
    return list(_read_all(ENTRY, data))


def write_ranges(ranges: List[Tuple[int, int]]) -> bytes:
    return b"".join(write_record(RANGE, {"start": start, "end": end}) for start, end in ranges)


def read_ranges(data: bytes) -> List[Tuple[int, int]]:
    return [(one["start"], one["end"]) for one in _read_all(RANGE, data)]


def _read_all(layout: Layout, data: bytes) -> Iterator[Record]:
    reader = Reader(data)
    while reader.left:
        yield read_record(layout, reader)


class Incoming:
    """The messages of a control stream, from its bytes."""

    def __init__(self) -> None:
        self.waiting = b""

    def feed(self, data: bytes) -> Iterator[Tuple[str, Record, bytes]]:
        """Name, fields, and the bytes as on flow 0, which the root hashes."""
        self.waiting += data
        while len(self.waiting) >= 4:
            length = int.from_bytes(self.waiting[:4], "big")
            require(1 <= length <= MAX_LENGTH, "a message of that length")
            if len(self.waiting) < 4 + length:
                return
            whole, self.waiting = self.waiting[: 4 + length], self.waiting[4 + length :]
            require(whole[4] in MESSAGES, f"a message of type {whole[4]}")
            row = MESSAGES[whole[4]]
            yield row.name, read_whole(row.layout, whole[5:]), whole


class Root:
    """The hash of all messages of a sender, up to its end message."""

    def __init__(self) -> None:
        self.covered = b""

    def update(self, whole: bytes) -> None:
        if MESSAGES[whole[4]].rooted:
            self.covered += whole

    def digest(self) -> bytes:
        return blake3_derived(ROOT_CONTEXT, self.covered)
