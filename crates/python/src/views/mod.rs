//! What a part in Python sees of a connection. Nothing here but the window can be changed, and that only where a congestion control is asked to.
//!
//! Times are whole nanoseconds, as in the tables of results, so that a part in Python computes what the same part in Rust does.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use whyloss_transport::congestion::Window as EngineWindow;
use whyloss_transport::differentiation::{Cause, Verdict as EngineVerdict};
use whyloss_transport::path;
use whyloss_transport::reaction::Response as EngineResponse;
use whyloss_transport::Duration;

fn nanos(span: Option<Duration>) -> Option<u64> {
    span.map(Duration::as_nanos)
}

/// What a sender knows of its path.
#[pyclass(frozen, module = "whyloss.parts")]
pub struct PathInfo(pub path::Path);

#[pymethods]
impl PathInfo {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now.as_nanos()
    }
    #[getter]
    fn srtt_ns(&self) -> Option<u64> {
        nanos(self.0.srtt)
    }
    #[getter]
    fn rttvar_ns(&self) -> u64 {
        self.0.rttvar.as_nanos()
    }
    #[getter]
    fn rto_ns(&self) -> u64 {
        self.0.rto.as_nanos()
    }
    #[getter]
    fn latest_rtt_ns(&self) -> Option<u64> {
        nanos(self.0.latest_rtt)
    }
    #[getter]
    fn min_rtt_ns(&self) -> Option<u64> {
        nanos(self.0.min_rtt)
    }
    #[getter]
    fn max_rtt_ns(&self) -> Option<u64> {
        nanos(self.0.max_rtt)
    }
    #[getter]
    fn cwnd(&self) -> u64 {
        self.0.cwnd
    }
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }
    #[getter]
    fn pipe(&self) -> u64 {
        self.0.pipe
    }
    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    #[getter]
    fn una(&self) -> u64 {
        self.0.una
    }
    #[getter]
    fn nxt(&self) -> u64 {
        self.0.nxt
    }
}

/// An acknowledgement.
#[pyclass(frozen, module = "whyloss.parts")]
pub struct Ack {
    path: path::Path,
    #[pyo3(get)]
    acked: u64,
    #[pyo3(get)]
    delivered: u64,
    #[pyo3(get)]
    rtt_ns: Option<u64>,
    #[pyo3(get)]
    delay_ns: Option<u64>,
    #[pyo3(get)]
    newest_sent_at_ns: Option<u64>,
    #[pyo3(get)]
    duplicate: bool,
    #[pyo3(get)]
    ece: bool,
    #[pyo3(get)]
    in_recovery: bool,
    #[pyo3(get)]
    window_limited: bool,
}

impl From<&path::Ack<'_>> for Ack {
    fn from(ack: &path::Ack<'_>) -> Self {
        Self {
            path: ack.path.clone(),
            acked: ack.acked,
            delivered: ack.delivered,
            rtt_ns: nanos(ack.rtt),
            delay_ns: nanos(ack.delay),
            newest_sent_at_ns: ack.newest_sent_at.map(whyloss_transport::Instant::as_nanos),
            duplicate: ack.duplicate,
            ece: ack.ece,
            in_recovery: ack.in_recovery,
            window_limited: ack.window_limited,
        }
    }
}

#[pymethods]
impl Ack {
    #[getter]
    fn path(&self) -> PathInfo {
        PathInfo(self.path.clone())
    }
}

/// A segment with data left.
#[pyclass(frozen, get_all, module = "whyloss.parts")]
pub struct Sent {
    now_ns: u64,
    start: u64,
    length: u32,
    transmission: u32,
    was_idle: bool,
}

impl From<&path::Sent> for Sent {
    fn from(sent: &path::Sent) -> Self {
        let path::Sent { now, start, len: length, transmission, was_idle, .. } = *sent;
        Self { now_ns: now.as_nanos(), start, length, transmission, was_idle }
    }
}

/// A segment is taken for lost.
#[pyclass(frozen, module = "whyloss.parts")]
pub struct Loss {
    path: path::Path,
    #[pyo3(get)]
    start: u64,
    #[pyo3(get)]
    length: u32,
    #[pyo3(get)]
    transmission: u32,
    #[pyo3(get)]
    sent_at_ns: u64,
    #[pyo3(get)]
    trigger: &'static str,
    #[pyo3(get)]
    first_of_episode: bool,
}

impl From<&path::Loss<'_>> for Loss {
    fn from(loss: &path::Loss<'_>) -> Self {
        Self {
            path: loss.path.clone(),
            start: loss.start,
            length: loss.len,
            transmission: loss.transmission,
            sent_at_ns: loss.sent_at.as_nanos(),
            trigger: loss.trigger.name(),
            first_of_episode: loss.first_of_episode,
        }
    }
}

#[pymethods]
impl Loss {
    #[getter]
    fn path(&self) -> PathInfo {
        PathInfo(self.path.clone())
    }
}

/// Octets that a part may name: beyond them a window means nothing.
pub const MOST_OCTETS: f64 = 1e15;

/// A number of octets that a part names.
pub fn octets(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = given.extract::<f64>().ok().filter(|number| (0.0..=MOST_OCTETS).contains(number));
    number.ok_or_else(|| PyValueError::new_err(format!("{given:?} is no number of octets; allowed: 0 to 1e15")))
}

/// Congestion window and slow-start threshold, in octets. Never less than one segment and two.
#[pyclass(module = "whyloss.parts")]
pub struct Window {
    pub engine: EngineWindow,
    /// Whether it can be read only.
    pub locked: bool,
}

impl Window {
    fn open(&mut self) -> PyResult<&mut EngineWindow> {
        if self.locked {
            return Err(PyTypeError::new_err(
                "the window cannot be changed here: only in on_established, on_ack, on_timeout and on_undo",
            ));
        }
        Ok(&mut self.engine)
    }
}

#[pymethods]
impl Window {
    #[getter]
    fn cwnd(&self) -> u64 {
        self.engine.cwnd()
    }
    #[setter]
    fn set_cwnd(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.set_cwnd(octets as u64);
        Ok(())
    }
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.engine.ssthresh()
    }
    #[setter]
    fn set_ssthresh(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.set_ssthresh(octets as u64);
        Ok(())
    }
    #[getter]
    fn mss(&self) -> u32 {
        self.engine.mss()
    }
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.engine.in_slow_start()
    }
    #[getter]
    fn slow_start_limit(&self) -> Option<u32> {
        self.engine.slow_start_limit()
    }
    fn used(&self, path: &PathInfo) -> u64 {
        self.engine.used(&path.0)
    }
    fn grow(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.grow(octets);
        Ok(())
    }
}

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
    fn limit(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        octets(given).map(|octets| Self(EngineResponse::Limit(octets as u64)))
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
