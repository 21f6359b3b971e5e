"""Who judges losses better? Score differentiators against the truth on the very same losses.

Run it with ``.venv/bin/python examples/first_steps.py``.
"""

from pathlib import Path

import polars as pl

import whyloss as wl

HERE = Path(__file__).parent


def main() -> None:
    # One flow decides by `none`; `reported` listens in shadow: it judges every loss and changes nothing.
    scenario = wl.Scenario.load(HERE / "lossy-link.toml").replace(
        {"flow[0].scheme": "newreno", "flow[0].receiver": "checksum", "flow[0].shadows": ["reported"]}
    )
    results = scenario.run()
    print(results.transfers)

    losses = pl.DataFrame(results.losses)  # shared, not copied
    print(losses.group_by("true_cause", "verdict", "verdict_reported").len().sort("len", descending=True))

    # The same transfer at three rates of bit errors, ten runs of each, on all cores.
    sweep = wl.Sweep(scenario, runs=10).vary("path.forward.channel.ber", [1e-7, 1e-6, 5e-6])
    goodput = pl.DataFrame(sweep.run().transfers).group_by("ber").agg(pl.col("goodput_bps").mean() / 1e3)
    print(goodput.sort("ber"))


if __name__ == "__main__":
    main()
