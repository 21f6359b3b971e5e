//! What can go wrong, said so that the user can put it right.

use crate::extension::PartFailure;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use whyloss_transport::kit::ArgumentError;

/// Why a scenario or sweep could not be read, run or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is wrong: a program should end with status 2.
    #[error(transparent)]
    Input(#[from] Box<InputError>),
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written: it is not there, or is what it was before.
    #[error("cannot write {}: {source}{}", path.display(), if full(source) { "; make room and run it again" } else { "" })]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Runs of a plan could not be written to its store. They are written in parts: those that are whole are kept.
    #[error("cannot write {}: {source}; {kept} of {total} runs are kept, {lost} that were computed are not{}", path.display(), if full(source) { ": make room and run it again" } else { "" })]
    Keep {
        /// Path of the part, or of its folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
        /// Runs that are in the store.
        kept: usize,
        /// Runs that were computed and are not there.
        lost: usize,
        /// Runs of the plan.
        total: usize,
    },
    /// There is less memory or disk than this takes.
    #[error("no room: {what}, but {has}; allowed: {way_out}")]
    Room {
        /// What takes how much.
        what: String,
        /// How much there is.
        has: String,
        /// What fits.
        way_out: String,
    },
    /// A part that is not ours could not go on.
    #[error(transparent)]
    Part(Box<PartFailure>),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The simulation contradicted itself: a bug of the simulator, never the user's fault.
    #[error("run {run} of {scenario} broke an invariant: {message}")]
    Broken {
        /// Name of the scenario.
        scenario: String,
        /// Number of the run.
        run: u32,
        /// What went wrong, in words.
        message: String,
    },
}

impl Error {
    /// The exit status that a program should end with: 2 for bad input, 130 after cancellation, 1 otherwise.
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Cancelled => 130,
            _ => 1,
        }
    }
}

fn full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// A mistake in a scenario, a sweep or an override: where it stands, what was found, what is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputError {
    /// File and line, if known.
    pub place: Place,
    /// The field, such as `link[0].rate`; empty for the whole document.
    pub field: String,
    /// What is wrong, if found and allowed do not say it.
    pub problem: Option<String>,
    /// The value that was given.
    pub found: Option<String>,
    /// The values that are allowed, in words.
    pub allowed: Option<String>,
    /// What was probably meant.
    pub nearest: Option<String>,
}

/// Where a value stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, or what else the value came from (`--set`).
    pub origin: Arc<str>,
    /// The line, from 1; 0 if not known.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.origin.is_empty(), self.line) {
            (true, 0) => Ok(()),
            (true, line) => write!(f, "line {line}"),
            (false, 0) => f.write_str(&self.origin),
            (false, line) => write!(f, "{}:{line}", self.origin),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if self.place != Place::default() {
            write!(f, "{}", self.place)?;
            separator = ": ";
        }
        if !self.field.is_empty() {
            write!(f, "{separator}{}", self.field)?;
            separator = ": ";
        }
        for (label, text) in [("", &self.problem), ("found ", &self.found)] {
            if let Some(text) = text {
                write!(f, "{separator}{label}{text}")?;
                separator = "; ";
            }
        }
        if let Some(nearest) = &self.nearest {
            write!(f, " (did you mean `{nearest}`?)")?;
        }
        if let Some(allowed) = &self.allowed {
            write!(f, "{separator}allowed: {allowed}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InputError {}

impl InputError {
    /// A mistake that one sentence describes.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: Some(problem.into()), ..Self::default() }
    }

    /// Says which field it is about.
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// Adds what was found.
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Adds what is allowed.
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Adds what was probably meant.
    pub fn nearest(mut self, nearest: Option<impl Into<String>>) -> Self {
        self.nearest = nearest.map(Into::into);
        self
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

/// What does not fit the parameters of a part; `field` is where a parameter of this name stands.
pub(crate) fn argument(error: ArgumentError, field: impl FnOnce(&str) -> String) -> InputError {
    match error {
        ArgumentError::Unknown { name, allowed, .. } => {
            let near = nearest(&name, allowed.split(", ")).map(str::to_owned);
            InputError::new("unknown parameter").at(field(&name)).nearest(near).allowed(allowed)
        }
        ArgumentError::Unfit { name, found, allowed, .. } => InputError::default().at(field(name)).found(found).allowed(allowed),
    }
}

/// The one of `names` that is nearest to `found`, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found_lower = found.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::levenshtein(&name.to_lowercase(), &found_lower), name))
        .min()
        .filter(|(d, name)| *d <= name.chars().count().max(4) / 2 && *d < name.chars().count())
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_place_field_value_and_what_is_allowed() {
        let error = InputError {
            place: Place { origin: "a.toml".into(), line: 3 },
            field: "link[0].rate".into(),
            found: Some("\"-5 Mbps\"".into()),
            allowed: Some("a bit rate".into()),
            ..InputError::default()
        };
        assert_eq!(error.to_string(), "a.toml:3: link[0].rate: found \"-5 Mbps\"; allowed: a bit rate");
        assert_eq!(Error::from(error).exit_status(), 2);
    }

    #[test]
    fn the_nearest_name_is_given_only_if_it_is_near() {
        assert_eq!(nearest("rte", ["rate", "delay"]), Some("rate"));
        assert_eq!(nearest("NewReno", ["newreno", "sack"]), Some("newreno"));
        assert_eq!(nearest("xyzzy", ["rate", "delay"]), None);
    }
}
