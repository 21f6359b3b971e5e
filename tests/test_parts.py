"""Parts of one's own whose methods are Python."""

# ruff: noqa: ARG001, ARG002, ARG005 (a part need not use what it is given)
from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import whyloss as wl
from conftest import ROOT
from equal_parts import Scale, Vegas
from whyloss import _native, parts
from whyloss.parts import (
    Ack,
    Assessment,
    Choice,
    CongestionControl,
    Flag,
    Loss,
    LossDifferentiator,
    Number,
    Reaction,
    Response,
    TimeoutPolicy,
    TimeoutResponse,
    Verdict,
    Window,
    add_file,
    add_part,
)

if TYPE_CHECKING:
    from pathlib import Path

# Losses of both kinds, timeouts of both kinds, and reductions that are undone.
SCENARIO = """
scenario.seed = 11
scenario.duration = "60 s"
[path]
rate = "4 Mbps"
delay = "30 ms"
queue = "15 pkt"
forward.channel.loss = "1 %"
reorder = { share = "0.5 %", late = "30 ms" }
outage = [{ at = "5 s", lasts = "400 ms", every = "10 s", packets = "held" }]
[[flow]]
profile = "linux"
"""


# What leaves more to the retransmission timer.
BARE = {"rack": False, "tlp": False}


@pytest.fixture(autouse=True)
def added() -> None:
    assert add_file(ROOT / "tests" / "equal_parts.py") == [
        "vegas-in-python",
        "gaimd-in-python",
        "newreno-in-python",
        "scale-in-python",
        "f-rto-in-python",
        "eifel-in-python",
        "aware-in-python",
        "regain-in-python",
    ]


def tables(scenario: wl.Scenario) -> dict[str, pl.DataFrame]:
    """All tables of a run, with the names of parts in Python replaced by those of the engine."""
    results = scenario.run()
    found = {name: pl.DataFrame(results._native.table(name)) for name in _native.table_names()}
    return {
        name: table.rename(lambda column: column.replace("-in-python", "")).with_columns(
            pl.col("scheme").str.replace_all("-in-python", "") if "scheme" in table.columns else []
        )
        for name, table in found.items()
    }


def flow(loss: str = "1 %", **fields: object) -> wl.Scenario:
    own = {f"flow[0].{name}": value for name, value in fields.items()}
    return wl.Scenario.parse(SCENARIO).replace({"path.forward.channel.loss": loss, **own})


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"differentiator": "vegas", "reaction": "keep"}, "losses"),
        ({"shadows": ["vegas"]}, "losses"),
        ({"congestion": "gaimd"}, "timeouts"),
        ({"congestion": "newreno", "parameters": {"newreno": {"hystart": False}}}, "undos"),
        ({"differentiator": "vegas", "reaction": "scale", "parameters": {"scale": {"factor": 0.5}}}, "losses"),
        ({"timeout": "eifel"}, "spurious_timeouts"),
        ({"timeout": "f-rto", "tcp": {"timestamps": False}}, "spurious_timeouts"),
        ({"timeout": "f-rto", "tcp": {"timestamps": False, "sack": False}}, "spurious_timeouts"),
        ({"loss": "8 %", "differentiator": "oracle", "timeout": "aware", "tcp": BARE}, "forgiven_timeouts"),
        (
            {
                "loss": "8 %",
                "differentiator": "oracle",
                "timeout": "aware",
                "tcp": {**BARE, "sack": False, "timestamps": False},
                "parameters": {"aware": {"exit": "paced", "in_a_row": 2}},
            },
            "forgiven_timeouts",
        ),
        ({"loss": "8 %", "differentiator": "oracle", "timeout": "regain", "tcp": BARE}, "timeouts"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else value,
)
def test_a_part_in_python_gives_the_numbers_of_the_same_part_in_the_engine(fields: dict[str, Any], seen: str) -> None:
    engine = tables(flow(**fields))
    assert engine["flows"][seen][0] >= 3, "the case has to be met"
    own = {"vegas", "gaimd", "newreno", "scale", "eifel", "f-rto", "aware", "regain"}

    def renamed(value: Any) -> Any:
        match value:
            case str():
                return f"{value}-in-python" if value in own else value
            case list():
                return [renamed(item) for item in value]
            case dict():
                # A part in Python has no HyStart.
                return {renamed(key): item for key, item in value.items() if key != "newreno"}
        return value

    python = tables(flow(**{name: renamed(value) for name, value in fields.items()}))
    assert python.keys() == engine.keys()
    for name, table in engine.items():
        assert python[name].equals(table), name


def test_a_parameter_reaches_the_part() -> None:
    narrow = flow(congestion="gaimd-in-python", parameters={"gaimd-in-python": {"alpha": 2.0, "beta": 0.5}})
    engine = flow(congestion="gaimd", parameters={"gaimd": {"alpha": 2.0, "beta": 0.5}})
    assert tables(narrow)["flows"].equals(tables(engine)["flows"])
    assert not tables(narrow)["flows"].equals(tables(flow(congestion="gaimd-in-python"))["flows"])
    with pytest.raises(wl.InputError, match=r"gaimd-in-python\.beta: found 1; allowed: a number from 0\.1 to 0\.99"):
        flow(congestion="gaimd-in-python", parameters={"gaimd-in-python": {"beta": 1.0}})


def test_threads_do_not_change_a_result() -> None:
    sweep = wl.Sweep(
        flow(congestion="gaimd-in-python", shadows=["vegas-in-python"]).replace({"scenario.duration": "10 s"}), runs=8
    )
    alone, together = (sweep.run(threads=threads).losses.to_polars() for threads in (1, 4))
    assert len(alone) > 100
    assert alone.equals(together)


class Kinds(Reaction):
    """Has a parameter of each kind."""

    name, summary, reference = "kinds", "Says what it is given.", "a test"
    number = Number(2, 0, 5, "A number")
    flag = Flag(True, "A flag")
    word = Choice("one", "two", summary="A word")
    heard: list[tuple[float, bool, str]] = []  # noqa: RUF012 (the test reads it)

    def __init__(self) -> None:
        self.heard.append((self.number, self.flag, self.word))

    def respond(self, verdict: Verdict, loss: Loss) -> Response:
        return Response.keep()


def test_parameters_of_each_kind_are_described_and_checked() -> None:
    add_part(Kinds)
    (told,) = _native.describe("kinds")
    assert told["kind"] == "reaction"
    assert [name for name, _ in told["details"]] == ["number", "flag", "word"]
    Kinds.heard.clear()
    flow(reaction="kinds")
    flow(reaction="kinds", parameters={"kinds": {"number": 3.5, "flag": False, "word": "two"}})
    assert set(Kinds.heard) == {(2.0, True, "one"), (3.5, False, "two")}
    with pytest.raises(wl.InputError, match=r'kinds\.word: found "three"; allowed: one, two'):
        flow(reaction="kinds", parameters={"kinds": {"word": "three"}})


FAILING = """
from whyloss.parts import *

class Failing(Reaction):
    name, summary, reference = "failing", "Fails at a loss.", "a test"
    fails = Flag(True, "Whether it does")
    zero = 0

    def respond(self, verdict, loss):
        if self.fails:
            return self._divide(1)
        return Response.keep()

    def _divide(self, number):
        return number / self.zero
"""


def test_an_exception_ends_the_run_and_names_file_line_part_and_method(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(FAILING)
    assert add_file(file) == ["failing"]
    with pytest.raises(wl.PartError) as told:
        flow(reaction="failing").run()
    assert (
        str(told.value) == f"respond of the part `failing` failed: {file}, line 15: ZeroDivisionError: division by zero"
    )
    assert isinstance(told.value.__cause__, ZeroDivisionError)
    assert isinstance(told.value, wl.WhylossError)
    # It is over with that run.
    assert len(flow(reaction="scale-in-python").run().losses) > 0


def test_what_was_computed_before_an_exception_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(FAILING)
    add_file(file)
    store = tmp_path / "store"
    scenario = flow(reaction="failing", parameters={"failing": {"fails": False}}).replace({"scenario.duration": "10 s"})
    sweep = wl.Sweep(scenario, runs=3).vary("flow[0].parameters.failing.fails", [False, True])
    with pytest.raises(wl.PartError):
        sweep.run(store=store, threads=1)
    assert found(wl.Sweep(scenario, runs=3), store) == 3


def found(sweep: wl.Sweep, store: Path) -> int:
    """How many runs of ``sweep`` were in the store."""
    told: list[wl.Progress] = []
    sweep.run(store=store, progress=told.append)
    return told[-1].found


def test_a_changed_file_is_computed_anew(tmp_path: Path) -> None:
    file, store = tmp_path / "own.py", tmp_path / "store"

    def sweep(text: str) -> wl.Sweep:
        file.write_text(text)
        add_file(file)
        return wl.Sweep(flow(reaction="failing", parameters={"failing": {"fails": False}}), runs=2)

    changed = FAILING.replace("Response.keep()", "Response.scale(0.9)")
    assert found(sweep(FAILING), store) == 0
    assert found(sweep(FAILING), store) == 2
    assert found(sweep(changed), store) == 0
    assert found(sweep(changed.replace("zero = 0", "version = '2'")), store) == 0
    assert found(sweep(FAILING), store) == 2
    plain = flow().native.digest(0)
    add_part(Vegas)
    assert flow().native.digest(0) == plain, "what does not name it does not depend on it"


def part(role: type[parts.Part], **fields: Any) -> type[Any]:
    return type("Made", (role,), {"name": "made", "summary": "Made.", "reference": "a test", **fields})


def policy(**methods: Any) -> type[Any]:
    """A timeout policy as the standard one, with other ``methods``."""
    standard = {
        "on_timeout": lambda self, timeout: TimeoutResponse(),
        "assess": lambda self, after: Assessment.genuine(),
    }
    return part(TimeoutPolicy, **{**standard, **methods})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            part(LossDifferentiator, judge=lambda self, loss: "congestion"),
            "judge returned 'congestion'; allowed: a Verdict",
        ),
        (part(LossDifferentiator, judge=lambda self, loss: None), "judge returned None; allowed: a Verdict"),
        (part(LossDifferentiator, judge=lambda self, loss: Verdict("guilt")), "no cause: .*allowed: congestion, corr"),
        (
            part(LossDifferentiator, judge=lambda self, loss: Verdict("congestion", 1.5)),
            "score of 1.5; allowed: 0 to 1",
        ),
        (part(Reaction, respond=lambda self, verdict, loss: verdict), "respond returned Verdict.*allowed: a Response"),
        (part(Reaction, respond=lambda self, verdict, loss: Response.scale(0.0)), "factor of 0; allowed: above 0"),
        (
            part(Reaction, respond=lambda self, verdict, loss: Response.limit(-1)),
            "no number of octets; allowed: 0 to 1e15",
        ),
        (
            part(Reaction, respond=lambda self, verdict, loss: Response.keep(), on_ack=lambda self, ack: 1),
            "on_ack returned 1; allowed: None",
        ),
        (
            part(CongestionControl, on_ack=lambda self, window, ack: None, threshold=lambda self, window, path: None),
            "threshold returned None; allowed: octets, a number from 0 to 1e15",
        ),
        (
            part(
                CongestionControl,
                on_ack=lambda self, window, ack: None,
                threshold=lambda self, window, path: float("nan"),
            ),
            "threshold returned nan; allowed: octets",
        ),
        (
            part(
                CongestionControl,
                on_ack=lambda self, window, ack: None,
                threshold=lambda self, window, path: window.grow(1),
            ),
            "the window cannot be changed here",
        ),
        (
            part(
                CongestionControl,
                on_ack=lambda self, window, ack: window.grow(float("inf")),
                threshold=lambda self, window, path: window.cwnd,
            ),
            "inf is no number of octets; allowed: 0 to 1e15",
        ),
        (part(Reaction, respond=lambda self, verdict, loss: loss.path.cwnds), "no attribute 'cwnds'"),
        (policy(on_timeout=lambda self, timeout: "collapse"), "on_timeout returned 'collapse'; allowed: a TimeoutR"),
        (
            policy(on_timeout=lambda self, timeout: TimeoutResponse("shrink")),
            'no window: "shrink"; allowed: collapse, regain, keep, keep-paced, keep-at-once',
        ),
        (policy(assess=lambda self, after: None), "assess returned None; allowed: an Assessment"),
        (policy(assess=lambda self, after: Assessment.forgiven(64)), "64 halvings; allowed: 0 to 63"),
        (policy(assess=lambda self, after: Assessment.forgiven(-1)), "-1 halvings; allowed: 0 to 63"),
        (
            policy(assess=lambda self, after: Assessment.forgiven(exit="fast")),
            'no exit: "fast"; allowed: slow-s',
        ),
        (policy(on_ack=lambda self, ack: ack), "on_ack returned .*; allowed: None"),
    ],
)
def test_a_wrong_answer_is_told(made: type[parts.Part], message: str) -> None:
    add_part(made)
    role = next(name for base, name in parts.ROLES.items() if issubclass(made, base))
    with pytest.raises(wl.PartError, match=message):
        flow(**{role: "made"}).run()


def test_a_policy_hears_that_its_timeout_was_taken_back() -> None:
    undone: list[Any] = []
    taught = policy(
        on_timeout=lambda self, timeout: TimeoutResponse(head_only=True),
        assess=lambda self, after: Assessment.undecided(),
        on_undone=lambda self: undone.append(self),
    )
    add_part(taught)
    # What an outage holds for longer than the timer arrives after all; the first segment twice, and D-SACK says so.
    # Repairs that were under way before would leave it open.
    calm = {"path.reorder.share": "0 %", "path.queue": "40 pkt"}
    flows = flow(loss="0 %", timeout="made", tcp={**BARE, "max_window": "40 kB"}).replace(calm).run().flows.to_polars()
    assert flows["spurious_timeouts"][0] >= 1, "the case has to be met"
    assert len(undone) == flows["spurious_timeouts"][0]


def test_answers_show_how_they_are_made() -> None:
    for made in (
        TimeoutResponse(),
        TimeoutResponse("keep", back_off=False, head_only=True),
        Assessment.undecided(),
        Assessment.repairing(),
        Assessment.genuine(),
        Assessment.spurious(),
        Assessment.forgiven(),
        Assessment.forgiven(2, timer=True, exit="paced"),
        Response.scale(0.5),
        Verdict("corruption", 0.75),
    ):
        again = eval(repr(made), vars(parts))
        assert again == made, repr(made)
    assert Assessment.forgiven() != Assessment.forgiven(1)
    assert TimeoutResponse() != TimeoutResponse("regain")


def test_a_window_that_was_kept_moves_nothing() -> None:
    kept: list[Window] = []

    def on_ack(self: Any, window: Window, ack: Ack) -> None:
        kept.append(window)
        kept[0].cwnd = 10_000

    add_part(part(CongestionControl, on_ack=on_ack, threshold=lambda self, window, path: window.cwnd))
    with pytest.raises(wl.PartError, match="the window cannot be changed here"):
        flow(congestion="made").run()
    assert len(kept) == 2, "the first may be changed, and not after its call"


def test_a_part_that_cannot_be_made_is_told_when_the_scenario_is_checked() -> None:
    def fail(self: Any) -> None:
        raise RuntimeError("not today")

    add_part(part(Reaction, __init__=fail, respond=lambda self, verdict, loss: Response.keep()))
    with pytest.raises(wl.PartError, match=r"__init__ of the part `made` failed: .*RuntimeError: not today"):
        flow(reaction="made")


def keep(self: Any, verdict: Verdict, loss: Loss) -> Response:
    return Response.keep()


async def later(self: Any, verdict: Verdict, loss: Loss) -> Response:
    return Response.keep()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (part(Reaction), "no method `respond`; a Reaction needs it"),
        (part(CongestionControl), "no method `on_ack` and no method `threshold`"),
        (
            part(Reaction, respond=keep, on_akc=lambda self, ack: None),
            r"`on_akc` is no method of a Reaction \(did you mean `on_ack`\?\); it has on_ack, respond; own ones begin",
        ),
        (part(Reaction, respond=keep, helper=lambda self: None), "`helper` is no method of a Reaction; it has"),
        (part(Reaction, respond=lambda self, verdict: None), r"`respond` takes .*; allowed: \(self, verdict, loss\)"),
        (part(Reaction, respond=later), "allowed: a plain method"),
        (part(Reaction, respond=keep, on_ack=3), "`on_ack` is 3; allowed: a plain method"),
        (part(Reaction, respond=keep, name=""), "`name` is ''; allowed: text of 1 to"),
        (part(Reaction, respond=keep, name="Made It"), "cannot be called `Made It`; a name is made of small letters"),
        (part(Reaction, respond=keep, name="keep"), "there is a reaction `keep` already"),
        (part(Reaction, respond=keep, summary=None), "`summary` is None; allowed: text"),
        (part(Reaction, respond=keep, summary="x" * 2000), "`summary` is 'xxx.*…; allowed: text of 1 to 1000"),
        (
            part(Reaction, respond=keep, **{f"p{number}": Flag(True, "A flag") for number in range(65)}),
            "65 parameters; allowed: up to 64",
        ),
        (part(Reaction, respond=keep, p=Flag(True, "")), "the summary of `p` is ''; allowed: text"),
        (dict, "no part; allowed: a subclass of one of CongestionControl, LossDifferentiator, Reaction, TimeoutPolicy"),
        (Reaction, "no part; allowed"),
        (3, "3 is no part"),
    ],
)
def test_a_class_that_cannot_be_a_part_is_told_at_once(made: Any, message: str) -> None:
    with pytest.raises(wl.InputError, match=message):
        add_part(made)


def test_parameters_out_of_their_own_bounds_are_refused() -> None:
    for mistake in (
        lambda: Number(3, 0, 2, "x"),
        lambda: Number(3, 0, float("inf"), "x"),
        lambda: Number(float("nan"), 0, 1, "x"),
        lambda: Choice(summary="x"),
    ):
        with pytest.raises(wl.InputError, match="allowed"):
            mistake()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("x = 1", "no part in it; allowed: subclasses of CongestionControl"),
        ("x = (", "own.py, line 1: '\\(' was never closed"),
        ("x = 1\nimport no_such_module", "own.py, line 2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(3)", "own.py, line 2: SystemExit: 3"),
        (
            FAILING.replace("def respond", "def respond_to"),
            r"own.py: Failing: `respond_to` is no method.*did you mean `respond`",
        ),
        (b"\xff\xfe", "own.py: octet 0 is no UTF-8"),
        ("#" * (1 << 20) + "\n", "larger than a part may be; allowed: up to 1048576 octets"),
    ],
)
def test_a_file_that_gives_no_part_is_told(tmp_path: Path, text: str | bytes | None, message: str) -> None:
    file = tmp_path / "own.py"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(wl.InputError, match=message):
        add_file(file)


def test_parts_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_added", parts.MOST_PARTS - 1)
    add_part(Scale)
    with pytest.raises(wl.InputError, match="one part more than the 1000 that a process can add"):
        add_part(Scale)


def test_every_method_is_documented() -> None:
    page = (ROOT / "docs" / "own-parts.md").read_text()
    for role, name in itertools.chain.from_iterable(
        ((role, name) for name in parts._protocol(role)) for role in parts.ROLES
    ):
        assert f"`{name}(" in page, f"{role.__name__}.{name}"
    for seen in (parts.PathInfo, parts.Ack, parts.Sent, parts.Loss, parts.Timeout, parts.AfterTimeout, parts.Window):
        for name in vars(seen):
            assert name.startswith("_") or f"`{name}`" in page, f"{seen.__name__}.{name}"
