//! Why a segment was lost. One file an algorithm.

mod ack_hop;
mod biaz;
mod by_waves;
mod casablanca;
mod cerl;
mod ceten;
mod coin;
mod common;
mod ecn;
mod eln;
mod gap;
mod gradient;
mod hack;
mod jtcp;
mod lda_eq;
pub mod learned;
mod limd_h;
#[cfg(test)]
mod line;
mod nce;
mod ncpld;
mod newreno_ff;
mod none;
mod oracle;
#[cfg(test)]
mod properties;
mod relayed;
mod relds;
mod reported;
mod santa_cruz;
#[cfg(test)]
mod script;
mod spike;
mod syndrome;
mod tcp_real;
mod tcp_real_2004;
#[cfg(test)]
mod tests;
mod trend;
mod vegas;
mod veno;
mod west;
mod zbs;
mod zigzag;

pub use ack_hop::AckHop;
pub use biaz::Biaz;
pub use casablanca::Casablanca;
pub use cerl::{Capacity, Cerl};
pub use ceten::Ceten;
pub use coin::Coin;
pub use ecn::{Ecn, Jersey, Marks};
pub use eln::Eln;
pub use gap::GapDifferentiator;
pub use gradient::{Gradient, Quantity};
pub use hack::Hack;
pub use jtcp::{Jtcp, Ratio};
pub use lda_eq::{LdaEq, QueueRate};
pub use limd_h::{Class, LimdH};
pub use nce::Nce;
pub use ncpld::{Curve, Knee, Ncpld};
pub use newreno_ff::{Chart, NewRenoFf};
pub use none::None;
pub use oracle::Oracle;
pub use relayed::Relayed;
pub use relds::{MovingThreshold, Relds};
pub use reported::{Credits, Evidence, Reported, Trust};
pub use santa_cruz::SantaCruz;
pub use spike::{Settings as SpikeSettings, Spike};
pub use tcp_real::TcpReal;
pub use trend::Trend;
pub use vegas::Vegas;
pub use veno::{Evaluated, Veno};
pub use west::{RateGap, West};
pub use zbs::Zbs;
pub use zigzag::ZigZag;

pub use crate::arrival::Gap;
pub use crate::verdict::{Cause, Verdict};

use crate::kit::Part;
use crate::path::{self, Ack, Formation, Loss, Sent, TransmissionFate};
use std::fmt;

/// Judges the cause of each loss.
///
/// It only looks: nothing it is given can change the connection. So any number of differentiators can listen in shadow and judge the
/// same losses as the ruling one.
///
/// ```
/// use whyloss_transport::differentiation::{LossDifferentiator, Verdict};
/// use whyloss_transport::path::Loss;
///
/// /// The first transmission is lost to corruption, later ones to congestion.
/// #[derive(Debug)]
/// struct Optimist;
///
/// impl LossDifferentiator for Optimist {
///     fn judge(&mut self, loss: &Loss) -> Verdict {
///         Verdict::by_threshold(if loss.transmission == 0 { 1.0 } else { 0.0 }, 0.5)
///     }
/// }
/// ```
///
/// The window is out of its reach:
///
/// ```compile_fail,E0594
/// use whyloss_transport::differentiation::{LossDifferentiator, Verdict};
/// use whyloss_transport::path::Loss;
///
/// #[derive(Debug)]
/// struct Intruder;
///
/// impl LossDifferentiator for Intruder {
///     fn judge(&mut self, loss: &Loss) -> Verdict {
///         loss.path.cwnd = 1_000_000;
///         Verdict::UNKNOWN
///     }
/// }
/// ```
pub trait LossDifferentiator: fmt::Debug + Send {
    /// Whether it is to be told of segments that leave and of acknowledgements. Asked once, when the connection is made; false spares each packet
    /// calls in vain.
    fn listens(&self) -> bool {
        true
    }

    /// Whether the connection has to negotiate loss reports on its SYN.
    fn wants_reports(&self) -> bool {
        false
    }

    /// Whether each data segment has to carry a nonce that reports must echo.
    fn wants_nonce(&self) -> bool {
        false
    }

    /// Whether each data segment has to carry a checksum of its header.
    fn wants_header_check(&self) -> bool {
        false
    }

    /// Whether each data segment has to carry the wave that it belongs to, and what forms waves.
    fn wants_waves(&self) -> Option<Formation> {
        Option::None
    }

    /// Whether each data segment has to carry a field in which routers multiply its probability to survive their links.
    fn wants_survival(&self) -> bool {
        false
    }

    /// Whether it wants to be told what really became of packets.
    fn wants_truth(&self) -> bool {
        false
    }

    /// The driver knows that a transmission did not arrive, and why.
    fn on_truth(&mut self, _fate: &TransmissionFate) {}

    /// A segment with data left.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// Called for every acknowledgement of new or known data, before losses are judged by it.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// The receiver reported on a loss.
    fn on_report(&mut self, _reported: &path::Reported) {}

    /// A base station has seen a segment.
    fn on_passed(&mut self, _passed: &path::Passed) {}

    /// All of these are taken for lost at this moment. Each is judged next, in this order.
    fn on_found(&mut self, _losses: &[Loss]) {}

    /// Why was this lost?
    fn judge(&mut self, loss: &Loss) -> Verdict;
}

/// All differentiators that work at the sender.
pub static TABLE: &[Part<dyn LossDifferentiator>] = &[
    none::PART,
    coin::PART,
    oracle::PART,
    reported::PART,
    hack::PART,
    tcp_real::PART,
    tcp_real_2004::PART,
    ncpld::PART,
    veno::PART,
    west::PART,
    jtcp::PART,
    relds::PART,
    lda_eq::PART,
    cerl::PART,
    nce::PART,
    newreno_ff::PART,
    limd_h::PART,
    santa_cruz::PART,
    vegas::PART,
    gradient::THROUGHPUT,
    gradient::DELAY,
    ecn::PART,
    ecn::JERSEY,
    learned::PART,
    eln::PART,
    ack_hop::PART,
    ceten::PART,
];

/// All differentiators that work at the receiver. The position in this table is the classifier's number on the wire.
pub static AT_RECEIVER: &[Part<dyn GapDifferentiator>] =
    &[biaz::PART, biaz::MODIFIED, casablanca::PART, spike::PART, zigzag::PART, zbs::PART, trend::PART, syndrome::PART];
