"""A client of Glimmer's native protocol: each request goes straight to the core that owns its key, over UDP."""

from types import TracebackType
from typing import Literal, Optional, Union

__version__: str

Key = Union[bytes, bytearray, str]
Value = Union[bytes, bytearray]

class Error(Exception):
    """Any failure; that there is no item is none."""

class InvalidKey(Error):
    """A key has 1 to 250 bytes."""

class TooLarge(Error):
    """The item is larger than the server takes."""

class OutOfMemory(Error):
    """The server has no memory for it."""

class NotANumber(Error):
    """The value is no decimal number."""

class NoAddress(Error):
    """The server's name has no address."""

class Refused(Error):
    """Nothing listens at the server's native port. A change that was sent more than once may have been made."""

class Silent(Error):
    """There was no answer in time. A change may have been made, once."""

class Away(Error):
    """The server has let several deadlines pass one after another, and was not asked again yet."""

class Overloaded(Error):
    """The server was asked again and again and would not take the request, which it has not carried out."""

class TooManyWriters(Error):
    """The server has no room to remember another writing client. The change was not made."""

class Closed(Error):
    """The client has been closed."""

class InternalError(Error):
    """A bug in this library. The client cannot be used any more; a change may have been made."""

class Item:
    """A value with what was stored beside it."""

    value: bytes
    flags: int
    cas: int

class Client:
    """A client of one server. Threads may share it; their calls take turns. After a fork, parent and child are two clients."""

    def __init__(
        self,
        host: str,
        native_port: int,
        *,
        deadline: Optional[float] = None,
        away_after: Optional[int] = None,
        retry: Optional[float] = None,
    ) -> None:
        """Times in seconds. After so many deadlines in a row the server is away: calls raise Away at once, and one goes through after each retry."""

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
        """Several servers, each by host, memcached's port, native port and weight. Keys are where libmemcached has them, or by rendezvous hashing; with eject,
        those of a server that is away are among the others until it is back."""

    def close(self) -> None:
        """Closes the client's sockets. Calls raise Closed afterwards; closing again does nothing."""

    def __enter__(self) -> "Client": ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
    def get(self, key: Key) -> Optional[bytes]: ...
    def get_item(self, key: Key) -> Optional[Item]:
        """As get, with flags and CAS unique."""

    def get_many(self, keys: list[Key]) -> dict[Key, bytes]:
        """The values of those keys that have one, by requests that leave together."""

    def put(self, key: Key, value: Value, flags: int = 0, expiry: int = 0) -> None:
        """Expiry is memcached's: 0 is never, up to 30 days is in seconds from now, more is seconds since 1970."""

    def add(self, key: Key, value: Value, flags: int = 0, expiry: int = 0) -> bool: ...
    def replace(self, key: Key, value: Value, flags: int = 0, expiry: int = 0) -> bool: ...
    def compare_and_swap(self, key: Key, cas: int, value: Value, flags: int = 0, expiry: int = 0) -> bool: ...
    def increment(self, key: Key, delta: int = 1) -> Optional[int]: ...
    def decrement(self, key: Key, delta: int = 1) -> Optional[int]: ...
    def delete(self, key: Key) -> bool: ...
    def touch(self, key: Key, expiry: int) -> bool: ...
