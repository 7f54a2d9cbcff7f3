"""Possible attacks by a holder of a ticket. Each attack is a function with a session of its own.

`run` says what came of it: whether the peer ended the connection, and what it said. What the peer did to its files is
for the caller to look at. An attack by a sender of files is for a `downpour recv --listen`, one by a receiver for a
`downpour send` that listens.
"""

import time
import unicodedata
from typing import Callable, Dict, List, NamedTuple, Tuple, Type, cast

from layout import Record

from interop import ticket
from interop.connection import PING, VIOLATION, Closed
from interop.crypto import blake3
from interop.incoming import IncomingObject
from interop.messages import FILE, DIRECTORY, HARD_LINK, SYMLINK, entry, read_ranges
from interop.receiving import Receiver
from interop.session import Session, TimedOut

MAY_HOLD_SOME = 1
PATIENCE = 30.0
PARKED = 30.0
PHOTO = b"a photo"
PLANTED = b"planted\n"


class Outcome(NamedTuple):
    """The reaction of the peer: it closed with an error, completed but for skipped entries, or followed the attack."""

    what: str
    said: str


REFUSED, LEFT_OUT, DID = "refused", "left something out", "not refused"

Attack = Callable[[Session], str]
ATTACKS: Dict[str, Tuple[Type[Session], int, Attack]] = {}


def run(name: str, text: str, seconds: float = PARKED) -> Outcome:
    """Runs an attack against the listener of that ticket; those without an end of their own last so many seconds."""
    kind, role, attack = ATTACKS[name]
    return _outcome(attack, kind.connect(text, role), seconds)


def serve(name: str, tell: Callable[[str], None], seconds: float = PARKED) -> Outcome:
    """Runs an attack against the first peer with a fresh ticket, which is passed to the caller."""
    kind, role, attack = ATTACKS[name]
    return _outcome(attack, kind.listen(role, tell), seconds)


def _outcome(attack: Attack, session: Session, seconds: float) -> Outcome:
    session.seconds = seconds
    try:
        said = attack(session)
        session.close()
        return Outcome(LEFT_OUT if session.failed else DID, said)
    except Closed as closed:
        return Outcome(REFUSED if closed.code else DID, str(closed))
    except TimedOut as error:
        session.close()
        return Outcome(DID, f"the peer neither continued nor closed: {error}")


def by_sender(attack: Attack) -> Attack:
    """Adds an attack of a sender of files."""
    ATTACKS[attack.__name__.replace("_", "-")] = (Session, ticket.SENDS, attack)
    return attack


def by_receiver(attack: Attack) -> Attack:
    ATTACKS[attack.__name__.replace("_", "-")] = (Receiver, ticket.RECEIVES, attack)
    return attack


# --- How a transfer goes, for attacks that change one thing of it ---------------------------------------------------


def file(path: str, content: bytes, mode: int = 0o644) -> Tuple[Record, bytes]:
    return entry(FILE, path.encode("utf-8", "surrogateescape"), mode, size=len(content)), content


def directory(path: str) -> Tuple[Record, bytes]:
    return entry(DIRECTORY, path.encode(), 0o755), b""


def announce(session: Session, items: List[Tuple[Record, bytes]], batch: int = 0) -> None:
    session.manifest([record for record, _ in items], batch)


def deliver(session: Session, items: List[Tuple[Record, bytes]], batch: int = 0) -> None:
    """The bytes that the receiver wants of an announced batch."""
    data = b"".join(content for _, content in items)
    if session.peers_application[2] & MAY_HOLD_SOME:
        wants = session.wait_for("wants", PATIENCE)
        data = b"".join(data[start:end] for start, end in read_ranges(wants["ranges"]))
    session.object(data, batch)


def finish(session: Session, *batches: List[Tuple[Record, bytes]]) -> str:
    """All messages were sent. Returns the receiver's answer."""
    items = [item for batch in batches for item in batch]
    session.end(len(batches), len(items), sum(len(content) for _, content in items))
    complete = session.wait_for("complete", PATIENCE)
    return "complete: " + ", ".join(f"{name} {value}" for name, value in complete.items())


def transfer(session: Session, items: List[Tuple[Record, bytes]]) -> str:
    """One batch with these items, as an honest sender would send it."""
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    deliver(session, items)
    return finish(session, items)


# --- Names that were not agreed on ----------------------------------------------------------------------------------


@by_sender
def unannounced_parent(session: Session) -> str:
    """A file in a directory that exists at the receiver and was not announced: `recv` promises to replace nothing."""
    return transfer(session, [file("photo.jpg", PHOTO), file(".ssh/authorized_keys", PLANTED)])


@by_sender
def announced_parent(session: Session) -> str:
    """The same with the directory: whether it exists is still for the receiver to check."""
    return transfer(session, [file("photo.jpg", PHOTO), directory(".ssh"), file(".ssh/authorized_keys", PLANTED)])


@by_sender
def after_complete_offer(session: Session) -> str:
    """Another batch after *scanned* announced the last one, and after the offer was accepted."""
    first, second = [file("photo.jpg", PHOTO)], [file(".bash_profile", PLANTED)]
    session.begin()
    session.scanned()
    announce(session, first, 0)
    session.wait_for("accepted", PATIENCE)
    deliver(session, first, 0)
    announce(session, second, 1)
    deliver(session, second, 1)
    return finish(session, first, second)


@by_sender
def after_open_offer(session: Session) -> str:
    """Another batch after the offer was accepted, without *scanned*."""
    first, second = [file("photo.jpg", PHOTO)], [file(".bash_profile", PLANTED)]
    session.begin()
    announce(session, first, 0)
    session.wait_for("accepted", PATIENCE)
    deliver(session, first, 0)
    session.scanned()
    announce(session, second, 1)
    deliver(session, second, 1)
    return finish(session, first, second)


@by_sender
def unrequested_name(session: Session) -> str:
    """Names that the receiver did not ask for. For `cp host:report.pdf .`: serve it with `peer.py remote`."""
    return transfer(session, [file("report.pdf", PHOTO), file(".bashrc", PLANTED)])


@by_sender
def folding_names(session: Session) -> str:
    """Names that some file systems treat as one: `A` and `a`, and two spellings of one letter with an accent."""
    composed = "caf\u00e9"
    names = ["A", "a", composed, unicodedata.normalize("NFD", composed)]
    return transfer(session, [file(name, name.encode()) for name in names])


# --- Paths out of the directory -------------------------------------------------------------------------------------


@by_sender
def links_out(session: Session) -> str:
    """A symbolic link to `../elsewhere`, then a file beneath it."""
    link = entry(SYMLINK, b"x", 0o777, target=b"../elsewhere"), b""
    return transfer(session, [link, file("x/y", PLANTED)])


@by_sender
def links_out_absolute(session: Session) -> str:
    """A symbolic link to `/tmp/elsewhere`, then a directory of the same name and a file in it."""
    link = entry(SYMLINK, b"x", 0o777, target=b"/tmp/elsewhere"), b""
    return transfer(session, [link, directory("x"), file("x/y", PLANTED)])


@by_sender
def hard_link_out(session: Session) -> str:
    """A hard link to an unannounced path, which would make the file appear under another name."""
    link = entry(HARD_LINK, b"mine", 0o644, target=b".ssh/authorized_keys"), b""
    return transfer(session, [file("photo.jpg", PHOTO), link])


def _path(name: str, path: str, words: str) -> None:
    def attack(session: Session) -> str:
        return transfer(session, [file(path, PLANTED)])

    attack.__name__, attack.__doc__ = name, words
    by_sender(attack)


_path("path_parent", "../planted", "A path that climbs out.")
_path("path_parent_inside", "directory/../../planted", "A path that climbs out after a directory.")
_path("path_absolute", "/tmp/planted", "An absolute path.")
_path("path_empty_component", "directory//planted", "A path with an empty component.")
_path("path_dot", "./planted", "A path with a dot as a component.")
_path("path_slash_at_end", "planted/", "A file whose path ends as a directory's may.")
_path("path_nul", "planted\0.jpg", "A path that C code would cut off.")
_path("path_empty", "", "A path without a name.")
_path("path_long_name", "n" * 4096, "A component longer than any file system allows.")
_path("path_deep", "/".join("d" * 2048), "Two thousand unannounced directories.")
_path("path_too_long", "p" * 5000, "A path beyond the limit of the layout.")
_path("path_control", "photo\u001b[2K\r.jpg", "A name that changes what a terminal shows.")
_path("path_staging", ".downpour-00000000/planted", "A name like that of the receiver's own staging directory.")


# --- Content other than announced -----------------------------------------------------------------------------------


@by_sender
def wrong_digest(session: Session) -> str:
    """The digest of other bytes than those sent."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    session.connection.send_object(0, PHOTO)
    session.digest(blake3(b"another photo"))
    return finish(session, items)


@by_sender
def wrong_root(session: Session) -> str:
    """An end with the root of another transfer."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    deliver(session, items)
    session.end(1, 1, len(PHOTO), root=bytes(32))
    return str(session.wait_for("complete", PATIENCE))


@by_sender
def wrong_length(session: Session) -> str:
    """A batch whose length is not the sum of its files."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    session.manifest([record for record, _ in items], length=len(PHOTO) + 1)
    session.wait_for("accepted", PATIENCE)
    deliver(session, items)
    return finish(session, items)


@by_sender
def end_early(session: Session) -> str:
    """An end with the right root, while bytes and digests of the only batch are missing."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    return finish(session, items)


@by_sender
def wrong_totals(session: Session) -> str:
    """An end that counts fewer entries and bytes than were announced."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    deliver(session, items)
    session.end(1, 0, 0)
    return str(session.wait_for("complete", PATIENCE))


@by_sender
def longer_object(session: Session) -> str:
    """An object with more bytes than its batch."""
    items = [file("photo.jpg", PHOTO)]
    session.begin()
    session.scanned()
    announce(session, items)
    session.wait_for("accepted", PATIENCE)
    session.object(PHOTO + PLANTED)
    return finish(session, items)


@by_sender
def duplicate_name(session: Session) -> str:
    """One name twice, with different bytes."""
    return transfer(session, [file("photo.jpg", PHOTO), file("photo.jpg", PLANTED)])


@by_sender
def through_file(session: Session) -> str:
    """A file, then another one beneath it as if it were a directory."""
    return transfer(session, [file("photo.jpg", PHOTO), file("photo.jpg/planted", PLANTED)])


@by_sender
def set_id(session: Session) -> str:
    """A file with set-user-id and set-group-id bits."""
    return transfer(session, [file("tool", PLANTED, mode=0o6755)])


# --- Peers that never end -------------------------------------------------------------------------------------------


@by_receiver
def feedback_forever(session: Session) -> str:
    """Feedback whose numbers begin shortly below 2^32 and wrap: a sender that accepts only higher numbers learns nothing
    further, and repeats the same feedback while the connection lasts."""
    connection = session.connection
    connection.feedback_number = 2**32 - 8
    receiver = cast(Receiver, session)

    def everything() -> bool:
        announced = receiver.batches and all(batch.announced for batch in receiver.batches.values())
        return bool(announced) and all(receiver.content(number) is not None for number in receiver.batches)

    session.wait(everything)
    needed = sum(one.symbols for one in connection.incoming.objects.values())
    until = time.monotonic() + session.seconds
    while time.monotonic() < until:
        session.poll()
    arrived, last = connection.incoming.packets, connection.feedback_number
    said = f"{arrived} symbols arrived, {needed} were needed; feedback {last} was the last"
    if arrived > 2 * needed + 100:
        return said
    raise Closed(VIOLATION, said, by_peer=False)


def park(session: Session) -> str:
    """Nothing but a handshake and pings."""
    end = time.monotonic() + session.seconds
    while time.monotonic() < end:
        session.connection.send_frames([(PING, {})])
        pause = time.monotonic() + 1
        while time.monotonic() < pause:
            session.poll()
    return f"still connected after {session.seconds:.0f} s"


@by_sender
def parked(session: Session) -> str:
    """A sender that only sends pings: its ticket is in use, and no other peer can use it."""
    return park(session)


@by_receiver
def parked_receiver(session: Session) -> str:
    """The same by a receiver, which never accepts."""
    session.hear = lambda name, fields, whole: None  # type: ignore[method-assign]
    return park(session)


@by_receiver
def silent_receiver(session: Session) -> str:
    """A receiver that grants credit without end and acknowledges every packet, but reports no block as done."""
    IncomingObject.status = lambda self: {"flow": self.flow, "done below": 0, "blocks": []}  # type: ignore[method-assign]
    return park(session)


@by_sender
def parked_offer(session: Session) -> str:
    """A sender that goes silent, but for pings, after its offer was accepted."""
    session.begin()
    announce(session, [file("photo.jpg", PHOTO)])
    session.wait_for("accepted", PATIENCE)
    return park(session)
