"""Vectors at the limits of every field of every frame, derived from the tables of wire.py without knowledge of a frame.

Each sample of frames.json is read, and then each of its numbers is replaced: by the least and the greatest value that is accepted in its
place, and by those next to them that are not. A number that counts what follows it takes that along. Since the limits of one field may
depend on another (k on the code), all of this is done again with every other number at its limits.
"""

import json
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import wire
from layout import Reader, Refused, Span

# Section 10: no datagram is longer.
MAX_DATAGRAM = 65_507
# Bytes repeated at least this often in a row are written as `61*300`.
OFTEN = 8
Vector = Dict[str, str]


class Place(NamedTuple):
    """A number in a sample, its counted items if it is a count, and one of those."""

    path: str
    start: int
    end: int
    counts_to: int
    unit: bytes

    def value(self, sample: bytes) -> int:
        return int.from_bytes(sample[self.start : self.end], "big")

    def most(self, sample: bytes) -> int:
        """The greatest value that these bytes can hold, in a datagram."""
        greatest = 256 ** (self.end - self.start) - 1
        return min(greatest, (MAX_DATAGRAM - len(sample)) // len(self.unit)) if self.unit else greatest

    def replaced(self, sample: bytes, value: int) -> Tuple[bytes, bytes]:
        """The sample with another number: the parts before and behind that many units."""
        number = value.to_bytes(self.end - self.start, "big")
        return sample[: self.start] + number, sample[self.counts_to :]

    def data(self, sample: bytes, value: int) -> bytes:
        """All of it as bytes."""
        before, behind = self.replaced(sample, value)
        return before + (self.unit * value if self.unit else b"") + behind

    def text(self, sample: bytes, value: int) -> str:
        """All of it as digits."""
        if len(self.unit) == 0 or value < OFTEN:
            return self.data(sample, value).hex()
        before, behind = self.replaced(sample, value)
        return f"{before.hex()} {self.unit.hex()}*{value} {behind.hex()}".strip()


class Changed(NamedTuple):
    """A number at or beyond one of its limits, and the reason if it is rejected."""

    place: Place
    value: int
    text: str
    refused: Optional[str]


def refusal(plaintext: bytes) -> Optional[str]:
    """Why these frames are refused, if they are."""
    try:
        wire.read_frames(plaintext)
    except Refused as refused:
        return str(refused)
    return None


def unpacked(text: str) -> bytes:
    """The bytes of a vector."""
    parts = (part.partition("*") for part in text.split())
    return b"".join(bytes.fromhex(digits) * int(times or "1") for digits, _, times in parts)


def places(sample: bytes) -> List[Place]:
    """The numbers of a sample, of those with the same name the first."""
    reader = Reader(sample[1:])
    wire.read_record(wire.FRAMES[sample[0]].layout, reader)
    found: Dict[str, Place] = {}
    for number in reader.numbers:
        field = next(field for field in reader.fields if field.path == number.path and field.start == number.start)
        place = Place(number.path, number.start + 1, number.end + 1, field.end + 1, unit(reader, number, field))
        found.setdefault(number.path, place)
    return list(found.values())


def unit(reader: Reader, number: Span, field: Span) -> bytes:
    """One counted item of a number: a record or a byte; nothing if the sample has none."""
    records = [one for one in reader.records if one.path == number.path and number.end <= one.start < field.end]
    end = records[0].end if records else min(number.end + 1, field.end)
    return reader.data[number.end : end]


def nearest(accepted: Callable[[int], bool], good: int, bad: int) -> Tuple[int, int]:
    """Of the values between an accepted and a rejected one, two neighbours that differ likewise."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if accepted(middle) else (good, middle)
    return good, bad


def borders(accepted: Callable[[int], bool], value: int, most: int) -> Set[int]:
    """The extremes, and both sides of each limit: every limit of a byte, of more bytes the nearest to the sample's value."""
    found = {0, most}
    if most < 256:
        allowed = [accepted(one) for one in range(most + 1)]
        for low in range(most):
            if allowed[low] != allowed[low + 1]:
                found |= {low, low + 1}
    else:
        for extreme in (0, most):
            if not accepted(extreme):
                found |= set(nearest(accepted, value, extreme))
    return found


def at_limits(sample: bytes, place: Place) -> List[Changed]:
    """A number of a sample at its limits and beyond."""

    def refused(value: int) -> Optional[str]:
        return refusal(place.data(sample, value))

    limits = borders(lambda value: refused(value) is None, place.value(sample), place.most(sample))
    return [Changed(place, value, place.text(sample, value), refused(value)) for value in sorted(limits)]


def of_pairs(first: Changed, known: Set[Tuple[str, int, bool]]) -> Iterator[Tuple[str, Changed]]:
    """With one number at a limit, the limits of the others that differ from those they have in the sample."""
    changed = unpacked(first.text)
    for place in places(changed):
        # A byte is mostly a choice, and the choices depend on nothing; neither does the limit of records.
        if place.path != first.place.path and place.end - place.start > 1 and len(place.unit) <= 1:
            for second in at_limits(changed, place):
                if (place.path, second.value, second.refused is None) not in known:
                    yield f"{first.place.path} {first.value}, {place.path} {second.value}", second


def of_sample(sample: bytes) -> Iterator[Tuple[str, Changed]]:
    """A change of a sample, and the changed sample."""
    own = [changed for place in places(sample) for changed in at_limits(sample, place)]
    yield from ((f"{changed.place.path} {changed.value}", changed) for changed in own)
    known = {(changed.place.path, changed.value, changed.refused is None) for changed in own}
    for first in own:
        if first.refused is None and not first.place.unit:
            yield from of_pairs(first, known)


def vectors(samples: List[Vector]) -> List[Vector]:
    """The vectors that follow from these samples."""
    found: Dict[str, Vector] = {}
    for vector in samples:
        sample = bytes.fromhex(vector["bytes"])
        for what, changed in of_sample(sample):
            says = f"{wire.FRAMES[sample[0]].name}: {what}"
            refused = {"refused": changed.refused} if changed.refused else {}
            found.setdefault(says, {"says": says, "bytes": changed.text, **refused})
    return list(found.values())


def written(samples: List[Vector]) -> str:
    """The text of limits.json."""
    return "[\n" + ",\n".join(f"  {json.dumps(vector)}" for vector in vectors(samples)) + "\n]\n"
