//! The commands of a package without the kernel part.

use crate::{Error, Result};
use std::path::Path;

/// No programs can be held without the kernel part.
#[derive(Debug)]
pub enum Held {}

impl Held {
    /// Never asked.
    pub fn is_there(&self) -> bool {
        match *self {}
    }
}

/// Refused: [`Error::NotBuilt`].
pub fn check() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn load(_controls: &[String]) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn hold(_controls: &[String]) -> Result<Held> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn lend(_controls: &[String]) -> Result<Held> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn consequences_of_unload() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn unload(_force: bool) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn list() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn choose(_control: Option<&str>, _port: Option<u16>, _prefix: Option<&str>, _cgroup: Option<&Path>) -> Result<()> {
    Err(Error::NotBuilt)
}

/// Refused: [`Error::NotBuilt`].
pub fn stat() -> Result<()> {
    Err(Error::NotBuilt)
}

/// Empty: nothing is counted without the kernel part.
pub fn counters() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}

/// Empty: nothing is counted without the kernel part.
pub fn report_counters() -> Vec<(&'static str, &'static str)> {
    Vec::new()
}
