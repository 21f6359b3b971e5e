//! Scalable TCP and NewReno, one after the other, on the path of a scenario file.
//!
//! `cargo run --bin simulate -- ../random-loss.toml`

use own_algorithm::{DIGEST, PART};
use std::error::Error;
use whyloss_lab::arrow_array::{Array, Float64Array};
use whyloss_lab::{extend, run, Control, RunOptions, Scenario};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a scenario file, such as ../random-loss.toml")?;
    extend(&PART, DIGEST)?;
    for name in ["newreno", "scalable"] {
        let scenario = Scenario::load(&path)?.with_override("flow[0].congestion", name)?;
        let tables = run(&scenario, &RunOptions::default(), &mut Control::default())?;
        let column = tables.transfers.column_by_name("goodput_bps").ok_or("no goodput")?;
        let goodput = column.as_any().downcast_ref::<Float64Array>().ok_or("no numbers")?;
        println!("{name:<9} {:.2} Mbps", goodput.value(0) / 1e6);
    }
    Ok(())
}
