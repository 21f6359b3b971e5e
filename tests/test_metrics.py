"""Metrics of flows against numbers worked out by hand."""

import math

import polars as pl
import pytest

import whyloss as wl
from whyloss import metrics

SECOND = metrics.SECOND_NS


def transfers(*rates: float, scheme: str = "newreno", run: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"run": run, "scheme": scheme, "goodput_bps": list(rates)}, strict=False)


def samples(*octets: int, sent: tuple[int, ...] = (), flow: str = "a", every: int = SECOND) -> pl.DataFrame:
    """A counter at 0, `every`, ..."""
    sent = sent or octets
    at = [slot * every for slot in range(len(octets))]
    table = {"run": 0, "flow": flow, "at_ns": at, "octets_delivered": list(octets), "data_octets_sent": list(sent)}
    return pl.DataFrame(table, strict=False).with_columns(pl.col("at_ns", "octets_delivered").cast(pl.UInt64))


def only(frame: pl.DataFrame, column: str) -> float:
    value: float = frame[column].item()
    return value


def test_goodputs_add_up() -> None:
    table = pl.concat([transfers(1.0, 2.0), transfers(3.0, scheme="gaimd"), transfers(5.0, run=1)])
    assert metrics.goodput(table)["goodput_bps"].to_list() == [2.0, 5.0]
    assert metrics.system_goodput(table).rows() == [(0, 6.0), (1, 5.0)]
    assert metrics.protocol_goodput(table).rows() == [(0, "newreno", 3.0), (0, "gaimd", 3.0), (1, "newreno", 5.0)]
    assert only(metrics.system_goodput(table, by=[]), "system_goodput_bps") == 11.0


def test_fairness_is_jains_index() -> None:
    # (1 + 1 + 2)^2 / (3 (1 + 1 + 4)) = 16/18.
    assert metrics.fairness_of([1, 1, 2]) == pytest.approx(16 / 18)
    assert only(metrics.fairness(transfers(1.0, 1.0, 2.0)), "fairness") == pytest.approx(16 / 18)
    assert metrics.fairness_of([3.0] * 7) == pytest.approx(1.0)
    assert metrics.fairness_of([0.0, 0.0, 0.0, 9.0]) == pytest.approx(1 / 4)
    assert math.isnan(metrics.fairness_of([0.0, 0.0]))
    assert metrics.fairness(transfers(0.0, 0.0))["fairness"].to_list() == [None]


def test_main_traffic_is_compared_with_cross_traffic() -> None:
    table = transfers(2.0, 2.0, 1.0, 3.0).with_columns(entry=pl.Series([0, 0, 1, 1]))
    assert only(metrics.atgr(table, main=pl.col("entry") == 0), "atgr") == 1.0
    # (2 + 2 + 1) / 3 over 3.
    assert only(metrics.atgr(table, main=pl.col("goodput_bps") < 3), "atgr") == pytest.approx(5 / 9)
    only_some = metrics.atgr(table, main=pl.col("entry") == 0, cross=pl.col("goodput_bps") == 3)
    assert only(only_some, "atgr") == pytest.approx(2 / 3)
    assert metrics.atgr(table, main=pl.col("entry") == 5)["atgr"].to_list() == [None]
    assert metrics.atgr(table, main=pl.col("entry") < 5)["atgr"].to_list() == [None], "no cross traffic"
    marked = table.with_columns(traffic=pl.Series(["main", "main", "cross", None]))
    assert only(metrics.atgr(marked), "atgr") == 2.0, "what is on neither side does not count"
    assert only(metrics.atgr(marked, main=pl.col("traffic") == "cross"), "atgr") == pytest.approx(3 / 7)


def test_successes_of_players_are_pooled() -> None:
    played = {"playback_slots": [60, 40, None], "playback_met": [30, 40, None], "playback_met_buffered": [45, 40, None]}
    table = transfers(1.0, 1.0, 1.0).with_columns(**{name: pl.Series(values) for name, values in played.items()})
    assert only(metrics.application_success(table), "application_success") == 70.0
    assert only(metrics.application_success(table, buffered=True), "application_success") == 85.0
    assert metrics.application_success(table[2:])["application_success"].to_list() == [None]


def test_success_at_any_share_counts_slots_strictly() -> None:
    # Slots of 112,500, 112,501, 125,000 and 0 octets at 1 Mbit/s: 125,000 octets a second.
    table = samples(0, 112_500, 225_001, 350_001, 350_001)

    def success(enough: float, **more: object) -> float:
        frame = metrics.application_success_at(table, 1e6, enough, **more)  # type: ignore[arg-type]
        return only(frame, "application_success")

    assert success(0.9) == 50.0
    assert success(0.5) == 75.0
    assert success(1.0) == 0.0
    # In slots of two seconds: 225,001 and 125,000 of 250,000.
    assert success(0.9, slot_ns=2 * SECOND) == 50.0


def test_what_is_too_much_waits_as_far_as_there_is_room() -> None:
    # 375,000 at once: 125,000 are played, 125,000 wait, 125,000 are lost.
    table = samples(0, 375_000, 375_000, 375_000)
    printed = metrics.application_success_at(table, 1e6, 0.9)
    buffered = metrics.application_success_at(table, 1e6, 0.9, buffer_octets=125_000)
    roomy = metrics.application_success_at(table, 1e6, 0.9, buffer_octets=1_000_000)
    found = [only(frame, "application_success") for frame in (printed, buffered, roomy)]
    assert found == pytest.approx([100 / 3, 200 / 3, 100.0])


def test_a_flow_has_slots_from_its_start_on() -> None:
    table = samples(0, 0, 125_000, 250_000)
    flows = pl.DataFrame({"run": 0, "flow": "a", "start_ns": 500_000_000}, strict=False)
    assert only(metrics.application_success_at(table, 1e6, 0.9), "application_success") == pytest.approx(200 / 3)
    late = metrics.application_success_at(table, 1e6, 0.9, flows=flows)
    assert only(late, "application_success") == 100.0


def test_sending_rate_is_what_was_sent_in_each_bin() -> None:
    table = samples(0, 10, 20, 30, sent=(0, 1000, 3000, 3000), every=SECOND // 2)
    halves = metrics.sending_rate(table, SECOND // 2)
    assert halves["sending_rate_bps"].to_list() == pytest.approx([16_000.0, 32_000.0, 0.0])
    whole = metrics.sending_rate(table)
    assert whole["at_ns"].to_list() == [0]
    assert only(whole, "sending_rate_bps") == pytest.approx(24_000.0)


def test_smoothness_is_the_coefficient_of_variation() -> None:
    # Rates 1, 3: mean 2, standard deviation 1.
    table = pl.concat(
        [samples(0, 125, 500, 625, 1000), samples(0, 10, 20, 30, 40, flow="b"), samples(0, 0, 0, flow="c")]
    )
    assert metrics.smoothness(table)["smoothness"].to_list() == [0.5, 0.0, None]
    # Over two seconds at a time nothing of it is left.
    assert metrics.smoothness(table.filter(flow="a"), 2 * SECOND)["smoothness"].to_list() == [0.0]
    first = metrics.smoothness(table.filter(flow="a"), since_ns=SECOND, until_ns=3 * SECOND)
    assert only(first, "smoothness") == pytest.approx(0.5), "3 and 1"


def test_a_flow_is_judged_from_its_start_to_its_finish() -> None:
    # Rates 0, 1, 3, 0, of which the first and the last are not its own.
    table = samples(0, 0, 125, 500, 500)
    for start, finish, found in [
        (0.0, None, 1.5**0.5),
        (0.5, 3.2, 0.5),
        (1.0, 3.0, 0.5),
        (1.0, None, 14**0.5 / 4),
        (1.0, 2.9, None),
    ]:
        flow = {"run": 0, "flow": "a", "start_ns": int(start * SECOND)}
        finished = None if finish is None else int(finish * SECOND)
        flows = pl.DataFrame(flow, strict=False).with_columns(pl.lit(finished, pl.UInt64).alias("finished_ns"))
        value = metrics.smoothness(table, flows=flows)["smoothness"].to_list()
        assert value == [None if found is None else pytest.approx(found)]


def test_bins_without_samples_are_refused() -> None:
    table = samples(0, 1, 2, 3, every=SECOND)
    with pytest.raises(ValueError, match=r"`output\.sample` has to divide"):
        metrics.sending_rate(table, SECOND // 2)
    with pytest.raises(ValueError, match=r"`output\.sample` has to divide"):
        metrics.sending_rate(samples(0, 1, 2, every=3 * SECOND // 4), SECOND)


def test_tables_of_a_run_agree_with_its_columns() -> None:
    path = {"rate": "4 Mbps", "delay": "20 ms", "queue": "30 pkt", "forward": {"channel": {"loss": "3 %"}}}
    played = {"stream": {"rate": "1 Mbps"}, "playback": {"enough": "90 %"}}
    scenario = wl.Scenario(
        {
            # It does not end with a bin: a bin that does has no sample at its end.
            "scenario": {"duration": "40.3 s"},
            "output": {"sample": "100 ms", "smoothness": {"bin": "500 ms", "from": "2 s"}},
            "path": path,
            "flow": [
                {
                    "scheme": "newreno",
                    "count": 3,
                    "start_spread": "5 s",
                    "traffic": "main",
                    **played,
                },
                {"scheme": "cubic", "traffic": "cross", **played},
                # One that is over before the run, which goes on for the other.
                {"scheme": "cubic", "size": "2 MB"},
                {"scheme": "vegas", "size": "100 MB"},
                {"cbr": {"rate": "100 kbps", "packet": "500 B"}, "traffic": "cross"},
                {"scheme": "tfrc", "traffic": "cross"},
            ],
        }
    )
    results = scenario.run()
    table = results.transfers.to_polars()
    run = results.runs.to_polars()
    controlled = table.filter(pl.col("scheme") != "cbr")
    assert run["system_goodput_bps"].to_list() == pytest.approx(
        metrics.system_goodput(controlled)["system_goodput_bps"].to_list()
    )
    assert run["fairness"].to_list() == pytest.approx([metrics.fairness_of(controlled["goodput_bps"])])
    ratio = metrics.atgr(table)["atgr"].to_list()
    assert run["atgr"].to_list() == pytest.approx(ratio)
    others = metrics.atgr(table, main=pl.col("traffic") == "main")["atgr"].to_list()
    assert ratio != pytest.approx(others), "what is on neither side would change it"

    protocols = results.protocols.to_polars()
    assert protocols.select("scheme", "transfers").rows() == [
        ("newreno", 3),
        ("cubic", 2),
        ("vegas", 1),
        ("cbr", 1),
        ("tfrc", 1),
    ]
    by = ["run", "scheme"]
    for column, value in [
        ("protocol_goodput_bps", metrics.protocol_goodput(table)["protocol_goodput_bps"]),
        ("mean_goodput_bps", metrics.goodput(table, by)["goodput_bps"]),
        ("fairness", metrics.fairness(table, by)["fairness"]),
    ]:
        assert protocols[column].to_list() == pytest.approx(value.to_list()), column
    assert protocols["fairness"][1] < 1, "the two are not equal"

    flows = results.flows.to_polars()
    found = metrics.smoothness(results.samples, SECOND // 2, since_ns=2 * SECOND, flows=flows)
    told = dict(flows.select("flow", "smoothness").rows())
    assert told.pop("flow4") is None, "plain datagrams have no samples"
    assert dict(found.select("flow", "smoothness").rows()) == pytest.approx(told)
    assert flows.filter(flow="flow2")["finished_ns"].item() < 39 * SECOND
    assert run["smoothness_bin_ns"].to_list() == [SECOND // 2]
    assert found["smoothness"].is_between(0.02, 2).all()
    counted = only(metrics.application_success(results.transfers), "application_success")
    sampled = only(
        metrics.application_success_at(results.samples, 1e6, 0.9, flows=flows.filter(pl.col("entry") < 2)),
        "application_success",
    )
    assert 0 < counted < 100
    assert sampled == pytest.approx(counted)
    rate = (
        metrics.sending_rate(results.samples)
        .group_by("flow", maintain_order=True)
        .agg(pl.col("sending_rate_bps").sum())
    )
    sent = flows.drop_nulls("data_octets_sent")["data_octets_sent"]
    assert (rate["sending_rate_bps"] / 8 <= sent).all()
