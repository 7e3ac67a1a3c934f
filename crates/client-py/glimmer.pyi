"""A client of Glimmer's native protocol over UDP.

Each request goes straight to the core that owns its key.
"""

from types import TracebackType
from typing import Literal, Optional, Union

__version__: str

Key = Union[bytes, bytearray, str]
Value = Union[bytes, bytearray]

class Error(Exception):
    """Base class of all failures.

    One that get_many raises has the values that were found in `found`, and the failure of each
    other key in `failed`. Of all others, these are None.
    """

    found: Optional[dict[Union[bytes, str], bytes]]
    failed: Optional[dict[Union[bytes, str], "Error"]]

class SocketError(Error, OSError):
    """The socket failed."""

class InvalidKey(Error):
    """A key has 1 to 250 bytes."""

class TooLarge(Error):
    """The item is larger than the server accepts."""

class OutOfMemory(Error):
    """The server has no memory for the item."""

class NotANumber(Error):
    """The value is not a decimal number."""

class NoAddress(Error):
    """The server's name has no address."""

class Refused(Error):
    """Nothing listens at the server's native port.

    If a change was sent more than once, it may have been executed.
    """

class Silent(Error):
    """No answer arrived in time. A change may have been executed once."""

class Away(Error):
    """The server has missed several deadlines in a row and was not asked."""

class Overloaded(Error):
    """The server refused the request for lack of room and has not executed it."""

class TooManyWriters(Error):
    """The server has no room to remember another client's changes.

    The change was not executed.
    """

class Closed(Error):
    """The client has been closed."""

class InternalError(Error):
    """A bug in this library. The client can no longer be used.

    A change may have been executed.
    """

class Item:
    """A value with its flags and CAS unique."""

    value: bytes
    flags: int
    cas: int

class Client:
    """A client of one server.

    A signal handler runs while a call waits, and what it raises ends the call. It cannot use
    the client whose call it interrupts (RuntimeError).

    Threads may share a client; their calls take turns.
    After a fork, the parent and the child are two clients.
    """

    def __init__(
        self,
        host: str,
        native_port: int,
        *,
        deadline: Optional[float] = None,
        away_after: Optional[int] = None,
        retry: Optional[float] = None,
    ) -> None:
        """Connects to a server. Times are in seconds.

        After away_after missed deadlines in a row the server is away: calls raise Away
        at once, and one call per retry interval is sent as a probe.
        """

    @staticmethod
    def connect_to_all(
        members: list[tuple[str, int, int, int]],
        placement: Literal["ketama", "ketama_weighted", "rendezvous"] = "ketama",
        *,
        deadline: Optional[float] = None,
        away_after: Optional[int] = None,
        retry: Optional[float] = None,
        eject: bool = False,
    ) -> "Client":
        """Connects to several servers: host, memcached port, native port and weight of each.

        Keys are placed as in libmemcached or by rendezvous hashing. With eject, the keys of a
        server that is away are placed on the others until it is back.
        """

    def close(self) -> None:
        """Closes the client's sockets. Later calls raise Closed; closing again does nothing."""

    def __enter__(self) -> "Client": ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
    def get(self, key: Key) -> Optional[bytes]: ...
    def get_item(self, key: Key) -> Optional[Item]:
        """Like get, with flags and CAS unique."""

    def get_many(self, keys: list[Key]) -> dict[Union[bytes, str], bytes]:
        """The values of those keys that have one. The requests are sent together.

        In the result, a bytearray is bytes. If keys fail, it raises the failure of the first of
        them; see Error. All keys have one deadline.
        """

    def put(self, key: Key, value: Value, flags: int = 0, expiry: Optional[int] = None, *, expiry_ms: Optional[int] = None) -> None:
        """Stores a value. Expiry times follow memcached.

        0 means never, up to 30 days counts seconds from now, and larger values are seconds
        since 1970. expiry_ms counts milliseconds from now in their place.
        """

    def add(self, key: Key, value: Value, flags: int = 0, expiry: Optional[int] = None, *, expiry_ms: Optional[int] = None) -> bool: ...
    def replace(self, key: Key, value: Value, flags: int = 0, expiry: Optional[int] = None, *, expiry_ms: Optional[int] = None) -> bool: ...
    def compare_and_swap(self, key: Key, cas: int, value: Value, flags: int = 0, expiry: Optional[int] = None, *, expiry_ms: Optional[int] = None) -> bool: ...
    def increment(self, key: Key, delta: int = 1) -> Optional[int]: ...
    def decrement(self, key: Key, delta: int = 1) -> Optional[int]: ...
    def delete(self, key: Key) -> bool: ...
    def touch(self, key: Key, expiry: Optional[int] = None, *, expiry_ms: Optional[int] = None) -> bool: ...
