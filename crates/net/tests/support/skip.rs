//! Tests that cannot run everywhere.

use std::io::{self, Write};

/// Says on standard error why a test is skipped. Not by `eprintln!`, whose words the test runner keeps to itself.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(io::stderr(), "{test} skipped: {reason}");
}
