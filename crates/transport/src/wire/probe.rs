//! Kind 253, continued: the segments of a probe cycle (Tsaoussidis & Badr 2000).
//!
//! **Probe** (sub-type 14, length 7, on segments without data): octet 5 is the step of the cycle, octet 6 the number of the cycle, modulo 256.
//!
//! | step | | from |
//! | ---: | --- | --- |
//! | 1 | first probe | the sender of data |
//! | 2 | its acknowledgement | the receiver |
//! | 3 | second probe | the sender |
//! | 4 | its acknowledgement | the receiver |
//!
//! Sent only where both ends permit reports. Another step makes it an unknown option.

use super::experiment::head;
use crate::segment::{Options, Probe, ProbeStep};

const PROBE: u8 = 14;

/// Octets of the option.
pub(super) const LEN: usize = 7;

/// Reads the data of an option of our experiment behind its sub-type, if it is a probe.
pub(super) fn read(options: &mut Options, sub_type: u8, data: &[u8]) -> bool {
    let (PROBE, &[step, cycle]) = (sub_type, data) else { return false };
    let step = match step {
        1 => ProbeStep::First,
        2 => ProbeStep::FirstAnswer,
        3 => ProbeStep::Second,
        4 => ProbeStep::SecondAnswer,
        _ => return false,
    };
    options.rare.get_or_insert_default().probe = Some(Probe { step, cycle });
    true
}

/// Appends the option.
pub(super) fn write(probe: Probe, out: &mut Vec<u8>) {
    head(LEN, out);
    out.extend_from_slice(&[PROBE, probe.step as u8, probe.cycle]);
}
