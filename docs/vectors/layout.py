"""Layouts as data: a list of named fields, each of which reads itself from bytes and writes itself back.

A record is a dict. Whatever the document does not allow raises `Refused`.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

Record = Dict[str, Any]


class Refused(Exception):
    """Bytes that the specification does not allow."""


def require(allowed: bool, reason: str) -> None:
    """Raises unless `allowed`."""
    if not allowed:
        raise Refused(reason)


class Span(NamedTuple):
    """The position of a read value: the names that lead to it, and the bytes from `start` to before `end`."""

    path: str
    start: int
    end: int


class Reader:
    """Reads bytes from front to back, and notes the positions of the numbers, the fields and the records."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.path = ""
        self.numbers: List[Span] = []
        self.fields: List[Span] = []
        self.records: List[Span] = []

    def span(self, start: int) -> Span:
        """The values read from `start` on, under their names."""
        return Span(self.path, start, self.at)

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, length: int) -> bytes:
        require(length <= self.left, "cut off")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, width: int) -> int:
        start = self.at
        value = int.from_bytes(self.take(width), "big")
        self.numbers.append(self.span(start))
        return value


class Field(NamedTuple):
    """How one value is read and written. Both calls see the preceding fields of the record."""

    read: Callable[[Reader, Record], Any]
    write: Callable[[Any, Record], bytes]


Layout = List[Tuple[str, Field]]


def number(width: int, least: int = 0, most: Optional[int] = None) -> Field:
    """An integer in network byte order."""
    top = 256**width - 1 if most is None else most

    def read(reader: Reader, _: Record) -> int:
        value = reader.number(width)
        require(least <= value <= top, f"{value} is not within {least} and {top}")
        return value

    return Field(read, lambda value, _: value.to_bytes(width, "big"))


def one_of(width: int, *allowed: int) -> Field:
    """An integer of which only some values are defined."""

    def read(reader: Reader, _: Record) -> int:
        value = reader.number(width)
        require(value in allowed, f"{value:#x} is reserved")
        return value

    return Field(read, lambda value, _: value.to_bytes(width, "big"))


def octets(length: int) -> Field:
    """That many bytes."""
    return Field(lambda reader, _: reader.take(length), lambda value, _: value)


def counted(width: int, most: int) -> Field:
    """Bytes preceded by their length."""

    def read(reader: Reader, _: Record) -> bytes:
        length = reader.number(width)
        require(length <= most, f"{length} bytes are more than {most}")
        return reader.take(length)

    return Field(read, lambda value, _: len(value).to_bytes(width, "big") + value)


def text(width: int, most: int) -> Field:
    """UTF-8 preceded by its length in bytes; invalid UTF-8 is read as U+FFFD."""
    inner = counted(width, most)

    def read(reader: Reader, record: Record) -> str:
        return inner.read(reader, record).decode("utf-8", "replace")

    return Field(read, lambda value, record: inner.write(value.encode("utf-8"), record))


def rest() -> Field:
    """Everything that remains."""
    return Field(lambda reader, _: reader.take(reader.left), lambda value, _: value)


def group(layout: Layout) -> Field:
    """A record within a record."""
    return Field(lambda reader, _: read_record(layout, reader), lambda value, _: write_record(layout, value))


def repeated(width: int, least: int, most: int, layout: Layout) -> Field:
    """Records preceded by their count."""

    def read(reader: Reader, _: Record) -> List[Record]:
        count = reader.number(width)
        require(least <= count <= most, f"a count of {count}")
        return [read_record(layout, reader) for _ in range(count)]

    def write(value: List[Record], _: Record) -> bytes:
        return len(value).to_bytes(width, "big") + b"".join(write_record(layout, one) for one in value)

    return Field(read, write)


def when(there: Callable[[Record], bool], inner: Field) -> Field:
    """A field that only some records have; None in the others."""
    return Field(
        lambda reader, record: inner.read(reader, record) if there(record) else None,
        lambda value, record: inner.write(value, record) if there(record) else b"",
    )


def checked(inner: Field, check: Callable[[Any, Record], bool], reason: str) -> Field:
    """A field with a condition of its own, which may look at the fields before it."""

    def read(reader: Reader, record: Record) -> Any:
        value = inner.read(reader, record)
        require(check(value, record), reason)
        return value

    return Field(read, inner.write)


def read_record(layout: Layout, reader: Reader) -> Record:
    """The fields of a layout, one after the other."""
    record: Record = {}
    start, outer = reader.at, reader.path
    for name, field in layout:
        began, reader.path = reader.at, f"{outer}/{name}" if outer else name
        record[name] = field.read(reader, record)
        reader.fields.append(reader.span(began))
        reader.path = outer
    reader.records.append(reader.span(start))
    return record


def write_record(layout: Layout, record: Record) -> bytes:
    """The bytes of a record."""
    return b"".join(field.write(record[name], record) for name, field in layout)


def read_whole(layout: Layout, data: bytes) -> Record:
    """A record that takes all of `data`."""
    reader = Reader(data)
    record = read_record(layout, reader)
    require(reader.left == 0, f"{reader.left} bytes too many")
    return record
