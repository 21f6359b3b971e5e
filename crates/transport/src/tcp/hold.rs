//! Segments that are less than full and wait because the application has said that more is to come.

/// What the application has said of what it will write.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Segments that are less than full wait until it says otherwise.
    corked: bool,
    /// The last write has promised another one, and nothing was heard of the peer since.
    promised: bool,
    /// The last write has promised another one: what ends with it is not to be pushed.
    unfinished: bool,
    /// What ends up to here waits no more.
    released: u64,
}

impl Hold {
    /// A write, which may promise that `more` follows.
    pub fn on_write(&mut self, more: bool) {
        (self.promised, self.unfinished) = (more, more);
    }

    pub fn cork(&mut self, on: bool) {
        self.corked = on;
    }

    /// Everything up to `end` may leave.
    pub fn release(&mut self, end: u64) {
        self.released = end;
    }

    /// Everything up to `end` has waited long enough, and is to be handed on at once.
    pub fn expire(&mut self, end: u64) {
        self.release(end);
        self.unfinished = false;
    }

    /// The peer has acknowledged something: the network is free for what was promised to grow.
    pub fn on_progress(&mut self) {
        self.promised = false;
    }

    /// Whether a segment that is less than full and ends at `end` has to wait.
    pub const fn holds(&self, end: u64) -> bool {
        (self.corked || self.promised) && end > self.released
    }

    /// Whether what was written last is to be handed on at once (PSH; RFC 9293, 3.9.1.2).
    pub const fn pushes(&self) -> bool {
        !self.unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, secs, Pair};
    use super::super::{Command, Config};
    use crate::segment::{Flags, Payload};
    use crate::time::{Duration, Instant};

    /// A connection without Nagle's algorithm, established, whose client has sent nothing yet.
    fn pair() -> Pair {
        let config = Config { mss: 1000, timestamps: false, nagle: false, ..Config::modern() };
        let mut pair = Pair::new("newreno", &config, &[]);
        run(&mut pair, secs(1));
        pair
    }

    fn run(pair: &mut Pair, until: Instant) {
        pair.run(until);
        pair.now = until;
    }

    fn data(octets: usize) -> Payload {
        Payload::Bytes(tests::data(octets).into())
    }

    /// When data segments left, their length and whether they have PSH.
    fn left(pair: &Pair) -> Vec<(Instant, usize, bool)> {
        let data = pair.trace.iter().filter(|(_, who, segment)| *who == 0 && !segment.payload.is_empty());
        data.map(|(at, _, segment)| (*at, segment.payload.len(), segment.flags.contains(Flags::PSH))).collect()
    }

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn what_is_promised_to_grow_leaves_when_it_is_complete() {
        let mut pair = pair();
        pair.tell(Command::SendMore(data(100)));
        run(&mut pair, ms(1020));
        pair.tell(Command::SendMore(data(2300)));
        run(&mut pair, ms(1040));
        pair.tell(Command::Send(data(50)));
        run(&mut pair, ms(1041));
        let full = (ms(1020), 1000, false);
        assert_eq!(left(&pair), [full, full, (ms(1040), 450, true)]);
    }

    #[test]
    fn an_acknowledgement_ends_the_wait_for_more() {
        let mut pair = pair();
        pair.tell(Command::SendMore(data(2100)));
        run(&mut pair, ms(1500));
        let full = (ms(1000), 1000, false);
        assert_eq!(left(&pair), [full, full, (ms(1100), 100, false)], "not pushed, as more was promised");
    }

    #[test]
    fn a_small_segment_waits_for_no_longer_than_a_timeout() {
        let mut pair = pair();
        pair.tell(Command::SendMore(data(100)));
        run(&mut pair, ms(1020));
        let rto = pair.ends[0].path().rto;
        run(&mut pair, ms(3000));
        assert_eq!(left(&pair), [(ms(1000) + rto, 100, true)], "and nothing is repeated");
        assert!(rto < Duration::from_secs(1));
    }

    #[test]
    fn a_cork_holds_back_until_it_is_pulled() {
        let mut pair = pair();
        pair.tell(Command::Cork(true));
        pair.tell(Command::Send(data(40)));
        run(&mut pair, ms(1050));
        pair.tell(Command::Send(data(40)));
        run(&mut pair, ms(1060));
        assert_eq!(left(&pair), []);
        pair.tell(Command::Cork(false));
        run(&mut pair, ms(1200));
        assert_eq!(left(&pair), [(ms(1060), 80, true)]);
        run(&mut pair, ms(9000));
        assert_eq!(left(&pair).len(), 1, "the timer of what waited is off");
    }

    #[test]
    fn what_has_left_is_not_guarded_by_the_timer_of_what_waited() {
        let config = Config { mss: 1000, timestamps: false, nagle: false, ..Config::modern() };
        let mut pair = Pair::new("newreno", &config, &[1]);
        run(&mut pair, secs(1));
        pair.tell(Command::SendMore(data(40)));
        run(&mut pair, ms(1100));
        pair.tell(Command::Send(data(40)));
        run(&mut pair, ms(1101));
        let rto = pair.ends[0].path().rto;
        run(&mut pair, ms(3000));
        assert_eq!(left(&pair), [(ms(1100), 80, true), (ms(1100) + rto, 80, true)]);
    }

    #[test]
    fn a_cork_holds_back_what_an_acknowledgement_would_let_go() {
        let mut pair = pair();
        pair.tell(Command::Cork(true));
        pair.tell(Command::Send(data(1100)));
        run(&mut pair, ms(1150));
        assert_eq!(left(&pair), [(ms(1000), 1000, false)]);
        pair.tell(Command::Nagle(false));
        run(&mut pair, ms(1151));
        assert_eq!(left(&pair)[1..], [(ms(1150), 100, true)], "switching Nagle's algorithm off lets go what waits");
    }

    #[test]
    fn closing_waits_for_nothing() {
        let mut pair = pair();
        pair.tell(Command::SendMore(data(100)));
        pair.tell(Command::Close);
        run(&mut pair, ms(1001));
        assert_eq!(left(&pair).len(), 1);
    }

    #[test]
    fn records_end_segments() {
        let mut pair = pair();
        for octets in [1500, 300, 300] {
            pair.tell(Command::Send(data(octets)));
            pair.tell(Command::EndRecord);
            pair.tell(Command::EndRecord);
        }
        pair.tell(Command::Send(data(1200)));
        run(&mut pair, secs(2));
        let lens: Vec<_> = left(&pair).iter().map(|(_, len, push)| (*len, *push)).collect();
        assert_eq!(lens, [(1000, false), (500, true), (300, true), (300, true), (1000, false), (200, true)]);
        assert_eq!(pair.received().len(), 3300);
    }

    /// Nagle's algorithm waits for what would make the segment larger. Behind the end of a record nothing does.
    #[test]
    fn a_record_that_others_follow_waits_for_no_acknowledgement() {
        let mut pair = pair();
        pair.tell(Command::Nagle(true));
        for _ in 0..3 {
            pair.tell(Command::Send(data(300)));
            pair.tell(Command::EndRecord);
        }
        run(&mut pair, ms(1001));
        assert_eq!(left(&pair).len(), 2, "the third one could still grow, for all that is known");
        run(&mut pair, secs(2));
        assert_eq!(left(&pair).len(), 3);
    }

    #[test]
    fn a_record_is_repeated_as_it_was_and_a_tail_probe_keeps_to_it() {
        let config = Config { mss: 1000, timestamps: false, nagle: false, ..Config::modern() };
        let mut pair = Pair::new("newreno", &config, &[1, 2, 3]);
        run(&mut pair, secs(1));
        for _ in 0..3 {
            pair.tell(Command::Send(data(300)));
            pair.tell(Command::EndRecord);
        }
        run(&mut pair, secs(5));
        assert!(left(&pair).len() > 3 && left(&pair).iter().all(|(_, len, push)| *len == 300 && *push), "{:?}", left(&pair));
        assert_eq!(pair.received().len(), 900);
    }
}
