"""Section 6 of PROTOCOL.md, the receiver's side: objects from their source symbols.

Repair symbols are not used: they are refused and not acknowledged, so that the sender counts them as lost.
"""

from typing import Dict, List, NamedTuple, Set

from layout import Record, Refused, require

EARLY = 512
NEED_MOST = 65_535
MOST_BLOCKS = 255


class Plan(NamedTuple):
    first_block: int
    first_symbol: int
    k: int


class IncomingObject:
    def __init__(self, announcement: Record) -> None:
        self.flow, self.tag = announcement["flow"], announcement["tag"]
        self.announcement = announcement
        self.length, self.symbol_length = announcement["length"], announcement["T"]
        self.symbols = -(-self.length // self.symbol_length)
        self.plans = [Plan(0, 0, announcement["coding"]["k"])]
        self.early_plans: Dict[int, Record] = {}
        self.data = bytearray(self.symbols * self.symbol_length)
        self.there: Dict[int, Set[int]] = {}
        self.done: Set[int] = set()
        self.done_below = 0

    @property
    def blocks(self) -> int:
        last = self.plans[-1]
        return last.first_block - (-(self.symbols - last.first_symbol) // last.k)

    @property
    def complete(self) -> bool:
        return self.done_below == self.blocks

    @property
    def content(self) -> bytes:
        return bytes(self.data[: self.length])

    def plan(self, frame: Record) -> None:
        """A later plan must continue its predecessor exactly."""
        self.early_plans[frame["plan"]] = frame
        while len(self.plans) in self.early_plans:
            new, last = self.early_plans.pop(len(self.plans)), self.plans[-1]
            expected = last.first_symbol + (new["first block"] - last.first_block) * last.k
            require(new["first block"] >= last.first_block and new["first symbol"] == expected, "a plan with a gap")
            self.plans.append(Plan(new["first block"], new["first symbol"], new["coding"]["k"]))

    def first_symbol_of(self, block: int) -> int:
        plan = self._plan_of(block)
        return plan.first_symbol + (block - plan.first_block) * plan.k

    def symbols_of(self, block: int) -> int:
        return min(self._plan_of(block).k, self.symbols - self.first_symbol_of(block))

    def bytes_of(self, block: int) -> bytes:
        start = self.first_symbol_of(block) * self.symbol_length
        end = start + self.symbols_of(block) * self.symbol_length
        return bytes(self.data[start : min(end, self.length)])

    def _plan_of(self, block: int) -> Plan:
        return next(plan for plan in reversed(self.plans) if plan.first_block <= block)

    def symbol(self, header: Record, symbols: bytes) -> bool:
        """Takes the symbols of a packet; false where they are refused."""
        block, esi = header["block"], header["esi"]
        if header["plan"] >= len(self.plans) or block >= self.blocks:
            return False
        count = len(symbols) // self.symbol_length
        require(len(symbols) == count * self.symbol_length and 1 <= count <= self.announcement["r"], "its length")
        if block in self.done:
            return True
        source = self.symbols_of(block)
        if esi + count > source:
            return False
        there = self.there.setdefault(block, set())
        there.update(range(esi, esi + count))
        start = (self.first_symbol_of(block) + esi) * self.symbol_length
        self.data[start : start + len(symbols)] = symbols
        if len(there) == source:
            self.done.add(block)
            del self.there[block]
            while self.done_below in self.done:
                self.done_below += 1
        return True

    def status(self) -> Record:
        """Its entry in the flows section (sections 4.1 and 7): the begun blocks, and those done out of order."""
        blocks = []
        for block in sorted(self.there.keys() | {one for one in self.done if one >= self.done_below})[:MOST_BLOCKS]:
            needs = 0 if block in self.done else self.symbols_of(block) - len(self.there[block])
            blocks.append({"block": block, "needs": min(needs, NEED_MOST)})
        return {"flow": self.flow, "done below": self.done_below, "blocks": blocks}


class Incoming:
    """All objects of this direction."""

    def __init__(self) -> None:
        self.objects: Dict[int, IncomingObject] = {}
        self.early: List[tuple] = []
        # The last flow's end asks for feedback at once (section 7).
        self.completed = False
        self.packets = 0

    def announce(self, frame: Record) -> None:
        known = self.objects.get(frame["flow"])
        if known is None:
            self.objects[frame["flow"]] = IncomingObject(frame)
        else:
            require(known.announcement == frame, "another announcement of a known flow")
        self._retry()

    def plan(self, frame: Record) -> None:
        if frame["flow"] in self.objects:
            self.objects[frame["flow"]].plan(frame)
            self._retry()

    def symbol(self, header: Record, symbols: bytes) -> bool:
        """Whether the packet is acknowledged: accepted, kept for later, or known already."""
        self.packets += 1
        one = self.objects.get(header["flow"])
        if one is None or header["plan"] >= len(one.plans):
            if len(self.early) < EARLY:
                self.early.append((header, symbols))
                return True
            return False
        before = one.complete
        taken = one.symbol(header, symbols)
        self.completed |= one.complete and not before
        return taken

    def _retry(self) -> None:
        early, self.early = self.early, []
        for header, symbols in early:
            try:
                self.symbol(header, symbols)
            except Refused:
                continue
