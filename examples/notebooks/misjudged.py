"""Which losses does a sender misjudge, and what does that cost? For ``marimo edit``."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import polars as pl

    import whyloss as wl

    return mo, pl, wl


@app.cell
def _(mo):
    mo.md(
        """
        # Which losses are misjudged?

        One link, three senders, the same errors. The simulator knows why each packet was lost; the sender has to guess.
        """
    )


@app.cell
def _(wl):
    link = wl.Scenario.parse(
        """
        [scenario]
        duration = "30 s"
        [path]
        rate = "10 Mbps"
        delay = "20 ms"
        queue = "33 pkt"
        forward.channel.loss = "1 %"
        [[flow]]
        scheme = "cubic"
        """
    )
    sweep = wl.Sweep(link, runs=5).vary("flow[0].scheme", ["cubic", "lda-eq", "bbr"], name="sender")
    results = sweep.run()
    return link, results, sweep


@app.cell
def _(pl, results):
    goodput = (
        results.transfers.to_polars()
        .group_by("sender", maintain_order=True)
        .agg((pl.col("goodput_bps").mean() / 1e6).round(2).alias("Mbit/s"))
    )
    goodput
    return (goodput,)


@app.cell
def _(mo):
    mo.md("`true_class` is what happened, `verdict` what the sender made of it. Where they differ, it was wrong.")


@app.cell
def _(pl, results):
    losses = results.losses.to_polars().filter(pl.col("true_class").is_not_null() & pl.col("verdict").is_not_null())
    misjudged = (
        losses.with_columns(wrong=pl.col("true_class").cast(pl.String) != pl.col("verdict").cast(pl.String))
        .group_by("sender", maintain_order=True)
        .agg(pl.len().alias("losses"), (pl.col("wrong").mean() * 100).round(1).alias("misjudged (%)"))
    )
    misjudged
    return losses, misjudged


@app.cell
def _(goodput, misjudged, mo):
    mo.md(
        f"""
        CUBIC takes every loss for congestion, so it is wrong about each loss by chance; it is right about those of a
        full queue, which its start makes. LDA_EQ is wrong about {misjudged["misjudged (%)"][1]} % and gets
        {goodput["Mbit/s"][1]} Mbit/s instead of {goodput["Mbit/s"][0]}. BBR is wrong as often as CUBIC, and does not
        care: its rate does not follow single losses.
        """
    )


if __name__ == "__main__":
    app.run()
