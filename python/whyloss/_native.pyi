"""The Rust extension module."""

from typing import TypedDict

VERSION: str

class SchemeRow(TypedDict):
    name: str
    summary: str
    reference: str
    congestion: str
    differentiator: str
    reaction: str
    timeout: str
    receiver: str

class ParameterRow(TypedDict):
    name: str
    summary: str
    allowed: str
    default: float | bool | str

class PartRow(TypedDict):
    role: str
    name: str
    summary: str
    reference: str
    parameters: list[ParameterRow]

def schemes() -> list[SchemeRow]: ...
def parts() -> list[PartRow]: ...
def profiles() -> list[str]: ...
