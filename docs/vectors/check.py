#!/usr/bin/env python3
"""A second decoder of the wire's vectors, written from PROTOCOL.md alone: the document is enough to read them.

    python3 docs/vectors/check.py [--write-limits]

Decodes every vector, compares every field with what the vector says, writes it again, and must get the same bytes; then spoils it, and must
refuse. With the option it writes limits.json, which follows from frames.json and the tables in wire.py, and checks nothing. Needs Python
3.9 and nothing else.
"""

import json
import re
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Iterator, List

import limits
import sealing
import window
import wire
from layout import Refused, read_whole, write_record

DIRECTORY = Path(__file__).resolve().parent
LIMITS = DIRECTORY / "limits.json"


class Wrong(Exception):
    """A vector that disagrees with the document."""


def agree(what: str, found: Any, expected: Any) -> None:
    """Both must be equal."""
    if found != expected:
        raise Wrong(f"{what}: found {found!r}, expected {expected!r}")


def refuse(what: str, read: Callable[[bytes], Any], data: bytes) -> None:
    """Reading must fail."""
    try:
        found = read(data)
    except Refused:
        return
    raise Wrong(f"{what} must be refused, and reads as {found!r}: {data.hex()}")


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


def a_number(text: str) -> int:
    """`12`, `0x1f` or `2^32`."""
    base, power = text.split("^") if "^" in text else (text, "1")
    return int(base, 16 if base.startswith("0x") else 10) ** int(power)


# --- Sentences ------------------------------------------------------------------------------------------------------

NUMBER = r"0x[0-9a-f]+|\d+(?:\^\d+)?"


def leaves(value: Any) -> Iterator[Any]:
    """Every number and text in a record, and the values derived from it."""
    if isinstance(value, dict):
        yield from wire.derived(value)
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
        yield from value
    else:
        yield value


def at(record: Any, path: str) -> Any:
    """The value at `a/b` of a record."""
    for name in path.split("/"):
        record = record[name]
    return record


def check_sentence(row: wire.Frame, record: Dict[str, Any], sentence: str) -> None:
    """A frame matches its sentence: named phrases match exactly, every other number and quoted text occurs somewhere."""
    name, _, claims = sentence.partition(": ")
    agree("the frame's name", row.name, name)
    quoted = re.findall(r'"([^"]*)"', claims)
    claims = re.sub(r'"[^"]*"', "", claims)
    for phrase, path in row.says.items():
        pattern = r"\b" + re.escape(phrase).replace(r"\#", f"({NUMBER})") + r"(?!\w)"
        match = re.search(pattern.replace("#", f"({NUMBER})"), claims)
        if match:
            agree(path, at(record, path), a_number(match.group(1)))
            claims = claims[: match.start()] + "," + claims[match.end() :]
    known = list(leaves(record))
    for value in [a_number(text) for text in re.findall(r"(?<![\w(])(?:" + NUMBER + ")", claims)] + quoted:
        if value not in known:
            raise Wrong(f"{sentence!r} says {value!r}, which is not in {record!r}")
    # The longest first, because one name may be part of another.
    for code in sorted(wire.CODES.values(), key=len, reverse=True):
        rest = re.sub(r"\b" + re.escape(code) + r"(?!\w)", "", claims)
        if rest != claims and code not in known:
            raise Wrong(f"{sentence!r} says {code}, which is not in {record!r}")
        claims = rest


# --- One function a file --------------------------------------------------------------------------------------------


def check_frames(vectors: List[Dict[str, str]]) -> int:
    """Each frame alone, then all of them in one packet, with padding."""
    everything = b""
    for vector in vectors:
        data = hexed(vector["bytes"])
        frames = wire.read_frames(data)
        agree(f"{vector['says']}: frames", len(frames), 1)
        kind, record = frames[0]
        check_sentence(wire.FRAMES[kind], record, vector["says"])
        agree(vector["says"], wire.write_frames(frames), data)
        for length in range(1, len(data)):
            refuse(f"{vector['says']}, cut to {length} bytes", wire.read_frames, data[:length])
        refuse(f"{vector['says']}, before an unknown type", wire.read_frames, data + b"\xff")
        everything += data + b"\x00"
    agree("all frames in one packet", wire.write_frames(wire.read_frames(everything)), everything)
    described = {vector["says"].partition(":")[0] for vector in vectors}
    missing = {row.name for row in wire.FRAMES.values()} - described - {"padding"}
    agree("frames without a vector", missing, set())
    return len(vectors)


def check_headers(vectors: Dict[str, Dict[str, Any]]) -> int:
    layouts = {
        "control_packet": (wire.PACKET_HEADER, {"type": 0x11}),
        "symbol_packet": (wire.PACKET_HEADER, {"type": 0x10}),
        "symbol_header": (wire.SYMBOL_HEADER, {}),
        "version_answer": (wire.VERSION_ANSWER, {"type": 0x03}),
    }
    for name, vector in vectors.items():
        layout, implied = layouts[name]
        data = hexed(vector["bytes"])
        record = read_whole(layout, data)
        expected = {**implied, **{field: said(value) for field, value in vector.items() if field != "bytes"}}
        agree(name, {field: plain(value) for field, value in record.items()}, expected)
        agree(name, write_record(layout, record), data)
        refuse(f"{name}, cut", lambda data, layout=layout: read_whole(layout, data), data[:-1])
        if implied:
            refuse(f"{name} of another type", wire.read_datagram, b"\x04" + data[1:])
    return len(vectors)


def said(value: Any) -> Any:
    """A field of headers.json as a value: numbers are decimal or begin with 0x, byte strings are hexadecimal."""
    if isinstance(value, list):
        return [said(one) for one in value]
    if isinstance(value, str):
        return int(value, 16) if value.startswith("0x") else hexed(value)
    return value


def plain(value: Any) -> Any:
    """A list of records of one field as a list of values."""
    return [next(iter(one.values())) for one in value] if isinstance(value, list) else value


def check_parameters(vectors: List[Dict[str, str]]) -> int:
    for vector in vectors:
        data = hexed(vector["bytes"])
        found = wire.read_parameters(data)
        agree(vector["says"], wire.write_parameters(found), data)
        check_parameter_set(found, vector["says"])
        for kind, _ in found:
            without = [one for one in found if one[0] != kind]
            if kind in wire.PARAMETERS and wire.PARAMETERS[kind].must:
                refuse(f"parameters without {kind}", wire.read_parameters, wire.write_parameters(without))
            else:
                wire.read_parameters(wire.write_parameters(without))
        refuse("a parameter twice", wire.read_parameters, data + wire.write_parameters(found[-1:]))
        refuse("parameters, cut", wire.read_parameters, data[:-1])
    return len(vectors)


def check_parameter_set(found: List[Any], sentence: str) -> None:
    """The numbers of a set's sentence, by the words around them; every sentence has ciphers, grease and a timing."""
    flat = {name: value for _, record in found for name, value in record.items() if name != "unknown"}
    choice = flat["feedback"]
    ciphers = re.match(r"ciphers? ([\d, ]+);", sentence)
    agree("ciphers", list(flat["ciphers"]), [int(one) for one in ciphers.group(1).split(", ")] if ciphers else None)
    for pattern, value in (
        (rf"credit ({NUMBER}) symbols", flat["credit in symbols"]),
        (rf"symbols, ({NUMBER}) bytes", flat["credit of control"]),
        (rf"k to ({NUMBER})", flat["largest k"]),
        (rf"T to ({NUMBER})", flat["largest T"]),
        (rf"({NUMBER}) per RTT", choice["per round trip"]),
        (rf"({NUMBER}) us apart", choice["least time"]),
    ):
        match = re.search(pattern, sentence)
        if match:
            agree(pattern, value, a_number(match.group(1)))
    check_detail(flat.get("detail"), sentence)
    several = re.search(rf"({NUMBER}) symbols per packet", sentence)
    agree("symbols per packet", flat.get("symbols per packet", 1), a_number(several.group(1)) if several else 1)
    agree("flags", choice["flags"], ("ECN" in sentence) + 2 * ("blocks" in sentence))
    agree("timing", choice["timing"], 0 if "for every packet" in sentence else 1)
    application = re.search(r'"(.*)"', sentence)
    agree("application", flat.get("application", b"").decode(), application.group(1) if application else "")
    # The sentence gives the random number that the grease was made from: its upper half chose the type, its lower half is the value.
    random = int(re.search(r"grease (\w+)", sentence).group(1), 0)
    grease = [(kind, int.from_bytes(record["unknown"], "big")) for kind, record in found if wire.is_grease(kind)]
    agree("grease", grease, [(random >> 16 & 0xF0F0 | 0x0A0A, random & 0xFFFF)])


def check_detail(detail: Optional[Dict[str, int]], sentence: str) -> None:
    """A sentence about feedback in detail, which is present exactly when the plain choice does not express everything."""
    packets = {"packets in order": 1, "packets counted": 2, "last": 3}
    blocks = {"done": 2, "mask": 3, "received": 4}
    timings = {"heartbeat": 2, "every 1024 packets": 3}

    def chosen(words: Dict[str, int], plain: int) -> int:
        return next((number for word, number in words.items() if word in sentence), plain)

    agree("feedback in detail", detail is not None, any(word in sentence for word in [*packets, *blocks, *timings]))
    if detail is None:
        return
    agree("packets", detail["packets"], chosen(packets, 0))
    agree("blocks", detail["blocks"], chosen(blocks, 1))
    agree("timing in detail", detail["detailed timing"], chosen(timings, 0))
    for pattern, value in (
        (rf"last ({NUMBER}) packets", detail["last"]),
        (rf"({NUMBER}) millionths", detail["epsilon"]),
        (rf"heartbeat of ({NUMBER}) us", detail["first"]),
        (rf"every ({NUMBER}) packets", detail["first"]),
        (rf"threshold ({NUMBER})", detail["second"]),
        (rf"factor ({NUMBER})", detail["third"]),
    ):
        match = re.search(pattern, sentence)
        if match:
            agree(pattern, value, a_number(match.group(1)))


def check_packets(vectors: Dict[str, Any]) -> int:
    agree("key id", sealing.key_id(hexed(vectors["psk"])), hexed(vectors["key_id"]))
    secret = hexed(vectors["secret_of_epoch_0"])
    for vector in vectors["packets"]:
        packet, plaintext = hexed(vector["packet"]), hexed(vector["plaintext"])
        cipher, name = vector["cipher"], f"packet {vector['number']} with {vector['cipher']}"
        record = wire.read_datagram(packet)
        agree(f"{name}: connection", record["connection"], hexed(vectors["connection"]))
        agree(f"{name}: number", record["number"], vector["number"])
        agree(f"{name}: epoch", record["number"] >> sealing.EPOCH_BITS, vector["epoch"])
        agree(f"{name}: plaintext", sealing.open_packet(cipher, secret, packet), plaintext)
        again = sealing.seal_packet(cipher, secret, packet[: sealing.CLEAR_HEADER], vector["number"], plaintext)
        agree(f"{name}: sealed again", again, packet)
        if record["type"] == 0x11:
            agree(f"{name}: frames", wire.write_frames(wire.read_frames(plaintext)), plaintext)
        else:
            header = read_whole(wire.SYMBOL_HEADER, plaintext[:10])
            agree(f"{name}: symbol header", write_record(wire.SYMBOL_HEADER, header), plaintext[:10])
            agree(f"{name}: length of its symbols", len(packet) - len(plaintext[10:]), 43)
        for spoiled in (0, 8, 16, 17, len(packet) - 1):
            changed = packet[:spoiled] + bytes([packet[spoiled] ^ 1]) + packet[spoiled + 1 :]
            refuse(f"{name}, byte {spoiled} changed", lambda data: sealing.open_packet(cipher, secret, data), changed)
    return len(vectors["packets"])


def check_handshake(vectors: Dict[str, str]) -> int:
    value = {name: hexed(text) for name, text in vectors.items()}
    agree("key id", sealing.key_id(value["psk"]), value["key_id"])
    connection = value["initiator_connection"]
    prologue = b"downpour" + wire.VERSION.to_bytes(4, "big") + value["key_id"] + connection
    private = (value["initiator_ephemeral_private"], value["responder_ephemeral_private"])
    made = sealing.handshake(prologue, value["psk"], private, (value["payload1"], value["payload2"]))
    agree("secret of the initiator", made.initiator_to_responder, value["secret_initiator_to_responder"])
    agree("secret of the responder", made.responder_to_initiator, value["secret_responder_to_initiator"])
    for count, (layout, noise) in enumerate(((wire.MESSAGE1, made.message1), (wire.MESSAGE2, made.message2)), 1):
        data, payload = value[f"message{count}_without_padding"], value[f"payload{count}"]
        record = read_whole(layout, data)
        agree(f"message {count}: Noise message", record["Noise message"], noise)
        agree(f"message {count}: connection", record["connection"], connection)
        agree(f"message {count}: padding", record["padding"], b"")
        agree(f"message {count}: beyond its payload", len(noise) - len(payload), 48)
        agree(f"message {count}", write_record(layout, record), data)
        agree(f"payload {count}", wire.write_parameters(wire.read_parameters(payload)), payload)
        if count == 1:
            refuse("a first message without its padding", wire.read_datagram, data)
        wire.read_datagram(data.ljust(wire.MIN_MESSAGE1, b"\0"))
    agree("key id of message 1", read_whole(wire.MESSAGE1, value["message1_without_padding"])["key id"], value["key_id"])
    identity = {"connection": connection}
    agree("connection of payload 1", wire.read_parameters(value["payload1"])[0], (1, identity))
    return 2


def check_refused(vectors: List[Dict[str, str]]) -> int:
    """Input that a receiver rejects, with the reason."""
    readers = {"frames": wire.read_frames, "parameters": wire.read_parameters, "datagram": wire.read_datagram}
    readers["symbol header"] = lambda data: read_whole(wire.SYMBOL_HEADER, data)
    for vector in vectors:
        refuse(vector["because"], readers[vector["what"]], hexed(vector["bytes"]))
    return len(vectors)


def samples() -> List[Dict[str, str]]:
    return json.loads((DIRECTORY / "frames.json").read_text(encoding="utf-8"))


def check_limits(vectors: List[Dict[str, str]]) -> int:
    """The tables' limits of every field, against which the first implementation is checked."""
    for found, expected in zip_longest(vectors, limits.vectors(samples())):
        if found != expected:
            raise Wrong(f"not what the tables give (check.py --write-limits writes that): found {found}, expected {expected}")
    return len(vectors)


def block_symbols(announced: int, plan: int) -> Optional[int]:
    """k of a stream's block (section 6.1), or None where the plan does not exist."""
    if plan == 0:
        return announced
    k = plan if plan <= 128 else 128 - (-(plan - 128) * (announced - 128) // 128)
    return k if k < announced else None


def check_streams(vectors: Any) -> int:
    for vector in vectors:
        for row in vector["plans"]:
            where = f"k {vector['announced_k']}, plan {row['plan']}"
            agree(where, block_symbols(vector["announced_k"], row["plan"]), row["k"])
    return len(vectors)


def check_windows(vectors: Any) -> int:
    """Section 6.1: the last symbol of the window, how many it has, and the key, all from the header."""
    for vector in vectors:
        source = [hexed(symbol) for symbol in vector["source"]]
        for row in vector["repair"]:
            header = read_whole(wire.SYMBOL_HEADER, hexed(row["header"]))
            symbols, key = header["esi"] >> 12, header["esi"] & 0xFFF
            end = header["block"] + 1
            where = f"repair of {symbols} symbols up to block {header['block']}"
            agree(where, symbols, min(end, vector["largest_window"]))
            agree(where, window.repair(key, source[end - symbols : end]), hexed(row["bytes"]))
    return len(vectors)


CHECKS: Dict[str, Callable[[Any], int]] = {
    "frames": check_frames,
    "handshake": check_handshake,
    "headers": check_headers,
    "limits": check_limits,
    "packets": check_packets,
    "parameters": check_parameters,
    "refused": check_refused,
    "streams": check_streams,
    "windows": check_windows,
}


def main() -> int:
    if sys.argv[1:] == ["--write-limits"]:
        LIMITS.write_text(limits.written(samples()), encoding="utf-8")
        return 0
    if sys.argv[1:]:
        print("usage: check.py [--write-limits]", file=sys.stderr)
        return 2
    failed = False
    files = {path.stem: path for path in sorted(DIRECTORY.glob("*.json"))}
    for name in sorted(files.keys() | CHECKS.keys()):
        try:
            if name not in files or name not in CHECKS:
                raise Wrong("nothing reads this file" if name in files else "this file is missing")
            count = CHECKS[name](json.loads(files[name].read_text(encoding="utf-8")))
            print(f"{name}.json: {count} vectors agree with PROTOCOL.md")
        except (Wrong, Refused, KeyError, ValueError) as error:
            failed = True
            print(f"{name}.json: {type(error).__name__}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
