"""Sections 4.1 and 7 of PROTOCOL.md: arrived packets, and the feedback about them."""

import time
from typing import Dict, List, Optional, Tuple

from layout import Record

MAX_BODY = 800
LONGEST_RUN = 65_535
LONGEST_DELAY = 2**32 - 1


class Arrivals:
    """The packet numbers that arrived, as ranges with both ends, the newest first."""

    def __init__(self) -> None:
        self.ranges: List[Tuple[int, int]] = []
        self.largest_at = 0.0
        self.floors: Dict[int, int] = {}

    def add(self, number: int) -> None:
        if not self.ranges or number > self.ranges[0][1]:
            self.largest_at = time.monotonic()
        at = 0
        while at < len(self.ranges) and self.ranges[at][0] > number + 1:
            at += 1
        if at < len(self.ranges) and self.ranges[at][0] <= number + 1 and number <= self.ranges[at][1] + 1:
            low, high = self.ranges[at]
            self.ranges[at] = (min(low, number), max(high, number))
            if at + 1 < len(self.ranges) and self.ranges[at + 1][1] + 1 >= self.ranges[at][0]:
                self.ranges[at : at + 2] = [(self.ranges[at + 1][0], self.ranges[at][1])]
        else:
            self.ranges.insert(at, (number, number))

    def section(self, feedback: int) -> Optional[Record]:
        """The packets section of that feedback: run lengths, as many as fit."""
        if not self.ranges:
            return None
        largest = self.ranges[0][1]
        body, below = b"", largest + 1
        for low, high in self.ranges:
            missing = _run(below - 1 - high) if body else b""
            more = missing + _run(high - low + 1)
            if len(body) + len(more) > MAX_BODY:
                break
            body, below = body + more, low
        self.floors[feedback] = largest
        delay = min(int((time.monotonic() - self.largest_at) * 1e6), LONGEST_DELAY)
        return {"largest": largest, "delay": delay, "form": 0, "body": body}

    def seen(self, feedback: int) -> None:
        """The peer has seen that feedback: packets far below its ranges need no further report."""
        floor = self.floors.get(feedback)
        if floor is not None:
            self.ranges = [one for one in self.ranges if one[1] > floor - 1000] or self.ranges[:1]
            self.floors = {one: at for one, at in self.floors.items() if one > feedback}


def _run(length: int) -> bytes:
    """A run, continued after a zero where it is too long for 16 bits."""
    words = b""
    while length > LONGEST_RUN:
        words += LONGEST_RUN.to_bytes(2, "big") + bytes(2)
        length -= LONGEST_RUN
    return words + length.to_bytes(2, "big")
