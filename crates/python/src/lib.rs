//! The Python extension module `whyloss._native`: the one crate that knows Python.
//!
//! It translates and nothing else. Names, defaults and messages come from the crates below, so that Python, the command line and a
//! scenario file say the same.
#![forbid(unsafe_code)]
// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod catalogue;
mod convert;
mod error;
mod explain;
mod interrupt;
mod kernel;
mod observer;
mod panic;
mod pattern;
mod plugin;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod real;
mod scenario;
mod sweep;
mod table;
mod views;

use pyo3::pymodule;

/// What `import whyloss` stands on.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::catalogue::{causes, describe, parts, profiles, scenario_schema, schemes, sweep_schema};
    #[pymodule_export]
    use super::error::{InputError, PartError, UnavailableError, WhylossError};
    #[pymodule_export]
    use super::explain::{
        capture_series, detail_tables, explain, explain_annotate, explain_details, explain_score, explanation_judges,
        explanation_tables, in_time_order, Details, Explanation,
    };
    #[pymodule_export]
    use super::interrupt::Progress;
    #[pymodule_export]
    use super::kernel::{
        kernel_check, kernel_consequences, kernel_counters, kernel_list, kernel_load, kernel_report_counters, kernel_schemes,
        kernel_stat, kernel_take_back, kernel_unload, kernel_use, KernelHeld,
    };
    #[pymodule_export]
    use super::observer::Observer;
    #[pymodule_export]
    use super::panic::panic;
    #[pymodule_export]
    use super::pattern::write_pattern;
    #[pymodule_export]
    use super::plugin::add_part;
    #[pymodule_export]
    use super::real::{Bed, Bridge, BulkTransfer, WireHost};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::sweep::{Precision, Sweep};
    #[pymodule_export]
    use super::table::{file_digest, read_table, table_names, Results, Table};
    #[pymodule_export]
    use super::views::{
        Ack, AfterTimeout, Assessment, Loss, PathInfo, Response, Sent, Timeout, TimeoutResponse, Verdict, Window,
    };

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const ENGINE: &str = whyloss_lab::ENGINE;

    #[pymodule_export]
    use pyo3::panic::PanicException;

    #[pymodule_init]
    // PyO3 wants a result.
    #[allow(clippy::unnecessary_wraps)]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::panic::explain_panics();
        Ok(())
    }
}
