"""Help texts: an example first, then what the command does, then its options."""

from __future__ import annotations

import inspect
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whyloss import _native
from whyloss.cli.listing import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["STATUSES", "Command", "Group", "ask_for_linux"]

#: What click says of words that a command has no place for.
_EXTRA = re.compile(r"unexpected extra arguments? \((.+)\)")
#: Options that name what is written. Folders on the way there are made.
_WRITTEN = frozenset({"--annotate", "--calibration", "--html", "--out", "--plot", "--wireshark-profile"})
#: What every command's exit status means.
STATUSES = ("0 done", "1 failed", "2 bad input", "130 interrupted", "141 nobody reads the output")


def ask_for_linux(command: str, why: str) -> None:
    """Raises what says that ``command`` works on Linux alone, anywhere else; ``why`` says what it needs of it."""
    if not sys.platform.startswith("linux"):
        raise _native.UnavailableError(
            f"`{command}` needs Linux, for {why}; simulations, papers and captures work here too"
        )


class _Helpful(click.Command):
    """Whose help begins with examples and ends with what the exit status means."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), also: Sequence[str] = (), linux: str = "", **kwargs: Any
    ) -> None:
        """Takes the examples, exit statuses of its own and what it needs Linux for, beside what every command takes."""
        super().__init__(*args, **kwargs)
        self.linux = linux
        self.examples = examples
        self.also = also

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments; a path that is empty, a number that is none and text that is no UTF-8 are mistakes."""
        files = [param for param in self.params if isinstance(param.type, click.Path)]
        places = {name: param for param in files for name in param.opts if name.startswith("-")}
        options = [param for param in self.params if isinstance(param, click.Option) and not param.is_flag]
        valued = {name for param in options for name in param.opts}
        named = next((param for param in files if isinstance(param, click.Argument)), None)
        for before, here in zip(["", *args], args, strict=False):
            param = places.get(before) if here == "" else places.get(here[:-1]) if here.endswith("=") else None
            if here == "" and before not in valued:
                param = named
            if param is not None:
                raise click.BadParameter("found ''; allowed: a path", ctx, param)
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as mistake:
            if meant := self._meant(mistake):
                raise click.UsageError(mistake.format_message() + meant, ctx) from None
            raise
        for param in self.params:
            value = ctx.params.get(param.name or "")
            if isinstance(value, float) and not math.isfinite(value):
                raise click.BadParameter(f"found {value}; allowed: a finite number", ctx, param)
            # File names and words for other programs may have any octets.
            for text in _texts(value) if param.type is click.STRING and not ctx.resilient_parsing else ():
                if (seen := _escaped(text)) != text:
                    raise click.BadParameter(f"found '{seen}'; allowed: text in UTF-8", ctx, param)
        if not ctx.resilient_parsing:
            for param in self.params:
                for option in _WRITTEN.intersection(param.opts):
                    _tell_of_folder(option, ctx.params.get(param.name or ""))
        return rest

    def _meant(self, mistake: click.UsageError) -> str:
        """Where that could have stood which stands in the wrong place."""
        if isinstance(mistake, click.NoSuchOption) and isinstance(self, click.Group):
            option = mistake.option_name
            found = [name for name, one in self.commands.items() if any(option in param.opts for param in one.params)]
            return f" It goes behind a command: {', '.join(found)}." if found else ""
        extra = _EXTRA.search(mistake.message)
        schemes = {one["name"] for one in _native.schemes()} if extra and self._takes("--scheme") else set()
        if extra and schemes.issuperset(extra[1].split()):
            return f". Schemes are named by options: {' '.join(f'--scheme {name}' for name in extra[1].split())}"
        return ""

    def _takes(self, option: str) -> bool:
        return any(option in param.opts for param in self.params)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes all of it; the examples as they stand, so that they can be copied."""
        if self.examples:
            with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
            formatter.write_paragraph()
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what the exit status means."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        if written := [option for param in self.params for option in param.opts if option in _WRITTEN]:
            formatter.write_text(
                f"Folders in the path of {' or '.join(written)} that are not there yet are made, and named."
            )
            formatter.write_paragraph()
        formatter.write_text(f"Exit status: {', '.join((*STATUSES, *self.also))}.")

    def first_sentence(self) -> str:
        """What a list of commands says of it."""
        paragraph = inspect.cleandoc(self.help or "").split("\n\n")[0]
        return " ".join(paragraph.split()).split(". ")[0].removesuffix(".") + "."


class Command(_Helpful):
    """A command."""

    def invoke(self, ctx: click.Context) -> Any:
        """Carries it out, where it can be; what a group needs its commands need, too."""
        up: click.Context | None = ctx
        while up is not None:
            if why := getattr(up.command, "linux", ""):
                ask_for_linux(ctx.command_path, why)
            up = up.parent
        return super().invoke(ctx)


class Group(_Helpful, click.Group):
    """Commands under headings, each with its whole first sentence."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]] | None = None, **kwargs: Any) -> None:
        """Takes the names of commands under each heading; without headings they stand as they were added."""
        super().__init__(*args, **kwargs)
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what there is, under its headings."""
        del ctx
        sections = dict(self.sections or {"Commands": list(self.commands)})
        named = {name for names in sections.values() for name in names}
        if others := [name for name in self.commands if name not in named]:
            sections["Others"] = others
        longest = max(map(len, self.commands), default=0)
        for heading, names in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{longest}}", self.sentence(name)) for name in names])

    def sentence(self, name: str) -> str:
        """What a list of commands says of one."""
        command = self.commands[name]
        return command.first_sentence() if isinstance(command, _Helpful) else command.get_short_help_str(limit=200)


def _tell_of_folder(option: str, out: object) -> None:
    """Says that the folder of an output is not there yet: it is made, and its name could be mistyped."""
    folder = out.parent if isinstance(out, Path) else Path()
    # What nobody gave a place lies in `out`.
    if folder not in (Path(), Path("out")) and not folder.exists():
        click.echo(printable(f"{folder}: there is no such folder yet; it is made for {option}"), err=True)


def _texts(value: object) -> list[str]:
    """The text that was given to an option or argument, once or several times."""
    return [one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, str)]


def _escaped(text: str) -> str:
    """The text, with the numbers of octets that are no UTF-8 in their place."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
