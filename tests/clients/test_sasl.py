"""Authentication in the binary protocol (-S): SASL PLAIN against the file of -Y, packet by packet."""

import binary
import pytest
from harness import Server
from test_auth import users  # noqa: F401, a fixture

PLAIN = b"PLAIN"


def authenticate(credentials, mechanism=PLAIN):
    return binary.request(binary.SASL_AUTH, mechanism, credentials)


ADMITTED = binary.response(binary.SASL_AUTH, value=b"Authenticated")
REFUSED = binary.refusal(binary.SASL_AUTH, binary.AUTH_ERROR)


@pytest.fixture
def server(users, ours):  # noqa: F811
    with Server("-S", "-Y", users, "-t", 2) as server:
        yield server


def says(wire, request, reply):
    wire.send(request)
    wire.expect(reply)


def test_a_user_is_admitted_and_served(server):
    with server.wire() as wire:
        says(wire, binary.request(binary.SASL_LIST), binary.response(binary.SASL_LIST, value=PLAIN))
        says(wire, authenticate(b"\0foo\0bar"), ADMITTED)
        wire.send(binary.store(binary.SETQ, b"a", b"value") + binary.request(binary.GETK, b"a"))
        head = wire.receive(24)
        assert (head[1], head[6:8]) == (binary.GETK, bytes(2))
        assert wire.receive(int.from_bytes(head[8:12], "big")).endswith(b"avalue")


@pytest.mark.parametrize(
    "credentials",
    [b"\0foo\0quux", b"\0foo\0ba", b"\0nobody\0bar", b"other\0foo\0bar", b"foo\0bar", b"\0foo", b"", b"\0\0"],
)
def test_wrong_credentials_are_refused_and_may_be_tried_again(server, credentials):
    with server.wire() as wire:
        says(wire, authenticate(credentials), REFUSED)
        says(wire, authenticate(b"foo\0foo\0bar"), ADMITTED)
        says(wire, binary.request(binary.GET, b"a"), binary.refusal(binary.GET, binary.NOT_FOUND))


def test_other_mechanisms_are_refused(server):
    with server.wire() as wire:
        says(wire, authenticate(b"\0foo\0bar", b"CRAM-MD5"), REFUSED)
        says(wire, binary.request(binary.SASL_STEP, PLAIN, b"\0foo\0bar"), binary.refusal(binary.SASL_STEP, binary.AUTH_ERROR))


def test_a_failed_attempt_takes_the_right_away_again(server):
    with server.wire() as wire:
        says(wire, authenticate(b"\0foo\0bar"), ADMITTED)
        says(wire, authenticate(b"\0foo\0no"), REFUSED)
        says(wire, binary.request(binary.GET, b"a"), binary.refusal(binary.GET, binary.AUTH_ERROR))
        wire.expect_closed()


@pytest.mark.parametrize(
    "request_",
    [
        binary.request(binary.GET, b"a"),
        binary.store(binary.SET, b"a", b"value"),
        binary.store(binary.SETQ, b"a", b"value"),
        binary.request(binary.DELETE, b"a"),
        binary.count(binary.INCREMENT, b"a"),
        binary.request(binary.STAT),
        binary.request(binary.FLUSH),
        binary.request(binary.NOOP),
    ],
)
def test_nothing_else_before_that(server, request_):
    with server.wire() as wire:
        says(wire, request_, binary.refusal(request_[1], binary.AUTH_ERROR))
        wire.expect_closed()


def test_the_version_is_no_secret(server):
    with server.wire() as wire:
        wire.send(binary.request(binary.VERSION))
        assert wire.receive(24)[6:8] == bytes(2)


def test_the_text_protocol_is_not_spoken(server):
    with server.wire() as wire:
        wire.send(b"set any 0 0 7\r\nfoo bar\r\n")
        wire.expect_closed()


def test_byte_by_byte(server):
    with server.wire() as wire:
        for byte in authenticate(b"\0foo\0bar"):
            wire.send(bytes([byte]))
        wire.expect(ADMITTED)


def test_without_it_nobody_needs_to_say_who_it_is(ours):
    with Server("-t", 1) as server, server.wire() as wire:
        for opcode in (binary.SASL_LIST, binary.SASL_AUTH, binary.SASL_STEP):
            body = b"" if opcode == binary.SASL_LIST else PLAIN
            says(wire, binary.request(opcode, body), binary.refusal(opcode, binary.UNKNOWN))


def test_wrong_credentials_end_the_connection(server):
    with server.wire() as wire:
        wire.send(authenticate(b"\0foo\0wrong") * 10)
        wire.expect(REFUSED * 4)
        wire.expect_closed()
