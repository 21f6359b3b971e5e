//! TCP-Jersey: the window follows a rate that is estimated over one round trip, whenever routers warn or segments are lost.

use super::{CongestionControl, Westwood};
use crate::estimate::Filter;
use crate::kit::{Notes, Part};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "jersey",
    summary: "Falls to the measured rate times the smallest delay; the rate is that of a window of one round trip that slides in time.",
    reference: "Xu, Tian & Ansari 2004",
    notes: Notes {
        idea: "What the acknowledgements of the last round trip delivered, over the delay of an empty path, is the window that leaves no queue.",
        formula: "R = (RTT R + L) / (t_n - t_n-1 + RTT); threshold and window fall to R RTT_min on a warning, threshold on a timeout",
        threshold: "",
        fails: "Acknowledgements that are bunched on their way.",
        errata: "The rate control for a warning is that for a mark of RFC 3168: once a window of data, and the window only falls, where the publication sets \
                 it to the product in congestion avoidance, also to a larger one. The estimate begins at zero. Some print the fraction without its parentheses.",
    },
    ..Part::fixed(|_| Box::new(Westwood::new(Filter::Jersey)))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Window;
    use crate::kit::Arguments;
    use crate::path::{Ack, Path};
    use crate::segment::Options;
    use crate::time::{Duration, Instant};
    use std::collections::BTreeMap;

    #[test]
    fn the_threshold_is_what_a_round_trip_delivered() {
        let mut cc = PART.build(&Arguments::check(&PART, &BTreeMap::new()).unwrap());
        let (mut window, options) = (Window::new(1000, 50_000, 20_000), Options::default());
        let rtt = Duration::from_millis(100);
        let mut falls_to = |from: u64, to: u64| {
            for nth in from..to {
                let now = Instant::ZERO + Duration::from_millis(10 * nth);
                let path = Path { now, srtt: Some(rtt), mss: 1000, flight: 50_000, cwnd: 50_000, ..Path::default() };
                let ack = Ack { acked: 1000, delivered: 1000, delay: Some(rtt), ..Ack::new(&path, &options) };
                cc.on_ack(&mut window, &ack);
            }
            let path = Path { now: Instant::ZERO + Duration::from_millis(10 * to), flight: 50_000, ..Path::default() };
            cc.threshold(&window, &path)
        };
        assert_eq!(falls_to(0, 1), 25_000, "without an estimate half of the flight");
        // R = 1000 / (10 ms + 100 ms), then (100 ms R + 1000) / 110 ms.
        assert_eq!(falls_to(1, 2), 909);
        assert_eq!(falls_to(2, 3), 1735);
        // It tends to 1000 octets in 10 ms.
        assert!((9990..=10_000).contains(&falls_to(3, 200)));
    }
}
