//! The Python extension module `whyloss._native`: the one crate that knows Python.
//!
//! It translates and nothing else. Names, defaults and messages come from the crates below, so that Python, the command line and a
//! scenario file say the same.
#![forbid(unsafe_code)]

mod catalogue;

use pyo3::prelude::*;

/// What `import whyloss` stands on.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::catalogue::{parts, profiles, schemes};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
