//! Errors of the lab as Python exceptions.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::{create_exception, PyErr};
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

/// The exception that says what `error` says.
pub fn raise(error: &Error) -> PyErr {
    match error {
        Error::Input(_) => InputError::new_err(error.to_string()),
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        _ => WhylossError::new_err(error.to_string()),
    }
}
