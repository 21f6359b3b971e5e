"""Figures of a single run: what they show is what the tables say, and what cannot be drawn is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image

import whyloss as wl
from conftest import WHYLOSS, Ended
from whyloss import Scenario, traces
from whyloss.traces import looks, marks, rungs, sequence
from whyloss.traces.draw_series import scale
from whyloss.traces.thin import thin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Ended]

SVG = "{http://www.w3.org/2000/svg}"
TEXT = """
[scenario]
seed = 5
[path]
rate = "2 Mbps"
delay = "20 ms"
queue = "12 pkt"
forward.channel.ber = 2e-6
[[flow]]
name = "%s"
size = "600 kB"
scheme = "checksum-ld"
"""


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A scenario whose losses have several causes and verdicts."""
    path = tmp_path / "lossy.toml"
    path.write_text(TEXT % "file")
    return path


@pytest.fixture
def run(lossy: Path) -> traces.Run:
    return traces.rerun(Scenario.load(lossy))


def groups(path: Path, *kinds: str) -> dict[str, int]:
    """The groups of marks of an SVG whose names begin with one of ``kinds``, and how many marks each has."""
    found = Counter[str]()
    for group in ET.parse(path).iter(f"{SVG}g"):
        name = group.get("id", "")
        if name.split("-")[0] in kinds:
            found[name] += sum(1 for _ in group.iter(f"{SVG}use"))
    return dict(found)


def fills(path: Path, name: str) -> set[str]:
    """Colours of the marks of a group, edges and faces."""
    group = next(group for group in ET.parse(path).iter(f"{SVG}g") if group.get("id") == name)
    styles = " ".join(mark.get("style", "") for mark in group.iter(f"{SVG}use"))
    return set(re.findall(r"#[0-9a-f]{6}", styles))


def test_every_loss_and_every_retransmission_has_its_mark(run: traces.Run, tmp_path: Path) -> None:
    picture = tmp_path / "sequence.svg"
    traces.draw_sequence(traces.time_sequence(run, "file"), picture)
    found = groups(picture, "lost", "resent")
    flow = run.flows.to_dicts()[0]
    assert sum(count for name, count in found.items() if name.startswith("resent-")) == flow["retransmissions"] > 10
    lost = run.rows("segments", pl.col("direction") == "forward", ~pl.col("fate").is_in(["arrived", "in-flight"]))
    by_cause = dict(lost.group_by("fate").len().iter_rows())
    assert len(by_cause) > 1
    for cause, count in by_cause.items():
        assert sum(n for name, n in found.items() if name.startswith(f"lost-{cause}-")) == count, cause
    # What the sender noticed has the verdict of the table, and each verdict a shape of its own.
    noticed = run.rows("losses").filter(pl.col("true_class").is_not_null())
    for cause, verdict, count in noticed.group_by("true_cause", "verdict").len().iter_rows():
        assert found[f"lost-{cause}-{verdict}"] >= count
    for name in found:
        cause = name.partition("-")[2].rpartition("-")[0]
        assert looks.colour(cause) in fills(picture, name), name
    assert len({shape for shape, _, _ in looks.SHAPES.values()}) == len(looks.SHAPES)


def test_a_retransmission_is_marked_with_the_loss_that_it_repairs(run: traces.Run) -> None:
    found = traces.time_sequence(run, "file").marks
    repaired = run.rows("losses").sort("at_ns").to_dicts()
    told = 0
    for mark in found:
        if mark.kind != "resent" or not mark.trigger:
            continue
        noticed = [row for row in repaired if row["offset"] == mark.offset and row["at_ns"] <= mark.at_ns]
        if noticed:
            told += 1
            assert (mark.cause, mark.verdict) == (noticed[-1]["true_cause"], noticed[-1]["verdict"])
    assert told > 10


def test_segments_and_acknowledgements_are_where_the_table_has_them(run: traces.Run) -> None:
    shown = traces.time_sequence(run, "file")
    assert len(shown.sent) == run.flows["data_segments_sent"][0]
    assert shown.sent[:, 2].max() == 600_000
    assert (np.diff(shown.acks[:, 1]) >= 0).all()
    assert (shown.acks[:, 2] > shown.acks[:, 1]).all()
    # Nothing is acknowledged before it was sent.
    for at, ack, _ in shown.acks:
        sent = shown.sent[shown.sent[:, 0] < at]
        assert ack <= (sent[:, 2].max() + 1 if len(sent) else 0)


def test_the_same_run_gives_the_same_bytes(lossy: Path, tmp_path: Path) -> None:
    def drawn(folder: Path) -> list[bytes]:
        folder.mkdir()
        own = traces.rerun(Scenario.load(lossy))
        paths = [folder / name for name in ("a.svg", "b.svg", "c.svg", "d.png")]
        traces.draw_series(traces.series(own), paths[0])
        traces.draw_sequence(traces.time_sequence(own, "file"), paths[1], 80)
        traces.draw_ladder(traces.ladder(own, "file", packets=40), paths[2])
        traces.draw_sequence(traces.time_sequence(own, "file"), paths[3])
        return [path.read_bytes() for path in paths]

    assert drawn(tmp_path / "one") == drawn(tmp_path / "two")


@pytest.mark.parametrize("width", [80.0, 160.0])
def test_pictures_have_the_width_that_was_asked_for(run: traces.Run, tmp_path: Path, width: float) -> None:
    shown = traces.series(run, what=list(traces.QUANTITIES))
    traces.draw_series(shown, tmp_path / "series.png", width)
    traces.draw_ladder(traces.ladder(run, "file", packets=60), tmp_path / "ladder.png", width)
    for name in ("series.png", "ladder.png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.width == pytest.approx(width / 25.4 * 160, abs=1)
            pixels = np.asarray(picture.convert("RGB"))
        # Nothing runs into the edges.
        assert (pixels[:, :2] == 255).all(), name
        assert (pixels[:, -1:] == 255).all(), name
    # The window's line crosses the picture from left to right, up to the words beside it.
    with Image.open(tmp_path / "series.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    blue = np.abs(pixels - [0x00, 0x72, 0xB2]).sum(axis=2) < 30
    assert blue.any(axis=0).mean() > (0.7 if width > 100 else 0.6)


def test_a_ladder_has_an_arrow_for_each_packet_and_a_cross_for_each_loss(run: traces.Run, tmp_path: Path) -> None:
    lost = next(mark for mark in traces.time_sequence(run, "file").marks if mark.kind == "lost")
    start = traces.Span(lost.at_ns - 20_000_000)
    shown = traces.ladder(run, "file", start, 60)
    picture = tmp_path / "ladder.svg"
    traces.draw_ladder(shown, picture)
    names = Counter(group.get("id", "").partition("-")[0] for group in ET.parse(picture).iter(f"{SVG}g"))
    paths = Counter(path.get("id", "").partition("-")[0] for path in ET.parse(picture).iter())
    assert max(names["arrow"], paths["arrow"]) == 60
    rows = run.rows("segments", pl.col("sent_at_ns") >= start.start_ns).head(60)
    dropped = rows.filter(~pl.col("fate").is_in(["arrived", "in-flight"]))
    crosses = groups(picture, "cross")
    assert crosses == dict(dropped.select("cross-" + pl.col("fate")).to_series().value_counts().iter_rows())
    assert sum(groups(picture, "resent").values()) == rows["retransmission"].sum()


def test_a_ladder_that_nobody_could_read_is_refused(run: traces.Run) -> None:
    with pytest.raises(traces.TraceError, match=r"holds 80 at most; narrow it with --from and --to .* --packets 80"):
        traces.ladder(run, "file")


def test_labels_of_a_ladder_never_cover_each_other(run: traces.Run) -> None:
    laid = rungs.rungs(traces.ladder(run, "file", packets=80), 3.4)
    for forward in (True, False):
        places = [label.place for label in laid.labels if label.forward == forward]
        assert (np.diff(places) >= 3.4 - 1e-9).all()
        assert min(places) >= 0
    wanted = [5.0, 5.0, 5.0, 20.0]
    assert rungs.spread(wanted, 2.0) == [3.0, 5.0, 7.0, 20.0]


def test_more_marks_than_a_figure_holds_are_refused(run: traces.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_MARKS", 5)
    with pytest.raises(traces.TraceError, match=r"a figure holds 5 at most; choose a shorter one with --from and --to"):
        traces.time_sequence(run, "file")


def test_segments_are_thinned_and_marks_are_not(run: traces.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    every = traces.time_sequence(run, "file")
    monkeypatch.setattr(sequence, "MOST_DRAWN", 100)
    thinned = traces.time_sequence(run, "file")
    assert len(thinned.sent) <= 100 < len(every.sent)
    assert thinned.every == -(-len(every.sent) // 100)
    assert thinned.marks == every.marks


def test_thinning_keeps_peaks() -> None:
    x = np.arange(10_000.0)
    y = np.zeros(10_000)
    y[[17, 5003]] = [9.0, -9.0]
    kept, values = thin(x, y, 200)
    assert len(kept) <= 200
    assert {17.0, 5003.0} <= set(kept)
    assert (values.max(), values.min()) == (9.0, -9.0)


def test_a_folder_and_a_scenario_show_the_same_run(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    kept = ["--set", "output.segments={}", "--set", "output.sample='10 ms'"]
    assert whyloss("run", lossy, *kept, "--out", tmp_path / "kept").status == 0
    for kind in ("series", "sequence", "ladder"):
        span = ["--from", "500 ms", "--to", "0.7", *(["--what", "cwnd,goodput"] if kind == "series" else [])]
        told = [
            whyloss("plot", source, "--as", kind, *span, "-o", tmp_path / "x.svg", "--json")
            for source in (lossy, tmp_path / "kept")
        ]
        assert [one.status for one in told] == [0, 0], told
        own, other = (one.json for one in told)
        assert own == {**other, "run": "lossy", "losses": [{**other["losses"][0], "run": "lossy"}]}


def test_series_show_the_flows_that_are_asked_for(whyloss: Call, tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    text = TEXT % "one" + '[[flow]]\nname = "two"\nsize = "100 kB"\n'
    path.write_text(text)
    both = whyloss("plot", path, "--what", "cwnd", "--json")
    assert both.json["lines"] == ["one: congestion window", "two: congestion window"]
    assert both.json["file"] == "out/two/series.svg"
    assert (tmp_path / "out" / "two" / "series.svg").is_file()
    lines = traces.series(traces.rerun(Scenario.load(path))).panels[0].lines
    assert {line.quantity for line in lines} == {"cwnd"}
    assert whyloss("plot", path, "--what", "cwnd", "--flow", "1", "--json").json["lines"] == ["congestion window"]
    many = tmp_path / "many.toml"
    many.write_text(TEXT % "one" + "count = 8\n")
    refused = whyloss("plot", many)
    assert refused.status == 2
    assert "8 flows, and a figure shows 6 at most; choose with --flow" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: there is no such file"),
        (["."], "holds no runs.parquet; `whyloss run SCENARIO --out"),
        (["lossy.toml", "--flow", "1"], "--flow: found '1'; allowed: 0 to 0, or a name: file"),
        (["lossy.toml", "--flow", "99999999999999999999"], "allowed: 0 to 0, or a name: file"),
        (["lossy.toml", "--flow", "fi\x1b[31mle"], r"found 'fi\\x1b[31mle'"),
        (["lossy.toml", "--as", "ladder"], "a ladder diagram holds 80 at most"),
        (["lossy.toml", "--as", "pie"], "'pie' is not one of"),
        (["lossy.toml", "--what", "cwnd,rtt"], "--what: found 'rtt'; allowed: cwnd, ssthresh"),
        (["lossy.toml", "--what", ""], "--what: found ''"),
        (["lossy.toml", "--what", "cwnd", "--as", "ladder"], "goes with --as series only"),
        (["lossy.toml", "--packets", "9"], "goes with --as ladder only"),
        (["lossy.toml", "--from", "soon"], "'soon' is no time; allowed: seconds"),
        (["lossy.toml", "--from", "nan"], "'nan' is no time"),
        (["lossy.toml", "--from", "999999999999 min"], "is too long"),
        (["lossy.toml", "--from", "2", "--to", "1"], "found 1 s; allowed: later than 2 s"),
        (["lossy.toml", "--from", "5000"], "--from: found 5000 s; the run ended at"),
        (["lossy.toml", "-o", "picture.gif"], "ends in .svg, .png, .pdf or .html"),
        (["lossy.toml", "-o", "picture.html", "--as", "ladder"], "a ladder diagram is a picture"),
        (["lossy.toml", "--scheme", "cubik"], "there is no scheme `cubik` (did you mean `cubic`?)"),
        (["lossy.toml", "--scheme", "cubic", "--scheme", "cubic"], "'cubic' is named twice"),
        (["lossy.toml", "--scheme", "cubic", "--scheme", "sack", "--as", "sequence"], "one run goes with --as"),
        ([], "name a scenario file, or say what the link is like with --rate"),
        (["--loss", "1%", "--damaged", "1%"], "allowed: one of them"),
        (["--rate", "fast"], "--rate: found"),
        (["--burst", "4"], "without --loss or --damaged"),
        (["lossy.toml", "--width", "20"], "--width"),
        (["lossy.toml", "--set", "path.rte=1 Mbps"], "did you mean `rate`?"),
        (["lossy.toml", "--set", "output.segments={at_most=0}", "--as", "ladder"], "output.segments.at_most"),
        (["lossy.toml", "--set", "output.segments={from='2 s',until='1 s'}"], "output.segments.until"),
    ],
)
def test_bad_input_is_one_message_and_status_2(whyloss: Call, lossy: Path, arguments: list[str], message: str) -> None:
    done = whyloss("plot", *arguments, cwd=lossy.parent)
    assert (done.status, done.out) == (2, ""), done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err
    assert len(re.findall(r"^error: |^Error: ", done.err, re.M)) == 1


def test_a_report_of_a_run_is_one_file(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    done = whyloss("report", lossy)
    assert (done.status, done.out) == (0, "out/lossy/report.html\n"), done.err
    assert (tmp_path / "out" / "lossy" / "report.html").read_text(encoding="utf-8").count("data-figure=") == 2
    assert whyloss("run", lossy, "--out", "kept").status == 0
    done = whyloss("report", "kept")
    assert (done.status, done.out) == (0, "kept/report.html\n"), done.err
    assert "output.segments = {}" in (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_what_is_needed_says_which_setting_fills_it(whyloss: Call, lossy: Path) -> None:
    assert whyloss("run", lossy, "--out", "bare").status == 0
    for arguments, setting in (
        (["--as", "sequence"], "output.segments = {}"),
        (["--as", "ladder"], "output.segments = {}"),
        (["--what", "throughput"], "output.segments = {}"),
        ([], 'output.sample = "10 ms"'),
    ):
        done = whyloss("plot", "bare", *arguments)
        assert done.status == 2
        assert setting in done.err
    for option in (["--set", "path.rate=1 Mbps"], ["--run", "3"]):
        assert "goes with a scenario" in whyloss("plot", "bare", *option).err
    (lossy.parent / "bare" / "SHA256SUMS").unlink()
    pl.DataFrame({"a": [1]}).write_parquet(lossy.parent / "bare" / "runs.parquet")
    assert "not a table of runs: it has no column" in whyloss("plot", "bare").err
    (lossy.parent / "bare" / "runs.parquet").write_bytes(b"PAR1 and nothing")
    broken = whyloss("plot", "bare")
    assert broken.status == 2
    assert "not a whole table" in broken.err


def test_a_folder_of_many_runs_is_refused(lossy: Path, tmp_path: Path) -> None:
    results = Scenario.load(lossy).run()
    results.save(tmp_path / "many")
    runs = pl.read_parquet(tmp_path / "many" / "runs.parquet")
    (tmp_path / "many" / "SHA256SUMS").unlink()
    pl.concat([runs, runs]).write_parquet(tmp_path / "many" / "runs.parquet")
    with pytest.raises(traces.TraceError, match="holds 2 runs, and a figure shows one"):
        traces.open_run(tmp_path / "many")


def test_names_cannot_break_terminal_or_picture(whyloss: Call, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(TEXT % r"a\u001b[31m$x^2$\u0007<b>&amp;é")
    for kind in ("series", "sequence", "ladder"):
        drawn = whyloss("plot", path, "--as", kind, "--to", "0.2", "-o", f"{kind}.svg")
        assert drawn.status == 0, drawn.err
        assert "\x1b" not in drawn.out + drawn.err
        text = (tmp_path / f"{kind}.svg").read_text(encoding="utf-8")
        ET.fromstring(text)
        assert "\x1b" not in text
        assert "\x07" not in text


def test_a_latin_1_locale_is_enough(lossy: Path, tmp_path: Path) -> None:
    lossy.write_text(TEXT % "Übertragung→", encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    for arguments, status in ((["-o", "ok.svg"], 0), (["--flow", "no"], 2), (["--as", "sequence", "--json"], 0)):
        done = subprocess.run(
            [WHYLOSS, "plot", lossy, *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert b"Traceback" not in done.stderr


def test_every_noticed_loss_is_marked_and_every_timeout_has_its_bar(lossy: Path, tmp_path: Path) -> None:
    own = traces.rerun(Scenario.load(lossy).replace({"flow[0].scheme": "newreno", "path.forward.channel.ber": 1e-5}))
    traces.draw_series(traces.series(own), tmp_path / "all.svg")
    found = groups(tmp_path / "all.svg", "decision")
    rows = own.rows("losses").group_by("judgement", "true_cause", "verdict").len().iter_rows()
    assert found == {f"decision-{did}-{cause}-{verdict}": count for did, cause, verdict, count in rows}
    timeouts = own.rows("timeouts")
    bars = [path for path in ET.parse(tmp_path / "all.svg").iter() if path.get("id", "").startswith("timeout-")]
    assert len(bars) == len(timeouts) > 3
    # A bar is as wide as the timer ran.
    for bar, row in zip(traces.series(own).panels[0].expiries, timeouts.sort("at_ns").to_dicts(), strict=True):
        assert bar.at - bar.began == pytest.approx(row["rto_ns"] / 1e9)
    rtt = next(panel for panel in traces.series(own).panels if panel.kind == "rtt").lines[0].y
    # Propagation takes 40 ms, a full queue of 12 packets at 2 Mbps and the packet itself 78 ms more.
    assert np.nanmin(rtt) >= 40
    assert np.nanmax(rtt) <= 40 + 13 * 1500 * 8 / 2e3 + 60


def test_several_runs_over_each_other(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    link = ["--rate", "4Mbps", "--delay", "10ms", "--loss", "2%", "--set", "scenario.duration=8 s"]
    done = whyloss("plot", *link, "--scheme", "cubic", "--scheme", "lda-eq", "-o", "two.svg", "--json")
    assert done.status == 0, done.err
    assert done.json["lines"].count("congestion window") == 2
    cubic, other = done.json["losses"]
    assert (cubic["run"], other["run"]) == ("cubic", "lda-eq")
    assert cubic["taken_for_congestion"] == cubic["corruption"] > 10
    assert other["taken_for_congestion"] < 0.5 * other["corruption"]
    one = Scenario.load(lossy)
    shown = whyloss_plot(one, tmp_path)
    assert [panel.title for panel in shown.panels if panel.kind == "window"] == ["one", "two"]
    assert {line.short for panel in shown.panels if panel.kind == "rate" for line in panel.lines} == {"one", "two"}
    tops = {scale(panel, shown) for panel in shown.panels if panel.kind == "window"}
    assert len(tops) == 1


def whyloss_plot(scenario: Scenario, folder: Path) -> traces.Series:
    """Two runs over each other, one of them from a folder."""
    sampled = scenario.replace({"output.sample": "10 ms"})
    sampled.run(1).save(folder / "kept")
    picture = wl.plot({"one": sampled.run(), "two": folder / "kept"})
    assert picture.save(folder / "both.pdf").read_bytes().startswith(b"%PDF")
    return picture.series


def test_results_draw_themselves(lossy: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(lossy)
    with pytest.raises(wl.InputError, match=r"output\.sample"):
        scenario.run().plot()
    picture = scenario.replace({"output.sample": "10 ms"}).run().plot(["cwnd", "srtt"])
    assert picture._repr_png_().startswith(b"\x89PNG")
    page = picture.save(tmp_path / "run.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    figure = json.loads(found[1])[0]
    assert {trace["name"] for trace in figure["traces"]} >= {"congestion window", "smoothed round-trip time"}
    assert "http://" not in page.partition("<script>")[0]
    with pytest.raises(wl.InputError, match=r"allowed: a name that ends in \.svg"):
        picture.save(tmp_path / "run.gif")


def test_a_pdf_has_no_date(lossy: Path, tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf"):
        wl.plot(lossy).save(tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
