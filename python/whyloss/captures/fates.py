"""Loss processes fitted to the fates of packets by maximum likelihood, and the choice among them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, stats

from whyloss.stats import LEVEL, Proportion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Fates", "Process", "best", "bits", "candidates", "elliott", "gilbert", "gilbert_in_time", "independent"]

#: Fates are asked for no more than this many losses before a process with memory is tried.
FEW = 8
#: Processes whose criteria differ by no more cannot be told apart: that is "not worth more than a bare mention" (Kass &
#: Raftery 1995).
SAME = 2.0


@dataclass(frozen=True)
class Fates:
    """Which packets a channel took, in the order of their transmission."""

    lost: NDArray[np.bool_]
    #: Octets of each IP packet.
    octets: NDArray[np.int64]
    #: When the transmission of each was over.
    time_s: NDArray[np.float64]

    def __len__(self) -> int:
        """Packets."""
        return len(self.lost)

    @property
    def losses(self) -> int:
        """How many were lost."""
        return int(self.lost.sum())

    @property
    def runs(self) -> NDArray[np.int64]:
        """Lengths of the runs of losses."""
        return run_lengths(self.lost)


@dataclass(frozen=True)
class Process:
    """A loss process with its parameters."""

    #: ``none``, ``independent``, ``bits``, ``gilbert``, ``gilbert-in-time`` or ``gilbert-elliott``.
    kind: str
    log_likelihood: float
    #: Packets that it was fitted to.
    packets: int
    parameters: dict[str, float] = field(default_factory=dict)
    #: Of each parameter, at the level of :data:`whyloss.stats.LEVEL`.
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def drawn(self, seed: int = 1) -> Iterator[Process]:
        """The same process again and again, each time with parameters drawn from their intervals.

        Normal on the scale without bounds, one parameter at a time: what they have to do with each other is left out.
        """
        rng = np.random.default_rng(seed)
        width = float(stats.norm.ppf(0.5 + LEVEL / 2))
        while True:
            found = {}
            for name, value in self.parameters.items():
                low, high = self.intervals.get(name, (value, value))
                scale = _logit if low > 0 and high < 1 else np.log
                # What lies on a border has no scale without bounds.
                known = 0 < low < value < high and np.isfinite(scale([low, high])).all()
                if not known:
                    found[name] = value
                    continue
                ends, middle = scale([low, high]), float(scale([value])[0])
                x = middle + rng.standard_normal() * float(ends[1] - ends[0]) / (2 * width)
                found[name] = float(1 / (1 + math.exp(-x)) if scale is _logit else math.exp(x))
            yield replace(self, parameters=found)

    @property
    def bic(self) -> float:
        """Schwarz's criterion (1978): the smaller, the better."""
        return len(self.parameters) * math.log(max(self.packets, 1)) - 2 * self.log_likelihood


def run_lengths(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Lengths of the runs of true."""
    edges = np.diff(np.concatenate(([0], marked.astype(np.int8), [0])))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def candidates(fates: Fates) -> list[Process]:
    """All processes that were tried, the chosen one first, the others by Schwarz's criterion.

    Chosen is the one that is the simplest of those that cannot be told from the best.
    """
    if fates.losses == 0:
        return [Process("none", 0.0, len(fates))]
    found = [independent(fates)]
    if len(np.unique(fates.octets)) > 1:
        found.append(bits(fates))
    if fates.losses >= FEW and fates.losses < len(fates):
        found.append(gilbert(fates))
        found.append(gilbert_in_time(fates))
        found.append(elliott(fates))
    found = [process for process in found if math.isfinite(process.log_likelihood)]
    least = min(process.bic for process in found)
    # From the simplest to the most involved, as they were tried.
    chosen = next(process for process in found if process.bic <= least + SAME)
    return sorted(found, key=lambda it: (it is not chosen, it.bic))


def best(fates: Fates) -> Process:
    """The process that Schwarz's criterion prefers, as :func:`candidates` has it."""
    return candidates(fates)[0]


def independent(fates: Fates) -> Process:
    """Every packet is lost with the same probability."""
    count, n = fates.losses, len(fates)
    share = Proportion(count, n)
    return Process("independent", _binomial(count, n), n, {"loss": count / n}, {"loss": share.interval(LEVEL)})


def bits(fates: Fates) -> Process:
    """Every bit is in error with the same probability; a packet is lost if one of its bits is."""
    lengths, where = np.unique(fates.octets * 8, return_inverse=True)
    lost = np.bincount(where, weights=fates.lost)
    whole = np.bincount(where) - lost

    def log_likelihood(log_ber: float) -> float:
        log_whole = lengths * math.log1p(-math.exp(log_ber))
        return float(lost @ np.log(-np.expm1(log_whole)) + whole @ log_whole)

    found = optimize.minimize_scalar(lambda x: -log_likelihood(x), bounds=(-40, -2), method="bounded")
    most, least = -found.fun, -found.fun - stats.chi2.ppf(LEVEL, 1) / 2

    def reaches(x: float) -> float:
        return log_likelihood(x) - float(least)

    low = optimize.brentq(reaches, -60, found.x) if reaches(-60) < 0 else -math.inf
    high = optimize.brentq(reaches, found.x, -1e-3) if reaches(-1e-3) < 0 else 0.0
    ber = math.exp(found.x)
    return Process("bits", most, len(fates), {"ber": ber}, {"ber": (math.exp(low), math.exp(high))})


def gilbert(fates: Fates) -> Process:
    """A chain that steps with each packet; all is lost in its bad state, nothing in its good one (Gilbert 1960)."""
    before = np.append(False, fates.lost[:-1])
    stays = {
        "stay_good": ((~before & ~fates.lost).sum(), (~before).sum()),
        "stay_bad": ((before & fates.lost).sum(), before.sum()),
    }
    likely = sum(_binomial(int(count), int(n)) for count, n in stays.values())
    return Process(
        "gilbert",
        likely,
        len(fates),
        {name: float(count / max(n, 1)) for name, (count, n) in stays.items()},
        {name: Proportion(int(count), int(n)).interval(LEVEL) for name, (count, n) in stays.items()},
    )


def gilbert_in_time(fates: Fates) -> Process:
    """The same with a chain that moves in time, packets or not: the mean times in both states, in seconds."""
    gaps = np.maximum(np.diff(fates.time_s), 0.0)
    before, after = fates.lost[:-1], fates.lost[1:]

    def negative(x: NDArray[np.float64]) -> float:
        share, rate = 1 / (1 + math.exp(-x[0])), math.exp(x[1])
        to_bad = share + (before - share) * np.exp(-rate * gaps)
        likely = np.where(after, to_bad, 1 - to_bad)
        return -float(np.log(np.maximum(likely, 1e-300)).sum())

    share = fates.losses / len(fates)
    typical = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1e-3
    starts = [np.array([math.log(share / (1 - share)), math.log(scale / typical)]) for scale in (0.5, 0.02)]
    x, value = _search(negative, starts)

    def times(x: NDArray[np.float64]) -> dict[str, float]:
        share, rate = 1 / (1 + math.exp(-x[0])), math.exp(x[1])
        return {"good_s": 1 / (rate * share), "bad_s": 1 / (rate * (1 - share))}

    return Process("gilbert-in-time", -value, len(fates), times(x), _intervals(negative, x, times, math.exp, math.log))


def elliott(fates: Fates) -> Process:
    """A chain that steps with each packet, with a probability of loss in each of its states (Elliott 1963)."""
    where = np.flatnonzero(fates.lost)
    gaps = np.diff(np.concatenate(([-1], where))) - 1
    rest = len(fates) - 1 - int(where[-1])

    def negative(x: NDArray[np.float64]) -> float:
        good, bad, few, many = 1 / (1 + np.exp(-np.clip(x, -30, 30)))
        if few >= many:
            return float(1e12 * (1 + few - many))
        steps = np.array([[good, 1 - good], [1 - bad, bad]])
        whole, lost = steps * np.array([1 - few, 1 - many]), steps * np.array([few, many])
        powers = _powers(whole, np.append(gaps, rest))
        product, scale = _product(np.concatenate((powers[:-1] @ lost, powers[-1:])))
        likely = float(product[0].sum())
        return -(math.log(likely) + scale) if likely > 0 else 1e12

    share = fates.losses / len(fates)
    simple = gilbert(fates).parameters
    starts = [
        _logit([simple["stay_good"], simple["stay_bad"], share / 20, 0.95]),
        _logit([1 - share / 5, 0.9, share / 20, 0.5]),
        _logit([1 - share / 20, 0.97, share / 5, 0.3]),
    ]
    x, value = _search(negative, starts)
    names = ("stay_good", "stay_bad", "lost_good", "lost_bad")

    def shares(x: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(names, 1 / (1 + np.exp(-np.clip(x, -30, 30))), strict=True))

    back = _intervals(negative, x, shares, lambda y: 1 / (1 + math.exp(-y)), lambda p: math.log(p / (1 - p)))
    return Process("gilbert-elliott", -value, len(fates), {k: float(v) for k, v in shares(x).items()}, back)


def _binomial(count: int, n: int) -> float:
    """The logarithm of the likelihood of ``count`` in ``n``, at its greatest."""
    likely = 0.0
    for part in (count, n - count):
        likely += part * math.log(part / n) if part else 0.0
    return likely


def _logit(shares: Sequence[float]) -> NDArray[np.float64]:
    inside = np.clip(shares, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def _powers(matrix: NDArray[np.float64], exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Powers of a matrix of two rows with real eigenvalues, as one with positive elements has."""
    trace, determinant = np.trace(matrix), matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
    root = math.sqrt(max(trace * trace / 4 - determinant, 1e-300))
    first, second = trace / 2 + root, trace / 2 - root
    # Sylvester's formula.
    one = np.eye(2)
    left, right = (matrix - second * one) / (first - second), (matrix - first * one) / (second - first)
    signs = np.sign(second) ** exponents
    with np.errstate(divide="ignore"):
        big = np.exp(exponents * math.log(max(first, 1e-300)))
        small = signs * np.exp(exponents * math.log(max(abs(second), 1e-300)))
    return np.asarray(big[:, None, None] * left + small[:, None, None] * right)


def _product(matrices: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The product of matrices, and the logarithm of what was taken out of it."""
    scale = 0.0
    while len(matrices) > 1:
        if len(matrices) % 2:
            matrices = np.concatenate((matrices, np.eye(2)[None]))
        matrices = matrices[::2] @ matrices[1::2]
        most = np.maximum(matrices.max(axis=(1, 2)), 1e-300)
        matrices = matrices / most[:, None, None]
        scale += float(np.log(most).sum())
    return matrices[0], scale


def _search(
    negative: Callable[[NDArray[np.float64]], float], starts: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], float]:
    found = [
        optimize.minimize(negative, start, method="Nelder-Mead", options={"maxiter": 800, "xatol": 1e-4, "fatol": 1e-4})
        for start in starts
    ]
    least = min(found, key=lambda it: it.fun)
    return least.x, float(least.fun)


def _intervals(
    negative: Callable[[NDArray[np.float64]], float],
    x: NDArray[np.float64],
    values: Callable[[NDArray[np.float64]], dict[str, float]],
    inverse: Callable[[float], float],
    scale: Callable[[float], float],
) -> dict[str, tuple[float, float]]:
    """Wald's intervals on the scale on which values have no bounds, from the curvature of the likelihood."""
    step = 1e-3
    size = len(x)
    curvature = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            ei, ej = np.eye(size)[i] * step, np.eye(size)[j] * step
            corners = negative(x + ei + ej) - negative(x + ei - ej) - negative(x - ei + ej) + negative(x - ei - ej)
            curvature[i, j] = corners / (4 * step * step)
    covariance = np.linalg.pinv(curvature)
    at = values(x)
    width = float(stats.norm.ppf(0.5 + LEVEL / 2))
    intervals = {}
    for name, value in at.items():
        slope = np.array(
            [
                (scale(values(x + np.eye(size)[i] * step)[name]) - scale(values(x - np.eye(size)[i] * step)[name]))
                / (2 * step)
                for i in range(size)
            ]
        )
        half = width * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        half = min(half, 30.0)
        middle = scale(value)
        intervals[name] = (inverse(middle - half), inverse(middle + half))
    return intervals
