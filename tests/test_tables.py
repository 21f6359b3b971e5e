"""Tables go to other tools without a copy of our own."""

import altair as alt
import duckdb
import pandas as pd
import plotly.express as px
import polars as pl
import pyarrow as pa
import pytest

import whyloss as wl
from conftest import ROOT


@pytest.fixture(scope="module")
def losses() -> wl.Table:
    return wl.Scenario.load(ROOT / "examples" / "lossy-link.toml").run().losses


def test_a_table_is_taken_as_it_is(losses: wl.Table) -> None:
    shape = (len(losses), len(losses.columns))
    assert shape[0] > 5
    assert pl.DataFrame(losses).shape == shape
    assert pa.table(losses).shape == shape
    assert pd.DataFrame.from_arrow(losses).shape == shape
    assert losses.to_pandas().shape == shape
    kept = losses.to_polars().filter(pl.col("judgement") == "kept").height
    counted = duckdb.sql("select count(*) from losses where judgement = 'kept'")
    assert counted is not None
    assert counted.fetchall() == [(kept,)]


def test_it_is_drawn_by_the_usual_tools(losses: wl.Table) -> None:
    frame = losses.to_polars()
    (dots,) = px.scatter(frame, x="at_ns", y="offset").data
    assert len(dots.x) == len(losses)
    chart = alt.Chart(frame).mark_point().encode(x="at_ns:Q", y="offset:Q").to_dict()
    (rows,) = chart["datasets"].values()
    assert len(rows) == len(losses)


def test_in_a_notebook_everything_is_a_table(losses: wl.Table) -> None:
    results = wl.Scenario.load(ROOT / "examples" / "lossy-link.toml").run()
    assert "payload-damaged" in losses._repr_html_()
    assert "results.losses" in results._repr_html_()


def test_a_sweep_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = wl.Sweep(wl.Scenario.load(ROOT / "examples" / "lossy-link.toml"), runs=3)
    assert len(sweep.run(progress=True).runs) == 3
    assert "3/3" in capsys.readouterr().out
