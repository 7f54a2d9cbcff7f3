"""The sender of files, as section 8 of PROTOCOL.md has it: one batch after the other, all in memory."""

import os
import stat
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from layout import Record

from interop import messages
from interop.messages import FILE, DIRECTORY, SYMLINK, read_ranges
from interop.session import Session

MAY_HOLD_SOME = 1
BATCH_ENTRIES, BATCH_BYTES = 1000, 16 << 20
PART = 64 << 10


def entries_of(paths: List[str]) -> Iterator[Tuple[Record, bytes]]:
    """The entries of these files and directories by their last component, a directory before its contents, and their bytes."""
    for given in paths:
        yield from _entries_at(Path(os.path.abspath(given)), os.fsencode(os.path.basename(os.path.abspath(given))))


def _entries_at(path: Path, name: bytes) -> Iterator[Tuple[Record, bytes]]:
    found = path.lstat()
    seconds, nanoseconds = divmod(found.st_mtime_ns, 10**9)
    mode = stat.S_IMODE(found.st_mode)
    common: Dict[str, Any] = {"path": name, "mode": mode, "seconds": seconds, "nanoseconds": nanoseconds}
    if stat.S_ISLNK(found.st_mode):
        yield messages.entry(SYMLINK, target=os.readlink(os.fsencode(path)), **common), b""
    elif stat.S_ISDIR(found.st_mode):
        yield messages.entry(DIRECTORY, **common), b""
        for inner in sorted(path.iterdir()):
            yield from _entries_at(inner, name + b"/" + os.fsencode(inner.name))
    elif stat.S_ISREG(found.st_mode):
        data = path.read_bytes()
        # The version shows that the file is still the announced one: here, by its time.
        yield messages.entry(FILE, size=len(data), version=found.st_mtime_ns, **common), data


Batch = Tuple[List[Record], bytes]


def batches_of(found: Iterator[Tuple[Record, bytes]]) -> Iterator[Batch]:
    entries: List[Record] = []
    data = b""
    for entry, content in found:
        if entries and (len(entries) == BATCH_ENTRIES or len(data) + len(content) > BATCH_BYTES):
            yield entries, data
            entries, data = [], b""
        entries.append(entry)
        data += content
    if entries:
        yield entries, data


def send_files(session: Session, paths: List[str]) -> Record:
    """A whole transfer. Returns the receiver's complete message, which must match the sent files."""
    batches = list(batches_of(entries_of(paths)))
    session.begin()
    for number, (entries, data) in enumerate(batches):
        if number + 1 == len(batches):
            session.scanned()
        _announce(session, entries, number, len(data))
        if number == 0:
            session.wait_for("accepted")
        if session.peers_application[2] & MAY_HOLD_SOME:
            data = b"".join(data[start:end] for start, end in _wanted(session, number))
        opened = session.object(data, number)
        if opened:
            session.wait(lambda: opened.complete)  # noqa: B023
    entries = [entry for batch, _ in batches for entry in batch]
    total = sum(len(data) for _, data in batches)
    session.end(len(batches), len(entries), total)
    complete = session.wait_for("complete")
    session.close()
    return complete


def _announce(session: Session, entries: List[Record], batch: int, length: int) -> None:
    """The batch's manifest, in parts of about 64 KiB."""
    part: List[Record] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += len(messages.write_entries([entry]))
        if size > PART and entry is not entries[-1]:
            session.manifest(part, batch, last=False, length=length)
            part, size = [], 0
    session.manifest(part, batch, last=True, length=length)


def _wanted(session: Session, batch: int) -> Iterator[Tuple[int, int]]:
    while True:
        part = session.wait_for("wants")
        if part["batch"] != batch:
            raise ValueError(f"wants of batch {part['batch']} where those of batch {batch} are due")
        yield from read_ranges(part["ranges"])
        if part["last"]:
            return
