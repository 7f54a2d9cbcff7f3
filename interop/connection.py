"""Sections 4, 6 and 7 of PROTOCOL.md: a connection reliable enough for tests.

It sends at a fixed modest rate, each lost symbol again, and knows neither congestion control nor repair symbols.
"""

import random
import select
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from layout import Record, Refused, require
from wire import FRAMES, ranges_of, read_frames, write_frames

from interop import packet
from interop.acknowledging import Arrivals
from interop.handshake import CONTROL_CREDIT, MAX_DATAGRAM, PLENTY, Agreed, answer
from interop.incoming import Incoming, IncomingObject
from interop.outgoing import Outgoing, OutgoingObject, Symbol

PADDING, PING, FEEDBACK, FEEDBACK_SEEN, CONTROL, ANNOUNCE, PLAN = range(7)
CLOSE, PATH_CHALLENGE, PATH_RESPONSE = 9, 10, 11
# Section 7: packets of these alone ask for no feedback.
QUIET = {kind for kind, row in FRAMES.items() if not row.asks}
RATE = 4000  # packets per second
BURST = 32
IN_FLIGHT = 512
SKIP_ONE_OF = 512
ANNOUNCEMENTS = 3
CONTROL_PIECE = 1000
SILENCE, PING_AFTER = 30.0, 15.0
CLOSING = 3.0
VIOLATION = 1

Frame = Tuple[int, Record]


class Closed(Exception):
    """The connection is closed: the peer's code and reason, or the local ones."""

    def __init__(self, code: int, reason: str, by_peer: bool) -> None:
        super().__init__(f"{'the peer closed' if by_peer else 'closed'} with code {code}: {reason}")
        self.code, self.reason, self.by_peer = code, reason, by_peer


class Sent(NamedTuple):
    at: float
    frames: List[Frame]
    symbol: Optional[Tuple[OutgoingObject, Symbol]]


class Connection:
    def __init__(self, udp: socket.socket, agreed: Agreed, second_message: bytes = b"") -> None:
        self.udp, self.agreed, self.second_message = udp, agreed, second_message
        self.address = agreed.address
        self.sealer, self.opener = packet.Sealer(agreed.secrets[0]), packet.Opener(agreed.secrets[1])
        # Section 2, packet size: the initiator's first packets show it, and the responder is silent before them.
        self.may_send, self.size = agreed.initiator, agreed.size
        self.pad = agreed.initiator
        self.next_number = 0
        self.skipped: Set[int] = set()
        self.in_flight: Dict[int, Sent] = {}
        # Frames that wait to be sent. An initiator begins: the responder is silent until it has received a sealed
        # packet.
        self.frames: List[Frame] = [(PING, {})] if agreed.initiator else []
        self.outgoing: Optional[Outgoing] = None
        self.incoming = Incoming()
        self.arrivals = Arrivals()
        self.feedback_number, self.feedback_due, self.feedback_at = 0, 0.0, 0.0
        self.first_feedback_is_due = True
        self.peers_feedback, self.named_seen, self.named_at = -1, -1, 0.0
        self.round_trip, self.peers_round_trip = 0.0, 0.0
        self.control_out, self.control_credit = 0, agreed.peer["credit of control"]
        self.control_waiting = b""
        self.control_pieces: Dict[int, bytes] = {}
        self.control_read = 0
        self.heard_at = self.sent_at = self.progress_at = time.monotonic()
        self.tokens, self.tokens_at = float(BURST), time.monotonic()
        self.closed: Optional[Closed] = None

    # --- For the program --------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Sends bytes on flow 0."""
        self.control_waiting += data

    def read(self) -> bytes:
        """The bytes of flow 0 received without a gap."""
        data = b""
        for offset in sorted(self.control_pieces):
            if offset > self.control_read:
                break
            # Resent bytes may be divided differently.
            piece = self.control_pieces.pop(offset)[self.control_read - offset :]
            self.control_read += len(piece)
            data += piece
        return data

    def send_object(self, tag: int, data: bytes) -> OutgoingObject:
        opened = self._objects().open(tag, data)
        self.frames += [(ANNOUNCE, opened.announcement())]
        return opened

    def object_with(self, tag: int) -> Optional[IncomingObject]:
        return next((one for one in self.incoming.objects.values() if one.tag == tag), None)

    def send_frames(self, frames: List[Frame]) -> None:
        """Frames of any kind, sent at once and never again."""
        self._send_packet(frames, None)

    def send_plaintext(self, plaintext: bytes, kind: int = packet.CONTROL) -> None:
        """A packet of any content, for attackers."""
        self._send_sealed(kind, plaintext)

    def poll(self, timeout: float = 0.05) -> None:
        """Sends the packets allowed, and reads those that arrive within that time. Raises `Closed` once it is over."""
        self._send_all()
        wait = 0.002 if self._busy() else timeout
        if select.select([self.udp], [], [], wait)[0]:
            self._receive_all()
        self._check_time()
        self._send_all()
        if self.closed:
            raise self.closed

    def close(self, code: int = 0, reason: str = "") -> None:
        """Section 6, the end of a connection: several copies, again until the peer's own *close* arrives."""
        frame = [(CLOSE, {"code": code, "reason": reason})]
        end, pause = time.monotonic() + CLOSING, 0.02
        for _ in range(4):
            self.send_frames(frame)
        while self.closed is None and time.monotonic() < end:
            if select.select([self.udp], [], [], pause)[0]:
                self._receive_all()
            else:
                self.send_frames(frame)
                pause *= 2

    # --- Sending ----------------------------------------------------------------------------------------------------

    def _objects(self) -> Outgoing:
        if self.outgoing is None:
            peer = self.agreed.peer
            symbol_length = min(self.size - packet.SYMBOL_OVERHEAD, peer["largest T"])
            self.outgoing = Outgoing(peer["credit in symbols"], symbol_length, peer["largest k"])
        return self.outgoing

    def _busy(self) -> bool:
        return bool(self.in_flight or self.frames or self.feedback_due)

    def _send_all(self) -> None:
        if not self.may_send:
            return
        self._send_feedback()
        now = time.monotonic()
        self.tokens = min(BURST, self.tokens + (now - self.tokens_at) * RATE)
        self.tokens_at = now
        while self.tokens >= 1 and len(self.in_flight) < IN_FLIGHT and self._send_one():
            self.tokens -= 1

    def _send_one(self) -> bool:
        """Sends one packet that requests feedback; returns false without one."""
        if self.control_waiting and self.control_out < self.control_credit:
            length = min(CONTROL_PIECE, self.control_credit - self.control_out)
            piece, self.control_waiting = self.control_waiting[:length], self.control_waiting[length:]
            self.frames.append((CONTROL, {"offset": self.control_out, "data": piece}))
            self.control_out += len(piece)
        if self.frames:
            frame = self.frames.pop(0)
            for _ in range(ANNOUNCEMENTS if frame[0] == ANNOUNCE else 1):
                self._send_packet([frame], None)
            return True
        found = self.outgoing.next_symbol() if self.outgoing else None
        if found:
            self._send_packet([], found)
        return found is not None

    def _send_packet(self, frames: List[Frame], found: Optional[Tuple[OutgoingObject, Symbol]]) -> None:
        if found:
            one, name = found
            plaintext = packet.symbol_plaintext(one.flow, name.block, name.esi, 0, one.symbol(name))
            number = self._send_sealed(packet.SYMBOL, plaintext)
        else:
            plaintext = write_frames(frames)
            if self.pad:
                plaintext = plaintext.ljust(self.size - packet.OVERHEAD, b"\0")
            number = self._send_sealed(packet.CONTROL, plaintext)
        if found or not all(kind in QUIET for kind, _ in frames):
            self.in_flight[number] = Sent(time.monotonic(), frames, found)

    def _send_sealed(self, kind: int, plaintext: bytes) -> int:
        if random.randrange(SKIP_ONE_OF) == 0:
            self.skipped.add(self.next_number)
            self.next_number += 1
        number = self.next_number
        self.next_number += 1
        datagram = self.sealer.seal(kind, self.agreed.peer_id, number, plaintext)
        try:
            self.udp.sendto(datagram, self.address)
        except ConnectionError:
            pass  # an ICMP message, which is only a hint
        self.sent_at = time.monotonic()
        return number

    def _send_feedback(self) -> None:
        now = time.monotonic()
        frames: List[Frame] = []
        if self.peers_feedback > self.named_seen and now >= self.named_at + self.round_trip / 4:
            seen = {"number": self.peers_feedback, "round-trip time": int(self.round_trip * 1e6)}
            frames.append((FEEDBACK_SEEN, seen))
            self.named_seen, self.named_at = self.peers_feedback, now
        if self.feedback_due and now >= self.feedback_due:
            self.feedback_due, self.feedback_at = 0.0, now
            frames.append((FEEDBACK, self._feedback()))
        if frames:
            self._send_packet(frames, None)

    def _feedback(self) -> Record:
        flows = [one.status() for one in self.incoming.objects.values()][-8:]
        self.feedback_number = (self.feedback_number + 1) % 2**32
        packets = self.arrivals.section(self.feedback_number)
        wanted = self.agreed.peer["feedback"]["flags"] & 2 != 0 and flows
        return {
            "sections": (1 if packets else 0) | (4 if wanted else 0),
            "number": self.feedback_number,
            "credit in symbols": PLENTY,
            "credit of control": self.control_read + CONTROL_CREDIT,
            "packets": packets,
            "ECN": None,
            "flows": flows if wanted else None,
            "count": None,
            "masks": None,
        }

    # --- Receiving --------------------------------------------------------------------------------------------------

    def _receive_all(self) -> None:
        self.udp.setblocking(False)
        try:
            for _ in range(BURST):
                data, address = self.udp.recvfrom(MAX_DATAGRAM)
                self._receive(data, address)
                if self.closed:
                    return
        except (BlockingIOError, ConnectionError):
            pass
        finally:
            self.udp.setblocking(True)

    def _receive(self, data: bytes, address: Any) -> None:
        if data[:1] == b"\x01" and self.second_message and address == self.address:
            answer(self.udp, self.agreed, self.second_message, data)
            return
        try:
            require(data[:1] in (b"\x10", b"\x11") and data[1:9] == self.agreed.own_id, "not for this connection")
            header, plaintext = self.opener.open(data)
            frames = read_frames(plaintext) if header["type"] == packet.CONTROL else []
            self.heard_at = time.monotonic()
            if not self.may_send:
                self.may_send, self.size = True, min(self.size, len(data))
            if header["type"] == packet.SYMBOL:
                asks, acknowledged = True, self.incoming.symbol(*packet.read_symbol(plaintext))
                self.pad = False
            else:
                asks, acknowledged = not all(kind in QUIET for kind, _ in frames), True
                for kind, frame in frames:
                    self._take(kind, frame)
        except Refused:
            return
        if acknowledged:
            self.arrivals.add(header["number"])
        if asks:
            self._ask_for_feedback(any(kind == PING for kind, _ in frames))

    def _ask_for_feedback(self, at_once: bool) -> None:
        choice = self.agreed.peer["feedback"]
        now = time.monotonic()
        spacing = 0.0
        if choice["timing"] == 1:
            spacing = max(choice["least time"] / 1e6, self.peers_round_trip / choice["per round trip"])
        if at_once or self.first_feedback_is_due or self.incoming.completed:
            self.first_feedback_is_due = self.incoming.completed = False
            self.feedback_due = now
        elif not self.feedback_due:
            self.feedback_due = max(now, self.feedback_at + spacing)

    def _take(self, kind: int, frame: Record) -> None:
        if kind == FEEDBACK:
            self._take_feedback(frame)
        elif kind == FEEDBACK_SEEN:
            self.peers_round_trip = frame["round-trip time"] / 1e6
            self.arrivals.seen(frame["number"])
        elif kind == CONTROL:
            self._take_control(frame["offset"], frame["data"])
        elif kind == ANNOUNCE:
            self.incoming.announce(frame)
        elif kind == PLAN:
            self.incoming.plan(frame)
        elif kind == PATH_CHALLENGE:
            self.send_frames([(PATH_RESPONSE, {"data": frame["data"]})])
        elif kind == CLOSE:
            self.closed = Closed(frame["code"], frame["reason"], by_peer=True)
            self.send_frames([(CLOSE, {"code": 0, "reason": ""})])
        elif kind not in (PADDING, PING, PATH_RESPONSE):
            self._violation(f"a frame of type {kind} that this implementation does not know")

    def _take_control(self, offset: int, data: bytes) -> None:
        if offset + len(data) > self.control_read + CONTROL_CREDIT:
            self._violation("control data beyond the credit")
        if offset < self.control_read:
            data, offset = data[self.control_read - offset :], self.control_read
        if len(data) > len(self.control_pieces.get(offset, b"")):
            self.control_pieces[offset] = data

    def _take_feedback(self, frame: Record) -> None:
        if frame["packets"]:
            self._acknowledge(frame["packets"])
        if frame["number"] <= self.peers_feedback:
            return
        self.peers_feedback = frame["number"]
        self.pad = False
        self.control_credit = max(self.control_credit, frame["credit of control"])
        if self.outgoing:
            self.outgoing.credit = max(self.outgoing.credit, frame["credit in symbols"])
            self.outgoing.learn(frame["flows"] or [])

    def _acknowledge(self, packets: Record) -> None:
        now = time.monotonic()
        ranges = ranges_of(packets["largest"], packets["form"], packets["body"])

        def named(number: int) -> bool:
            return any(low <= number <= high for low, high in ranges)

        if packets["largest"] >= self.next_number or any(named(number) for number in self.skipped):
            self._violation("an unsent packet was acknowledged")
        newest = self.in_flight.get(packets["largest"])
        if newest:
            sample = max(0.0, now - newest.at - packets["delay"] / 1e6)
            self.round_trip = sample if not self.round_trip else self.round_trip * 7 / 8 + sample / 8
        before = len(self.in_flight)
        self.in_flight = {number: sent for number, sent in self.in_flight.items() if not named(number)}
        if len(self.in_flight) < before:
            self.progress_at = now
        # A later packet arrived, with time enough for this one too.
        patience = 2 * self.round_trip + 0.05
        for number in [one for one in self.in_flight if one < packets["largest"]]:
            if now - self.in_flight[number].at > patience:
                self._again(number)

    def _again(self, number: int) -> None:
        sent = self.in_flight.pop(number)
        self.frames += [frame for frame in sent.frames if frame[0] not in QUIET and frame[0] != PING]
        if sent.symbol:
            sent.symbol[0].again(sent.symbol[1])

    def _violation(self, reason: str) -> None:
        self.send_frames([(CLOSE, {"code": VIOLATION, "reason": reason})])
        self.closed = Closed(VIOLATION, reason, by_peer=False)
        raise Refused(reason)

    # --- Time -------------------------------------------------------------------------------------------------------

    def _check_time(self) -> None:
        now = time.monotonic()
        if now - self.heard_at > SILENCE:
            self.closed = Closed(VIOLATION, "no packet arrived for 30 s", by_peer=False)
            return
        if not self.may_send:
            return
        # Section 7: a probe timeout, without its own round-trip times.
        if self.in_flight and now - max(self.progress_at, self.sent_at) > 0.25 + 4 * self.round_trip:
            for number in sorted(self.in_flight)[:2]:
                self._again(number)
            self._send_packet([(PING, {})], None)
        if now - max(self.heard_at, self.sent_at) > PING_AFTER:
            self._send_packet([(PING, {})], None)
