#!/usr/bin/env python3
"""Sends and receives files with the second implementation of the protocol.

    interop/peer.py send TICKET FILE...           to a `downpour recv --listen`
    interop/peer.py recv TICKET DIR               from a `downpour send` that listens
    interop/peer.py send --listen FILE...         prints a ticket for `downpour recv`
    interop/peer.py recv --listen DIR             prints a ticket for `downpour send --to`
    interop/peer.py attack NAME TICKET            what a hostile peer might do; see attacks.py

TICKET is the ticket or @FILE. Exits with 0 only where everything was verified, or an attack was refused.
"""

import argparse
import sys
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import interop  # noqa: E402, F401
from interop import attacks, ticket  # noqa: E402
from interop.connection import Closed  # noqa: E402
from interop.handshake import HandshakeFailed  # noqa: E402
from interop.receiving import Receiver, receive_files  # noqa: E402
from interop.sending import send_files  # noqa: E402
from interop.session import Session, TimedOut, udp_socket  # noqa: E402
from layout import Refused  # noqa: E402

HERE = ("127.0.0.1", 0)


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
    attack.set_defaults(run=_attack)
    return parser


def _open(kind: type, role: int, listen: bool, rest: List[str]) -> Session:
    """The session; without --listen the first argument is the ticket, which is taken."""
    if not listen:
        return kind.connect(_ticket(rest.pop(0)), role)
    udp = udp_socket(HERE)
    made = ticket.fresh(role, udp.getsockname()[:2])
    print(ticket.write(made), flush=True)
    return kind.listen(udp, made.key, role)


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
    refused, said = attacks.run(arguments.name, _ticket(arguments.ticket))
    print(f"{arguments.name}: {'refused' if refused else 'not refused'}: {said}")
    return 0 if refused else 1


if __name__ == "__main__":
    sys.exit(main())
