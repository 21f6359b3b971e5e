//! What parts in Python are told of.

use super::answers::Verdict;
use pyo3::prelude::*;
use whyloss_transport::path;
use whyloss_transport::timeout;
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

/// An acknowledgement that the sender has processed.
#[pyclass(frozen, module = "whyloss.parts")]
#[derive(Clone)]
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

/// The retransmission timer has expired.
#[pyclass(frozen, module = "whyloss.parts")]
pub struct Timeout {
    path: path::Path,
    #[pyo3(get)]
    consecutive: u32,
    #[pyo3(get)]
    silence_ns: u64,
    #[pyo3(get)]
    verdict: Verdict,
    #[pyo3(get)]
    sack: bool,
    #[pyo3(get)]
    timestamps: bool,
    #[pyo3(get)]
    in_recovery: bool,
}

impl From<&timeout::Timeout<'_>> for Timeout {
    fn from(timeout: &timeout::Timeout<'_>) -> Self {
        Self {
            path: timeout.path.clone(),
            consecutive: timeout.consecutive,
            silence_ns: timeout.silence.as_nanos(),
            verdict: Verdict(*timeout.verdict),
            sack: timeout.sack,
            timestamps: timeout.timestamps,
            in_recovery: timeout.in_recovery,
        }
    }
}

#[pymethods]
impl Timeout {
    #[getter]
    fn path(&self) -> PathInfo {
        PathInfo(self.path.clone())
    }
}

/// An acknowledgement after a timeout that is not yet assessed for good.
#[pyclass(frozen, module = "whyloss.parts")]
pub struct AfterTimeout {
    #[pyo3(get)]
    ack: Ack,
    #[pyo3(get)]
    number: u32,
    #[pyo3(get)]
    silence_ns: u64,
    #[pyo3(get)]
    recover: u64,
    #[pyo3(get)]
    head_end: u64,
    #[pyo3(get)]
    beyond_recover: bool,
    #[pyo3(get)]
    original_delivered: bool,
    #[pyo3(get)]
    new_data_possible: bool,
    #[pyo3(get)]
    echo: Option<u32>,
    #[pyo3(get)]
    retransmission_tsval: Option<u32>,
    #[pyo3(get)]
    dsack: bool,
}

impl From<&timeout::AfterTimeout<'_>> for AfterTimeout {
    fn from(after: &timeout::AfterTimeout<'_>) -> Self {
        Self {
            ack: Ack::from(after.ack),
            number: after.number,
            silence_ns: after.silence.as_nanos(),
            recover: after.recover,
            head_end: after.head_end,
            beyond_recover: after.beyond_recover,
            original_delivered: after.original_delivered,
            new_data_possible: after.new_data_possible,
            echo: after.ack.options.timestamps.map(|timestamps| timestamps.echo),
            retransmission_tsval: after.retransmission_tsval,
            dsack: after.dsack,
        }
    }
}
