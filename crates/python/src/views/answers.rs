//! What parts in Python answer.

use super::numbers::octets as whole;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use whyloss_transport::differentiation::{Cause, Verdict as EngineVerdict};
use whyloss_transport::kit::Choice;
use whyloss_transport::reaction::Response as EngineResponse;
use whyloss_transport::timeout::{self, Pardon};

/// What a differentiator says of a loss.
#[pyclass(frozen, eq, module = "whyloss.parts")]
#[derive(Clone, PartialEq)]
pub struct Verdict(pub EngineVerdict);

#[pymethods]
impl Verdict {
    #[new]
    #[pyo3(signature = (cause, score = 0.0))]
    fn new(cause: &str, score: f64) -> PyResult<Self> {
        let all = [Cause::Congestion, Cause::Corruption, Cause::Unknown];
        let known = all.into_iter().find(|known| known.name() == cause);
        let cause = known
            .ok_or_else(|| PyValueError::new_err(format!("no cause: {cause:?}; allowed: congestion, corruption, unknown")))?;
        if !(0.0..=1.0).contains(&score) {
            return Err(PyValueError::new_err(format!("a score of {score}; allowed: 0 to 1")));
        }
        Ok(Self(EngineVerdict { cause, score }))
    }

    #[staticmethod]
    fn by_threshold(score: f64, threshold: f64) -> PyResult<Self> {
        Self::new(EngineVerdict::by_threshold(score, threshold).cause.name(), score)
    }

    #[getter]
    fn cause(&self) -> &'static str {
        self.0.cause.name()
    }

    #[getter]
    fn score(&self) -> f64 {
        self.0.score
    }

    fn __repr__(&self) -> String {
        format!("Verdict({:?}, {})", self.0.cause.name(), self.0.score)
    }
}

/// What a reaction has fast recovery do to the window.
#[pyclass(frozen, eq, module = "whyloss.parts")]
#[derive(Clone, PartialEq)]
pub struct Response(pub EngineResponse);

#[pymethods]
impl Response {
    #[staticmethod]
    fn reduce() -> Self {
        Self(EngineResponse::Reduce)
    }

    #[staticmethod]
    fn keep() -> Self {
        Self(EngineResponse::Keep)
    }

    #[staticmethod]
    fn scale(factor: f64) -> PyResult<Self> {
        if !(factor > 0.0 && factor <= 1.0) {
            return Err(PyValueError::new_err(format!("a factor of {factor}; allowed: above 0, at most 1")));
        }
        Ok(Self(EngineResponse::Scale(factor)))
    }

    #[staticmethod]
    fn limit(octets: &Bound<'_, PyAny>) -> PyResult<Self> {
        whole(octets).map(|octets| Self(EngineResponse::Limit(octets as u64)))
    }

    fn __repr__(&self) -> String {
        match self.0 {
            EngineResponse::Reduce => "Response.reduce()".to_owned(),
            EngineResponse::Keep => "Response.keep()".to_owned(),
            EngineResponse::Scale(factor) => format!("Response.scale({factor})"),
            EngineResponse::Limit(octets) => format!("Response.limit({octets})"),
        }
    }
}

/// What a timeout policy does about an expired timer.
#[pyclass(frozen, eq, module = "whyloss.parts")]
#[derive(Clone, PartialEq)]
pub struct TimeoutResponse(pub timeout::TimeoutResponse);

#[pymethods]
impl TimeoutResponse {
    #[new]
    #[pyo3(signature = (window = "collapse", *, back_off = true, head_only = false))]
    fn new(window: &str, back_off: bool, head_only: bool) -> PyResult<Self> {
        Ok(Self(timeout::TimeoutResponse { window: word("window", window)?, back_off, head_only }))
    }

    fn __repr__(&self) -> String {
        let timeout::TimeoutResponse { window, back_off, head_only } = self.0;
        let [back_off, head_only] = [back_off, head_only].map(flag);
        format!("TimeoutResponse({:?}, back_off={back_off}, head_only={head_only})", window.name())
    }
}

/// What a timeout policy makes of a timeout after an acknowledgement.
#[pyclass(frozen, eq, module = "whyloss.parts")]
#[derive(Clone, PartialEq)]
pub struct Assessment(pub timeout::Assessment);

#[pymethods]
impl Assessment {
    #[staticmethod]
    fn undecided() -> Self {
        Self(timeout::Assessment::Undecided)
    }

    #[staticmethod]
    fn repairing() -> Self {
        Self(timeout::Assessment::Repairing)
    }

    #[staticmethod]
    fn genuine() -> Self {
        Self(timeout::Assessment::Genuine)
    }

    #[staticmethod]
    fn spurious() -> Self {
        Self(timeout::Assessment::Spurious)
    }

    #[staticmethod]
    #[pyo3(signature = (halvings = 0, *, timer = false, exit = "slow-start"))]
    fn forgiven(halvings: i64, timer: bool, exit: &str) -> PyResult<Self> {
        let halvings = u32::try_from(halvings)
            .ok()
            .filter(|halvings| *halvings <= MOST_HALVINGS)
            .ok_or_else(|| PyValueError::new_err(format!("{halvings} halvings; allowed: 0 to {MOST_HALVINGS}")))?;
        Ok(Self(timeout::Assessment::Forgiven(Pardon { halvings, timer, exit: word("exit", exit)? })))
    }

    fn __repr__(&self) -> String {
        match self.0 {
            timeout::Assessment::Undecided => "Assessment.undecided()".to_owned(),
            timeout::Assessment::Repairing => "Assessment.repairing()".to_owned(),
            timeout::Assessment::Genuine => "Assessment.genuine()".to_owned(),
            timeout::Assessment::Spurious => "Assessment.spurious()".to_owned(),
            timeout::Assessment::Forgiven(Pardon { halvings, timer, exit }) => {
                format!("Assessment.forgiven({halvings}, timer={}, exit={:?})", flag(timer), exit.name())
            }
        }
    }
}

/// More would leave nothing of any window.
const MOST_HALVINGS: u32 = 63;

/// The value that `given` names.
fn word<T: Choice>(what: &str, given: &str) -> PyResult<T> {
    T::named(given).ok_or_else(|| PyValueError::new_err(format!("no {what}: {given:?}; allowed: {}", T::NAMES.join(", "))))
}

/// As Python writes it.
fn flag(value: bool) -> &'static str {
    if value {
        "True"
    } else {
        "False"
    }
}
