"""How much does a capture tell about its losses? For ``marimo edit``."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")


@app.cell
def _():
    import pathlib
    import tempfile

    import marimo as mo
    import polars as pl

    import whyloss as wl
    from whyloss import captures

    return captures, mo, pathlib, pl, tempfile, wl


@app.cell
def _(mo):
    mo.md(
        """
        # What a capture tells

        Two senders share a link that loses one packet in 200 by chance, and its queue overflows, too. The simulator
        captures the packets at the host that sends. A comment on each packet that was lost says why, so what is read
        from the capture can be compared with what happened.
        """
    )


@app.cell
def _(pathlib, tempfile, wl):
    link = wl.Scenario.parse(
        """
        [scenario]
        duration = "30 s"
        [path]
        rate = "10 Mbps"
        delay = "20 ms"
        queue = "33 pkt"
        forward.channel.loss = "0.5 %"
        [[flow]]
        scheme = "cubic"
        [[flow]]
        scheme = "bbr"
        [output]
        capture = ["server"]
        """
    )
    with tempfile.TemporaryDirectory() as folder:
        link.run(captures=folder)
        capture = next(pathlib.Path(folder).glob("*.pcapng")).read_bytes()
    return capture, link


@app.cell
def _(capture, captures, pathlib, tempfile):
    with tempfile.TemporaryDirectory() as folder_of_capture:
        file = pathlib.Path(folder_of_capture) / "link.pcapng"
        file.write_bytes(capture)
        # Put the name of a capture of your own here; only ours hold the truth, so leave out its score.
        explained = captures.explain(file)
        score = explained.score()
    return explained, score


@app.cell
def _(explained, mo):
    mo.md(f"{explained.summary.sentence}\n\n{explained.summary.about}")


@app.cell
def _(explained, pl):
    causes = (
        explained.losses.to_polars()
        .group_by("connection", "cause")
        .agg(pl.len().alias("packets"), pl.col("p_corruption").mean().round(2).alias("mean probability of corruption"))
        .sort("connection", "cause")
    )
    causes
    return (causes,)


@app.cell
def _(mo):
    mo.md("Every loss has the evidence for its cause in words:")


@app.cell
def _(explained):
    evidence = explained.losses.to_polars().select("time_s", "cause", "evidence").head(5)
    evidence
    return (evidence,)


@app.cell
def _(pl, score):
    truth = pl.DataFrame(score.counts["causes"])
    truth
    return (truth,)


@app.cell
def _(mo, score):
    right, of = (
        sum(row["count"] for row in score.counts["causes"] if row["said"] == row["truth"]),
        sum(row["count"] for row in score.counts["causes"]),
    )
    mo.md(f"The cause is right for {right} of {of} losses. `docs/captures-accuracy.md` has other paths.")


if __name__ == "__main__":
    app.run()
