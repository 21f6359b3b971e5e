//! The laboratory of whyloss: from a scenario file to tables.
//!
//! ```no_run
//! use whyloss_lab::{execute, run, Control, ExecuteOptions, RunOptions, Scenario, Sweep};
//!
//! let scenario = Scenario::load("lossy.toml")?.with_override("flow[0].scheme", "sack")?;
//! let tables = run(&scenario, &RunOptions::default(), &mut Control::default())?;
//! println!("{:?}", tables.losses);
//!
//! let plan = Sweep::load("sweep.toml")?.plan()?;
//! let options = ExecuteOptions { store: Some("store".into()), threads: None };
//! execute(&plan, &options, &mut Control::default())?.write_parquet("out", &[])?;
//! # Ok::<(), whyloss_lab::Error>(())
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::result_large_err, reason = "a mistake in the input ends the work: its size costs nothing")]

/// Values with their units, as they stand in scenario files.
pub use whyloss_transport::quantity;

/// The Arrow crates that the tables are made with, for those who bind them to another language.
pub use {arrow_array, arrow_schema};

mod axis;
mod channels;
mod control;
mod decode;
mod describe;
mod error;
mod execute;
mod expand;
mod extension;
mod flows;
pub mod format;
mod key;
mod labels;
mod middlebox;
mod network;
pub mod patterns;
mod precision;
mod recipe;
mod rewiring;
mod room;
mod run;
mod save;
mod scenario;
mod store;
mod sweep;
pub mod tables;
mod tree;
mod ways;
mod whole_file;
mod wires;
mod work;
mod workload;

pub use axis::{Axis, AxisStep};
pub use control::{Cancel, Control, Progress, Sampled};
pub use describe::{causes, describe, parts, profiles, schemes, Description};
pub use error::{Error, InputError, Place};
pub use execute::{execute, inputs_digest, missing, part_stems, ExecuteOptions};
pub use extension::{extend, fail, has_failed, PartFailure};
pub use format::schema;
pub use key::ENGINE;
pub use network::{Link, Network, NetworkNode, Placed, Transfer};
pub use precision::Precision;
pub use rewiring::Rewiring;
pub use run::{run, RunOptions};
pub use save::{save, save_run, SavedRun};
pub use scenario::Scenario;
pub use sweep::{schema as sweep_schema, Plan, Point, Sweep};
pub use tables::Tables;
pub use tree::{Located, Value};
pub use whyloss_sim::{NoticedLoss, Stretch};
pub use wires::{Direction, Wires};
pub use work::check_held;
pub use workload::TcpTransfer;
