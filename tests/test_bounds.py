"""What a scenario or sweep may cost, what is refused, and Ctrl-C wherever work goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import whyloss as wl
from conftest import WHYLOSS, Ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Ended]

PATH = {"rate": "1 Mbps", "delay": "10 ms"}


def scenario(flow: dict[str, object] | None = None, **more: object) -> wl.Scenario:
    return wl.Scenario({"path": PATH, "flow": [{"size": "1 kB", **(flow or {})}], **more})


@pytest.mark.parametrize(
    ("flow", "field"),
    [
        ({"count": 1_000_000_000}, "flow[0].count"),
        ({"striped": 1_000_000_000}, "flow[0].striped"),
        ({"striped": 2000, "count": 2000}, "flow[0].count"),
    ],
)
def test_connections_are_bounded_in_all(flow: dict[str, object], field: str) -> None:
    with pytest.raises(wl.InputError) as told:
        scenario(flow)
    for words in (field, "connections, of some 6 kB each", "allowed: 1000000 connections in all flows"):
        assert words in str(told.value)


def test_samples_are_bounded_before_and_during_a_run() -> None:
    with pytest.raises(wl.InputError, match=r"output\.sample: too often.*1 us or more"):
        scenario(output={"sample": "1 ns"})
    with pytest.raises(wl.InputError, match=r"output\.sample: that would be \d+ rows of samples"):
        scenario(output={"sample": "1 us"}, scenario={"duration": "1 h"})
    with pytest.raises(wl.InputError, match=r"output\.sample: that would be \d+ rows of samples"):
        scenario({"size": "1 GB"}, output={"sample": "2 us"}).run()


def test_runs_of_a_sweep_are_bounded_before_any_point_is_made() -> None:
    sweep = wl.Sweep(scenario(), runs=1000)
    for name in "abc":
        sweep = sweep.vary("scenario.seed", range(300), name=name)
    for many, found in (
        (sweep, "27000000 points of 1000 runs"),
        (wl.Sweep(scenario(), runs=4_000_000_000), "1 points of"),
    ):
        with pytest.raises(wl.InputError, match=f"too many runs.*{found}.*allowed: 1000000 runs"):
            many.run()


def test_a_sweep_needs_runs_and_values_and_steps_that_differ() -> None:
    with pytest.raises(wl.InputError, match="found 0; allowed: 1 or more"):
        wl.Sweep(scenario(), runs=0).run()
    with pytest.raises(wl.InputError, match="axis `rate`: an axis without values"):
        wl.Sweep(scenario()).vary("path.rate", []).run()
    with pytest.raises(wl.InputError, match=r"axis `rate`: two steps of one name.*1 Mbps"):
        wl.Sweep(scenario()).vary("path.rate", ["1 Mbps", "1 Mbps"]).run()


def test_two_variants_of_one_name_are_told_where_they_stand(whyloss: Call, small: Path) -> None:
    variants = '[[axis.variant]]\nname = "x"\n' * 2
    (small.parent / "s.toml").write_text(f'[sweep]\nbase = "small.toml"\n[[axis]]\nname = "a"\n{variants}')
    done = whyloss("sweep", "s.toml")
    assert done.status == 2
    assert "s.toml:3: axis[0]: two steps of one name" in done.err


@pytest.mark.parametrize("field", ["path.rte", "pth.rate", "output.smple"])
def test_a_misspelt_field_of_an_axis_is_told_where_it_stands(whyloss: Call, small: Path, field: str) -> None:
    (small.parent / "s.toml").write_text(f'[sweep]\nbase = "small.toml"\n[[axis]]\nfield = "{field}"\nvalues = [1]\n')
    done = whyloss("sweep", "s.toml")
    assert done.status == 2
    assert done.err.startswith("error: s.toml:5: ")
    assert "did you mean" in done.err


def test_a_list_with_too_many_values_is_refused() -> None:
    hosts = [{"name": "a"}, {"name": "b"}]
    with pytest.raises(wl.InputError, match=r"link\[0\]\.between: found 3 values; allowed: 2 values"):
        wl.Scenario({"host": hosts, "link": [{"rate": "1 Mbps", "between": ["a", "b", "c"]}]})
    with pytest.raises(wl.InputError, match=r"host\[1\]\.position: found 4 values; allowed: 2 values"):
        wl.Scenario({"host": [{"name": "a"}, {"name": "b", "position": ["1 m", "2 m", "3 m", "4 m"]}]})


def test_a_pattern_whose_ratio_is_false_is_refused(whyloss: Call, small: Path) -> None:
    text = "whyloss bit-error pattern 1\ntotal_bits 1000000\nber {}\nseed 0\ncount 2\n400\n500\n"
    for ber, status in (("0.000002", 0), ("0.001", 2), ("0", 2)):
        (small.parent / "p.bits").write_text(text.format(ber))
        done = whyloss("run", small, "--set", "path.forward.channel={pattern='p.bits'}", "--json")
        assert done.status == status, done.err
        assert status == 0 or "p.bits: its `ber` is not that of its positions" in done.err


def test_what_is_no_text_is_bad_input(whyloss: Call, tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'[scenario]\ndescription = "\xe9"\n')
    (tmp_path / "folder.toml").mkdir()
    for name, words in (("latin.toml", "no text in UTF-8"), ("folder.toml", "a folder")):
        done = whyloss("run", name)
        assert done.status == 2
        assert f"{name}: this is {words}" in " ".join(done.err.split())


def test_many_flows_of_a_dumbbell_are_read_in_time_that_grows_as_they_do() -> None:
    started = time.monotonic()
    bottleneck = {"rate": "1 Gbps", "delay": "1 ms"}
    wl.Scenario({"scenario": {"duration": "1 s"}, "dumbbell": {"bottleneck": bottleneck}, "flow": [{"count": 20_000}]})
    # Each flow looked through all links and hosts: a minute.
    assert time.monotonic() - started < 10


def test_ctrl_c_ends_what_comes_before_the_first_run(small: Path) -> None:
    steps = range(1, 101)
    fields = {
        "scenario.seed": list(steps),
        "path.delay": [f"{step} us" for step in steps],
        "path.queue": [f"{step} pkt" for step in steps],
    }
    axes = "".join(
        f'[[axis]]\nname = "{field}"\nfield = "{field}"\nvalues = {values}\n' for field, values in fields.items()
    )
    (small.parent / "s.toml").write_text(f'[sweep]\nbase = "small.toml"\n{axes}')
    process = subprocess.Popen(
        [WHYLOSS, "sweep", "s.toml"], cwd=small.parent, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "stopped" in err
