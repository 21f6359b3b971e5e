"""Parts of one's own: algorithms whose methods are Python, beside those of the engine.

>>> class Stubborn(Reaction):
...     name, summary, reference = "stubborn", "Keeps the window whatever was lost.", "nobody"
...
...     def respond(self, verdict, loss):
...         return Response.keep()
>>> add_part(Stubborn)
>>> Scenario.load("examples/lossy-link.toml").replace({"flow[0].reaction": "stubborn"}).run()
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import linecache
import math
import secrets
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, overload

from whyloss import _native
from whyloss._native import (
    Ack,
    AfterTimeout,
    Assessment,
    InputError,
    Loss,
    PathInfo,
    Response,
    Sent,
    Timeout,
    TimeoutResponse,
    Verdict,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

__all__ = [
    "Ack",
    "AfterTimeout",
    "Assessment",
    "Choice",
    "CongestionControl",
    "Flag",
    "Loss",
    "LossDifferentiator",
    "Number",
    "PathInfo",
    "Reaction",
    "Response",
    "Sent",
    "Timeout",
    "TimeoutPolicy",
    "TimeoutResponse",
    "Verdict",
    "Window",
    "add_file",
    "add_part",
]

T = TypeVar("T")
Given: TypeAlias = tuple[float, float, float] | list[str] | bool

#: Bounds on what one process adds. Parts stay until it ends, those that were replaced, too.
MOST_PARTS = 1000
MOST_PARAMETERS = 64
MOST_CHARACTERS = 1000
MOST_OCTETS = 1 << 20


class Parameter(Generic[T]):
    """A value that scenarios can set as ``parameters.PART.NAME``; for the part's methods it is ``self.NAME``."""

    def __init__(self, default: T, summary: str, given: Given) -> None:
        """Number, Flag and Choice are what is meant to be made."""
        self.default = default
        self.summary = summary
        self.given = given

    @overload
    def __get__(self, part: None, owner: type) -> Parameter[T]: ...
    @overload
    def __get__(self, part: object, owner: type) -> T: ...
    def __get__(self, part: object | None, owner: type) -> Parameter[T] | T:
        """The default; what a scenario sets stands in the object itself and comes first."""
        return self if part is None else self.default


class Number(Parameter[float]):
    """A number from ``low`` to ``high``."""

    def __init__(self, default: float, low: float, high: float, summary: str) -> None:
        """Refuses a default out of range."""
        if not (math.isfinite(low) and math.isfinite(high) and low <= default <= high):
            msg = f"a number of {default} from {low} to {high}; allowed: finite bounds around the default"
            raise InputError(msg)
        super().__init__(float(default), summary, (float(default), float(low), float(high)))


class Flag(Parameter[bool]):
    """Yes or no."""

    def __init__(self, default: bool, summary: str) -> None:
        """``default`` holds if nothing is said."""
        super().__init__(bool(default), summary, bool(default))


class Choice(Parameter[str]):
    """One of several words; the first is the default."""

    def __init__(self, *words: str, summary: str) -> None:
        """At least one word."""
        if not words or not all(isinstance(word, str) for word in words):
            msg = f"a choice of {words}; allowed: one word or more"
            raise InputError(msg)
        super().__init__(words[0], summary, list(words))


class Part(ABC):  # noqa: B024 (which methods there have to be is said by the roles)
    """What all parts have. Each end of a connection gets an object of its own, and so does each check of a scenario."""

    #: Its name in scenarios: small letters, digits and hyphens.
    name: ClassVar[str] = ""
    #: What it does, in one sentence.
    summary: ClassVar[str] = ""
    #: Where it comes from.
    reference: ClassVar[str] = ""
    #: To be changed where what the part does changes, but not its file: stored results are found by both.
    version: ClassVar[str] = ""


class CongestionControl(Part):
    """How the window grows, and how far it falls."""

    def on_established(self, window: Window, path: PathInfo) -> None:
        """The connection is established; ``window`` holds the initial window."""

    def on_sent(self, sent: Sent) -> None:
        """A segment with data left."""

    @abstractmethod
    def on_ack(self, window: Window, ack: Ack) -> None:
        """An acknowledgement arrived. Growth belongs here, but not while ``ack.in_recovery``."""

    @abstractmethod
    def threshold(self, window: Window, path: PathInfo) -> float:
        """A congestion signal: the slow-start threshold in octets, to which the window falls.

        ``window`` cannot be changed here.
        """

    def timeout_threshold(self, window: Window, path: PathInfo) -> float:
        """The same after a retransmission timeout; ``threshold`` if the part does not have it."""
        return self.threshold(window, path)

    def on_timeout(self, window: Window, path: PathInfo) -> None:
        """The timeout has collapsed the window."""

    def save(self) -> None:
        """Reductions may follow that prove wrong: note what ``on_undo`` will need."""

    def on_undo(self, window: Window, path: PathInfo) -> None:
        """The reductions since ``save`` proved wrong. The window comes back by itself; take back your own state."""


class LossDifferentiator(Part):
    """Why a segment was lost. It works at the sender, as the ruling one or in shadow."""

    def on_sent(self, sent: Sent) -> None:
        """A segment with data left."""

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrived."""

    @abstractmethod
    def judge(self, loss: Loss) -> Verdict:
        """Why was this lost?"""


class Reaction(Part):
    """What a verdict does to the window on fast recovery."""

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrived."""

    @abstractmethod
    def respond(self, verdict: Verdict, loss: Loss) -> Response:
        """What to do about the loss.

        Asked once an episode, and again if a later loss of it is judged congestion after the first was not.
        """


class TimeoutPolicy(Part):
    """What an expired retransmission timer does, and whether it was right."""

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrived, at any time; before ``assess``."""

    @abstractmethod
    def on_timeout(self, timeout: Timeout) -> TimeoutResponse:
        """The timer expired with data outstanding: what to do?"""

    @abstractmethod
    def assess(self, after: AfterTimeout) -> Assessment:
        """An acknowledgement arrived while the timeout is not yet assessed for good: what does it say?"""

    def on_undone(self) -> None:
        """The timeout was taken back: ``assess`` found it spurious, or the receiver's reports of duplicates do."""


ROLES: dict[type[Part], str] = {
    CongestionControl: "congestion",
    LossDifferentiator: "differentiator",
    Reaction: "reaction",
    TimeoutPolicy: "timeout",
}

_added = 0
_files: dict[str, str] = {}


def add_part(part: type[Part]) -> None:
    """Adds a part to what scenarios of this process can name.

    One of the same name and role that was added before is replaced; scenarios that exist already keep their meaning.
    Stored results are found again while the text of the file with the class, and its ``version``, stay as they are.
    Results of a class whose text cannot be found are computed each time anew.

    Raises:
        whyloss.InputError: the class is no part, misses a method or a name, has a method that nobody would call, or the
            name is taken.
    """
    role = _role(part)
    try:
        file, text = _source(part)
        _add(part, role, file, text)
    except InputError as mistake:
        msg = f"{part.__module__}.{part.__qualname__}: {mistake}"
        raise InputError(msg) from None


def add_file(path: str | PathLike[str]) -> list[str]:
    """Runs a Python file and adds the parts that it defines; gives their names.

    The file stands by itself: it can import what is installed, not its neighbours.

    Raises:
        whyloss.InputError: there is no such file, it cannot be run, it defines no part, or one that cannot be added.
    """
    file = Path(path)
    text = _read(file)
    module = ModuleType(f"whyloss_part_{hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:16]}")
    module.__file__ = str(file)
    # What a class of the file looks up of itself (as dataclasses do) it finds there.
    sys.modules[module.__name__] = module
    linecache.checkcache(str(file))
    try:
        exec(compile(text, str(file), "exec", dont_inherit=True), vars(module))
    except SyntaxError as mistake:
        msg = f"{file}, line {mistake.lineno}: {mistake.msg}"
        raise InputError(msg) from mistake
    except (Exception, SystemExit) as mistake:
        line = next((f", line {at}" for at in _lines(mistake, str(file))), "")
        msg = f"{file}{line}: {type(mistake).__name__}: {mistake}"
        raise InputError(msg) from mistake
    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    parts = [value for value in own if issubclass(value, Part) and (value.name or not inspect.isabstract(value))]
    if not parts:
        msg = f"{file}: no part in it; allowed: subclasses of {_allowed()}, with a name"
        raise InputError(msg)
    for part in parts:
        try:
            _add(part, _role(part), str(file), text)
        except InputError as mistake:
            msg = f"{file}: {part.__qualname__}: {mistake}"
            raise InputError(msg) from None
    _files[str(file.absolute())] = text
    return [part.name for part in parts]


def added_files() -> dict[str, str]:
    """The texts of the files whose parts this process has added, by their paths: for a process elsewhere."""
    return dict(_files)


def _add(part: type[Part], role: type[Part], file: str, text: str) -> None:
    global _added
    if _added >= MOST_PARTS:
        msg = f"one part more than the {MOST_PARTS} that a process can add"
        raise InputError(msg)
    _check_methods(part, role)
    for field in ("name", "summary", "reference", "version"):
        value = getattr(part, field)
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS or (not value and field != "version"):
            msg = f"`{field}` is {_short(value)}; allowed: text of 1 to {MOST_CHARACTERS} characters"
            raise InputError(msg)
    rows = [(name, parameter.summary, parameter.given) for name, parameter in _parameters(part).items()]

    def make(**values: object) -> Part:
        made = part.__new__(part)
        vars(made).update(values)
        made.__init__()  # type: ignore[misc]  # What it says of itself may use the values.
        return made

    methods = [name for name in _protocol(role) if getattr(part, name) is not getattr(role, name)]
    digest = hashlib.sha256("\0".join([part.__qualname__, part.version, text]).encode()).hexdigest()
    _native.add_part(ROLES[role], part.name, part.summary, part.reference, rows, make, methods, file, digest)
    _added += 1


def _allowed() -> str:
    return ", ".join(base.__name__ for base in ROLES)


def _role(part: object) -> type[Part]:
    roles = [base for base in ROLES if isinstance(part, type) and issubclass(part, base)]
    if len(roles) != 1 or part in ROLES:
        msg = f"{part!r} is no part; allowed: a subclass of one of {_allowed()}"
        raise InputError(msg)
    return roles[0]


def _protocol(role: type[Part]) -> dict[str, Callable[..., object]]:
    return {name: value for name, value in vars(role).items() if inspect.isfunction(value)}


def _own(part: type[Part]) -> Iterator[tuple[str, object]]:
    """What the class and its ancestors define, those of this module left out; what counts comes last."""
    for base in reversed(part.__mro__):
        if base not in {*ROLES, Part, ABC, object}:
            yield from vars(base).items()


def _parameters(part: type[Part]) -> dict[str, Parameter[Any]]:
    found = {name: value for name, value in _own(part) if isinstance(value, Parameter)}
    if len(found) > MOST_PARAMETERS:
        msg = f"{len(found)} parameters; allowed: up to {MOST_PARAMETERS}"
        raise InputError(msg)
    for name, parameter in found.items():
        if not isinstance(parameter.summary, str) or not 0 < len(parameter.summary) <= MOST_CHARACTERS:
            found_here = _short(parameter.summary)
            msg = f"the summary of `{name}` is {found_here}; allowed: text of 1 to {MOST_CHARACTERS} characters"
            raise InputError(msg)
    return found


def _check_methods(part: type[Part], role: type[Part]) -> None:
    """Every method that is asked for is there, takes what it is given, and every one that is there is asked for."""
    protocol = _protocol(role)
    known = ", ".join(protocol)
    for name, value in _own(part):
        if inspect.isfunction(value) and not name.startswith("_") and name not in protocol:
            near = difflib.get_close_matches(name, protocol, 1)
            meant = f" (did you mean `{near[0]}`?)" if near else ""
            msg = f"`{name}` is no method of a {role.__name__}{meant}; it has {known}; own ones begin with `_`"
            raise InputError(msg)
    missing = [name for name in protocol if name in part.__abstractmethods__]
    if missing:
        msg = f"no method {' and no method '.join(f'`{name}`' for name in missing)}; a {role.__name__} needs it"
        raise InputError(msg)
    for name, wanted in protocol.items():
        given = getattr(part, name)
        arguments = list(inspect.signature(wanted).parameters)
        if inspect.iscoroutinefunction(given) or inspect.isgeneratorfunction(given) or not callable(given):
            msg = f"`{name}` is {_short(given)}; allowed: a plain method ({', '.join(arguments)})"
            raise InputError(msg)
        try:
            inspect.signature(given).bind(*arguments)
        except TypeError:
            msg = f"`{name}` takes {inspect.signature(given)}; allowed: ({', '.join(arguments)})"
            raise InputError(msg) from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _read(file: Path) -> str:
    if not file.is_file():
        msg = f"{file}: there is no such file"
        raise InputError(msg)
    with file.open("rb") as opened:
        octets = opened.read(MOST_OCTETS + 1)
    if len(octets) > MOST_OCTETS:
        msg = f"{file}: it is larger than a part may be; allowed: up to {MOST_OCTETS} octets"
        raise InputError(msg)
    try:
        return octets.decode()
    except UnicodeDecodeError as mistake:
        msg = f"{file}: octet {mistake.start} is no UTF-8"
        raise InputError(msg) from None


def _source(part: type[Part]) -> tuple[str, str]:
    """The file with the class, as exceptions call it, and its text."""
    try:
        file = inspect.getsourcefile(part)
    except TypeError:
        file = None
    if file is not None and Path(file).is_file():
        return file, _read(Path(file))
    # A notebook, for instance.
    try:
        text = inspect.getsource(part)
    except (OSError, TypeError):
        text = secrets.token_hex()
    code = next((value.__code__.co_filename for _, value in _own(part) if inspect.isfunction(value)), part.__module__)
    return code, text


def _lines(mistake: BaseException, file: str) -> Iterator[int]:
    """The lines of ``file`` that an exception came through, the innermost first."""
    lines = []
    step = mistake.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            lines.append(step.tb_lineno)
        step = step.tb_next
    return reversed(lines)
