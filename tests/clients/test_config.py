"""Settings from a file and from the environment, and what SIGHUP makes of a file that has changed."""

import os
import signal
import subprocess
import time
from pathlib import Path

from harness import PATIENCE_S, Server, server_binary


def run(*words, **environment):
    return subprocess.run(
        [server_binary(), *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=PATIENCE_S,
    )


def figures(server):
    """What SIGHUP can change."""
    settings = server.stats("settings")
    names = ("maxconns", "verbosity", "glimmer_dispatch", "glimmer_access", "maxbytes")
    return tuple(settings[name] for name in names), server.stats("slow")["threshold_ms"]


def hang_up(server, expected):
    """Sends SIGHUP and waits until the settings are as expected."""
    os.kill(server.pid, signal.SIGHUP)
    deadline = time.monotonic() + PATIENCE_S
    while figures(server) != expected:
        assert time.monotonic() < deadline, (figures(server), expected)


def test_a_hang_up_applies_what_has_changed_in_the_file(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    before = "memory-limit = 32\nthreads = 2\nconn-limit = 500\nverbose = 1\n"
    path.write_text(before)
    with Server("--config", path) as server:
        at_first = (("500", "1", "size-aware", "crcw", str(32 << 20)), "10")
        assert figures(server) == at_first
        path.write_text("memory-limit = 64\nthreads = 2\nconn-limit = 3\nslow-ms = 7\ndispatch = 'owner'\naccess = 'erew'\n")
        changed = (("3", "0", "owner", "erew", str(32 << 20)), "7")
        hang_up(server, changed)
        # A connection beyond the new limit is refused. The server may not have seen the end of the latest one for `stats`.
        wires, lines = [], []
        while b"ERROR Too many open connections\r\n" not in lines:
            wires.append(server.wire())
            wires[-1].send(b"mn\r\n")
            lines.append(wires[-1].line())
        assert lines[:-1] in ([b"MN\r\n"] * 3, [b"MN\r\n"] * 2)
        for wire in wires:
            wire.close()
        path.write_text("conn-limit = 600\nthreads = lots\nnonsense = 1\n")
        os.kill(server.pid, signal.SIGHUP)
        path_of_lines = [f"{path}:2", "settings stay as they were"]
        lines = []
        while not all(any(part in line for line in lines) for part in path_of_lines):
            lines.append(server.process.stderr.readline())
        text = "".join(lines)
        assert "memory-limit stays as it was; the change takes effect when the server starts again" in text
        assert figures(server) == changed
        path.write_text(before)
        hang_up(server, at_first)


def test_a_hang_up_leaves_what_a_client_has_changed(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    path.write_text("conn-limit = 500\n")
    with Server("--config", path, "-t", 2) as server, server.wire() as wire:
        wire.exchange(b"verbosity 1\r\n", b"OK\r\n")
        wire.exchange(b"dispatch keyhash\r\n", b"OK\r\n")
        path.write_text("conn-limit = 501\n")
        hang_up(server, (("501", "1", "keyhash", "crcw", str(64 << 20)), "10"))


def test_a_hang_up_for_one_setting_of_dispatch_leaves_the_others(ours, tmp_path):
    path = tmp_path / "glimmer.toml"

    def hang_up_with(epoch_ms, slow_ms, dispatch, access, more=""):
        """Settings are applied in the order of docs/configuration.md, so `slow-ms` says that `dispatch` has been."""
        path.write_text(f"verbose = 1\ndispatch-epoch-ms = {epoch_ms}\nslow-ms = {slow_ms}\n{more}")
        hang_up(server, (("1024", "1", dispatch, access, str(64 << 20)), str(slow_ms)))

    path.write_text("verbose = 1\ndispatch-epoch-ms = 1000\n")
    with Server("--config", path, "-t", 2) as server, server.wire() as wire:
        wire.exchange(b"dispatch keyhash crew\r\n", b"OK\r\n")
        hang_up_with(4000, 11, "keyhash", "crew")
        # A policy that a client names later has the setting, too, and keeps its own argument under the next one.
        for epoch_ms, command in ((4000, b"dispatch size-aware:5000 crcw\r\n"), (3000, None)):
            if command:
                wire.exchange(command, b"OK\r\n")
            else:
                hang_up_with(epoch_ms, 12, "size-aware", "crcw")
            shown = server.stats("dispatch")
            assert (shown["epoch_ms"], shown["large_from_bytes"]) == (str(epoch_ms), "5000")
        # Settings that name no policy have the one that goes with the access mode.
        hang_up_with(3000, 13, "keyhash", "crew", "access = 'crew'\n")


def test_what_a_hang_up_could_not_apply_is_tried_again(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    path.write_text("conn-limit = 500\nverbose = 1\n")
    with Server("--config", path, "-t", 2) as server:
        # More than any limit of open files allows.
        for conn_limit, slow_ms, now in ((3_000_000_000, 11, "500"), (3_000_000_000, 12, "500"), (501, 13, "501")):
            path.write_text(f"conn-limit = {conn_limit}\nverbose = 1\nslow-ms = {slow_ms}\n")
            hang_up(server, ((now, "1", "size-aware", "crcw", str(64 << 20)), str(slow_ms)))
    assert server.errors.count("SIGHUP: conn-limit: -c 3000000000 needs ") == 2, server.errors
    assert "SIGHUP: conn-limit is 501" in server.errors


def test_a_setting_that_is_again_as_at_the_start_is_not_warned_of(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    path.write_text("slow-ms = 10\n")
    with Server("--config", path, "-t", 2) as server:
        for slow_ms, more in ((11, "[extended]\nidle_timeout = 5\n"), (12, "")):
            path.write_text(f"slow-ms = {slow_ms}\n{more}")
            hang_up(server, (("1024", "0", "size-aware", "crcw", str(64 << 20)), str(slow_ms)))
    assert server.errors.count("SIGHUP: extended stays as it was") == 1, server.errors


def test_a_wrong_file_prevents_the_start(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    path.write_text("memory-limt = 64\n\nthreads = 'many'\n")
    for words in (("serve", "--config", path), ("config", "check", path)):
        refused = run(*words)
        assert refused.returncode == 78
        lines = refused.stderr.splitlines()
        assert lines[0] == f"glimmer: {path}:1: there is no setting memory-limt; did you mean memory-limit?"
        assert lines[1].startswith(f"{path}:3: invalid value 'many' for '--threads <NUM>'")
        assert len(lines) == 2
    path.write_text("memory-limit = 64\nthreads = 2\n")
    checked = run("config", "check", path)
    assert (checked.returncode, checked.stdout) == (0, f"{path}: no mistake in 2 settings\n")
    path.write_text("memory-limit = 1\nmax-item-size = '2m'\n")
    # Also what is wrong only together.
    for words in (("serve", "--config", path), ("config", "check", path), ("config", "print", "--config", path)):
        refused = run(*words)
        assert refused.returncode == 78 and "-I of 2097152 bytes: " in refused.stderr, refused
    path.write_text("detail-delimiter = ':'\nprefix-delimiter = ':'\n")
    assert run("serve", "--config", path).returncode == 78
    # A mistake of the command line has memcached's exit code.
    path.write_text("verbose = 1\n")
    assert run("serve", "--config", path, "-m", "1", "-I", "2m").returncode == 64


def test_the_environment_counts_less_than_flags_and_more_than_the_file(ours, tmp_path):
    path = tmp_path / "glimmer.toml"
    path.write_text("memory-limit = 100\nthreads = 3\nconn-limit = 11\n")
    environment = {"GLIMMER_CONFIG": str(path), "GLIMMER_THREADS": "2", "GLIMMER_CONN_LIMIT": "22"}
    printed = run("config", "print", "-c", "33", **environment)
    assert printed.returncode == 0, printed.stderr
    lines = {line.split(" = ")[0]: " ".join(line.split()) for line in printed.stdout.splitlines()}
    assert lines["memory-limit"] == f"memory-limit = 100 # {path}:1"
    assert lines["threads"] == "threads = 2 # variable GLIMMER_THREADS"
    assert lines["conn-limit"] == "conn-limit = 33 # command line"
    assert lines["listen-backlog"] == "listen-backlog = 1024 # default"
    with Server(environment={**environment, "GLIMMER_CONN_LIMITS": "7"}) as server:
        settings = server.stats("settings")
        assert (settings["maxbytes"], settings["num_threads"], settings["maxconns"]) == (str(100 << 20), "2", "22")
    warning = "the variable GLIMMER_CONN_LIMITS is no setting; did you mean GLIMMER_CONN_LIMIT?"
    assert warning in server.errors


def test_memcacheds_file_is_converted(ours, tmp_path):
    path, converted = tmp_path / "memcached.conf", tmp_path / "glimmer.toml"
    path.write_text("# A comment.\n-d\nlogfile /var/log/memcached.log\n-m 64\n-p 11211\n-u memcache\n-l 127.0.0.1\n")
    conversion = run("config", "from-memcached", path)
    assert conversion.returncode == 0, conversion.stderr
    assert conversion.stdout.startswith("# A comment.\ndaemon = true\n# logfile ")
    converted.write_text(conversion.stdout)
    assert run("config", "check", converted).returncode == 0


def test_memory_is_a_share_of_what_there_is(ours):
    with open("/proc/meminfo") as meminfo:
        machine = int(meminfo.readline().split()[1]) << 10
    printed = run("serve", "-m", "101%")
    assert printed.returncode == 64 and "1% to 100%" in printed.stderr
    with Server("-m", "1%") as server:
        # A control group may allow less.
        assert 1 << 20 <= int(server.stats("settings")["maxbytes"]) <= machine // 100


def test_more_than_the_machine_has_is_said(ours):
    with open("/proc/meminfo") as meminfo:
        machine = int(meminfo.readline().split()[1]) >> 10
    more = str(2 * machine)
    with Server("-m", more) as server:
        server.stop()
        warnings = server.errors
    assert f"-m {more} is more than the {machine} MiB of this machine" in warnings, warnings


# What `stats settings` says of each setting: its name there, and how it writes the value that `config print` shows.
YES_OR_NO = {"true": "yes", "false": "no"}.get
NO_OR_YES = {"true": "no", "false": "yes"}.get
SHOWN = {
    "port": ("tcpport", str),
    "udp-port": ("udpport", str),
    "unix-socket": ("domain_socket", str),
    "unix-mask": ("umask", str),
    "listen": ("inter", str),
    "conn-limit": ("maxconns", str),
    "listen-backlog": ("tcp_backlog", str),
    "max-reqs-per-event": ("reqs_per_event", str),
    "tcp-keepalive": ("glimmer_tcp_keepalive", str),
    "tcp-user-timeout": ("glimmer_tcp_user_timeout", str),
    "http": ("glimmer_http", str),
    "native-port": ("glimmer_native_port", str),
    "native-single-port": ("glimmer_native_single_port", YES_OR_NO),
    "native-check-keyhash": ("glimmer_native_check_keyhash", YES_OR_NO),
    "accelerate": ("glimmer_accelerate", str),
    "accelerate-policy": ("glimmer_accelerate_policy", str),
    "accelerate-slots": ("glimmer_accelerate_slots", str),
    "protocol": ("binding_protocol", {"auto": "auto-negotiate"}.get),
    "auth-file": ("auth_enabled_ascii", str),
    "users": ("glimmer_users", str),
    "address-connections": ("glimmer_address_connections", str),
    "address-requests": ("glimmer_address_requests", str),
    "address-bytes": ("glimmer_address_bytes", str),
    "enable-sasl": ("auth_enabled_sasl", YES_OR_NO),
    "enable-shutdown": ("shutdown_command", YES_OR_NO),
    "disable-cas": ("cas_enabled", NO_OR_YES),
    "disable-flush-all": ("flush_enabled", NO_OR_YES),
    "disable-dumping": ("dump_enabled", NO_OR_YES),
    "disable-watch": ("glimmer_disabled_commands", {"false": "debugtime,shutdown"}.get),
    "disable-commands": ("glimmer_disabled_commands", str),
    "detail-delimiter": ("stat_key_prefix", str),
    "prefix-delimiter": ("stat_key_prefix", str),
    "extended": ("idle_timeout", str),
    "enable-ssl": ("ssl_enabled", YES_OR_NO),
    "memory-limit": ("maxbytes", lambda mib: str(int(mib) << 20)),
    "disable-evictions": ("evictions", {"false": "on"}.get),
    "mode": ("glimmer_mode", str),
    "snapshot": ("glimmer_snapshot", str),
    "lock-memory": ("glimmer_lock_memory", YES_OR_NO),
    "memory-file": ("memory_file", str),
    "enable-largepages": ("glimmer_hugepages", {"false": "auto"}.get),
    "hugepages": ("glimmer_hugepages", str),
    "max-item-size": ("item_size_max", str),
    "item-size-hint": ("glimmer_item_size_hint", str),
    "table": ("glimmer_table", str),
    "evict": ("glimmer_evict", str),
    "evict-for": ("glimmer_evict_for", str),
    "lru-threshold": ("glimmer_lru_threshold", str),
    "threads": ("num_threads", str),
    "access": ("glimmer_access", str),
    "dispatch": ("glimmer_dispatch", str),
    "pin": ("glimmer_pin", YES_OR_NO),
    "busy-poll": ("glimmer_busy_poll", str),
    "slice-bytes": ("glimmer_slice_bytes", str),
    "verbose": ("verbosity", str),
}
# These are shown elsewhere, or say nothing about a server that runs.
NOT_SHOWN = {
    *("accelerate-from", "native-direction", "packet-transport"),
    *("dispatch-percentile", "dispatch-epoch-ms", "dispatch-alpha", "dispatch-batch", "dispatch-cost", "large-cores", "large-min"),
    *("slow-ms", "log-format", "daemon", "pidfile", "user", "enable-coredumps", "memory-file-discard"),
    *("slab-growth-factor", "slab-min-size"),
}


def test_a_setting_is_the_same_in_stats_settings(ours):
    """Every setting of the server is shown, or in the list of those that are not, and its value is the one that it has."""
    printed = {}
    for line in run("config", "print", "-t", 2).stdout.splitlines():
        name, given, value = line.removeprefix("# ").partition(" = ")
        printed[name] = value.split(" # ")[0].strip(' "') if given else None
    printed = {name: value for name, value in printed.items() if " " not in name and name}
    assert set(printed) == set(SHOWN) | NOT_SHOWN
    # The harness of the tests gives these itself.
    own = {"port", "listen", "udp-port", "threads"}
    with Server("-t", 2) as server:
        settings = server.stats("settings")
    page = (Path(__file__).parents[2] / "docs/statistics.md").read_text()
    assert [shown for shown in settings if shown.startswith("glimmer_") and f"`{shown}`" not in page] == []
    for name, (shown, written) in SHOWN.items():
        assert shown in settings, name
        if printed[name] is not None and name not in own:
            assert settings[shown] == written(printed[name]), name
