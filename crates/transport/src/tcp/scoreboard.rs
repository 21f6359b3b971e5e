//! What has been sent and not yet acknowledged, and what is known of each piece (RFC 6675's scoreboard).

use crate::time::Instant;
use std::collections::{BTreeMap, VecDeque};

/// One transmitted and unacknowledged segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Position of the first octet.
    pub start: u64,
    /// Octets of sequence space, a FIN included.
    pub len: u32,
    /// How often it was sent: at least 1.
    pub transmissions: u16,
    flags: u8,
    /// When it was first sent.
    pub first_at: Instant,
    /// When it was last sent.
    pub last_at: Instant,
}

impl Sent {
    const SACKED: u8 = 1;
    const LOST: u8 = 2;
    /// Marked lost, and sent again since.
    const REPAIRED: u8 = 4;
    const FIN: u8 = 8;
    /// No longer in the network, delivered or lost.
    const GONE: u8 = 16;
    /// It was SACKed before that was forgotten: nobody knows when it arrived.
    const FORGOTTEN: u8 = 32;

    pub const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub const fn is_sacked(&self) -> bool {
        self.is(Self::SACKED)
    }

    /// Taken for lost, whether sent again since or not.
    pub const fn is_lost(&self) -> bool {
        self.is(Self::LOST)
    }

    /// Taken for lost and not sent again since.
    pub const fn needs_repair(&self) -> bool {
        self.flags & (Self::LOST | Self::REPAIRED | Self::SACKED) == Self::LOST
    }

    /// Believed to be in the network: neither delivered nor lost.
    pub const fn in_network(&self) -> bool {
        self.may_be_missing() && !self.is(Self::GONE)
    }

    /// Not known to be delivered, and no repair is due.
    pub const fn may_be_missing(&self) -> bool {
        !self.is_sacked() && !self.needs_repair()
    }

    pub const fn is_fin(&self) -> bool {
        self.is(Self::FIN)
    }

    pub const fn was_retransmitted(&self) -> bool {
        self.transmissions > 1
    }

    /// Octets of data: the length without SYN and FIN.
    pub const fn data_len(&self) -> u32 {
        self.len - self.is_fin() as u32
    }
}

/// A delivered segment. Those acknowledged cumulatively come after those reported selectively, then the higher after the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InSequence {
    pub cumulatively: bool,
    pub end: u64,
    /// When it left last.
    pub left: Instant,
}

/// In which order segments left that an acknowledgement delivered, and how they stand in the stream: what RACK asks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// The lowest of those that were sent only once: where it begins and ends.
    pub lowest_once: Option<(u64, u64)>,
    /// The newest of those that were sent again: when it left last, its end, and whether it was acknowledged cumulatively.
    pub again: Option<(Instant, u64, bool)>,
    /// The last in sequence of those that were sent only once, and of those that were sent again.
    pub last_once: Option<InSequence>,
    pub last_again: Option<InSequence>,
}

impl Order {
    fn note(&mut self, sent: &Sent, cumulatively: bool) {
        let (left, end) = (sent.last_at, sent.end());
        let place = Some(InSequence { cumulatively, end, left });
        if sent.was_retransmitted() {
            self.again = self.again.max(Some((left, end, cumulatively)));
            self.last_again = self.last_again.max(place);
            return;
        }
        self.last_once = self.last_once.max(place);
        if self.lowest_once.is_none_or(|(start, _)| sent.start < start) {
            self.lowest_once = Some((sent.start, end));
        }
    }
}

/// What an acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Octets delivered for the first time.
    pub octets: u64,
    /// Segments, or parts of them, delivered for the first time.
    pub segments: u64,
    /// The newest of those that were sent only once, and that arrived just now: when it left, and its end.
    pub once: Option<(Instant, u64)>,
    /// The newest of those that were sent again.
    pub again: Option<(Instant, u64)>,
    /// In which order, if the caller wants to know.
    pub order: Option<Order>,
    /// How many of them had been retransmitted.
    pub retransmitted: u64,
    /// Octets of data of the largest of them.
    pub largest: u32,
    /// Whether data below `watch` that was never retransmitted is among them.
    pub original_before_watch: bool,
    /// Set by the caller; see above.
    pub watch: u64,
}

impl Delivered {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each segment that is acknowledged comes here, and there is little to do")]
    fn note(&mut self, sent: &Sent, cumulatively: bool) {
        self.octets += u64::from(sent.len);
        self.largest = self.largest.max(sent.data_len());
        self.segments += 1;
        let (left, end) = (sent.last_at, sent.end());
        if sent.was_retransmitted() {
            self.retransmitted += 1;
            self.again = self.again.max(Some((left, end)));
        } else if sent.is(Sent::FORGOTTEN) {
            return;
        } else {
            if self.once.is_none_or(|(newest, last)| left > newest || left == newest && end > last) {
                self.once = Some((left, end));
            }
            self.original_before_watch |= end <= self.watch;
        }
        if let Some(order) = &mut self.order {
            order.note(sent, cumulatively);
        }
    }
}

/// With nothing outstanding there is no room for more segments than this: many connections are idle most of the time.
const FEW: usize = 4;

/// The segments between `SND.UNA` and `SND.NXT`, contiguous and in order.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    entries: VecDeque<Sent>,
    sacked: u64,
    lost: u64,
    repaired: u64,
    gone: u64,
    /// The ranges that are SACKed, by their start, disjoint and not adjacent: what a block repeats is not looked at again.
    ranges: BTreeMap<u64, u64>,
    /// Segments and ranges that SACK blocks and the search for what left before made us look at.
    #[cfg(test)]
    pub looks: u64,
    /// No segment below this position needs repair.
    repair_from: u64,
    /// Every segment below this position has been examined by [`Scoreboard::find_lost`] in this episode.
    examined: u64,
    /// No segment below this position is in the network that was sent only once.
    once_from: u64,
    /// Segments that were sent again, by their end, in the order in which they left last; those of which that is no longer true are among them.
    again: VecDeque<(Instant, u64)>,
}

impl Scoreboard {
    /// Octets that SACK blocks report as received.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Octets outstanding but not believed to be in the network are those SACKed, those lost and not repaired, and those gone.
    pub const fn absent(&self) -> u64 {
        self.sacked + self.lost - self.repaired + self.gone
    }

    /// Whether some segment is taken for lost and not yet sent again.
    pub const fn needs_repair(&self) -> bool {
        self.lost > self.repaired
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, index: usize) -> &Sent {
        &self.entries[index]
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> + ExactSizeIterator {
        self.entries.iter()
    }

    pub fn first(&self) -> Option<&Sent> {
        self.entries.front()
    }

    pub fn last(&self) -> Option<&Sent> {
        self.entries.back()
    }

    /// Segments that were sent again and have not been SACKed.
    pub fn repeated(&self) -> u32 {
        self.iter().filter(|sent| sent.was_retransmitted() && !sent.is_sacked()).count() as u32
    }

    /// End of the highest SACKed octet; 0 if none.
    pub fn highest_sacked(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, end)| *end)
    }

    /// Records a first transmission at the end.
    pub fn push(&mut self, start: u64, len: u32, fin: bool, now: Instant) {
        debug_assert!(self.entries.back().is_none_or(|last| last.end() == start));
        let flags = if fin { Sent::FIN } else { 0 };
        self.entries.push_back(Sent { start, len, transmissions: 1, flags, first_at: now, last_at: now });
    }

    /// Index of the segment that contains `position`.
    pub fn find(&self, position: u64) -> Option<usize> {
        let first = self.entries.front()?;
        if position < first.start || position >= self.entries.back()?.end() {
            return None;
        }
        Some(self.entries.partition_point(|sent| sent.end() <= position))
    }

    /// Removes everything below `una`. A segment that is only partly acknowledged is cut.
    pub fn acknowledge(&mut self, una: u64, delivered: &mut Delivered) {
        while let Some(first) = self.entries.front_mut().filter(|first| first.start < una) {
            if first.end() > una {
                self.cut_first(una, delivered);
                break;
            }
            if let Some(done) = self.entries.pop_front() {
                self.take_acknowledged(&done, delivered);
            }
        }
        if self.entries.is_empty() {
            if self.entries.capacity() > FEW {
                self.entries = VecDeque::new();
            }
            if self.again.capacity() > 0 {
                self.again = VecDeque::new();
            }
        }
        if !self.ranges.is_empty() {
            self.forget_ranges_below(una);
        }
    }

    #[inline(never)]
    fn cut_first(&mut self, una: u64, delivered: &mut Delivered) {
        let Some(first) = self.entries.front_mut() else { return };
        let mut part = *first;
        part.len = (una - first.start) as u32;
        part.flags &= !Sent::FIN;
        first.len -= part.len;
        first.start = una;
        self.take_acknowledged(&part, delivered);
    }

    #[inline]
    fn take_acknowledged(&mut self, done: &Sent, delivered: &mut Delivered) {
        let len = u64::from(done.len);
        if done.is(Sent::SACKED) {
            self.sacked -= len;
        } else {
            delivered.note(done, true);
            self.forget_loss(done.flags, len);
        }
    }

    #[inline(never)]
    fn forget_ranges_below(&mut self, una: u64) {
        while let Some(range) = self.ranges.first_entry().filter(|range| *range.key() < una) {
            let end = range.remove();
            if end > una {
                self.ranges.insert(una, end);
            }
        }
    }

    #[inline]
    fn forget_loss(&mut self, flags: u8, len: u64) {
        if flags & (Sent::LOST | Sent::GONE) == 0 {
            return;
        }
        if flags & Sent::LOST != 0 {
            self.lost -= len;
            if flags & Sent::REPAIRED != 0 {
                self.repaired -= len;
            }
        }
        if flags & Sent::GONE != 0 {
            self.gone -= len;
        }
    }

    /// Marks the segments that lie in `[left, right)` as received. A part of a segment does not count: no receiver has reason to tell of
    /// one, but for a network that cuts segments anew, and then the rest is repaired with it. So nobody can have us cut segments into
    /// pieces, and the work is that of the segments that are news, and of two more.
    #[inline(never)]
    pub fn sack(&mut self, left: u64, right: u64, delivered: &mut Delivered) {
        let (Some(first), Some(last)) = (self.entries.front(), self.entries.back()) else { return };
        let (left, right) = (left.max(first.start), right.min(last.end()));
        if left >= right {
            return;
        }
        let mut at = left;
        while at < right {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if let Some((_, &end)) = self.ranges.range(..=at).next_back().filter(|(_, end)| **end > at) {
                at = end;
                continue;
            }
            let index = self.entries.partition_point(|sent| sent.end() <= at);
            let sent = &mut self.entries[index];
            let (start, end) = (sent.start, sent.end());
            if end > right {
                break;
            }
            if start >= at {
                delivered.note(sent, false);
                let (flags, len) = (sent.flags, u64::from(sent.len));
                sent.flags = (sent.flags | Sent::SACKED) & !(Sent::LOST | Sent::REPAIRED | Sent::GONE);
                self.forget_loss(flags, len);
                self.sacked += len;
                self.add_range(start, end);
            }
            at = end;
        }
    }

    /// Adds a range that is SACKed from now on.
    fn add_range(&mut self, start: u64, end: u64) {
        let end = self.ranges.remove(&end).unwrap_or(end);
        match self.ranges.range_mut(..start).next_back() {
            Some((_, before)) if *before == start => *before = end,
            _ => {
                self.ranges.insert(start, end);
            }
        }
    }

    /// Cuts what is not SACKed and has more than `size` octets of data into segments of that size, and takes it for lost.
    pub fn cut_and_lose(&mut self, size: u32) {
        let mut cut = Vec::new();
        for mut sent in std::mem::take(&mut self.entries) {
            while sent.data_len() > size && !sent.is_sacked() {
                let head = Sent { len: size, flags: sent.flags & !Sent::FIN, ..sent };
                sent.start += u64::from(size);
                sent.len -= size;
                cut.push(self.entries.len());
                if sent.data_len() <= size {
                    cut.push(self.entries.len() + 1);
                }
                self.entries.push_back(head);
            }
            self.entries.push_back(sent);
        }
        for index in cut {
            self.mark_lost(index);
        }
    }

    /// Cuts the segment at `index` in two at `position`.
    pub fn split(&mut self, index: usize, position: u64) {
        let sent = &mut self.entries[index];
        let mut tail = *sent;
        tail.start = position;
        tail.len = (sent.end() - position) as u32;
        sent.len -= tail.len;
        sent.flags &= !Sent::FIN;
        self.entries.insert(index + 1, tail);
        if tail.was_retransmitted() {
            self.order_repeats();
        }
    }

    /// Takes the segment at `index` for lost. A segment that is lost, repaired and lost again needs another repair.
    pub fn mark_lost(&mut self, index: usize) {
        let sent = &mut self.entries[index];
        if sent.is_sacked() {
            return;
        }
        let len = u64::from(sent.len);
        if sent.is(Sent::GONE) {
            sent.flags &= !Sent::GONE;
            self.gone -= len;
        }
        if !sent.is(Sent::LOST) {
            sent.flags |= Sent::LOST;
            self.lost += len;
        }
        if sent.is(Sent::REPAIRED) {
            sent.flags &= !Sent::REPAIRED;
            self.repaired -= len;
        }
        self.repair_from = self.repair_from.min(sent.start);
    }

    /// Takes for lost what was sent once, is not SACKed and lies below the highest SACKed octet.
    pub fn mark_holes_lost(&mut self) {
        let highest = self.highest_sacked();
        let top = self.entries.partition_point(|sent| sent.start < highest);
        for index in 0..top {
            if !self.entries[index].was_retransmitted() {
                self.mark_lost(index);
            }
        }
    }

    /// Takes for lost the first segment below `position` that was sent once and is not SACKed; returns whether there is one.
    pub fn mark_next_lost(&mut self, position: u64) -> bool {
        let fresh = |sent: &Sent| sent.in_network() && !sent.was_retransmitted();
        let next = self.entries.iter().take_while(|sent| sent.start < position).position(fresh);
        if let Some(index) = next {
            self.mark_lost(index);
        }
        next.is_some()
    }

    /// Takes back the loss of everything that has not been sent again.
    pub fn unmark_lost(&mut self) {
        self.once_from = 0;
        for sent in &mut self.entries {
            if sent.needs_repair() {
                sent.flags &= !Sent::LOST;
                self.lost -= u64::from(sent.len);
            }
        }
        self.order_repeats();
    }

    /// Takes everything below `position` that was sent once and is not SACKed for gone: no longer in the network, delivered or lost. It
    /// is not to be sent again until it is taken for lost.
    pub fn mark_gone(&mut self, position: u64) {
        for sent in self.entries.iter_mut().take_while(|sent| sent.end() <= position) {
            let len = u64::from(sent.len);
            if sent.was_retransmitted() || sent.is(Sent::SACKED | Sent::GONE) {
                continue;
            }
            if sent.needs_repair() {
                sent.flags &= !Sent::LOST;
                self.lost -= len;
            }
            sent.flags |= Sent::GONE;
            self.gone += len;
        }
    }

    /// Takes everything for lost that is not SACKed.
    pub fn mark_all_lost(&mut self) {
        for index in 0..self.entries.len() {
            self.mark_lost(index);
        }
    }

    /// Forgets all SACK information (a receiver may renege: RFC 2018, 8).
    pub fn forget_sacks(&mut self) {
        for sent in self.entries.iter_mut().filter(|sent| sent.is_sacked()) {
            sent.flags = sent.flags & !Sent::SACKED | Sent::FORGOTTEN;
        }
        self.sacked = 0;
        self.ranges.clear();
        self.once_from = 0;
        self.order_repeats();
    }

    /// The first segment that needs repair.
    pub fn next_repair(&mut self) -> Option<usize> {
        if !self.needs_repair() {
            return None;
        }
        let from = self.entries.partition_point(|sent| sent.end() <= self.repair_from);
        let index = (from..self.entries.len()).find(|&index| self.entries[index].needs_repair());
        self.repair_from = index.map_or(u64::MAX, |index| self.entries[index].start);
        index
    }

    /// The segment at `index` has been sent again.
    pub fn on_retransmit(&mut self, index: usize, now: Instant) {
        let sent = &mut self.entries[index];
        if sent.is(Sent::GONE) {
            sent.flags &= !Sent::GONE;
            self.gone -= u64::from(sent.len);
        }
        sent.last_at = now;
        sent.transmissions = sent.transmissions.saturating_add(1);
        if sent.is(Sent::LOST) && !sent.is(Sent::REPAIRED) {
            sent.flags |= Sent::REPAIRED;
            self.repaired += u64::from(sent.len);
        }
        self.again.push_back((now, sent.end()));
        if self.again.len() > 2 * self.entries.len() {
            self.order_repeats();
        }
    }

    /// Begins the order of segments that were sent again anew.
    fn order_repeats(&mut self) {
        let repeats = self.entries.iter().filter(|sent| sent.was_retransmitted() && sent.in_network());
        self.again = repeats.map(|sent| (sent.last_at, sent.end())).collect();
        self.again.make_contiguous().sort_unstable();
    }

    /// Shows the segments that are in the network and left before the one that left last at `at` and ends at `end`: their indices, and when they
    /// left. Those that were sent only once come first. What is not in the network any more is looked at once where nothing before it is: a call costs
    /// what is shown or new. Where reordering keeps some waiting, it costs what lies behind the first of them, too.
    pub fn left_before(&mut self, (at, end): (Instant, u64), mut show: impl FnMut(usize, Instant)) {
        let mut index = self.entries.partition_point(|sent| sent.end() <= self.once_from);
        let mut all_behind = true;
        // Those sent once left in the order of the stream.
        while let Some(sent) = self.entries.get(index).filter(|sent| (sent.first_at, sent.end()) < (at, end)) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let waits = sent.in_network() && !sent.was_retransmitted();
            if waits {
                show(index, sent.last_at);
            }
            all_behind &= !waits;
            if all_behind {
                self.once_from = sent.end();
            }
            index += 1;
        }
        let mut nth = 0;
        while let Some(&(left, its_end)) = self.again.get(nth).filter(|(left, _)| *left <= at) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let index = self.entries.partition_point(|sent| sent.end() < its_end);
            let repeat = self
                .entries
                .get(index)
                .filter(|sent| sent.end() == its_end && sent.last_at == left && sent.was_retransmitted() && sent.in_network());
            match repeat {
                None if nth == 0 => {
                    self.again.pop_front();
                    continue;
                }
                // Among segments that left at the same instant only new ones are known to have left in order of sequence. Data of a SYN that is
                // sent again is among those.
                Some(sent) if left < at || sent.first_at == left && sent.end() < end => show(index, left),
                _ => {}
            }
            nth += 1;
        }
    }

    /// Begins a new episode for [`Scoreboard::find_lost`].
    pub fn restart_examination(&mut self) {
        self.examined = 0;
    }

    /// RFC 6675's `IsLost`: the indices of the segments that are lost by it and not yet marked, in order.
    ///
    /// A segment is lost when `threshold` discontiguous SACKed ranges, or more than `(threshold - 1) * mss` SACKed octets, lie above it.
    pub fn find_lost(&mut self, threshold: u32, mss: u32, out: &mut Vec<usize>) {
        out.clear();
        if self.sacked == 0 {
            return;
        }
        let enough = u64::from(threshold.saturating_sub(1)) * u64::from(mss);
        let (mut octets, mut ranges, mut inside) = (0u64, 0u32, false);
        let highest = self.highest_sacked();
        let top = self.entries.partition_point(|sent| sent.start < highest);
        let mut edge = None;
        for index in (0..top).rev() {
            let sent = &self.entries[index];
            if sent.end() <= self.examined {
                break;
            }
            if sent.is_sacked() {
                octets += u64::from(sent.len);
                ranges += u32::from(!inside);
                inside = true;
            } else {
                inside = false;
                if octets > enough || ranges >= threshold {
                    edge = Some(index);
                    break;
                }
            }
        }
        let Some(edge) = edge else { return };
        let from = self.entries.partition_point(|sent| sent.end() <= self.examined);
        out.extend((from..=edge).filter(|&index| self.entries[index].flags & (Sent::SACKED | Sent::LOST) == 0));
        self.examined = self.entries[edge].end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..segments {
            board.push(i * 100, 100, false, Instant::from_nanos(i));
        }
        board
    }

    fn sack(board: &mut Scoreboard, left: u64, right: u64) {
        board.sack(left, right, &mut Delivered::default());
    }

    fn acknowledge(board: &mut Scoreboard, una: u64) -> u64 {
        let mut delivered = Delivered::default();
        board.acknowledge(una, &mut delivered);
        delivered.octets
    }

    fn lost(board: &mut Scoreboard) -> Vec<usize> {
        let mut out = Vec::new();
        board.find_lost(3, 100, &mut out);
        out
    }

    #[test]
    fn three_segments_above_make_a_loss() {
        let mut board = board(10);
        sack(&mut board, 100, 300);
        assert!(lost(&mut board).is_empty());
        sack(&mut board, 300, 400);
        assert_eq!(lost(&mut board), [0]);
        assert!(lost(&mut board).is_empty(), "each loss is found once");
    }

    #[test]
    fn three_ranges_above_make_a_loss_even_if_small() {
        let mut board = Scoreboard::default();
        for (start, end) in [(0, 100), (100, 110), (110, 200), (200, 210), (210, 300), (300, 310)] {
            board.push(start, (end - start) as u32, false, Instant::from_nanos(start));
        }
        for start in [100, 200, 300] {
            sack(&mut board, start, start + 10);
        }
        assert_eq!(lost(&mut board), [0], "segment 2 has two ranges above it");
    }

    #[test]
    fn blocks_count_for_whole_segments() {
        let mut board = board(10);
        sack(&mut board, 150, 450);
        assert_eq!((board.sacked(), board.highest_sacked(), board.len()), (200, 400, 10));
        sack(&mut board, 401, 499);
        sack(&mut board, 420, 500);
        assert_eq!((board.sacked(), board.len()), (200, 10));
        sack(&mut board, 100, 500);
        assert_eq!((board.sacked(), board.highest_sacked(), board.ranges.len()), (400, 500, 1));
        assert_eq!(acknowledge(&mut board, 350), 100);
        assert_eq!((board.sacked(), board.highest_sacked()), (150, 500));
    }

    #[test]
    fn blocks_of_one_octet_or_of_everything_cost_next_to_nothing() {
        let segments = 3000;
        let mut board = board(segments);
        let mut random = 1u64;
        for _ in 0..20_000 * 4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) % (segments * 100);
            sack(&mut board, at, at + 1);
        }
        assert_eq!((board.len() as u64, board.sacked()), (segments, 0));
        assert!(board.looks <= 20_000 * 4, "{}", board.looks);
        board.looks = 0;
        // Every second segment, then blocks over all of them, again and again.
        for nth in (1..segments - 1).step_by(2) {
            sack(&mut board, nth * 100, nth * 100 + 100);
        }
        for nth in 0..20_000 * 4 {
            sack(&mut board, 100 + nth % 100, (segments - 1) * 100 - nth % 77);
        }
        assert_eq!(board.len() as u64, segments);
        assert!(board.looks <= 4 * segments + 20_000 * 4 * 4, "{}", board.looks);
    }

    #[test]
    fn what_left_before_costs_what_it_is() {
        // Of a window every tenth segment is lost, and of the repairs, too, so that it is repaired twice.
        let segments = 3000;
        let mut board = board(segments);
        let mut clock = segments;
        let mut shown = Vec::new();
        for round in 0..3 {
            let hole = |nth: u64| nth % [10, 100, 1000][round] == 0;
            for nth in (0..segments).filter(|nth| !hole(*nth)) {
                let index = board.find(nth * 100).expect("nothing is acknowledged yet");
                let newest = (board.get(index).last_at, nth * 100 + 100);
                if board.get(index).is_sacked() {
                    continue;
                }
                sack(&mut board, nth * 100, nth * 100 + 100);
                board.left_before(newest, |index, _| shown.push(index));
                for index in shown.drain(..) {
                    board.mark_lost(index);
                }
                while let Some(index) = board.next_repair() {
                    clock += 1;
                    board.on_retransmit(index, Instant::from_nanos(clock));
                }
            }
        }
        assert_eq!(board.sacked(), (segments - 3) * 100);
        assert!(board.looks < 8 * segments, "{}", board.looks);
        // Taking back what was sent again, and forgetting what was SACKed, leaves nothing out.
        board.forget_sacks();
        let all = board.iter().filter(|sent| sent.in_network()).count();
        board.left_before((Instant::from_nanos(clock + 1), 0), |index, _| shown.push(index));
        assert_eq!(shown.len(), all);
    }

    #[test]
    fn the_pipe_follows_loss_repair_and_delivery() {
        let mut board = board(5);
        sack(&mut board, 200, 500);
        for index in lost(&mut board) {
            board.mark_lost(index);
        }
        assert_eq!(board.absent(), 500);
        let index = board.next_repair().unwrap();
        board.on_retransmit(index, Instant::from_nanos(99));
        assert_eq!((index, board.absent()), (0, 400));
        board.mark_lost(0);
        assert_eq!((board.next_repair(), board.absent()), (Some(0), 500), "a lost repair is repaired again");
        let delivered = acknowledge(&mut board, 500);
        assert_eq!((delivered, board.absent(), board.len()), (200, 0, 0));
    }

    #[test]
    fn what_was_sacked_before_that_was_forgotten_arrived_long_ago() {
        let acknowledged = |una: u64, again: Option<usize>| {
            let mut board = board(5);
            sack(&mut board, 100, 300);
            board.forget_sacks();
            if let Some(index) = again {
                board.mark_lost(index);
                board.on_retransmit(index, Instant::from_nanos(99));
            }
            let mut delivered = Delivered { order: Some(Order::default()), watch: 500, ..Delivered::default() };
            board.acknowledge(100, &mut Delivered::default());
            board.acknowledge(una, &mut delivered);
            let once = delivered.once.map(|(left, end)| (left.as_nanos(), end));
            let lowest = delivered.order.and_then(|order| order.lowest_once);
            (delivered.octets, once, lowest, delivered.original_before_watch, delivered.retransmitted)
        };
        assert_eq!(acknowledged(300, None), (200, None, None, false, 0));
        assert_eq!(acknowledged(300, Some(1)), (200, None, None, false, 1));
        assert_eq!(acknowledged(500, None), (400, Some((4, 500)), Some((300, 400)), true, 0));
    }

    #[test]
    fn a_partly_acknowledged_segment_is_cut() {
        let mut board = board(2);
        assert_eq!(acknowledge(&mut board, 150), 150);
        assert_eq!((board.first().unwrap().start, board.first().unwrap().len), (150, 50));
    }
}
