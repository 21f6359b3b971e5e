//! The tables in words.

use super::columns::all;
use super::packets;
use super::set::NAMES;
use std::fmt::Write;
use whyloss_tables::describe;

const INTRODUCTION: &str = "\
# Results

<!-- Generated from the definitions of the tables: `UPDATE=1 cargo test -p whyloss-lab`. -->

Runs and sweeps leave Arrow tables, in memory or as one Parquet file a table. Units stand in the names of columns: `_ns` nanoseconds
of simulated time, `_bps` bits per second, `octets`, `packets`.

The tables of a sweep have, right after `run`: `point`, the number of the point, and one column for each axis with its values. An axis
whose values are all bit rates, times or sizes has a second column in plain numbers: `rate_bps`, `delay_ns`, `size_octets`. No table may
have a column of these names already; `name` gives the axis another one.

The file of a scenario says which tables fill: `samples` and `queues` need `output.sample`, `drops` needs `output.drops = true`,
`segments` needs `output.segments`.
";

/// The text of `docs/results.md`, from the definitions of the tables.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    let titles: [&str; NAMES.len()] = [
        "One row a run.",
        "One row a transfer: what an application sees, over one connection or striped over several.",
        "One row a scheme of a run: what its transfers got together.",
        "One row a connection or stream of datagrams.",
        "One row a loss that a sender noticed. Each differentiator that listens in shadow adds two columns, null for flows without it: \
         `verdict_<name>` and `score_<name>`.",
        "One row an expired retransmission timer.",
        "One row a packet that did not arrive.",
        "One row a packet that an endpoint of a flow sent, as it left: a segment of TCP, a packet of DCCP or a datagram.",
        "Time series of the senders.",
        "Time series of the queues.",
        "One row a direction of a link.",
        "One row an agent at a router: a `[[middlebox]]`.",
    ];
    for ((name, columns), title) in all().into_iter().zip(titles) {
        write!(text, "\n## `{name}`\n\n{title}\n\n| column | type | meaning |\n| --- | --- | --- |\n")
            .expect("a string takes all");
        describe(&mut text, &columns);
    }
    text
}

const PACKETS_INTRODUCTION: &str = "\
# The truth about each packet

<!-- Generated from the definition of the table: `UPDATE=1 cargo test -p whyloss-lab`. -->

What `whyloss emulate` and `whyloss testbed` write to `packets.parquet`, and what `Testbed.truth()` gives: one row for each packet that
came to an emulated link, two for a packet that the link duplicated. Times are nanoseconds of the machine's monotonic clock since the
emulator was started; the file's metadata has `start_unix_ns`, that moment in Unix time.

What the headers say is what they said before the link damaged anything.

| column | type | meaning |
| --- | --- | --- |
";

/// The text of `docs/packets.md`, from the definition of that table.
pub fn packets_markdown() -> String {
    let mut text = PACKETS_INTRODUCTION.to_owned();
    describe(&mut text, &packets::columns());
    text
}
