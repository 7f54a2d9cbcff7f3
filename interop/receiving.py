"""The receiver of files, as section 8 of PROTOCOL.md has it: everything in memory until all of it is verified."""

import os
from typing import Any, Dict, List, Optional, Set

from layout import Record, require

from interop.connection import Closed
from interop.crypto import blake3
from interop.messages import FILE, DIRECTORY, HARD_LINK, HASHED_FILE, SYMLINK, read_entries
from interop.session import Session

FILES = (FILE, HASHED_FILE)


class Batch:
    def __init__(self) -> None:
        self.entries: List[Record] = []
        self.length = 0
        self.announced = False
        self.digests: Dict[int, bytes] = {}
        self.void: Set[int] = set()


class Receiver(Session):
    """The messages of a sender of files."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.batches: Dict[int, Batch] = {}
        self.accepted = False
        self.over: Optional[Record] = None

    def hear(self, name: str, fields: Record, whole: bytes) -> None:
        self.root.update(whole)
        require(self.over is None, f"{name} after the end")
        if name == "manifest":
            batch = self.batches.setdefault(fields["batch"], Batch())
            require(fields["batch"] == len(self.batches) - 1 and not batch.announced, "a batch out of order")
            batch.entries += read_entries(fields["entries"])
            batch.length, batch.announced = fields["length"], bool(fields["last"])
            if batch.announced and not self.accepted:
                self.accepted = True
                self.say("accepted")
        elif name == "digest":
            self.batches[fields["batch"]].digests[fields["block"]] = fields["digest"]
        elif name == "void":
            self.batches[fields["batch"]].void.add(fields["entry"])
        elif name == "end":
            require(fields["root"] == self.root.digest(), "the root does not match")
            require(fields["batches"] == len(self.batches), "the number of batches does not match")
            self.over = fields

    def content(self, number: int) -> Optional[bytes]:
        """The bytes of a batch once all blocks have arrived and are verified."""
        batch = self.batches[number]
        if batch.length == 0:
            return b""
        found = self.connection.object_with(number)
        if found is None or not found.complete:
            return None
        require(found.length == batch.length, "an object of another length than its batch")
        for block in range(found.blocks):
            require(batch.digests.get(block) == blake3(found.bytes_of(block)), f"the digest of block {block}")
        return found.content


def receive_files(session: Receiver, directory: str) -> Record:
    """A whole transfer into a directory that exists. Returns the end message."""
    end = session.wait(lambda: session.over)
    total = files = 0
    directories: List[Record] = []
    for number, batch in session.batches.items():
        data = session.wait(lambda: _boxed(session.content(number)))[0]  # noqa: B023
        require(sum(one["size"] for one in batch.entries if one["kind"] in FILES) == batch.length, "sizes of a batch")
        at = 0
        for index, entry in enumerate(batch.entries):
            content = data[at : at + (entry["size"] or 0)]
            at += len(content)
            if index not in batch.void:
                place(directory, entry, content)
                files += entry["kind"] in FILES
                directories += [entry] if entry["kind"] == DIRECTORY else []
        total += len(data)
    require(sum(len(batch.entries) for batch in session.batches.values()) == end["entries"], "the number of entries")
    require(total == end["bytes"], "the number of bytes")
    # Last: a new entry in a directory changes its time, and its mode may forbid it.
    for entry in reversed(directories):
        set_attributes(os.path.join(os.fsencode(directory), entry["path"]), entry)
    failed = sum(len(batch.void) for batch in session.batches.values())
    session.say("complete", files=files, bytes=total, present=0, failed=failed)
    try:
        session.wait(lambda: False)
    except Closed as closed:
        if closed.code != 0:
            raise
    return end


def _boxed(value: Optional[bytes]) -> Optional[List[bytes]]:
    return None if value is None else [value]


def place(directory: str, entry: Record, content: bytes) -> None:
    """Creates the file of an entry; existing ones are not replaced, and no link is followed out of the directory."""
    components = entry["path"].split(b"/")
    require(not {b"", b".", b".."} & set(components) and b"\0" not in entry["path"], "a path out of the directory")
    path = os.path.join(os.fsencode(directory), *components)
    inside = os.path.realpath(os.path.dirname(path)).startswith(os.path.realpath(os.fsencode(directory)))
    require(inside, "a path through a link")
    if entry["kind"] == DIRECTORY:
        os.mkdir(path)
        return
    if entry["kind"] == SYMLINK:
        os.symlink(entry["target"], path)
        return
    if entry["kind"] == HARD_LINK:
        os.link(os.path.join(os.fsencode(directory), entry["target"]), path)
        return
    with open(path, "xb") as file:
        file.write(content)
    set_attributes(path, entry)


def set_attributes(path: bytes, entry: Record) -> None:
    os.chmod(path, entry["mode"] & 0o777)
    time = entry["seconds"] * 10**9 + entry["nanoseconds"]
    os.utime(path, ns=(time, time))
