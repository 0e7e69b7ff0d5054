"""Passwords: Argon2id with the parameters of RFC 9106 for 64 MiB, and never two dozen at once."""

import threading

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from dci_pipeline.errors import UserError

SHORTEST = 12
"""Characters: shorter ones are guessed, and NIST SP 800-63B asks for no rules besides length."""
LONGEST = 1_000

_HASHER = PasswordHasher()
_TURN = threading.Semaphore(2)
"""Each takes 64 MiB and four threads; forty logins side by side would take the machine."""
_NOBODY = _HASHER.hash("nobody has this password")
"""Checked where there is no such user, so that a refusal takes as long and tells nothing."""


def hash_password(password: str) -> str:
    """Hash with salt and parameters. Raises UserError for a password that is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise UserError(f"the password has {len(password)} characters, expected {SHORTEST} to {LONGEST}")
    with _TURN:
        return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether the password is the one behind the hash; takes as long for None."""
    with _TURN:
        try:
            return _HASHER.verify(stored or _NOBODY, password[:LONGEST]) and stored is not None
        except (Argon2Error, InvalidHashError):
            return False


def needs_rehash(stored: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _HASHER.check_needs_rehash(stored)
