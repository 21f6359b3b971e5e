"""What of Python's packages an installation may lack, and which extra brings it."""

from __future__ import annotations

__all__ = ["hint"]

#: Modules that the base installation has not, and the extra that brings each.
EXTRAS = {
    "dask_gateway": "cluster",
    "dask_jobqueue": "cluster",
    "distributed": "cluster",
    "obstore": "cluster",
    "PIL": "plot",
    "matplotlib": "plot",
    "numpy": "plot",
    "scipy": "plot",
    "jinja2": "report",
    "markdown_it": "report",
    "markupsafe": "report",
    "prometheus_client": "top",
    "textual": "top",
}


def hint(missing: ModuleNotFoundError) -> str | None:
    """What to install to get the module that was not found; ``None`` if no extra brings it."""
    module = (missing.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    return extra and f"this needs {module}: pip install 'whyloss[{extra}]' brings it, 'whyloss[all]' everything"
