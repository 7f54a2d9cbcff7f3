"""The wire as tables: sections 1, 4 and 5 of PROTOCOL.md. A new frame, parameter or datagram is a row."""

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from layout import (
    Field,
    Layout,
    Reader,
    Record,
    Refused,
    checked,
    counted,
    group,
    number,
    octets,
    one_of,
    read_record,
    read_whole,
    repeated,
    require,
    rest,
    text,
    when,
    write_record,
)

VERSION = 1
TAG = 16
MAX_NUMBER = 2**64 - 2
MAX_FRAMES = 256
MAX_PARAMETERS = 64
MAX_PAYLOAD = 1128
MIN_MESSAGE1 = 1200

# --- Section 4: frames ----------------------------------------------------------------------------------------------

TORNADO = range(64, 128)
CODES = {0: "uncoded", 1: "Reed-Solomon", 2: "RaptorQ", 3: "Raptor", 4: "LT", 5: "pre-coded LT", 128: "RLC"}
CODES |= {code: f"Tornado {code - 63}" for code in TORNADO}
BLOCK_CODES = [code for code in CODES if code < 128]
MAX_K = {0: 1 << 24, 1: 32_768, 2: 56_403, 3: 8_192, 4: 1 << 14, 5: 1 << 14, 128: 2_047}
MAX_K |= {code: 65_536 for code in TORNADO}

CODING: Layout = [
    ("k", number(4, least=1)),
    ("code", checked(one_of(1, *CODES), lambda code, so_far: so_far["k"] <= MAX_K[code], "k is beyond its code's")),
    ("code's parameters", counted(1, most=0)),
]


def _runs(body: bytes) -> List[int]:
    """Form 0: alternating runs of packets that arrived and that did not, with continued runs joined."""
    require(len(body) % 4 == 2, "not an odd number of runs")
    words = [int.from_bytes(body[at : at + 2], "big") for at in range(0, len(body), 2)]
    require(words[-1] != 0, "a zero at the end")
    runs = [words[0]]
    require(words[0] != 0, "a zero that nothing goes before")
    at = 1
    while at < len(words):
        if words[at] == 0:
            require(words[at - 1] == 65_535 and words[at + 1] != 0, "a zero that does not follow 65535")
            runs[-1] += words[at + 1]
            at += 2
        else:
            runs.append(words[at])
            at += 1
    return runs


def ranges_of(largest: int, form: int, body: bytes) -> List[Tuple[int, int]]:
    """The content of a packets section: ranges with both ends, the newest first."""
    if form == 1:
        require(bool(body) and body[0] & 0x80 != 0, "a bitmap without its largest")
        bits = "".join(f"{byte:08b}" for byte in body)
        runs = [len(run) for run in bits.rstrip("0").replace("01", "0 1").replace("10", "1 0").split(" ")]
    else:
        runs = _runs(body)
    require(sum(runs) <= largest + 1, "packets below 0")
    ranges, top = [], largest
    for index, length in enumerate(runs):
        if index % 2 == 0:
            ranges.append((top - length + 1, top))
        top -= length
    return ranges


PACKETS: Layout = [
    ("largest", number(8, most=MAX_NUMBER)),
    ("delay", number(4)),
    ("form", one_of(1, 0, 1)),
    (
        "body",
        checked(counted(2, most=4096), lambda body, so_far: bool(ranges_of(so_far["largest"], so_far["form"], body)), ""),
    ),
]
ECN: Layout = [("ECT(0)", number(8)), ("ECT(1)", number(8)), ("CE", number(8))]
BLOCK_STATUS: Layout = [("block", number(4)), ("needs", number(2))]


def _ascend(blocks: List[Record], so_far: Record) -> bool:
    numbers = [so_far["done below"] - 1] + [status["block"] for status in blocks]
    return all(low < high for low, high in zip(numbers, numbers[1:]))


FLOW_STATUS: Layout = [
    ("flow", number(2, least=1)),
    ("done below", number(4)),
    ("blocks", checked(repeated(2, 0, 65_535, BLOCK_STATUS), _ascend, "blocks do not ascend from done below")),
]


def _section(bit: int, field: Field) -> Field:
    return when(lambda so_far: so_far["sections"] >> bit & 1 == 1, field)


# The count of packets: at least one, and no more than numbers.
COUNT: Layout = [
    ("largest", number(8, most=MAX_NUMBER)),
    ("delay", number(4)),
    ("arrived", checked(number(8, least=1), lambda value, so_far: value <= so_far["largest"] + 1, "too many packets")),
]
MASK: Layout = [("flow", number(2, least=1)), ("done", octets(32))]

FEEDBACK: Layout = [
    ("sections", checked(number(1), lambda sections, _: sections & 0xD0 == 0, "a reserved section")),
    ("number", number(4)),
    ("credit in symbols", number(8)),
    ("credit of control", number(8)),
    ("packets", _section(0, group(PACKETS))),
    ("ECN", _section(1, group(ECN))),
    ("flows", _section(2, repeated(1, 1, 255, FLOW_STATUS))),
    ("count", _section(3, group(COUNT))),
    ("masks", _section(5, repeated(1, 1, 255, MASK))),
]

CONTROL: Layout = [
    ("offset", number(8)),
    (
        "data",
        checked(
            counted(2, most=16_384),
            lambda data, so_far: so_far["offset"] + len(data) < 1 << 64,
            "control beyond 2^64",
        ),
    ),
]


def _announced(coding: Record, so_far: Record) -> bool:
    return CODES[coding["code"]] != "Reed-Solomon" or coding["k"] <= 128 or so_far["T"] % 2 == 0


def _of_blocks(coding: Record, _so_far: Record) -> bool:
    return coding["code"] in BLOCK_CODES


def _of_an_object(coding: Record, so_far: Record) -> bool:
    return _of_blocks(coding, so_far) and _announced(coding, so_far)


def _short(code: int, so_far: Record) -> bool:
    """A window code has no short blocks."""
    return so_far["coding"]["code"] in BLOCK_CODES or CODES[code] == "uncoded"


ANNOUNCE: Layout = [
    ("flow", number(2, least=1)),
    ("length", number(8)),
    ("T", number(2, least=1)),
    ("r", number(1, least=1)),
    ("tag", number(8)),
    ("coding", checked(group(CODING), _of_an_object, "a window code, or an odd T for Reed-Solomon with k above 128")),
]

PLAN: Layout = [
    ("flow", number(2, least=1)),
    ("plan", number(1, least=1)),
    ("first block", number(4)),
    ("first symbol", number(8)),
    ("coding", checked(group(CODING), _of_blocks, "a window code")),
]


GIVEN_UP: Layout = [("flow", number(2, least=1)), ("code", number(4))]
ANNOUNCE_STREAM: Layout = [
    ("flow", number(2, least=1)),
    ("T", number(2, least=5)),
    ("tag", number(8)),
    ("coding", checked(group(CODING), _announced, "an odd T for Reed-Solomon with k above 128")),
    ("code of short blocks", checked(one_of(1, *BLOCK_CODES), _short, "short blocks with a window code")),
]


def _later(first: Record, so_far: Record) -> bool:
    return so_far["T"] < first["T"] and so_far["flow"] != first["flow"]


SUCCESSOR: Layout = [
    ("flow", number(2, least=1)),
    ("T", number(2)),
    ("object", checked(group(ANNOUNCE), _later, "a successor of itself, or of no smaller T")),
]


STREAM_SUCCESSOR: Layout = [
    ("flow", number(2, least=1)),
    ("T", number(2)),
    ("stream", checked(group(ANNOUNCE_STREAM), _later, "a successor of itself, or of no smaller T")),
]


class Frame(NamedTuple):
    """A row of the table of frames."""

    name: str
    layout: Layout
    # How a vector's sentence gives a field: the words, with # for the number; then the field's path.
    says: Dict[str, str] = {}
    # Section 7: a packet that has only frames without this asks for no feedback.
    asks: bool = True


CODING_SAYS = {"k #": "coding/k"}
FRAMES: Dict[int, Frame] = {
    0x00: Frame("padding", [], asks=False),
    0x01: Frame("ping", []),
    0x02: Frame(
        "feedback",
        FEEDBACK,
        {
            "number #": "number",
            "credit # symbols": "credit in symbols",
            "and # bytes of control": "credit of control",
            "after # us": "packets/delay",
            "ECT(0) #": "ECN/ECT(0)",
            "ECT(1) #": "ECN/ECT(1)",
            "CE #": "ECN/CE",
            "# packets up to": "count/arrived",
            "up to #": "count/largest",
            "the last one # us ago": "count/delay",
        },
        asks=False,
    ),
    0x03: Frame(
        "feedback seen",
        [("number", number(4)), ("round-trip time", number(4))],
        {"number #": "number", "# us": "round-trip time"},
        asks=False,
    ),
    0x04: Frame("control", CONTROL, {"offset #": "offset"}),
    0x05: Frame(
        "announce",
        ANNOUNCE,
        {"flow #": "flow", "# bytes": "length", "T #": "T", "# symbol per packet": "r", "# symbols per packet": "r", "tag #": "tag", **CODING_SAYS},
    ),
    0x06: Frame(
        "plan",
        PLAN,
        {
            "flow #": "flow",
            "plan #": "plan",
            "from block # and": "first block",
            "symbol # on": "first symbol",
            **CODING_SAYS,
        },
    ),
    0x07: Frame("reset", GIVEN_UP, {"flow #": "flow", "code #": "code"}),
    0x08: Frame("stop", GIVEN_UP, {"flow #": "flow", "code #": "code"}),
    0x09: Frame("close", [("code", number(4)), ("reason", text(2, most=256))], {"code #": "code"}, asks=False),
    0x0A: Frame("path challenge", [("data", octets(8))], asks=False),
    0x0B: Frame("path response", [("data", octets(8))], asks=False),
    0x0D: Frame(
        "stream read",
        [("flow", number(2, least=1)), ("symbols", number(8))],
        {"flow #": "flow", "# symbols": "symbols"},
    ),
    0x0E: Frame(
        "announce stream",
        ANNOUNCE_STREAM,
        {"flow #": "flow", "T #": "T", "tag #": "tag", **CODING_SAYS},
    ),
    0x0F: Frame("successor", SUCCESSOR, {"flow # of": "flow", "of T #": "T", "left of flow #": "object/flow"}),
    0x10: Frame(
        "stream successor", STREAM_SUCCESSOR, {"flow # of": "flow", "of T #": "T", "left of stream #": "stream/flow"}
    ),
}


def read_frames(plaintext: bytes) -> List[Tuple[int, Record]]:
    """The whole plaintext of a control packet: type and fields of each frame."""
    reader, frames = Reader(plaintext), []
    while reader.left:
        kind = reader.number(1)
        row = FRAMES.get(kind)
        if row is None:
            raise Refused(f"frame type {kind:#04x} is in no row")
        frames.append((kind, read_record(row.layout, reader)))
    require(sum(kind != 0 for kind, _ in frames) <= MAX_FRAMES, f"more than {MAX_FRAMES} frames")
    return frames


def write_frames(frames: List[Tuple[int, Record]]) -> bytes:
    """The plaintext of these frames."""
    return b"".join(bytes([kind]) + write_record(FRAMES[kind].layout, record) for kind, record in frames)


def derived(record: Record) -> Iterator[Any]:
    """Values derived from a record: the ends of ranges, the name of a code."""
    if "form" in record:
        for ends in ranges_of(record["largest"], record["form"], record["body"]):
            yield from ends
    if "done" in record:
        mask = "".join(f"{byte:08b}" for byte in record["done"])
        yield from (block for block, bit in enumerate(mask) if bit == "1")
    if "code" in record and "k" in record:
        yield CODES[record["code"]]
    if "code of short blocks" in record:
        yield CODES[record["code of short blocks"]]


# --- Section 1: datagrams -------------------------------------------------------------------------------------------

PACKET_HEADER: Layout = [
    ("type", one_of(1, 0x10, 0x11)),
    ("connection", octets(8)),
    ("number", number(8, most=MAX_NUMBER)),
]
SYMBOL_HEADER: Layout = [("flow", number(2, least=1)), ("block", number(4)), ("esi", number(3)), ("plan", number(1))]
MESSAGE1: Layout = [
    ("type", one_of(1, 0x01)),
    ("version", one_of(4, VERSION)),
    ("key id", octets(8)),
    ("connection", octets(8)),
    ("copy", number(1)),
    ("Noise message", counted(2, most=65_535)),
    ("padding", rest()),
]
MESSAGE2: Layout = [
    ("type", one_of(1, 0x02)),
    ("connection", octets(8)),
    ("copy", number(1)),
    ("Noise message", counted(2, most=65_535)),
    ("padding", rest()),
]
VERSION_ANSWER: Layout = [
    ("type", one_of(1, 0x03)),
    ("destination", octets(8)),
    ("versions", repeated(1, 0, 16, [("version", number(4))])),
]
DATAGRAMS: Dict[int, Layout] = {
    0x01: MESSAGE1,
    0x02: MESSAGE2,
    0x03: VERSION_ANSWER,
    0x10: PACKET_HEADER + [("sealed", rest())],
    0x11: PACKET_HEADER + [("sealed", rest())],
}


def read_datagram(data: bytes) -> Record:
    """A whole UDP payload, as far as it can be read without keys."""
    require(bool(data) and data[0] in DATAGRAMS, "an unknown type of datagram")
    require(data[0] != 0x01 or len(data) >= MIN_MESSAGE1, f"a first message below {MIN_MESSAGE1} bytes")
    record = read_whole(DATAGRAMS[data[0]], data)
    require(len(record.get("sealed", bytes(TAG))) >= TAG, "a packet without a tag")
    return record


# --- Section 5: parameters ------------------------------------------------------------------------------------------

def _timing(choice: int, so_far: Record) -> bool:
    return choice == 0 or so_far["timing"] == 1


FEEDBACK_CHOICE: Layout = [
    ("flags", number(1, most=3)),
    ("timing", one_of(1, 0, 1)),
    (
        "per round trip",
        checked(number(1), lambda value, so_far: (value == 0) == (so_far["timing"] == 0), "per round trip and timing"),
    ),
    ("least time", checked(number(4), _timing, "a least time without a timing")),
]


MILLION = 1_000_000
LAST = 32_768


# Section 5, feedback in detail: the numbers that go with each timing, and their bounds.
TIMINGS: Dict[int, List[Tuple[int, int]]] = {
    0: [(0, 0), (0, 0), (0, 0)],
    1: [(1, 255), (0, (1 << 32) - 1), (0, 0)],
    2: [(1_000, 10_000_000), (0, 0), (0, 0)],
    3: [(2, LAST), (0, MILLION), (1, 16)],
}


def _bounded(nth: int) -> Field:
    def within(value: int, so_far: Record) -> bool:
        least, most = TIMINGS[so_far["detailed timing"]][nth]
        return least <= value <= most

    return checked(number(4), within, "a number of the timing beyond its bounds")


def _last(value: int, so_far: Record) -> bool:
    return 1 <= value <= LAST if so_far["packets"] == 3 else value == 0


def _epsilon(value: int, so_far: Record) -> bool:
    return value <= MILLION // 4 if so_far["blocks"] in (2, 4) else value == 0


FEEDBACK_DETAIL: Layout = [
    ("packets", one_of(1, 0, 1, 2, 3)),
    ("last", checked(number(2), _last, "how many of the last packets")),
    ("blocks", one_of(1, 0, 1, 2, 3, 4)),
    ("epsilon", checked(number(4), _epsilon, "epsilon")),
    ("detailed timing", one_of(1, *TIMINGS)),
    ("first", _bounded(0)),
    ("second", _bounded(1)),
    ("third", _bounded(2)),
]


class Parameter(NamedTuple):
    """A row of the table of parameters."""

    name: str
    layout: Layout
    must: bool = True


PARAMETERS: Dict[int, Parameter] = {
    1: Parameter("connection", [("connection", octets(8))]),
    2: Parameter("ciphers", [("ciphers", checked(rest(), lambda value, _: 1 <= len(value) <= 8, "not 1 to 8 ciphers"))]),
    3: Parameter("credit in symbols", [("credit in symbols", number(8))]),
    4: Parameter("credit of control", [("credit of control", number(8))]),
    5: Parameter("largest k", [("largest k", number(4))]),
    6: Parameter("largest T", [("largest T", number(2))]),
    7: Parameter("feedback", [("feedback", group(FEEDBACK_CHOICE))]),
    8: Parameter(
        "application",
        [("application", checked(rest(), lambda value, _: len(value) <= 990, "more than 990 bytes"))],
        must=False,
    ),
    9: Parameter(
        "streams accepted",
        [("streams", number(2)), ("symbols of each", number(4)), ("symbols shared", number(4))],
        must=False,
    ),
    10: Parameter("feedback in detail", [("detail", group(FEEDBACK_DETAIL))], must=False),
    11: Parameter("symbols per packet", [("symbols per packet", number(1, least=1))], must=False),
    12: Parameter("feedback counts on", [], must=False),
    13: Parameter("short symbols", [], must=False),
}

CLEAR: Layout = [("type", number(2)), ("value", counted(2, most=65_535))]


def read_parameters(data: bytes) -> List[Tuple[int, Record]]:
    """A set of parameters in its order; unknown ones as bytes."""
    reader, found = Reader(data), []
    while reader.left:
        entry = read_record(CLEAR, reader)
        row = PARAMETERS.get(entry["type"])
        record = read_whole(row.layout, entry["value"]) if row else {"unknown": entry["value"]}
        found.append((entry["type"], record))
    kinds = [kind for kind, _ in found]
    require(len(kinds) <= MAX_PARAMETERS, "too many parameters")
    require(len(kinds) == len(set(kinds)), "a duplicate parameter")
    missing = [row.name for kind, row in PARAMETERS.items() if row.must and kind not in kinds]
    require(not missing, f"no {', '.join(missing)}")
    return found


def write_parameters(parameters: List[Tuple[int, Record]]) -> bytes:
    """The bytes of a set, in its order."""

    def value(kind: int, record: Record) -> bytes:
        row = PARAMETERS.get(kind)
        return write_record(row.layout, record) if row else record["unknown"]

    return b"".join(write_record(CLEAR, {"type": kind, "value": value(kind, one)}) for kind, one in parameters)


def is_grease(kind: int) -> bool:
    """Section 9: parameter types that will never have a meaning."""
    return kind & 0x0F0F == 0x0A0A
