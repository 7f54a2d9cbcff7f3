#!/usr/bin/env python3
"""Sends and receives files with the second implementation of the protocol.

    interop/peer.py send TICKET FILE...           to a `downpour recv --listen`
    interop/peer.py recv TICKET DIR               from a `downpour send` that listens
    interop/peer.py send --listen FILE...         prints a ticket for `downpour recv`
    interop/peer.py recv --listen DIR             prints a ticket for `downpour send --to`
    interop/peer.py attack NAME TICKET            what a hostile peer might do; see attacks.py
    interop/peer.py remote NAME ...               the same, for `downpour cp --ssh "interop/peer.py remote NAME"`

TICKET is the ticket or @FILE. Exits with 0 only where everything was verified, or an attack was refused,
wholly or in part.
"""

import argparse
import sys
from pathlib import Path
from typing import List, TextIO, Type

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interop import attacks, ticket  # noqa: E402
from interop.connection import Closed  # noqa: E402
from interop.handshake import HandshakeFailed  # noqa: E402
from interop.receiving import Receiver, receive_files  # noqa: E402
from interop.sending import send_files  # noqa: E402
from interop.session import Kind, Session, TimedOut  # noqa: E402
from layout import Refused  # noqa: E402


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return arguments.run(arguments)
    except (Closed, HandshakeFailed, TimedOut, Refused, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("send", _send), ("recv", _recv)):
        command = commands.add_parser(name)
        command.add_argument("--listen", action="store_true", help="print a ticket instead of using one")
        command.add_argument("arguments", nargs="+", metavar="TICKET or PATH")
        command.set_defaults(run=run)
    attack = commands.add_parser("attack", epilog="; ".join(attacks.ATTACKS))
    attack.add_argument("name", choices=list(attacks.ATTACKS))
    attack.add_argument("ticket")
    attack.add_argument("--seconds", type=float, default=attacks.PARKED, help="how long an attack without an end lasts")
    attack.set_defaults(run=_attack)
    remote = commands.add_parser("remote")
    remote.add_argument("name", choices=list(attacks.ATTACKS))
    remote.add_argument("ignored", nargs=argparse.REMAINDER, help="the command that ssh would run")
    remote.set_defaults(run=_remote)
    return parser


def _open(kind: Type[Kind], role: int, listen: bool, rest: List[str]) -> Kind:
    """The session; without --listen the first argument is the ticket, which is taken."""
    if not listen:
        return kind.connect(_ticket(rest.pop(0)), role)
    return kind.listen(role, lambda text: print(text, flush=True))


def _ticket(text: str) -> str:
    return Path(text[1:]).read_text(encoding="ascii") if text.startswith("@") else text


def _send(arguments: argparse.Namespace) -> int:
    rest = arguments.arguments
    session = _open(Session, ticket.SENDS, arguments.listen, rest)
    complete = send_files(session, rest)
    print(", ".join(f"{name} {value}" for name, value in complete.items()))
    return 0 if complete["failed"] == 0 else 1


def _recv(arguments: argparse.Namespace) -> int:
    rest = arguments.arguments
    session = _open(Receiver, ticket.RECEIVES, arguments.listen, rest)
    end = receive_files(session, rest[0])
    print(f"{end['entries']} entries, {end['bytes']} bytes, verified")
    return 0


def _attack(arguments: argparse.Namespace) -> int:
    return _told(arguments.name, attacks.run(arguments.name, _ticket(arguments.ticket), arguments.seconds), sys.stdout)


def _remote(arguments: argparse.Namespace) -> int:
    """Section 8.1: reads a request, does not heed it, and answers with a ticket."""
    length = sys.stdin.buffer.read(4)
    if len(length) < 4:
        return 1  # ssh is asked for something else, such as its configuration
    sys.stdin.buffer.read(int.from_bytes(length, "big"))
    outcome = attacks.serve(arguments.name, lambda text: print(f"DOWNPOUR1 {text}", flush=True))
    return _told(arguments.name, outcome, sys.stderr)


def _told(name: str, outcome: attacks.Outcome, to: TextIO) -> int:
    print(f"{name}: {outcome.what}: {outcome.said}", file=to)
    return 1 if outcome.what == attacks.DID else 0


if __name__ == "__main__":
    sys.exit(main())
