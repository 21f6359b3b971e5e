"""The scenario format as Python types, for :class:`whyloss.Scenario`.

Generated from the schema of the scenario format by ``make generated``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias
from dataclasses import dataclass, field


Capacity: TypeAlias = str
"""
at least "1 pkt" or "1 B", such as "99 pkt" or "64 KiB", in pkt, B, kB, MB, GB, KiB, MiB or GiB
"""


ChannelScope: TypeAlias = Literal["pair", "receiver", "sender", "medium"]
"""
Which frames go through one and the same channel.
"""


ClosedWindow: TypeAlias = Literal["retransmit", "persist"]
"""
What a sender does with outstanding data over which the peer closes its window. RFC 9293, 3.8.6 has it probed in the standard way, and leaves
open whether it is sent again otherwise.
"""


DelayEstimate: TypeAlias = Literal["departure-rate", "timestamps"]
"""
How PIE finds the waiting time.
"""


Effect: TypeAlias = Literal["erase", "damage"]
"""
What an error does to its packet.
"""


JitterLaw: TypeAlias = Literal["uniform", "normal", "exponential", "pareto"]
"""
The law of an extra delay.
"""


Law: TypeAlias = Literal["deterministic", "uniform", "exponential"]
"""
The law of the distances from one packet in error to the next.
"""


Length: TypeAlias = str
"""
a distance that is not negative such as "200 m", in mm, cm, m or km
"""


Locking: TypeAlias = Literal["sensed", "decodable", "strongest"]
"""
Which of several signals a receiver listens to.
"""


MiddleboxKind: TypeAlias = Literal[
    "eln",
    "syndrome",
    "ack-hop",
    "ceten",
    "packet-control",
    "snoop",
    "snack-snoop",
    "i-tcp",
    "m-tcp",
    "wtcp-proxy",
    "strip",
]
"""
What a middlebox does.
"""


Parameter: TypeAlias = bool | float | str
"""
The value of a part's parameter.
"""


PatternEnd: TypeAlias = Literal["repeat", "clean"]
"""
What comes after the last bit of a pattern.
"""


Probability: TypeAlias = float | str
"""
a number from 0 to 1, such as 8.3e-6, or a percentage, such as "2 %"
"""


Rate: TypeAlias = str
"""
a bit rate above zero such as "384 kbps", in bps, kbps, Mbps, Gbps, bit/s, kbit/s, Mbit/s or Gbit/s
"""


Recovery: TypeAlias = Literal["tahoe", "reno", "newreno"]
"""
Fast recovery without SACK.
"""


ReportResponse: TypeAlias = Literal["lazy", "immediate"]
"""
What the sender does when a report names an outstanding segment as damaged.
"""


@dataclass(kw_only=True)
class Router:
    """
    A router: it forwards packets on the way with the fewest links.
    """

    name: str
    """
    What links, middleboxes and tables call it.
    """
    position: list[Length] | None = None
    """
    Where it stands, if it has a radio: two coordinates.
    """


Size: TypeAlias = str
"""
a number of octets above zero such as "64 KiB", in B, kB, MB, GB, KiB, MiB or GiB
"""


SizeOrNone: TypeAlias = Size | Literal["none"]


@dataclass(kw_only=True)
class Spaced:
    """
    Errors at certain distances.
    """

    law: Law
    """
    The law of the distances.
    """
    rate: Probability
    """
    Share of packets in error: the distance from one to the next is 1/rate packets in the mean.
    """


Span: TypeAlias = str
"""
a time that is not negative such as "10 ms", in ns, us, µs, ms, s, min or h
"""


SpanOrNone: TypeAlias = Span | Literal["none"]


SpellLaw: TypeAlias = Literal["exponential", "pareto"]
"""
The law of a time that is drawn.
"""


@dataclass(kw_only=True)
class Taken:
    """
    How a packet capture is taken.
    """

    at: str
    """
    The host or router at which it is taken. At a host packets pass when they leave it, before they come to the queue of their link, and when
    they arrive, damaged or not. At a router they are seen once, as they come to it.
    """
    behind_queue: bool | None = None
    """
    What leaves the host is seen when its transmission begins, behind the queue of its link, as on Linux; what that queue refuses is not seen.
    Not at a router, nor over a radio, a link with a trace, or a queue that pushes out what it has taken.
    """
    file: str | None = None
    """
    What its file is called, behind the name of the scenario and the number of the run: `at`, and `link` behind it, if nothing is said.
    """
    holes: Probability | None = None
    """
    The share of packets that it misses, each independently of all others; none if nothing is said.
    """
    link: str | None = None
    """
    One link of that node, by its name: what comes to the node over it is seen, and what leaves over it, before it comes to its queue.
    """
    resolution: Span | None = None
    """
    The unit of its times, a power of ten: `"1 ns"` if nothing is said, `"1 us"` as most captures have it.
    """
    snaplen: int | None = None
    """
    Octets that it keeps of each packet; all if nothing is said.
    """


Traffic: TypeAlias = Literal["main", "cross"]
"""
One of two sides that share a network unequally: that which is looked at, and that which joins it on a part of its way.
"""


@dataclass(kw_only=True)
class Warn:
    """
    The congestion warning of TCP-Jersey (Xu, Tian & Ansari 2004).
    """

    threshold: float
    """
    Average queue in packets above which all packets are marked.
    """
    weight: float | None = 0.002
    """
    Weight of a new sample in the average; 1 for the queue as it is, 0.002 if nothing is said.
    """


WhileDown: TypeAlias = Literal["dropped", "held"]
"""
What a link that is down does to packets.
"""


Uint32OrNone: TypeAlias = int | Literal["none"]


@dataclass(kw_only=True)
class Access:
    """
    A fast link that joins a host to its router.
    """

    delay: Span | None = "0 ns"
    """
    One-way propagation delay.
    """
    queue: Capacity | None = "1000 pkt"
    """
    How much waits in front of the link.
    """
    rate: Rate | None = "100 Mbps"
    """
    Bit rate over all octets of an IP packet.
    """


@dataclass(kw_only=True)
class AckPolicy1:
    """
    Every second full segment, or after this delay.
    """

    delayed: Span


AckPolicy: TypeAlias = Literal["immediate"] | AckPolicy1
"""
When data is acknowledged.
"""


@dataclass(kw_only=True)
class AdaptiveRed:
    """
    The parameters of adaptive RED, which sets `min`, `max` and `weight` by the rate of the link, and `max_p` while it runs; where nothing
    is said those of the paper, and of ns-2.35 where the paper is silent. A link that changes its rate keeps what was set by the first.
    """

    bytes: bool | None = True
    """
    The probability is in proportion to a packet's length: it is that of a packet of `mean_packet`.
    """
    decrease: float | None = 0.9
    """
    What `max_p` is multiplied by when the average is too short (`beta_`).
    """
    gentle: bool | None = True
    """
    From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on.
    """
    increase: float | None = 0.01
    """
    What is added to `max_p` when the average is too long, but at most a quarter of it (`alpha_`).
    """
    interval: Span | None = "500 ms"
    """
    How often `max_p` is adapted (`interval_`).
    """
    least: float | None = 0.01
    """
    `max_p` does not fall from here (`bottom_`).
    """
    mark: bool | None = False
    """
    Marks ECN-capable packets instead of dropping them, except where the probability is 1.
    """
    mean_packet: Size | None = "500 B"
    """
    Length of a typical packet; also that of the packets in which idle time is counted.
    """
    most: float | None = 0.5
    """
    `max_p` does not rise from here (`top_`).
    """
    queue_in_bytes: bool | None = True
    """
    The queue is measured in octets: a packet of the thresholds is `mean_packet`.
    """
    target: Span | None = "5 ms"
    """
    Waiting time that the average queue should have. `min` is half the packets that are sent meanwhile, at least 5; `max` three
    times `min` (`targetdelay_`).
    """
    wait: bool | None = True
    """
    Drops keep a distance: there are 1 / p to 2 / p packets between two, p being the probability; otherwise up to 1 / p.
    """


Capture: TypeAlias = str | Taken
"""
A packet capture: the name of the host or router where it is taken, or more.
"""


@dataclass(kw_only=True)
class CoDel:
    """
    The parameters of CoDel; where nothing is said those of RFC 8289.
    """

    interval: Span | None = "100 ms"
    """
    About the longest round-trip time of the connections.
    """
    mark: bool | None = False
    """
    Marks ECN-capable packets instead of dropping them.
    """
    target: Span | None = "5 ms"
    """
    Waiting time that is accepted for longer than an interval.
    """


@dataclass(kw_only=True)
class Datagrams:
    """
    What the application of a DCCP or TFRC flow sends.
    """

    packet: Size | None = "1440 B"
    """
    Data in each packet. The headers take 44 to 60 octets more.
    """
    rate: Rate | None = None
    """
    Bit rate of the data; as much as the congestion control lets go if nothing is said.
    """
    stop: Span | None = None
    """
    When the connection is closed; not before the end of the run if nothing is said.
    """


@dataclass(kw_only=True)
class Discipline1:
    """
    Marks every ECN-capable packet while the average queue is above a threshold: the congestion warning of TCP-Jersey.
    """

    warn: Warn


@dataclass(kw_only=True)
class Discipline3:
    """
    Random early detection that sets its parameters by a target delay (Floyd, Gummadi & Shenker 2001).
    """

    adaptive_red: AdaptiveRed


@dataclass(kw_only=True)
class Discipline4:
    """
    Controlled delay: drops at the head what has waited too long for too long (RFC 8289).
    """

    codel: CoDel


@dataclass(kw_only=True)
class Drawn:
    """
    A time that is drawn anew each time.
    """

    law: SpellLaw
    """
    Its law.
    """
    mean: Span
    """
    Its mean, whatever its law.
    """
    shape: float | None = None
    """
    `"pareto"` only: its shape, above 1; 1.5 if nothing is said, as in ns-2. The variance is infinite up to a shape of 2.
    """


@dataclass(kw_only=True)
class FqCoDel:
    """
    The parameters of FQ-CoDel; where nothing is said those of RFC 8290.

    What waits in all queues together is bounded by the `queue` of the link and by `memory`: beyond, packets are dropped at the head of the
    longest queue.
    """

    interval: Span | None = "100 ms"
    """
    About the longest round-trip time of the connections.
    """
    mark: bool | None = False
    """
    Marks ECN-capable packets instead of dropping them.
    """
    memory: Size | None = "32 MiB"
    """
    Octets that may wait in all queues.
    """
    quantum: Size | None = "1514 B"
    """
    Octets that a queue may send in a turn.
    """
    queues: int | None = 1024
    """
    Number of queues; a flow's is found by a hash of its addresses and ports with a key that the seed decides on.
    """
    target: Span | None = "5 ms"
    """
    Waiting time that is accepted for longer than an interval.
    """


@dataclass(kw_only=True)
class Granularity1:
    """
    Exact samples; the floor of the variance term.
    """

    fine: Span


@dataclass(kw_only=True)
class Granularity2:
    """
    Samples and estimates in whole ticks of this length; timers end when they should (ns-2).
    """

    ticks: Span


@dataclass(kw_only=True)
class Granularity3:
    """
    Samples count ticks of this length from 1; timers end with a tick of the host's clock (4.4BSD-Lite).
    """

    net3: Span


@dataclass(kw_only=True)
class Granularity4:
    """
    The same with two more bits in the estimates, so that the timeout can fall to its minimum (FreeBSD 2.2 to 4).
    """

    freebsd: Span


Granularity: TypeAlias = Granularity1 | Granularity2 | Granularity3 | Granularity4
"""
How round-trip times are measured and timers rounded.
"""


@dataclass(kw_only=True)
class Header:
    """
    Name, seed and duration of a scenario.
    """

    description: str | None = None
    """
    What it is for, in a sentence or two.
    """
    duration: Span | None = None
    """
    A run ends when all transfers of a given size are complete, and at this simulated time at the latest. Needed if there are none;
    otherwise 1 h if nothing is said.
    """
    name: str | None = None
    """
    What tables call it; the name of the file if nothing is said.
    """
    seed: int | None = 1
    """
    All random numbers of a run follow from the seed and the number of the run.
    """
    send_overhead: Span | None = "0 ns"
    """
    Every packet waits for a random time below this before it leaves its host, as on real machines. It breaks the phase effects
    of drop-tail queues (Floyd & Jacobson 1992). `"0 ms"` switches it off.
    """


@dataclass(kw_only=True)
class Jitter:
    """
    An extra delay that differs from packet to packet, on top of `delay`, which stays the smallest delay.
    """

    mean: Span
    """
    Mean of the extra delay, whatever its law.
    """
    deviation: Span | None = None
    """
    `"normal"` only, and needed there: standard deviation, at most the mean.
    """
    law: JitterLaw | None = "uniform"
    """
    Its law; `"uniform"` if nothing is said.
    """
    shape: float | None = None
    """
    `"pareto"` only: its shape, above 1; 3 if nothing is said, as in Linux's netem.
    """


@dataclass(kw_only=True)
class Markov:
    """
    A two-state chain that starts in its good state.
    """

    stay_bad: Probability
    """
    Probability to stay in the bad state at a step.
    """
    stay_good: Probability
    """
    Probability to stay in the good state at a step.
    """
    every: Span | None = None
    """
    The chain steps whenever this time has passed; with every packet if nothing is said.
    """
    lost_bad: Probability | None = None
    """
    Probability that a packet is in error in the bad state; 1 if nothing is said.
    """
    lost_good: Probability | None = None
    """
    Probability that a packet is in error in the good state; 0 if nothing is said.
    """


@dataclass(kw_only=True)
class Middlebox:
    """
    An agent at a router, for the TCP segments that cross one of the router's links. Damaged packets pass it untouched.
    """

    at: str
    """
    The router. `[path]` has `emulator`, `[dumbbell]` has `left` and `right`.
    """
    kind: MiddleboxKind
    """
    What it does.
    """
    link: str
    """
    The name of the link: of a base station the wireless one. It must end at the router.
    """
    parameters: dict[str, Parameter] | None = None
    """
    Parameters of its kind: `parameters.window = 100`.
    """
    restart: list[Span] | None = None
    """
    When the agent is started again and has forgotten everything; never if nothing is said.
    """


@dataclass(kw_only=True)
class Move:
    """
    A host leaves the link that it is attached to and attaches to another of its own. It is attached to one at a time, before its first move to
    the one that was added first; the others are down. Routes change everywhere at the moment in which it is attached to the new one.
    """

    at: Span
    """
    When it leaves the link that it is attached to. What that link still transmits is lost.
    """
    link: str
    """
    The link that it attaches to.
    """
    away: Span | None = "0 ns"
    """
    How long it is attached to none.
    """
    state_delay: Span | None = "0 ns"
    """
    How long what an agent of the old link hands over is on its way to the agent of the same kind of the new one, beside `state_rate`.
    """
    state_rate: Rate | None = None
    """
    The rate at which it is sent there, one flow after the other; in no time if nothing is said.
    """


@dataclass(kw_only=True)
class Pie:
    """
    The parameters of PIE; where nothing is said those of RFC 8033.
    """

    alpha: float | None = 0.125
    """
    What a second of waiting beyond the target adds to the probability.
    """
    beta: float | None = 1.25
    """
    What a second of waiting more than an interval before adds to the probability.
    """
    burst: Span | None = "150 ms"
    """
    A burst of this length is let through after a time without congestion.
    """
    ecn_threshold: Probability | None = 0.1
    """
    Probability from which ECN-capable packets are dropped, too.
    """
    estimate: DelayEstimate | None = "departure-rate"
    """
    How the waiting time is found.
    """
    interval: Span | None = "15 ms"
    """
    How often the probability is set anew.
    """
    mark: bool | None = False
    """
    Marks ECN-capable packets instead of dropping them, as long as the probability is below `ecn_threshold`.
    """
    mean_packet: Size | None = "1500 B"
    """
    Length of a typical packet: nothing is dropped while at most two of that length wait.
    """
    target: Span | None = "15 ms"
    """
    Waiting time that the queue is held at.
    """


@dataclass(kw_only=True)
class Playback:
    """
    An application at the receiver that plays what arrives. It cuts the time of the run in slots, from the first whole one of its flow on, and reads at
    the end of each what it plays in one.
    """

    enough: Probability
    """
    A slot is a success if more than this share of what is played in it was there.
    """
    buffer: Size | None = None
    """
    How much can wait for the next slot; what is played in a slot if nothing is said. What comes beyond it is of no use.
    """
    rate: Rate | None = None
    """
    Rate at which it plays; that of the `stream`, `datagrams` or `cbr` of the flow if nothing is said.
    """
    slot: Span | None = None
    """
    Length of a slot; 1 s if nothing is said.
    """


@dataclass(kw_only=True)
class Policer:
    """
    A policer in front of the queue of a link: a single rate and two colours, of which red is dropped (RFC 2697 without an excess burst).

    Tokens come at `rate` until there are `burst` of them, and a packet that passes takes one for each of its octets. One that finds
    fewer is dropped and takes none. The bucket is full when the run begins.
    """

    burst: Size
    """
    Octets that may pass at once: the depth of the bucket (committed burst size). One below the length of a packet never lets it pass.
    """
    rate: Rate
    """
    Bit rate over all octets of the IP packets that it lets pass (committed information rate).
    """


@dataclass(kw_only=True)
class Red:
    """
    The parameters of RED; where nothing is said those of ns-2 from 2001 to 2002.
    """

    bytes: bool | None = False
    """
    The probability is in proportion to a packet's length: it is that of a packet of `mean_packet` (`bytes_`).
    """
    gentle: bool | None = True
    """
    From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on (`gentle_`).
    """
    mark: bool | None = False
    """
    Marks ECN-capable packets instead of dropping them, except where the probability is 1 (`setbit_`).
    """
    max: float | None = 15.0
    """
    Average queue in packets at which the probability is `max_p` (`maxthresh_`).
    """
    max_p: float | None = 0.1
    """
    Probability at `max` (1 / `linterm_`).
    """
    mean_packet: Size | None = "500 B"
    """
    Length of a typical packet; also that of the packets in which idle time is counted (`mean_pktsize_`).
    """
    min: float | None = 5.0
    """
    Average queue in packets from which packets are dropped or marked (`thresh_`).
    """
    queue_in_bytes: bool | None = False
    """
    The queue is measured in octets: a packet of the thresholds is `mean_packet` (`queue_in_bytes_`).
    """
    wait: bool | None = True
    """
    Drops keep a distance: there are 1 / p to 2 / p packets between two, p being the probability; otherwise up to 1 / p (`wait_`).
    """
    weight: float | None = 0.002
    """
    Weight of a new sample in the average (`q_weight_`).
    """


@dataclass(kw_only=True)
class Reorder:
    """
    A share of the packets leaves the order: either `late` or `early`.
    """

    share: Probability
    """
    Share of the packets.
    """
    early: Span | None = None
    """
    They arrive this much sooner, but not before they have been transmitted, and overtake those ahead of them.
    """
    late: Span | None = None
    """
    They arrive this much later, and those that follow overtake them.
    """


@dataclass(kw_only=True)
class Segments:
    """
    Which packets are kept one by one.
    """

    at_most: int | None = 1000000
    """
    So many at most, the first ones. How many more there were stands in the table `runs`.
    """
    from_: Span | None = "0 ns"
    """
    Those that left at this time or later.
    """
    until: Span | None = None
    """
    Those that left before this time; to the end of the run if nothing is said.
    """


@dataclass(kw_only=True)
class Smoothness:
    """
    Over which bins of time it is counted how evenly flows send.
    """

    bin: Span | None = "1 s"
    """
    Length of a bin, at least 1 ms. It should be a round-trip time or more. Bins are those of the run: from 0 on, from `bin` on, and so on.
    """
    from_: Span | None = "0 ns"
    """
    Bins that begin earlier do not count: slow start is not smooth.
    """


Spell: TypeAlias = Span | Drawn
"""
A time that is always the same, or drawn anew each time.
"""


@dataclass(kw_only=True)
class Stream:
    """
    An application that gives data to TCP at a rate. What TCP does not take at once waits for it.
    """

    rate: Rate
    """
    Bit rate of the data, without headers.
    """
    burst: Spell | None = None
    """
    How long each burst lasts, with silence of `idle` behind it; needs `idle`. The write in which it ends is a whole one.
    """
    idle: Spell | None = None
    """
    The silence between bursts.
    """
    jitter: Probability | None = None
    """
    Each distance from one write to the next is longer or shorter by up to this share of it; ns-2's `random_` is 0.5. None if nothing is said.
    """
    stop: Span | None = None
    """
    It gives nothing at or after this time, and closes the connection; the end of the run if nothing is said.
    """
    write: Size | None = None
    """
    Octets that it gives at a time; a full segment (`tcp.mss`) if nothing is said.
    """


@dataclass(kw_only=True)
class Tcp:
    """
    What is different from the profile. Every field has the name and meaning that it has in the engine; what is not given stays as
    the profile and the scheme have it.
    """

    ack_policy: AckPolicy | None = None
    """
    When to acknowledge: "immediate" or { delayed = "100 ms" }.
    """
    auto_read: bool | None = None
    """
    Hand everything to the application the moment it is in order, so that the receive window never shrinks.
    """
    bare_window_probes: bool | None = None
    """
    Probe a closed window without data, as Linux does.
    """
    challenge_ack_limit: int | None = None
    """
    Challenge ACKs in any `challenge_ack_window` (RFC 5961, 7).
    """
    challenge_ack_window: Span | None = None
    """
    See `challenge_ack_limit`.
    """
    clock_phase: SpanOrNone | None = None
    """
    When the host's clock ticks for the first time, for `net3` and `freebsd`, whose timers end with its ticks; "none", the default, draws it
    for each host and run.
    """
    closed_window: ClosedWindow | None = None
    """
    What happens when the peer closes its window over outstanding data: "retransmit" or "persist".
    """
    count_duplicates: bool | None = None
    """
    With SACK, a recovery begins when so many duplicates have come, as in ns-2, and not when what they report amounts to as many.
    """
    count_pipe: bool | None = None
    """
    With SACK, count in recovery what is in the network by what leaves and what comes, as in ns-2, instead of by the scoreboard.
    """
    deflate_at_once: bool | None = None
    """
    In NewReno recovery, a partial acknowledgement takes back all that duplicates have inflated the window by, as in ns-2 until 2003.
    """
    drop_precedence: Uint32OrNone | None = None
    """
    Mark one data segment in this many for preferential dropping (AF12 instead of AF11, RFC 2597); "none" marks nothing. The
    differentiator `casablanca` sets it.
    """
    dsack: bool | None = None
    """
    Report duplicates by D-SACK (RFC 2883).
    """
    dup_threshold: int | None = None
    """
    Duplicate acknowledgements that mean a loss.
    """
    ecn: bool | None = None
    """
    Negotiate ECN (RFC 3168).
    """
    forget_sacks: bool | None = None
    """
    A timeout forgets what was reported as received (RFC 2018, 8), as in ns-2: all that was outstanding is sent again.
    """
    forgiven_syn_losses: int | None = None
    """
    SYNs that may be lost without a smaller initial window.
    """
    granularity: Granularity | None = None
    """
    How round-trip times are measured and timers rounded: { fine = "1 ms" }, { ticks = "10 ms" } as in ns-2, { net3 = "500 ms" } as in
    4.4BSD-Lite, or { freebsd = "10 ms" } as in FreeBSD 2.2 to 4.
    """
    impatient: bool | None = None
    """
    In NewReno recovery, restart the retransmission timer at the first partial acknowledgement only (RFC 6582, 4).
    """
    initial_rto: Span | None = None
    """
    Retransmission timeout before the first sample.
    """
    initial_seq: int | None = None
    """
    First sequence number.
    """
    initial_ssthresh: SizeOrNone | None = None
    """
    Initial slow-start threshold; "none" is unbounded.
    """
    initial_window: int | None = None
    """
    Initial window in segments.
    """
    ip_header: int | None = None
    """
    Length of the IP header in front of the segments in octets: 20 or 40.
    """
    keep_alive: SpanOrNone | None = None
    """
    Probe an idle peer after this long; "none" is never.
    """
    least_cwnd: int | None = None
    """
    Segments of the window that a fast recovery leaves at least: 2 (RFC 5681, eq. 4), or 1 as in ns-2, where only the threshold is kept above that.
    """
    limited_transmit: bool | None = None
    """
    Send new data on the first two duplicate acknowledgements (RFC 3042).
    """
    max_backoff: int | None = None
    """
    Largest factor by which the timer backs off.
    """
    max_retransmissions: Uint32OrNone | None = None
    """
    Give up after this many timeouts in a row; "none" is never.
    """
    max_rto: Span | None = None
    """
    Largest retransmission timeout.
    """
    max_syn_retransmissions: Uint32OrNone | None = None
    """
    Give up connecting after this many SYNs; "none" is never.
    """
    max_window: SizeOrNone | None = None
    """
    The window never grows beyond this; "none" is unbounded.
    """
    min_rto: Span | None = None
    """
    Smallest retransmission timeout.
    """
    min_rto_after_backoff: bool | None = None
    """
    Apply the minimum to the timeout as backed off, as ns-2 did until 2002.
    """
    min_rto_on_variance: bool | None = None
    """
    Apply the minimum to the variance term only, as Linux does.
    """
    mss: int | None = None
    """
    Largest payload to send and to announce, in octets.
    """
    mtu_probing: bool | None = None
    """
    Find out which packets the path carries (RFC 4821, RFC 8899): for real packets, no simulated path minds their size.
    """
    nagle: bool | None = None
    """
    Nagle's algorithm (RFC 9293, 3.7.4).
    """
    nagle_for_small: bool | None = None
    """
    Nagle's algorithm waits for small segments only, as in Linux (Minshall's modification).
    """
    nonce_key: int | None = None
    """
    Key of the nonces of the hardened checksum scheme; the simulator draws it at random.
    """
    pacing_burst: Span | None = None
    """
    What a paced sender lets go at once, as the time that it takes at the rate; "0 s": each by itself, "1 ms": as Linux with segmentation offload.
    """
    prr: bool | None = None
    """
    Proportional rate reduction (RFC 9937); needs SACK.
    """
    quick_acks: int | None = None
    """
    Segments acknowledged at once when data begins to come, although acknowledgements are delayed.
    """
    rack: bool | None = None
    """
    RACK loss detection (RFC 8985); needs SACK.
    """
    rack_rtt_by_sequence: bool | None = None
    """
    RACK's round-trip time is that of the last segment in sequence that an acknowledgement delivers, as in Linux.
    """
    receive_buffer: Size | None = None
    """
    Receive buffer: the largest window that is ever announced.
    """
    recovery: Recovery | None = None
    """
    Recovery without SACK.
    """
    report_response: ReportResponse | None = None
    """
    What a report of the receiver on a damaged segment sets off.
    """
    sack: bool | None = None
    """
    Offer SACK (RFC 2018).
    """
    send_buffer: Size | None = None
    """
    Send buffer: at most this much is in flight or waiting.
    """
    slow_start_after_idle: bool | None = None
    """
    Fall back to the initial window after idling (RFC 5681, 4.1).
    """
    slow_start_limit: Uint32OrNone | None = None
    """
    Segments that one acknowledgement grows the window by in slow start (L of RFC 3465, 2.2); "none" is as many as it acknowledges.
    """
    ssthresh_from_cwnd: bool | None = None
    """
    Take the congestion window, not the flight, for what congestion reduces, as Linux does.
    """
    time_wait: Span | None = None
    """
    Time in TIME-WAIT (2 MSL).
    """
    timestamp_tick: Span | None = None
    """
    Length of one tick of the timestamp clock.
    """
    timestamps: bool | None = None
    """
    Offer timestamps (RFC 7323).
    """
    tlp: bool | None = None
    """
    Tail loss probes (RFC 8985); needs SACK.
    """
    undo: bool | None = None
    """
    Undo a reduction that proves unnecessary (RFC 3708, RFC 4015).
    """
    unpaced_segments: int | None = None
    """
    How many data segments a paced sender lets go at first before it paces; 0: none, 10: as Linux.
    """
    user_timeout: SpanOrNone | None = None
    """
    Give up when data has gone unacknowledged for this long (RFC 9293, 3.9.1); "none" leaves it to `max_retransmissions`.
    """
    whole_thresholds: bool | None = None
    """
    The slow-start threshold is a whole number of segments, rounded down, as in ns-2 and 4.4BSD.
    """
    window_at_once: bool | None = None
    """
    After a fast recovery the whole window is let go at once (RFC 6582, 3.2 step 3, option 2), as in ns-2, instead of little by little.
    """
    window_scaling: bool | None = None
    """
    Offer window scaling (RFC 7323).
    """
    window_validation: bool | None = None
    """
    Do not let a window grow that the application does not fill (RFC 7661).
    """


@dataclass(kw_only=True)
class Web:
    """
    A web user at the receiver, who reads page after page, all over one connection, by the model of SURGE (Barford & Crovella 1998). Each of a `count` of
    flows is a user. Where nothing is said the parameters are those published.
    """

    body_mu: float | None = 9.357
    """
    Body of the files' sizes, a lognormal law: mean of the logarithm of the size in octets.
    """
    body_share: Probability | None = 0.93
    """
    Share of the files in the body.
    """
    body_sigma: float | None = 1.318
    """
    Standard deviation of that logarithm.
    """
    files_shape: float | None = 2.43
    """
    Shape of the number of files of a page, a law of Pareto from 1 on, rounded down.
    """
    largest: Size | None = "100 MB"
    """
    No file is larger.
    """
    tail_from: Size | None = "133 kB"
    """
    Where the tail of the files' sizes begins, a law of Pareto.
    """
    tail_shape: float | None = 1.1
    """
    Shape of the tail.
    """
    think: Spell | None = None
    """
    Idle time from the end of a page to the request of the next; Pareto with mean 3 s and shape 1.5 if nothing is said.
    """


@dataclass(kw_only=True)
class Cbr:
    """
    Datagrams of one size at a bit rate.
    """

    packet: Size
    """
    Length of each IP packet, headers included.
    """
    rate: Rate
    """
    Bit rate over all octets of the IP packets.
    """
    burst: Spell | None = None
    """
    How long each burst lasts, with silence of `idle` behind it; needs `idle`. The packet in which it ends is a whole one.
    """
    idle: Spell | None = None
    """
    The silence between bursts.
    """
    jitter: Probability | None = None
    """
    Each distance from one packet to the next is longer or shorter by up to this share of it; ns-2's `random_` is 0.5. None if nothing is said.
    """
    stop: Span | None = None
    """
    No packet leaves at or after this time; the end of the run if nothing is said.
    """


@dataclass(kw_only=True)
class Channel:
    """
    What a link does to packets: one of `ber`, `pattern`, `loss`, `spaced`, `markov`, or nothing.
    """

    ber: Probability | None = None
    """
    Every bit is in error with this probability, independently.
    """
    effect: Effect | None = None
    """
    What an error does: `"damage"` flips bits and lets the packet travel on (if nothing is said, with `ber` and `pattern`); `"erase"`
    loses it without a trace (if nothing is said, with `loss`, `spaced` and `markov`).
    """
    loss: Probability | None = None
    """
    Every packet is in error with this probability, independently, whatever its length.
    """
    markov: Markov | None = None
    """
    Every packet that meets a two-state chain in its bad state is in error (Gilbert 1960), or with the probability of the state (Elliott 1963).
    """
    pattern: str | None = None
    """
    A file that names the bits in error, counted over all bits that cross the link. Relative to the scenario file; `{run}` stands for
    the number of the run, `{run:02}` for the same with leading zeros.
    """
    pattern_end: PatternEnd | None = None
    """
    What comes after the last bit of a pattern: `"repeat"` the pattern, if nothing is said, or `"clean"`, no more errors.
    """
    spaced: Spaced | None = None
    """
    Packets at certain distances are in error, counted in packets.
    """


@dataclass(kw_only=True)
class Discipline2:
    """
    Random early detection (Floyd & Jacobson 1993).
    """

    red: Red


@dataclass(kw_only=True)
class Discipline5:
    """
    A queue for each flow, served in turn, and CoDel in each (RFC 8290).
    """

    fq_codel: FqCoDel


@dataclass(kw_only=True)
class Discipline6:
    """
    Drops what comes with a probability that follows from the waiting time and its trend (RFC 8033).
    """

    pie: Pie


Discipline: TypeAlias = (
    Literal["biased"] | Discipline1 | Discipline2 | Discipline3 | Discipline4 | Discipline5 | Discipline6
)
"""
What a queue does beside dropping at the tail: `"biased"`, or one of the others with its parameters, such as `{ codel = {} }`.
"""


@dataclass(kw_only=True)
class Flow:
    """
    One flow, or several of a kind: TCP with a scheme or with single parts, or datagrams.
    """

    cbr: Cbr | None = None
    """
    Datagrams at a bit rate instead of TCP, without end or in bursts.
    """
    chunk: Size | None = "16 KiB"
    """
    Length of the pieces in which striped data is dealt out to the connections.
    """
    congestion: str | None = None
    """
    How the window moves, instead of the scheme's.
    """
    count: int | None = 1
    """
    How many flows of this kind.
    """
    datagrams: Datagrams | None = None
    """
    What the application gives to a DCCP connection or a TFRC flow, where the scheme is one: full packets without end if nothing is said.
    """
    differentiator: str | None = None
    """
    Why a segment was lost: the one that rules, instead of the scheme's.
    """
    from_: str | None = None
    """
    The host that sends; `server` in `[path]`, the next sender in `[dumbbell]` if nothing is said.
    """
    name: str | None = None
    """
    What tables call it; `flow0`, `flow1`, … by position if nothing is said. With `count` above 1, its flows are `name.0`, `name.1`, …
    """
    parameters: dict[str, dict[str, Parameter]] | None = None
    """
    Parameters of the parts: `parameters.veno.beta = 3`.
    """
    playback: Playback | None = None
    """
    A player at the receiver: in how many slots of time enough has come.
    """
    profile: str | None = "modern"
    """
    Which TCP it is before the scheme: a set of values for `tcp`.
    """
    reaction: str | None = None
    """
    What a verdict does to the window, instead of the scheme's.
    """
    receiver: str | None = None
    """
    What the receiver measures and reports, instead of the scheme's.
    """
    scheme: str | None = None
    """
    A named scheme: parts that the literature puts together under one name; or `dccp-ccid2`, `dccp-ccid3` or `tfrc` for datagrams instead of TCP.
    """
    shadows: list[str] | None = None
    """
    Differentiators that judge every loss and change nothing; each gets its columns in the table of losses.
    """
    size: Size | None = None
    """
    How much is sent; without end if nothing is said.
    """
    start: Span | None = "0 ns"
    """
    When they start.
    """
    start_spread: Span | None = "0 ns"
    """
    Each starts at a random time up to this much later than `start`.
    """
    stream: Stream | None = None
    """
    An application that gives out data at a rate, in the place of `size`; only TCP.
    """
    striped: int | None = None
    """
    The data goes over this many parallel connections and is put together again in order at the receiver; needs `size`.
    """
    tcp: Tcp | None = field(default_factory=lambda: Tcp())
    """
    What is different from the profile and the scheme, at both ends.
    """
    timeout: str | None = None
    """
    What a retransmission timeout does, instead of the scheme's.
    """
    to: str | None = None
    """
    The host that receives; `client` in `[path]`, the next receiver in `[dumbbell]` if nothing is said.
    """
    traffic: Traffic | None = None
    """
    The side that it is on where main traffic is compared with cross traffic: `atgr` in the table `runs`. On neither if nothing is said.
    """
    web: Web | None = None
    """
    Pages for a web user, in the place of `size`; only TCP. `web = {}` is the published model.
    """


@dataclass(kw_only=True)
class Input:
    """
    Errors end to end: what happens to packets that have arrived at a host, before its transport sees them. No link repairs them.
    Patterns are not possible here.
    """

    acks: Channel | None = None
    """
    What happens to the answers to data that the host sends.
    """
    data: Channel | None = None
    """
    What happens to packets with data that the host receives. No other packets count.
    """


@dataclass(kw_only=True)
class Outage:
    """
    A period in which the link is down, such as a hand-off, once or again and again.
    """

    at: Span
    """
    When the first begins.
    """
    lasts: Spell
    """
    How long each lasts. What is drawn longer than `every` ends there, when the next one begins.
    """
    every: Span | None = None
    """
    From the beginning of one to the beginning of the next. With neither `every` nor `gap` there is only one.
    """
    gap: Spell | None = None
    """
    From the end of one to the beginning of the next, instead of `every`.
    """
    packets: WhileDown | None = "dropped"
    """
    What becomes of packets: `"dropped"` if nothing is said.
    """


@dataclass(kw_only=True)
class Output:
    """
    What is written down beside flows, losses and links.
    """

    capture: list[Capture] | None = None
    """
    Packet captures, written to pcapng files: names of hosts and routers, or `{ at = "server", snaplen = 96, … }`.
    """
    drops: bool | None = False
    """
    Keep a row for every packet that did not arrive, beside the losses that senders noticed.
    """
    sample: Span | None = None
    """
    Interval of the time series of windows and queues; none if nothing is said.
    """
    segments: Segments | None = None
    """
    Keep a row for every packet that an endpoint sent; none if nothing is said. `segments = {}` keeps those of the whole run.
    """
    smoothness: Smoothness | None = None
    """
    The bins of time of `smoothness` in the table `flows`; those of a second, from the beginning on, if nothing is said.
    """


@dataclass(kw_only=True)
class Radio:
    """
    An IEEE 802.11 radio channel and the stations on it: the nodes that have a `position`, or those of `[chain]`. Each pair of
    stations that can decode each other is a link, called by the names of its ends with a hyphen between them.

    If nothing is said, it is 802.11b with long preambles at 2 Mbit/s and the radio of ns-2: reception up to 250 m, carrier sense up
    to 550 m.
    """

    ack_octets: int | None = 14
    """
    Octets of an ACK frame.
    """
    basic_rate: Rate | None = "1 Mbps"
    """
    Bit rate of RTS, CTS and ACK frames.
    """
    capture: float | None = 10.0
    """
    Least ratio of a frame's power to noise and all other signals together at which it can be decoded; 10 is 10 dB. Spreading
    lets frames at 1 and 2 Mbps get by with less than 1.
    """
    cca: Span | None = "15 us"
    """
    How long a signal must last before a station notices it; less than a slot.
    """
    channel: Channel | None = None
    """
    What noise does to frames: one that it hits is lost, and its sender tries again. Patterns are not possible here.
    """
    channel_scope: ChannelScope | None = "pair"
    """
    Which frames go through one and the same `channel`. It matters where errors come in bursts.
    """
    cts_octets: int | None = 14
    """
    Octets of a CTS frame.
    """
    cw_max: int | None = 1023
    """
    Largest contention window; it goes from w to 2w + 1 with every failure.
    """
    cw_min: int | None = 31
    """
    First contention window: a backoff is uniform from 0 to this many slots.
    """
    difs: Span | None = "50 us"
    """
    Idle time before backoff slots count.
    """
    eifs: Span | None = "364 us"
    """
    The same after a frame that the station listened to (see `locking`) and could not decode: SIFS, DIFS and the time of an ACK
    frame.
    """
    floor_w: float | None = 4.4e-13
    """
    A signal weaker than this, in watts, does not exist for its receiver.
    """
    frequency_hz: float | None = 914000000.0
    """
    Carrier frequency in hertz.
    """
    header_octets: int | None = 28
    """
    Octets of MAC header and frame check sequence of a data frame.
    """
    height_m: float | None = 1.5
    """
    Height of the antennas above ground in metres; 0 for free space.
    """
    llc_octets: int | None = 8
    """
    Octets of LLC and SNAP headers of a data frame.
    """
    locking: Locking | None = "sensed"
    """
    Which of several signals a receiver listens to.
    """
    long_retries: Uint32OrNone | None = 4
    """
    Attempts before a packet whose RTS was answered is given up.
    """
    noise_w: float | None = 4.4e-13
    """
    Thermal noise at every receiver in watts.
    """
    power_w: float | None = 0.2818
    """
    Transmitted power in watts.
    """
    preamble: Span | None = "192 us"
    """
    Time of preamble and PLCP header in front of every frame.
    """
    queue: Capacity | None = "50 pkt"
    """
    Interface queue of each station, for all its neighbours together. The packet in service is not counted.
    """
    rate: Rate | None = "2 Mbps"
    """
    Bit rate of data frames: 1, 2, 5.5 or 11 Mbps in 802.11b.
    """
    receive_w: float | None = 3.652e-10
    """
    Least power in watts at which a frame can be decoded.
    """
    rts: SizeOrNone | None = "1 B"
    """
    Data frames of at least this length, MAC header included, begin with RTS/CTS: `"1 B"` for all, `"none"` for none.
    """
    rts_octets: int | None = 20
    """
    Octets of an RTS frame.
    """
    sense_w: float | None = 1.559e-11
    """
    Power in watts, of all signals together, from which on the medium is busy.
    """
    short_retries: Uint32OrNone | None = 7
    """
    Attempts before a packet without RTS/CTS, or an RTS, is given up.
    """
    sifs: Span | None = "10 us"
    """
    Short interframe space: between the frames of one exchange.
    """
    slot: Span | None = "20 us"
    """
    Time of a backoff slot.
    """


@dataclass(kw_only=True)
class Chain:
    """
    Stations in a row, `hops` hops of `spacing` each: host `node0`, routers `node1`, `node2`, … and a host at the other end. Flows
    that do not say `from` and `to` go from `node0` to the other end. `[radio]` says what stations they are.
    """

    hops: int
    """
    Number of hops.
    """
    input: Input | None = None
    """
    What happens to packets that have arrived at `node0` or at the other end.
    """
    spacing: Length | None = "200 m"
    """
    Distance from each station to the next; `"200 m"` if nothing is said.
    """


@dataclass(kw_only=True)
class Change:
    """
    What is different from some time on. Each field stays as it is then until another change.
    """

    at: Span
    """
    From when on.
    """
    channel: Channel | None = None
    """
    What the link does to packets whose transmission ends from now on; `{}` for nothing. Patterns are not possible here.
    """
    delay: Span | None = None
    """
    Propagation delay of packets whose transmission ends from now on.
    """
    queue: Capacity | None = None
    """
    Room in the queue for packets that come from now on.
    """
    rate: Rate | None = None
    """
    Bit rate, also of what a packet in transmission still has to send. Not with a `trace`.
    """


@dataclass(kw_only=True)
class Direction:
    """
    What is different in one direction of a link. What is not given here is as it is in both directions.
    """

    change: list[Change] | None = None
    """
    What becomes different while time passes; the times ascend.
    """
    channel: Channel | None = None
    """
    What the link does to packets.
    """
    delay: Span | None = None
    """
    One-way propagation delay.
    """
    discipline: Discipline | None = None
    """
    What the queue does beside dropping at the tail.
    """
    duplicate: Probability | None = None
    """
    Probability of a packet that arrives to arrive twice.
    """
    jitter: Jitter | None = None
    """
    An extra delay that differs from packet to packet.
    """
    outage: list[Outage] | None = None
    """
    When the link is down.
    """
    overtaking: bool | None = None
    """
    Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
    soon arrives together with the one before it. What `reorder` picks overtakes all the same.
    """
    policer: Policer | None = None
    """
    A token bucket in front of the queue that drops what exceeds it.
    """
    queue: Capacity | None = None
    """
    How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
    """
    rate: Rate | None = None
    """
    Bit rate over all octets of an IP packet.
    """
    reorder: Reorder | None = None
    """
    A share of the packets leaves the order.
    """
    trace: str | None = None
    """
    A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
    packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
    """
    trace_octets: Size | None = None
    """
    Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
    """


@dataclass(kw_only=True)
class Host:
    """
    A host, or several of a kind: flows start and end here.
    """

    name: str
    """
    What links, flows and tables call it.
    """
    count: int | None = None
    """
    How many there are of the kind; 1 if nothing is said. With more than one they are `name.0`, `name.1`, …; a `[[link]]` that names the kind joins
    each of them, and each flow that does takes the next of them.
    """
    input: Input | None = None
    """
    What happens to packets that have arrived.
    """
    move: list[Move] | None = None
    """
    When it moves from one of its links to another, as a mobile host from base station to base station, in ascending order. It is attached to
    the first `[[link]]` that names it until its first move, and to one at a time: the others are down.
    """
    position: list[Length] | None = None
    """
    Where it stands, if it has a radio: two coordinates.
    """


@dataclass(kw_only=True)
class Link:
    """
    A link between two nodes. What stands here holds for both directions; `forward` and `reverse` say what differs.
    """

    between: list[str]
    """
    The nodes that it joins. Forward is from the first to the second. Hosts that are several of a kind have a link each, `name.0`,
    `name.1`, …; two kinds of the same number are joined in pairs.
    """
    change: list[Change] | None = None
    """
    What becomes different while time passes; the times ascend.
    """
    channel: Channel | None = None
    """
    What the link does to packets.
    Nothing if nothing is said.
    """
    delay: Span | None = None
    """
    One-way propagation delay.
    If nothing is said it is `"0 ms"`.
    """
    delay_to: Span | None = None
    """
    Where there are several links: the `delay` of the last. From that of the first on they lie in equal distances.
    """
    discipline: Discipline | None = None
    """
    What the queue does beside dropping at the tail.
    Nothing if nothing is said.
    """
    duplicate: Probability | None = None
    """
    Probability of a packet that arrives to arrive twice.
    If nothing is said it is 0.
    """
    forward: Direction | None = None
    """
    What is different in the forward direction: from the first to the second end, the direction of the data in `[path]`
    and `[dumbbell]`.
    """
    jitter: Jitter | None = None
    """
    An extra delay that differs from packet to packet.
    None if nothing is said.
    """
    name: str | None = None
    """
    Its name; the names of its ends with a hyphen between them if nothing is said.
    """
    outage: list[Outage] | None = None
    """
    When the link is down.
    Never if nothing is said.
    """
    overtaking: bool | None = None
    """
    Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
    soon arrives together with the one before it. What `reorder` picks overtakes all the same.
    If nothing is said they may not.
    """
    policer: Policer | None = None
    """
    A token bucket in front of the queue that drops what exceeds it.
    None if nothing is said.
    """
    queue: Capacity | None = None
    """
    How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
    If nothing is said it is `"100 pkt"`.
    """
    rate: Rate | None = None
    """
    Bit rate over all octets of an IP packet.
    Needed, unless there is a `trace`.
    """
    reorder: Reorder | None = None
    """
    A share of the packets leaves the order.
    None if nothing is said.
    """
    reverse: Direction | None = None
    """
    What is different in the reverse direction.
    """
    trace: str | None = None
    """
    A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
    packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
    """
    trace_octets: Size | None = None
    """
    Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
    If nothing is said it is `"1504 B"`.
    """


@dataclass(kw_only=True)
class Links:
    """
    Links that are all alike, apart from their delays.
    """

    change: list[Change] | None = None
    """
    What becomes different while time passes; the times ascend.
    """
    channel: Channel | None = None
    """
    What the link does to packets.
    Nothing if nothing is said.
    """
    delay: Span | None = None
    """
    One-way propagation delay.
    If nothing is said it is `"0 ms"`.
    """
    delay_to: Span | None = None
    """
    The `delay` of the last. From that of the first on they lie in equal distances; all are the same if nothing is said.
    """
    discipline: Discipline | None = None
    """
    What the queue does beside dropping at the tail.
    Nothing if nothing is said.
    """
    duplicate: Probability | None = None
    """
    Probability of a packet that arrives to arrive twice.
    If nothing is said it is 0.
    """
    forward: Direction | None = None
    """
    What is different in the forward direction: from the first to the second end, the direction of the data in `[path]`
    and `[dumbbell]`.
    """
    jitter: Jitter | None = None
    """
    An extra delay that differs from packet to packet.
    None if nothing is said.
    """
    outage: list[Outage] | None = None
    """
    When the link is down.
    Never if nothing is said.
    """
    overtaking: bool | None = None
    """
    Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
    soon arrives together with the one before it. What `reorder` picks overtakes all the same.
    If nothing is said they may not.
    """
    policer: Policer | None = None
    """
    A token bucket in front of the queue that drops what exceeds it.
    None if nothing is said.
    """
    queue: Capacity | None = None
    """
    How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
    If nothing is said it is `"100 pkt"`.
    """
    rate: Rate | None = None
    """
    Bit rate over all octets of an IP packet.
    Needed, unless there is a `trace`.
    """
    reorder: Reorder | None = None
    """
    A share of the packets leaves the order.
    None if nothing is said.
    """
    reverse: Direction | None = None
    """
    What is different in the reverse direction.
    """
    trace: str | None = None
    """
    A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
    packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
    """
    trace_octets: Size | None = None
    """
    Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
    If nothing is said it is `"1504 B"`.
    """


@dataclass(kw_only=True)
class Path:
    """
    Host `server` sends to host `client` over the router `emulator`. The link `path`, from `emulator` to `client`, is the shaped
    one; the link `access` joins `server` and `emulator`.
    """

    access: Access | None = field(default_factory=lambda: Access(delay="0 ns", queue="1000 pkt", rate="100 Mbps"))
    """
    The link between `server` and `emulator`.
    """
    change: list[Change] | None = None
    """
    What becomes different while time passes; the times ascend.
    """
    channel: Channel | None = None
    """
    What the link does to packets.
    Nothing if nothing is said.
    """
    delay: Span | None = None
    """
    One-way propagation delay.
    If nothing is said it is `"0 ms"`.
    """
    discipline: Discipline | None = None
    """
    What the queue does beside dropping at the tail.
    Nothing if nothing is said.
    """
    duplicate: Probability | None = None
    """
    Probability of a packet that arrives to arrive twice.
    If nothing is said it is 0.
    """
    forward: Direction | None = None
    """
    What is different in the forward direction: from the first to the second end, the direction of the data in `[path]`
    and `[dumbbell]`.
    """
    jitter: Jitter | None = None
    """
    An extra delay that differs from packet to packet.
    None if nothing is said.
    """
    outage: list[Outage] | None = None
    """
    When the link is down.
    Never if nothing is said.
    """
    overtaking: bool | None = None
    """
    Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
    soon arrives together with the one before it. What `reorder` picks overtakes all the same.
    If nothing is said they may not.
    """
    policer: Policer | None = None
    """
    A token bucket in front of the queue that drops what exceeds it.
    None if nothing is said.
    """
    queue: Capacity | None = None
    """
    How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
    If nothing is said it is `"100 pkt"`.
    """
    rate: Rate | None = None
    """
    Bit rate over all octets of an IP packet.
    Needed, unless there is a `trace`.
    """
    reorder: Reorder | None = None
    """
    A share of the packets leaves the order.
    None if nothing is said.
    """
    reverse: Direction | None = None
    """
    What is different in the reverse direction.
    """
    trace: str | None = None
    """
    A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
    packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
    """
    trace_octets: Size | None = None
    """
    Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
    If nothing is said it is `"1504 B"`.
    """


@dataclass(kw_only=True)
class Shape:
    """
    What shapes a link. What stands here holds for both directions; `forward` and `reverse` say what differs.
    """

    change: list[Change] | None = None
    """
    What becomes different while time passes; the times ascend.
    """
    channel: Channel | None = None
    """
    What the link does to packets.
    Nothing if nothing is said.
    """
    delay: Span | None = None
    """
    One-way propagation delay.
    If nothing is said it is `"0 ms"`.
    """
    discipline: Discipline | None = None
    """
    What the queue does beside dropping at the tail.
    Nothing if nothing is said.
    """
    duplicate: Probability | None = None
    """
    Probability of a packet that arrives to arrive twice.
    If nothing is said it is 0.
    """
    forward: Direction | None = None
    """
    What is different in the forward direction: from the first to the second end, the direction of the data in `[path]`
    and `[dumbbell]`.
    """
    jitter: Jitter | None = None
    """
    An extra delay that differs from packet to packet.
    None if nothing is said.
    """
    outage: list[Outage] | None = None
    """
    When the link is down.
    Never if nothing is said.
    """
    overtaking: bool | None = None
    """
    Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
    soon arrives together with the one before it. What `reorder` picks overtakes all the same.
    If nothing is said they may not.
    """
    policer: Policer | None = None
    """
    A token bucket in front of the queue that drops what exceeds it.
    None if nothing is said.
    """
    queue: Capacity | None = None
    """
    How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
    If nothing is said it is `"100 pkt"`.
    """
    rate: Rate | None = None
    """
    Bit rate over all octets of an IP packet.
    Needed, unless there is a `trace`.
    """
    reorder: Reorder | None = None
    """
    A share of the packets leaves the order.
    None if nothing is said.
    """
    reverse: Direction | None = None
    """
    What is different in the reverse direction.
    """
    trace: str | None = None
    """
    A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
    packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
    """
    trace_octets: Size | None = None
    """
    Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
    If nothing is said it is `"1504 B"`.
    """


@dataclass(kw_only=True)
class Dumbbell:
    """
    Hosts `sender0`, `sender1`, … behind the router `left`, hosts `receiver0`, `receiver1`, … behind the router `right`, and the link
    `bottleneck` from `left` to `right`. Flows that do not say `from` and `to` go from `sender0` to `receiver0`, from `sender1` to
    `receiver1`, and so on.
    """

    bottleneck: Shape
    """
    The shared link.
    """
    pairs: int | None = None
    """
    Number of senders and of receivers; one for each flow if nothing is said.
    """
    receivers: Links | None = field(default_factory=lambda: Links())
    """
    The links `receiver0`, `receiver1`, …; forward is away from the bottleneck. 1 Gbps, 0 ms and 1000 pkt where nothing is said.
    """
    senders: Links | None = field(default_factory=lambda: Links())
    """
    The links `sender0`, `sender1`, …; forward is towards the bottleneck. 1 Gbps, 0 ms and 1000 pkt where nothing is said.
    """


@dataclass(kw_only=True)
class Document:
    """
    A scenario: a network, what is sent over it, and what is written down.

    The network is `[path]` (one shaped link), `[dumbbell]` (one bottleneck, many pairs), `[chain]` (radio stations in a row), or free:
    `[[host]]`, `[[router]]`, `[[link]]`.
    """

    chain: Chain | None = None
    """
    Radio stations in a row.
    """
    dumbbell: Dumbbell | None = None
    """
    Pairs of hosts that share one bottleneck.
    """
    flow: list[Flow] | None = field(default_factory=list)
    """
    What is sent: one entry for each kind of flow.
    """
    host: list[Host] | None = None
    """
    Hosts of a free network.
    """
    link: list[Link] | None = None
    """
    Links of a free network.
    """
    middlebox: list[Middlebox] | None = None
    """
    Agents at routers. Of several of one link, the last is the nearest to the link.
    """
    output: Output | None = field(default_factory=lambda: Output(drops=False))
    """
    What is written down beside flows, losses and links.
    """
    path: Path | None = None
    """
    A server and a client joined by one shaped link, as with a link emulator between two machines.
    """
    radio: Radio | None = None
    """
    The radio channel of `[chain]`, or of the nodes of a free network that have a position.
    """
    router: list[Router] | None = None
    """
    Routers of a free network.
    """
    scenario: Header | None = field(default_factory=lambda: Header(seed=1, send_overhead="0 ns"))
    """
    Name, seed and duration.
    """
