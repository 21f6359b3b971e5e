"""The tests of Garcia & Brunstrom's claims.

Every sample has one value a bit-error pattern, and the same pattern file served every scheme, bandwidth and delay at
its error rate: differences and ratios are paired. Thresholds that the paper leaves to words ("considerable",
"little") are constants here, chosen before anything was measured.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from whyloss.claims import Comparison, Region, Test, at_least, every, some
from whyloss.harm import harm
from whyloss.stats import Maximum, Mean, Sample, function_of_means, mean, proportion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyloss.measurements import Measurements

#: The panels that the paper prints: of one user at the two bandwidths that errors limit (Figures 4-7, 10), and of the
#: shared link (Figures 12-18).
ALONE = (
    ("1 Mbps", "10 ms"),
    ("1 Mbps", "50 ms"),
    ("384 kbps", "10 ms"),
    ("384 kbps", "50 ms"),
    ("384 kbps", "200 ms"),
)
FAIRNESS = (
    ("1 Mbps", "10 ms"),
    ("1 Mbps", "50 ms"),
    ("384 kbps", "10 ms"),
    ("384 kbps", "50 ms"),
    ("384 kbps", "200 ms"),
    ("64 kbps", "10 ms"),
    ("64 kbps", "50 ms"),
)
#: Bit error rates: where errors begin to matter, and the two lowest.
HARSH = 4.1e-6
NONE, MILD = 0.0, 1e-6

#: A gain is considerable from a quarter up; an effect is little within a tenth of the link.
CONSIDERABLE = 1.25
LITTLE = 0.10

#: Octets of data in a packet of 1500 with timestamps.
PAYLOAD = 1448

ABOVE_ZERO = Region(low=0.0)
BELOW_ZERO = Region(high=0.0)


def _kbps(rate: str) -> float:
    number, unit = rate.split()
    return float(number) * {"Mbps": 1000.0, "kbps": 1.0}[unit]


def _at(rate: str, delay: str, ber: float | None = None) -> str:
    return f"{rate}, {delay}" + ("" if ber is None else f", BER {ber:.2g}")


def _harsh(rates: list[float]) -> list[float]:
    return [ber for ber in rates if ber >= HARSH]


def _mild(rates: list[float]) -> list[float]:
    return [ber for ber in rates if ber <= MILD]


def _ratio(top: Sample, bottom: Sample) -> Mean:
    return function_of_means(lambda a, b: a / b, [top, bottom])


def gain_of_differentiation(data: Measurements) -> Test:
    """GB-1: more throughput wherever errors matter, and a relative gain that grows with them."""
    return every([*_gain_at_each_rate(data), *_gain_grows(data)])


def _gain_at_each_rate(data: Measurements) -> Iterator[Test]:
    for rate, delay in ALONE:
        for ber in _harsh(data.xs("ld", rate=rate, delay=delay)):
            ld, normal = (data.sample(series, ber, rate=rate, delay=delay) for series in ("ld", "normal"))
            yield Comparison(
                f"differentiating − normal: {_at(rate, delay, ber)}", mean(ld - normal), ABOVE_ZERO, "kbps"
            )


def _gain_grows(data: Measurements) -> Iterator[Test]:
    def growth(ld: float, normal: float, ld_before: float, normal_before: float) -> float:
        return ld / normal - ld_before / normal_before

    for rate, delay in ALONE:
        for before, ber in itertools.pairwise(data.xs("ld", rate=rate, delay=delay)):
            if ber >= HARSH:
                points = itertools.product((ber, before), ("ld", "normal"))
                samples = [data.sample(series, x, rate=rate, delay=delay) for x, series in points]
                what = f"growth of differentiating / normal from BER {before:.2g}: {_at(rate, delay, ber)}"
                yield Comparison(what, function_of_means(growth, samples), ABOVE_ZERO)


def sensitivity_of_normal_flow(data: Measurements) -> Test:
    """GB-2: what errors leave of the error-free throughput shrinks with bandwidth and, less so, with delay."""
    ber = data.nearest("normal", 8.3e-6, rate="384 kbps", delay="10 ms")

    def both(rate: str, delay: str) -> list[Sample]:
        return [data.sample("normal", x, rate=rate, delay=delay) for x in (ber, NONE)]

    def fall(harsh: float, clean: float, harsh_more: float, clean_more: float) -> float:
        return harsh / clean - harsh_more / clean_more

    def compare(less: tuple[str, str], more: tuple[str, str]) -> Comparison:
        what = f"share left at {_at(*less)} − at {_at(*more)}, BER {ber:.2g}"
        return Comparison(what, function_of_means(fall, [*both(*less), *both(*more)]), ABOVE_ZERO)

    def bandwidth_over_delay(*means: float) -> float:
        return fall(*means[:4]) - fall(*means[4:])

    by_rate = [
        compare((low, delay), (high, delay))
        for delay in ("10 ms", "50 ms")
        for low, high in (("64 kbps", "384 kbps"), ("384 kbps", "1 Mbps"))
    ]
    by_delay = [
        compare(("1 Mbps", "10 ms"), ("1 Mbps", "50 ms")),
        compare(("384 kbps", "10 ms"), ("384 kbps", "50 ms")),
        compare(("384 kbps", "50 ms"), ("384 kbps", "200 ms")),
    ]
    # Bandwidth times 16 against delay times 20.
    bandwidth = [*both("64 kbps", "10 ms"), *both("1 Mbps", "10 ms")]
    delay = [*both("384 kbps", "10 ms"), *both("384 kbps", "200 ms")]
    weight = Comparison(
        f"fall from 64 kbps to 1 Mbps at 10 ms − fall from 10 ms to 200 ms at 384 kbps, BER {ber:.2g}",
        function_of_means(bandwidth_over_delay, bandwidth + delay),
        ABOVE_ZERO,
    )
    return every([*by_rate, *by_delay, weight])


def no_congestion_loss(data: Measurements) -> Test:
    """GB-3: one flow never overflows 99 packets of buffer."""
    drops = np.concatenate([data.every_sample(series, "queue_drops") for series in ("normal", "ld")])
    share = proportion(int(np.count_nonzero(drops)), drops.size)
    return Comparison("share of runs with a packet lost to the buffer", share, Region(0.0, 0.01))


def small_buffer(data: Measurements) -> Test:
    """GB-4: a fifth of the buffer costs little, and the differentiating flow most."""
    rate, delay = "1 Mbps", "10 ms"
    link = _kbps(rate)
    names = {"normal": "normal-20", "ld": "ld-20", "multiple": "multiple-20"}
    little: list[Test] = []
    loss: dict[str, Sample] = {}
    for series, small in names.items():
        changes = []
        for ber in data.xs(small, rate=rate, delay=delay):
            change = (
                data.sample(small, ber, rate=rate, delay=delay) - data.sample(series, ber, rate=rate, delay=delay)
            ) / link
            changes.append(change)
            what = f"{series}: change by a buffer of 20 packets / link rate, BER {ber:.2g}"
            little.append(Comparison(what, mean(change), Region(-LITTLE, LITTLE)))
        loss[series] = -np.mean(changes, axis=0)
    somewhat = Comparison("differentiating: mean loss over all BER / link rate", mean(loss["ld"]), ABOVE_ZERO)
    most = Comparison(
        "loss of differentiating − loss of normal, mean over all BER / link rate",
        mean(loss["ld"] - loss["normal"]),
        ABOVE_ZERO,
    )
    return every([*little, somewhat, most])


def gain_of_multiple_connections(data: Measurements) -> Test:
    """GB-5: connections gain where errors limit one, less at 64 kbps; sometimes they beat one that differentiates."""
    gain, lesser, better = [], [], []
    for rate, delay in ALONE:
        for ber in data.xs("multiple", rate=rate, delay=delay):
            multiple, normal, ld = (
                data.sample(series, ber, rate=rate, delay=delay) for series in ("multiple", "normal", "ld")
            )
            at = _at(rate, delay, ber)
            better.append(Comparison(f"multiple − differentiating: {at}", mean(multiple - ld), ABOVE_ZERO, "kbps"))
            if ber < HARSH:
                continue
            gain.append(Comparison(f"multiple / normal: {at}", _ratio(multiple, normal), Region(low=CONSIDERABLE)))
            if delay == "200 ms":
                continue  # at 64 kbps the paper does not print it
            slow = [data.sample(series, ber, rate="64 kbps", delay=delay) for series in ("multiple", "normal")]
            estimate = function_of_means(lambda a, b, c, d: a / b - c / d, [multiple, normal, *slow])
            lesser.append(Comparison(f"gain there − gain at 64 kbps: {at}", estimate, ABOVE_ZERO))
    return every([*gain, *lesser, some(better)])


def early_lead_of_multiple_connections(data: Measurements) -> Test:
    """GB-6: at small error rates several connections beat one that differentiates, by more the longer the delay."""

    def lead(rate: str, delay: str, ber: float) -> Sample:
        multiple, ld = (data.sample(series, ber, rate=rate, delay=delay) for series in ("multiple", "ld"))
        return (multiple - ld) / _kbps(rate)

    tests = []
    for rate, delay in ALONE:
        for ber in _mild(data.xs("multiple", rate=rate, delay=delay)):
            what = f"(multiple − differentiating) / link rate: {_at(rate, delay, ber)}"
            tests.append(Comparison(what, mean(lead(rate, delay, ber)), ABOVE_ZERO))
    for (rate, short), (same, long) in itertools.pairwise(ALONE):
        if rate != same:
            continue
        for ber in _mild(data.xs("multiple", rate=rate, delay=long)):
            what = f"lead at {long} − lead at {short}: {rate}, BER {ber:.2g}"
            tests.append(Comparison(what, mean(lead(rate, long, ber) - lead(rate, short, ber)), ABOVE_ZERO))
    return every(tests)


def initial_window(data: Measurements) -> Test:
    """GB-7: a connection begins with two segments, n connections with 2n."""
    tests = []
    for series, connections in (("start-normal", 1), ("start-ld", 1), ("start-two", 2), ("start-five", 5)):
        octets = data.sample(series, NONE, "first_flight_octets", rate="1 Mbps", delay="200 ms")
        what = f"segments in the first flight of {connections} connection{'s' * (connections > 1)} ({series[6:]})"
        expected = Region(2.0 * connections, 2.0 * connections)
        tests.append(Comparison(what, mean(octets / PAYLOAD), expected, "segments"))
    return every(tests)


def who_gains_with_errors(data: Measurements) -> Test:
    """GB-8: on the shared 1 Mbps link normal flows fall with the error rate and the loss-differentiating flow rises."""
    cell = {"rate": "1 Mbps", "delay": "10 ms"}
    tests = []
    for series, name, expected in (
        ("single-vs-normal", "single normal flow", BELOW_ZERO),
        ("others-vs-normal", "four normal flows beside a normal flow", BELOW_ZERO),
        ("others-vs-ld", "four normal flows beside a loss-differentiating flow", BELOW_ZERO),
        ("single-vs-ld", "loss-differentiating flow", ABOVE_ZERO),
    ):
        rates = np.array(data.xs(series, **cell))
        samples = np.array([data.sample(series, ber, **cell) for ber in rates])
        centred = (rates - rates.mean()) * 1e6
        slope = centred @ samples / (centred @ centred)
        tests.append(Comparison(f"{name}: slope over the error rate", mean(slope), expected, "kbps per 1e-6"))
        tests.append(
            Comparison(f"{name}: at the highest error rate − at none", mean(samples[-1] - samples[0]), expected, "kbps")
        )
    return every(tests)


def cost_to_the_others(data: Measurements) -> Test:
    """GB-9: the differentiating flow takes up to 35 % from normal flows at 384 kbps and 10 ms, and less elsewhere."""

    def reduction(rate: str, delay: str) -> dict[float, list[Sample]]:
        rates = data.xs("others-vs-ld", rate=rate, delay=delay)
        pairs = ("others-vs-ld", "others-vs-normal")
        return {ber: [data.sample(series, ber, rate=rate, delay=delay) for series in pairs] for ber in rates}

    def average(*means: float) -> float:
        shares = [1 - with_ld / with_normal for with_ld, with_normal in zip(means[::2], means[1::2], strict=True)]
        return sum(shares) / len(shares)

    worst = reduction("384 kbps", "10 ms")
    estimates = {ber: harm(with_ld, with_normal) for ber, (with_ld, with_normal) in worst.items()}
    peak = max(estimates, key=lambda ber: estimates[ber].value)
    most = Comparison(
        f"largest share taken from the four normal flows: 384 kbps, 10 ms (at BER {peak:.2g})",
        Maximum(tuple(estimates.values())),
        Region(0.20, 0.50),
        asserted=True,
    )
    here = [sample for ber, pair in worst.items() if ber > 0 for sample in pair]
    elsewhere = []
    for rate, delay in FAIRNESS:
        if (rate, delay) == ("384 kbps", "10 ms"):
            continue
        there = [sample for ber, pair in reduction(rate, delay).items() if ber > 0 for sample in pair]
        split = len(here)

        def difference(*means: float, split: int = split) -> float:
            return average(*means[:split]) - average(*means[split:])

        what = f"share taken at 384 kbps, 10 ms − at {_at(rate, delay)}, mean over BER > 0"
        elsewhere.append(Comparison(what, function_of_means(difference, [*here, *there]), ABOVE_ZERO))
    return every([most, at_least(2, elsewhere)])


def loss_synchronisation(data: Measurements) -> Test:
    """GB-10: without errors two equal flows share an 8-packet buffer unequally; errors break the pattern."""
    cell = {"rate": "64 kbps", "delay": "50 ms"}
    link = _kbps("64 kbps")
    tests: list[Test] = []
    for ber in data.xs("single-vs-normal", **cell):
        difference = (
            data.sample("single-vs-normal", ber, **cell) - data.sample("others-vs-normal", ber, **cell)
        ) / link
        what = f"difference of the two flows / link rate, BER {ber:.2g}"
        estimate = mean(difference)
        if ber == NONE:
            apart = (Comparison(what, estimate, Region(low=LITTLE)), Comparison(what, estimate, Region(high=-LITTLE)))
            tests.append(some(apart))
        else:
            tests.append(Comparison(what, estimate, Region(-LITTLE, LITTLE)))
    return every(tests)


def precision_of_differentiation(data: Measurements) -> Test:
    """GB-11: hardly a corrupted packet is taken for congestion, and no congestion loss for corruption.

    What decides is the sender's verdict, to which the window responds. The paper's reasons are about the receiver, so
    what that can never see is shown beside it; that a packet which a queue dropped cannot reach it needs no test.
    """
    tests: list[Test] = []
    for series in ("ld", "ld-20", "single-vs-ld"):
        corrupted = data.every_sample(series, "corruption_losses")
        missed = data.every_sample(series, "corruption_as_congestion")
        if corrupted.sum() > 0:
            what = f"{series}: share of corrupted packets that count as congestion"
            share = _ratio(missed, corrupted)
            tests.append(Comparison(what, share, Region(0.0, 0.03), asserted=series == "ld"))
            what = f"{series}: share of corrupted packets that the receiver's connection never sees"
            unseen = _ratio(data.every_sample(series, "corruption_unseen"), corrupted)
            tests.append(Comparison(what, unseen, Region(0.0, 0.03), asserted=False))
    congestion = sum(
        float(data.every_sample(series, "congestion_losses").sum()) for series in ("ld-20", "single-vs-ld")
    )
    wrong = sum(
        float(data.every_sample(series, "congestion_as_corruption").sum()) for series in ("ld-20", "single-vs-ld")
    )
    never = Comparison(
        "congestion losses that count as corruption",
        Mean(wrong, 0.0, round(congestion)),
        Region(0.0, 0.0),
        counted="losses",
    )
    enough = Comparison(
        "share of congestion losses that count as corruption",
        proportion(round(wrong), round(congestion)),
        Region(0.0, 0.001),
        counted="losses",
    )
    return every([*tests, never, enough])


def unfairness_of_multiple_connections(data: Measurements) -> Test:
    """GB-12: a user with four connections gets far more than one with a single connection."""
    tests = []
    for rate, delay in FAIRNESS:
        if rate == "64 kbps":
            continue
        for ber in data.xs("others-vs-normal", rate=rate, delay=delay):
            four = data.sample("others-vs-normal", ber, rate=rate, delay=delay)
            one = data.sample("single-vs-normal", ber, rate=rate, delay=delay)
            tests.append(
                Comparison(f"four connections / one: {_at(rate, delay, ber)}", _ratio(four, one), Region(3.0, 5.0))
            )
    return every(tests)


# --- what the text says of behaviour: measured in each reading, judged by the reader ----------------------------------


def left_by_errors(data: Measurements) -> Iterator[Comparison]:
    """What the highest error rate leaves of the error-free throughput."""
    for rate, delay in (("1 Mbps", "10 ms"), ("384 kbps", "10 ms"), ("64 kbps", "10 ms")):
        for series, name in (("ld", "loss-differentiating flow"), ("normal", "normal flow")):
            xs = data.xs(series, rate=rate, delay=delay)
            harsh, clean = (data.sample(series, ber, rate=rate, delay=delay) for ber in (xs[-1], NONE))
            what = f"{name}: throughput at the highest BER / at none, {_at(rate, delay)}"
            yield Comparison(what, _ratio(harsh, clean), Region())


def relative_benefit(data: Measurements) -> Iterator[Comparison]:
    """What differentiation multiplies the throughput by, at each error rate."""
    rate, delay = "1 Mbps", "10 ms"
    for ber in data.xs("ld", rate=rate, delay=delay):
        ld, normal = (data.sample(series, ber, rate=rate, delay=delay) for series in ("ld", "normal"))
        yield Comparison(f"differentiating / normal: {_at(rate, delay, ber)}", _ratio(ld, normal), Region())


def overflows(data: Measurements) -> Iterator[Comparison]:
    """What a buffer of 20 packets loses where errors matter."""
    rate, delay = "1 Mbps", "10 ms"
    for series, name in (("ld-20", "loss-differentiating flow"), ("normal-20", "normal flow")):
        lost = [
            data.sample(series, ber, "queue_drops", rate=rate, delay=delay)
            for ber in _harsh(data.xs(series, rate=rate, delay=delay))
        ]
        what = f"{name}: packets lost to 20 packets of buffer, mean over BER from 4.2e-06, {_at(rate, delay)}"
        yield Comparison(what, mean(np.mean(lost, axis=0)), Region(), "packets")


def sum_of_rates(data: Measurements) -> Iterator[Comparison]:
    """What the rates of all flows on the shared link come to without errors."""
    rate, delay = "1 Mbps", "10 ms"
    for single, others in (("single-vs-normal", "others-vs-normal"), ("single-vs-ld", "others-vs-ld")):
        total = data.sample(single, NONE, rate=rate, delay=delay) + data.sample(others, NONE, rate=rate, delay=delay)
        what = f"{single.replace('-', ' ')}: rates of all five flows / link rate, {_at(rate, delay, NONE)}"
        yield Comparison(what, mean(total / _kbps(rate)), Region())
