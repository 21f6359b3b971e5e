//! Freeze-TCP (Goff et al. 2000): a mobile receiver closes its window before its link goes down, and opens it when the link is back.
//!
//! A sender with nothing outstanding waits for the window to open, at the congestion window that it has. So what is under way has to arrive
//! before the link goes down: the window closes a round trip before, the *warning period*. Where the warning was too short, the sender must
//! not time out meanwhile (`tcp.closed_window`).

use super::{Arrival, LinkHint, ReceiveView, ReceiverAgent};
use crate::kit::{Build, Notes, Part};
use crate::settings;
use crate::time::{Duration, Instant};

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "freeze",
    summary: "Closes its window a round trip before its link goes down, and opens it by three acknowledgements when the link is back.",
    reference: "Goff, Moronski, Phatak & Gupta 2000",
    notes: Notes {
        idea: "A sender whose window is closed waits and keeps its congestion window; one that hears nothing times out. Only the receiver changes.",
        fails: "Where nobody foresees that the link goes down, or too late. Until the link is down nothing is sent: a warning that is too early costs its time. What the new link can carry is not asked.",
        errata: "The paper leaves the warning period to the link; ours is a round trip as the handshake measured it, which leaves out the queue.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// When it closes its window, and how it opens it.
    pub(super) struct Settings {
        /// The warning period: milliseconds before the link goes down at which the window closes; 0: `warning_trips`.
        warning_ms: f64 = 0.0, 0.0..=60_000.0;
        /// The warning period in round trips as this side knows them, mostly from the handshake; a second if it knows none.
        warning_trips: f64 = 1.0, 0.0..=100.0;
        /// Acknowledgements that open the window.
        copies: u32 = 3, 1..=10;
    }
}

impl Build<dyn ReceiverAgent> for Settings {
    fn build(self) -> Box<dyn ReceiverAgent> {
        Box::new(Freeze { settings: self, down_at: None, due: None, frozen: false })
    }
}

/// Before a round trip is known (RFC 6298, 2.1).
const UNKNOWN_TRIP: Duration = Duration::from_secs(1);

/// Closes and opens the window with the link.
#[derive(Debug)]
pub struct Freeze {
    settings: Settings,
    /// When the link will go down, or went down.
    down_at: Option<Instant>,
    /// When the window closes.
    due: Option<Instant>,
    frozen: bool,
}

impl Freeze {
    /// How long before the link goes down the window closes.
    fn warning(&self, view: &ReceiveView) -> Duration {
        let nanos = if self.settings.warning_ms > 0.0 {
            self.settings.warning_ms * 1e6
        } else {
            view.srtt.unwrap_or(UNKNOWN_TRIP).as_nanos() as f64 * self.settings.warning_trips
        };
        Duration::from_nanos(nanos as u64)
    }

    fn plan(&mut self, view: &ReceiveView) {
        self.due = self
            .down_at
            .filter(|_| !self.frozen)
            .map(|at| Instant::ZERO + at.since(Instant::ZERO).saturating_sub(self.warning(view)));
    }
}

impl ReceiverAgent for Freeze {
    fn wants_link(&self) -> bool {
        true
    }

    fn on_link(&mut self, hint: LinkHint, view: &ReceiveView) -> u32 {
        match hint {
            LinkHint::GoesDown(at) => {
                self.down_at = Some(at);
                self.plan(view);
                0
            }
            LinkHint::Up => {
                let was_foreseen = self.down_at.take().is_some();
                (self.due, self.frozen) = (None, false);
                if was_foreseen {
                    self.settings.copies
                } else {
                    0
                }
            }
        }
    }

    fn closes_window(&self) -> bool {
        self.frozen
    }

    /// The round-trip time may have been unknown when the hint came.
    fn on_arrival(&mut self, arrival: &Arrival) {
        self.plan(&arrival.view);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn on_timeout(&mut self, view: &ReceiveView) -> bool {
        let closes = self.due.is_some_and(|due| due <= view.now);
        if closes {
            (self.due, self.frozen) = (None, true);
        }
        closes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn view(ms: u64, srtt: Option<u64>) -> ReceiveView<'static> {
        ReceiveView { srtt: srtt.map(Duration::from_millis), ..ReceiveView::new(at(ms), 1000) }
    }

    #[test]
    fn the_window_closes_a_round_trip_before_the_link_goes_down() {
        let mut agent = Settings::default().build();
        assert_eq!((agent.on_link(LinkHint::GoesDown(at(1000)), &view(0, Some(80))), agent.poll_timeout()), (0, Some(at(920))));
        assert!(!agent.on_timeout(&view(919, Some(80))) && !agent.closes_window());
        assert!(agent.on_timeout(&view(920, Some(80))) && agent.closes_window());
        assert_eq!(agent.poll_timeout(), None, "once");
        assert_eq!(agent.on_link(LinkHint::Up, &view(3000, Some(80))), 3);
        assert!(!agent.closes_window());
        assert_eq!(agent.on_link(LinkHint::Up, &view(3001, Some(80))), 0, "it was up");
    }

    #[test]
    fn the_warning_period_can_be_chosen() {
        let due = |settings: Settings, srtt| {
            let mut agent = settings.build();
            agent.on_link(LinkHint::GoesDown(at(5000)), &view(0, srtt));
            agent.poll_timeout()
        };
        assert_eq!(due(Settings { warning_ms: 250.0, ..Settings::default() }, Some(80)), Some(at(4750)));
        assert_eq!(due(Settings { warning_trips: 2.5, ..Settings::default() }, Some(80)), Some(at(4800)));
        assert_eq!(due(Settings::default(), None), Some(at(4000)));
        assert_eq!(due(Settings { warning_ms: 60_000.0, ..Settings::default() }, None), Some(Instant::ZERO), "at once");
    }

    #[test]
    fn a_later_forecast_takes_the_place_of_an_earlier_one() {
        let mut agent = Settings::default().build();
        agent.on_link(LinkHint::GoesDown(at(1000)), &view(0, Some(100)));
        agent.on_link(LinkHint::GoesDown(at(2000)), &view(500, Some(100)));
        assert_eq!(agent.poll_timeout(), Some(at(1900)));
        agent.on_timeout(&view(1900, Some(100)));
        agent.on_link(LinkHint::GoesDown(at(4000)), &view(1950, Some(100)));
        assert_eq!((agent.poll_timeout(), agent.closes_window()), (None, true), "only a link that is up opens the window");
    }
}
