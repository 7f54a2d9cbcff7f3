"""Section 6 of PROTOCOL.md, the sender's side: objects sent uncoded, each lost symbol again."""

from collections import deque
from typing import Deque, Dict, List, NamedTuple, Optional, Set, Tuple

from layout import Record

UNCODED = 0
MOST_SYMBOLS = 1024


class Symbol(NamedTuple):
    block: int
    esi: int


class OutgoingObject:
    """An object: its blocks have k symbols of T bytes, the last one the rest."""

    def __init__(self, flow: int, tag: int, data: bytes, symbol_length: int, k: int) -> None:
        self.flow, self.tag, self.data = flow, tag, data
        self.symbol_length, self.k = symbol_length, k
        self.symbols = -(-len(data) // symbol_length)
        self.blocks = -(-self.symbols // k)
        self.done: Set[int] = set()
        self.waiting: Deque[Symbol] = deque()
        self.next_block = 0

    @property
    def complete(self) -> bool:
        return len(self.done) == self.blocks

    def announcement(self) -> Record:
        """The fields of its frame (section 4)."""
        coding = {"k": self.k, "code": UNCODED, "code's parameters": b""}
        length = len(self.data)
        return {"flow": self.flow, "length": length, "T": self.symbol_length, "r": 1, "tag": self.tag, "coding": coding}

    def symbols_of(self, block: int) -> int:
        return min(self.k, self.symbols - block * self.k)

    def bytes_of(self, block: int) -> bytes:
        """The bytes of the block's digest: without padding behind the object's end."""
        size = self.k * self.symbol_length
        return self.data[block * size : (block + 1) * size]

    def symbol(self, name: Symbol) -> bytes:
        start = (name.block * self.k + name.esi) * self.symbol_length
        return self.data[start : start + self.symbol_length].ljust(self.symbol_length, b"\0")

    def start_block(self) -> None:
        """Queues the symbols of the next block, for which the caller has found credit."""
        self.waiting.extend(Symbol(self.next_block, esi) for esi in range(self.symbols_of(self.next_block)))
        self.next_block += 1

    def again(self, name: Symbol) -> None:
        """A symbol was lost."""
        if name.block not in self.done:
            self.waiting.append(name)

    def next_symbol(self) -> Optional[Symbol]:
        while self.waiting:
            name = self.waiting.popleft()
            if name.block not in self.done:
                return name
        return None

    def learn(self, status: Record) -> None:
        """An entry of the flows section (section 4.1)."""
        self.done.update(range(min(status["done below"], self.blocks)))
        self.done.update(one["block"] for one in status["blocks"] if one["needs"] == 0 and one["block"] < self.blocks)


class Outgoing:
    """All objects of this direction, and the credit that they share."""

    def __init__(self, credit: int, symbol_length: int, largest_k: int) -> None:
        self.credit, self.started = credit, 0
        self.symbol_length, self.k = symbol_length, min(MOST_SYMBOLS, largest_k)
        self.objects: Dict[int, OutgoingObject] = {}

    def open(self, tag: int, data: bytes) -> OutgoingObject:
        opened = OutgoingObject(len(self.objects) + 1, tag, data, self.symbol_length, self.k)
        self.objects[opened.flow] = opened
        return opened

    def next_symbol(self) -> Optional[Tuple[OutgoingObject, Symbol]]:
        """The first symbol that may be sent."""
        for one in self.objects.values():
            name = one.next_symbol()
            if name is None and one.next_block < one.blocks:
                cost = one.symbols_of(one.next_block)
                if self.started + cost <= self.credit:
                    self.started += cost
                    one.start_block()
                    name = one.next_symbol()
            if name is not None:
                return one, name
        return None

    def learn(self, statuses: List[Record]) -> None:
        for status in statuses:
            if status["flow"] in self.objects:
                self.objects[status["flow"]].learn(status)
