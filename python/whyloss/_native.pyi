"""The Rust extension module."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict, final, type_check_only

VERSION: str
ENGINE: str

@type_check_only
class Threshold(TypedDict):
    """A parameter that trades one accuracy of a differentiator for the other."""

    parameter: str
    larger: str
    cut: str

@type_check_only
class Description(TypedDict):
    """What a name means."""

    name: str
    kind: str
    summary: str
    reference: NotRequired[str]
    details: list[tuple[str, str]]
    notes: NotRequired[list[tuple[str, str]]]
    thresholds: NotRequired[list[Threshold]]

class WhylossError(Exception): ...
class InputError(WhylossError): ...
class UnavailableError(WhylossError): ...
class PartError(WhylossError): ...
class PanicException(BaseException): ...

@final
class Progress:
    def __new__(cls, done: int, total: int, found: int, elapsed_s: float) -> Self: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def found(self) -> int: ...
    @property
    def fraction(self) -> float: ...
    @property
    def elapsed_s(self) -> float: ...
    @property
    def left_s(self) -> float | None: ...
    @property
    def senders(self) -> list[tuple[str, int, int, int | None, int | None, int, int, int]]: ...
    @property
    def queues(self) -> list[tuple[int, int]]: ...
    @property
    def losses(self) -> list[tuple[str, int, str | None]]: ...

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def columns(self) -> list[str]: ...
    def digest(self) -> str: ...
    def __len__(self) -> int: ...

@final
class Results:
    def table(self, name: str) -> Table: ...
    def write_parquet(self, folder: Path, notes: list[tuple[str, str]]) -> None: ...

@final
class Explanation:
    @property
    def facts(self) -> str: ...
    def table(self, name: str) -> Table: ...

@final
class Details:
    @property
    def left_out(self) -> int: ...
    def table(self, name: str) -> Table: ...

def explanation_tables() -> list[str]: ...
def detail_tables() -> list[str]: ...
def in_time_order(paths: Sequence[Path]) -> list[Path]: ...
def explanation_judges() -> list[str]: ...
def explain(
    captures: Sequence[tuple[Path, str | None]],
    at: str | None = None,
    watcher: Callable[[int], bool] | None = None,
    judges: str | None = None,
    both_ends: bool = False,
) -> Explanation: ...
def explain_details(
    captures: Sequence[tuple[Path, str | None]],
    explanation: Explanation,
    connections: Sequence[int],
    watcher: Callable[[int], bool] | None = None,
) -> Details: ...
def explain_score(
    captures: Sequence[tuple[Path, str | None]],
    explanation: Explanation,
    watcher: Callable[[int], bool] | None = None,
) -> tuple[str, list[str]]: ...
def explain_annotate(
    captures: Sequence[tuple[Path, str | None]],
    explanation: Explanation,
    summary: str,
    out: Path,
    watcher: Callable[[int], bool] | None = None,
) -> int: ...
def capture_series(
    captures: Sequence[tuple[Path, str | None]], rows: int, watcher: Callable[[int], bool] | None = None
) -> tuple[Table, Table, int]: ...

#: A TCP transfer between two hosts that a scenario plans.
PlannedTransfer = TypedDict(
    "PlannedTransfer",
    {
        "name": str,
        "entry": int,
        "from": str,
        "to": str,
        "start_s": float,
        "octets": int | None,
        "connections": int,
        "chunk": int,
        "scheme": str,
        "tcp": dict[str, Any],
    },
)

@final
class Scenario:
    @staticmethod
    def load(path: Path) -> Scenario: ...
    @staticmethod
    def from_toml(text: str, origin: str) -> Scenario: ...
    @staticmethod
    def from_json(text: str, origin: str) -> Scenario: ...
    def with_values(self, values: list[tuple[str, str]]) -> Scenario: ...
    def with_arguments(self, arguments: list[str]) -> Scenario: ...
    def with_base(self, folder: Path) -> Scenario: ...
    @property
    def name(self) -> str: ...
    def to_json(self) -> str: ...
    def digest(self, run: int) -> str: ...
    def duration_s(self) -> float: ...
    def agenda(self, run: int) -> list[PlannedTransfer]: ...
    def run(
        self,
        run: int,
        captures: Path | None = None,
        progress: Callable[[Progress], object] | None = None,
        pace: float | None = None,
    ) -> Results: ...
    def save(
        self,
        folder: Path,
        notes: list[tuple[str, str]],
        run: int,
        captures: Path | None = None,
        progress: Callable[[Progress], object] | None = None,
        pace: float | None = None,
    ) -> dict[str, str]: ...

@final
class Precision:
    @property
    def share(self) -> float: ...
    @property
    def table(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def against(self) -> dict[str, bool | float | str]: ...
    @property
    def budget(self) -> int: ...

@final
class Sweep:
    @staticmethod
    def load(path: Path) -> Sweep: ...
    @staticmethod
    def from_toml(text: str, origin: str, folder: Path) -> Sweep: ...
    @staticmethod
    def repeat(scenario: Scenario, runs: int) -> Sweep: ...
    def with_axis(self, name: str, steps: list[tuple[str, list[tuple[str, str]]]]) -> Sweep: ...
    def with_arguments(self, arguments: list[str]) -> Sweep: ...
    def with_runs(self, first: int, count: int) -> Sweep: ...
    def with_run_counts(self, counts: dict[int, int]) -> Sweep: ...
    def with_precision(
        self,
        share: str,
        quantity: str | None = None,
        against: list[tuple[str, str]] = ...,
        budget: int | None = None,
    ) -> Sweep: ...
    def without_precision(self) -> Sweep: ...
    @property
    def precision(self) -> Precision | None: ...
    def only(self, name: str, labels: list[str]) -> Sweep: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def axes(self) -> list[str]: ...
    def labels(self, name: str) -> list[bool | float | str]: ...
    def scenarios(self) -> list[Scenario]: ...
    def total(self) -> int: ...
    def to_recipe(self) -> str: ...
    @staticmethod
    def from_recipe(text: str, origin: str) -> Sweep: ...
    def point(self, index: int) -> Sweep: ...
    @property
    def first_run(self) -> int: ...
    def points(self) -> list[int]: ...
    def at(self, points: set[int]) -> Sweep: ...
    def inputs(self) -> str: ...
    def missing(self, store: Path) -> list[tuple[int, int, int]]: ...
    def part_stems(self) -> list[str]: ...
    def stretches(self) -> list[tuple[int, int, int]]: ...
    def check_held(self) -> None: ...
    def run(
        self,
        store: Path | None = None,
        threads: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Results: ...
    def save(
        self,
        store: Path,
        folder: Path,
        notes: list[tuple[str, str]],
        threads: int | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> dict[str, str]: ...

@final
class WireHost:
    def __new__(
        cls,
        tun: str,
        addresses: list[IPv4Address | IPv6Address],
        kernel: list[IPv4Address | IPv6Address],
        mtu: int,
        profile: str,
        scheme: str | None = None,
        shadows: list[str] = ...,
        ecn: bool = False,
    ) -> Self: ...
    def serve(
        self, path: Path, port: int, limit: int | None, watch: Callable[[str, Any], object]
    ) -> dict[str, Any]: ...
    def fetch(self, url: str, output: Path | None, watch: Callable[[int, int | None], object]) -> dict[str, Any]: ...

@final
class Bed:
    def __new__(cls, scenario: Scenario, wishes: Mapping[str, Any], mtu: int) -> Self: ...
    @property
    def hosts(self) -> list[str]: ...
    @property
    def routers(self) -> list[str]: ...
    def address(self, name: str, v6: bool) -> str: ...
    def namespace_path(self, name: str) -> Path: ...
    def start(self, name: str, start: Callable[[], Any]) -> Any: ...
    def inside(self, name: str, job: Callable[[], Any]) -> Any: ...
    def change(self, scenario: Scenario) -> int: ...
    def audit(self) -> list[dict[str, Any]]: ...
    def truth(self) -> Table: ...
    def close(self) -> None: ...

@final
class BulkTransfer:
    def __new__(cls, bed: Bed, scenario: Scenario, run: int, number: int) -> Self: ...
    def start(self, at_ns: int) -> None: ...
    @property
    def started_ns(self) -> int: ...
    @property
    def finished_ns(self) -> int | None: ...
    @property
    def delivered(self) -> int: ...
    def stop(self) -> int: ...

@final
class Bridge:
    def __new__(cls, scenario: Scenario, wishes: Mapping[str, Any], devices: tuple[str, str]) -> Self: ...
    @property
    def ends(self) -> list[str]: ...
    @property
    def running(self) -> bool: ...
    def change(self, scenario: Scenario) -> int: ...
    def audit(self) -> list[dict[str, Any]]: ...
    def truth(self) -> Table: ...
    def close(self) -> None: ...

@type_check_only
class Tally(TypedDict):
    """What one cause of losses was found for."""

    episodes: int
    losses: int
    agreement: float | None
    score: float | None

@type_check_only
class Said(TypedDict):
    """What one differentiator said of the episodes."""

    unknown: int
    congestion: int
    corruption: int
    score: float | None

@type_check_only
class Connection(TypedDict):
    """A TCP connection of this machine."""

    cookie: int
    local: str
    local_port: int
    remote: str
    remote_port: int
    netns: int
    pid: int | None
    process: str
    cgroup: str
    control: str
    state: str
    recovery: str
    closed: bool
    since_s: float
    whole: bool
    bytes_acked: int
    bytes_received: int
    bytes_retransmitted: int
    segments_out: int
    segments_in: int
    retransmissions: int
    losses: int
    probed: int
    timeouts: int
    marked: int
    damaged_in: int
    srtt_us: int
    min_rtt_us: int | None
    cwnd: int
    ssthresh: int | None
    in_flight: int
    mss: int
    pacing_bps: int | None
    pending: str | None
    pending_losses: int
    causes: dict[str, Tally]
    differentiators: dict[str, Said]
    decided: dict[str, int] | None

@type_check_only
class Snapshot(TypedDict):
    """All connections at one moment."""

    connections: list[Connection]
    closed: list[Connection]
    unreported: int
    damaged_in: int

@final
class Observer:
    def __new__(cls) -> Self: ...
    def drain(self) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def close(self) -> None: ...

@final
class PathInfo:
    """What a sender knows of its path. Times in nanoseconds, lengths and stream positions in octets."""

    @property
    def now_ns(self) -> int:
        """Time of the event since the beginning of the run."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time (RFC 6298); ``None`` before the first sample."""
    @property
    def rttvar_ns(self) -> int:
        """Variation of the round-trip time (RFC 6298)."""
    @property
    def rto_ns(self) -> int:
        """Retransmission timeout without back-off."""
    @property
    def latest_rtt_ns(self) -> int | None:
        """The latest sample of the round-trip time."""
    @property
    def min_rtt_ns(self) -> int | None:
        """The smallest sample of the connection."""
    @property
    def max_rtt_ns(self) -> int | None:
        """The largest sample of the connection."""
    @property
    def cwnd(self) -> int:
        """Congestion window."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold."""
    @property
    def flight(self) -> int:
        """Sent and not cumulatively acknowledged."""
    @property
    def pipe(self) -> int:
        """Believed to be in the network (RFC 6675)."""
    @property
    def mss(self) -> int:
        """Payload of a full segment."""
    @property
    def delivered(self) -> int:
        """Delivered since the connection began, by cumulative or selective acknowledgement."""
    @property
    def una(self) -> int:
        """The first position that is not acknowledged (SND.UNA)."""
    @property
    def nxt(self) -> int:
        """The first position that is not sent (SND.NXT)."""

@final
class Ack:
    """An acknowledgement."""

    @property
    def path(self) -> PathInfo:
        """The path, updated by this acknowledgement."""
    @property
    def acked(self) -> int:
        """Octets newly acknowledged cumulatively."""
    @property
    def delivered(self) -> int:
        """Octets newly delivered: cumulatively or selectively, each counted once."""
    @property
    def rtt_ns(self) -> int | None:
        """The sample of the round-trip time that it gave, if any, in ticks of the retransmission timer."""
    @property
    def delay_ns(self) -> int | None:
        """The round trip of the newest segment that it reports, SACK-only ones included, not rounded to ticks."""
    @property
    def newest_sent_at_ns(self) -> int | None:
        """When the newest segment that it reports was sent, if it was sent only once."""
    @property
    def duplicate(self) -> bool:
        """Whether it acknowledges nothing new, or only selectively."""
    @property
    def ece(self) -> bool:
        """The ECN-echo flag."""
    @property
    def in_recovery(self) -> bool:
        """Whether fast recovery holds the window: nothing is to be grown."""
    @property
    def window_limited(self) -> bool:
        """Whether the window was what limited the sender: else growth is not earned."""

@final
class Sent:
    """A segment with data left."""

    @property
    def now_ns(self) -> int:
        """When it left, after the beginning of the run."""
    @property
    def start(self) -> int:
        """Position of its first octet."""
    @property
    def length(self) -> int:
        """Octets of data in it."""
    @property
    def transmission(self) -> int:
        """How often this data had been sent before: 0 for new data."""
    @property
    def was_idle(self) -> bool:
        """Whether nothing was outstanding before."""

@final
class Loss:
    """A segment is taken for lost."""

    @property
    def path(self) -> PathInfo:
        """The path before any reaction."""
    @property
    def start(self) -> int:
        """Position of its first octet."""
    @property
    def length(self) -> int:
        """Octets of data in it."""
    @property
    def transmission(self) -> int:
        """Which transmission of this data is taken for lost: 0 for the first."""
    @property
    def sent_at_ns(self) -> int:
        """When that transmission left."""
    @property
    def trigger(self) -> str:
        """``duplicate-acks``, ``partial-ack``, ``rack``, ``report``, ``snack``, ``tail-probe`` or ``timeout``."""
    @property
    def first_of_episode(self) -> bool:
        """Whether it is the first loss of its episode."""

@final
class Timeout:
    """The retransmission timer expired with data outstanding."""

    @property
    def path(self) -> PathInfo:
        """The path before any reaction."""
    @property
    def consecutive(self) -> int:
        """Expiries in a row without progress, this one included: 1 for the first."""
    @property
    def silence_ns(self) -> int:
        """For how long no segment of the peer has arrived while data was outstanding."""
    @property
    def verdict(self) -> Verdict:
        """What the ruling differentiator says of the first outstanding segment."""
    @property
    def sack(self) -> bool:
        """Whether SACK is in use."""
    @property
    def timestamps(self) -> bool:
        """Whether timestamps are in use."""
    @property
    def in_recovery(self) -> bool:
        """Whether an earlier timeout was still being repaired."""

@final
class AfterTimeout:
    """An acknowledgement after a timeout that is not yet assessed for good."""

    @property
    def ack(self) -> Ack:
        """The acknowledgement as congestion controls see it."""
    @property
    def number(self) -> int:
        """Which acknowledgement since the timeout it is: 1 for the first."""
    @property
    def silence_ns(self) -> int:
        """For how long no segment of the peer had arrived before it."""
    @property
    def recover(self) -> int:
        """The first position that was not sent at the timeout."""
    @property
    def head_end(self) -> int:
        """End of the segment that the timeout sent again first (RFC 5682, 2.1 step 2a)."""
    @property
    def beyond_recover(self) -> bool:
        """Whether it reports data beyond ``recover``, selectively or not (RFC 5682, 3.1 step 3a)."""
    @property
    def original_delivered(self) -> bool:
        """Whether it reports anew, selectively or not, what was sent before the timeout and not again since."""
    @property
    def new_data_possible(self) -> bool:
        """Whether new data was or can be sent (RFC 5682, 2.1 step 2b needs it)."""
    @property
    def echo(self) -> int | None:
        """The timestamp that it echoes (TSecr, 32 bits that wrap), if it has one."""
    @property
    def retransmission_tsval(self) -> int | None:
        """The timestamp (TSval) of the retransmission that began the repair, if it had one."""
    @property
    def dsack(self) -> bool:
        """Whether it has a D-SACK for the segment that was sent again."""

@final
class Window:
    """Congestion window and slow-start threshold in octets: never less than one segment and two."""

    @property
    def cwnd(self) -> int:
        """Congestion window."""
    @cwnd.setter
    def cwnd(self, octets: float) -> None: ...
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold."""
    @ssthresh.setter
    def ssthresh(self, octets: float) -> None: ...
    @property
    def mss(self) -> int:
        """Payload of a full segment."""
    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""
    @property
    def slow_start_limit(self) -> int | None:
        """Segments by which an acknowledgement may grow it in slow start (RFC 3465); ``None``: all of them."""
    def used(self, path: PathInfo) -> int:
        """As much of the window as was used: the smaller one of window and flight."""
    def grow(self, octets: float) -> None:
        """Grows the window; fractions of an octet are carried to the next call."""

@final
class Verdict:
    """What a differentiator says of a loss."""

    def __new__(cls, cause: str, score: float = 0.0) -> Self:
        """``congestion``, ``corruption`` or ``unknown``; the score from 0, congestion, to 1, corruption."""
    @staticmethod
    def by_threshold(score: float, threshold: float) -> Verdict:
        """Corruption if the score is above the threshold, else congestion."""
    @property
    def cause(self) -> str:
        """The cause."""
    @property
    def score(self) -> float:
        """The score."""

@final
class Response:
    """What a reaction has fast recovery do to the window."""

    @staticmethod
    def reduce() -> Response:
        """As for congestion: to the congestion control's threshold."""
    @staticmethod
    def keep() -> Response:
        """Window and threshold stay as they are."""
    @staticmethod
    def scale(factor: float) -> Response:
        """The window times a factor above 0, at most 1."""
    @staticmethod
    def limit(octets: float) -> Response:
        """The threshold becomes ``octets``, and the window no more."""

@final
class TimeoutResponse:
    """What a timeout policy does about an expired timer."""

    def __new__(cls, window: str = "collapse", *, back_off: bool = True, head_only: bool = False) -> Self:
        """``window`` is a word, of ``collapse``, ``regain``, ``keep``, ``keep-paced`` and ``keep-at-once``.

        The timer doubles with ``back_off`` (RFC 6298, 5.5). With ``head_only`` only the first segment is taken for lost
        until the timeout is assessed (RFC 5682), else all that is outstanding.
        """

@final
class Assessment:
    """What a timeout policy makes of a timeout after an acknowledgement."""

    @staticmethod
    def undecided() -> Assessment:
        """Nothing more is sent again before the next acknowledgement.

        If this one advanced, two new segments may leave.
        """
    @staticmethod
    def repairing() -> Assessment:
        """Something was lost, why is not yet known: as for congestion, and ask again."""
    @staticmethod
    def genuine() -> Assessment:
        """Something was lost to congestion, for all that is known."""
    @staticmethod
    def spurious() -> Assessment:
        """Nothing was lost: the timeout is undone."""
    @staticmethod
    def forgiven(halvings: int = 0, *, timer: bool = False, exit: str = "slow-start") -> Assessment:  # noqa: A002
        """Something was lost, but not to congestion: the window comes back, halved so often (0 to 63).

        With ``timer`` the back-off is taken back too. ``exit`` is how the window comes back: ``slow-start``
        or ``paced``.
        """

def add_part(
    role: str,
    name: str,
    summary: str,
    reference: str,
    parameters: list[tuple[str, str, tuple[float, float, float] | list[str] | bool]],
    make: Callable[..., object],
    methods: list[str],
    file: str,
    digest: str,
) -> None: ...
def panic(words: str) -> None: ...
def table_names() -> list[str]: ...
def file_digest(path: Path) -> str: ...
def read_table(path: Path) -> Table: ...
def causes() -> list[tuple[str, str]]: ...
def schemes() -> list[Description]: ...
def parts() -> list[Description]: ...
def profiles() -> list[Description]: ...
def describe(name: str) -> list[Description]: ...
def scenario_schema() -> dict[str, Any]: ...
def sweep_schema() -> dict[str, Any]: ...
def write_pattern(path: Path, ber: float, bits: int, seed: int) -> None: ...
def kernel_check() -> dict[str, Any]: ...
def kernel_load(controls: list[str]) -> dict[str, Any]: ...

@final
class KernelHeld:
    def __new__(cls, controls: list[str], lend: bool = False) -> Self: ...
    def is_there(self) -> bool: ...
    def close(self) -> None: ...

def kernel_unload(force: bool = False) -> dict[str, Any]: ...
def kernel_consequences() -> dict[str, Any]: ...
def kernel_list() -> dict[str, Any]: ...
def kernel_use(control: str, port: int | None, prefix: str | None, cgroup: str | None) -> None: ...
def kernel_take_back(port: int | None, prefix: str | None, cgroup: str | None) -> None: ...
def kernel_stat() -> dict[str, Any]: ...
def kernel_schemes() -> dict[str, str]: ...
def kernel_counters() -> list[tuple[str, str]]: ...
def kernel_report_counters() -> list[tuple[str, str]]: ...
