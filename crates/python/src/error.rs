//! Errors of the lab as Python exceptions.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::{create_exception, PyErr};
use std::fmt;
use whyloss_lab::Error;

create_exception!(whyloss, WhylossError, PyException, "A run failed, or a file could not be read or written.");
create_exception!(
    whyloss,
    InputError,
    WhylossError,
    "A scenario, sweep or override is wrong. The message names file, field, what was found and what is allowed."
);

create_exception!(
    whyloss,
    UnavailableError,
    WhylossError,
    "This machine, or this user, cannot do it. The message says what is missing."
);

create_exception!(
    whyloss,
    PartError,
    WhylossError,
    "A part of one's own failed in a run: names the part, its method, its file and line. What it raised is the cause (`__cause__`)."
);

/// What a part in Python raised.
#[derive(Debug)]
pub struct Raised {
    /// File, and the line in it where there is one.
    place: String,
    error: PyErr,
}

impl Raised {
    /// `file` is that of the part.
    pub fn new(py: Python<'_>, error: PyErr, file: &str) -> Self {
        // Whatever an exception makes of its traceback, it is told.
        let line = line_in(py, &error, file).ok().flatten();
        let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}, line {line}"));
        Self { place, error }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.error)
    }
}

impl std::error::Error for Raised {}

/// The innermost line of `file` among those that `error` came through.
fn line_in(py: Python<'_>, error: &PyErr, file: &str) -> PyResult<Option<u32>> {
    let mut line = None;
    let mut step = error.traceback(py).map(Bound::into_any);
    while let Some(at) = step {
        if at.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract::<String>()? == file {
            line = Some(at.getattr("tb_lineno")?.extract()?);
        }
        step = Some(at.getattr("tb_next")?).filter(|next| !next.is_none());
    }
    Ok(line)
}

/// What `error` says, without the number that Rust adds to what the system said.
pub fn told(error: impl fmt::Display) -> String {
    let text = error.to_string();
    let Some((before, after)) = text.split_once(" (os error ") else { return text };
    match after.split_once(')') {
        Some((number, rest)) if number.bytes().all(|digit| digit.is_ascii_digit()) => format!("{before}{rest}"),
        _ => text,
    }
}

/// The exception that says what `error` says.
pub fn raise(error: &Error) -> PyErr {
    match error {
        Error::Input(_) => InputError::new_err(told(error)),
        Error::Part(failure) => Python::attach(|py| {
            let raised = PartError::new_err(error.to_string());
            raised.set_cause(py, failure.source.downcast_ref::<Raised>().map(|raised| raised.error.clone_ref(py)));
            raised
        }),
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        _ => WhylossError::new_err(told(error)),
    }
}
