//! The commands of a package without the kernel part.

use crate::{Error, Result};
use std::path::Path;

/// There is none.
pub use std::convert::Infallible as Held;

/// Says why not.
pub fn check() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn load(_controls: &[String]) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn hold(_controls: &[String]) -> Result<Held> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn unload() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn list() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn choose(_control: Option<&str>, _port: Option<u16>, _prefix: Option<&str>, _cgroup: Option<&Path>) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Says why not.
pub fn stat() -> Result<()> {
    Err(Error::NotBuilt)
}

/// None.
pub fn counters() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}

/// None.
pub fn report_counters() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}
