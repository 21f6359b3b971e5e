"""Writes python/whyloss/format.py, the scenario format as Python types, from its JSON Schema."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from whyloss import _native, files

TARGET = Path(__file__).parent.parent / "python" / "whyloss" / "format.py"

HEADER = '''"""The scenario format as Python types, for :class:`whyloss.Scenario`.

Generated from the schema of the scenario format by ``make generated``.
"""
'''


def generate() -> str:
    """The module's text."""
    with tempfile.TemporaryDirectory() as folder:
        schema, module = Path(folder, "scenario.json"), Path(folder, "format.py")
        schema.write_text(json.dumps(_native.scenario_schema()), encoding="utf-8")
        options = (
            "--input-file-type=jsonschema --output-model-type=dataclasses.dataclass --target-python-version=3.11"
            " --class-name=Document --enum-field-as-literal=all --keyword-only --use-schema-description"
            " --use-field-description --use-union-operator --use-standard-collections --disable-timestamp"
            " --disable-warnings --formatters ruff-format"
        )
        command = [sys.executable, "-W", "ignore", "-m", "datamodel_code_generator", *options.split()]
        subprocess.run(
            [*command, "--input", str(schema), "--output", str(module), "--custom-file-header", HEADER], check=True
        )
        text = module.read_text(encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    files.write(TARGET, generate())
