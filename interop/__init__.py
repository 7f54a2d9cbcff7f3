"""A second implementation of the downpour protocol, written from docs/PROTOCOL.md: a peer for tests, and an attacker.

Needs Python 3.9 and nothing else. The wire's tables and its sealing are those that check the vectors (docs/vectors).
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "docs" / "vectors"))
