//! Where the delays before losses stand among all delays of a direction. A full queue drops when the delay is among the longest; damage does not
//! ask. Unlike shares of the longest delay, ranks do not depend on one outlier, as a late acknowledgement is.

/// Delays without which nothing is said.
const FEWEST: usize = 16;
/// Other losses without which nothing is said of them.
const FEWEST_OTHERS: usize = 2;

/// Ranks from 0, shorter than all, to 1, longer than all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// Of the delay before this loss.
    pub own: f64,
    /// Of the delays before the other losses, if they are enough.
    pub others: Option<Others>,
}

/// Ranks of the delays before the other losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// Their mean.
    pub mean: f64,
    /// A quarter of them is lower.
    pub quarter: f64,
    /// How many there are.
    pub losses: usize,
}

/// Delays in their order.
#[derive(Debug)]
pub struct Order(Vec<f64>);

impl Order {
    /// Of these delays, if they are enough.
    pub fn of(delays: &[f64]) -> Option<Self> {
        let mut order = delays.to_vec();
        order.sort_unstable_by(f64::total_cmp);
        (order.len() >= FEWEST).then_some(Self(order))
    }

    /// Where `delay` stands; in the middle of those that are as long.
    pub fn rank(&self, delay: f64) -> f64 {
        let shorter = self.0.partition_point(|other| *other < delay);
        let not_longer = self.0.partition_point(|other| *other <= delay);
        (shorter + not_longer) as f64 / (2 * self.0.len()) as f64
    }

    /// The mean rank of some.
    pub fn mean(&self, delays: impl Iterator<Item = f64>) -> Option<f64> {
        let (count, sum) = delays.fold((0_u32, 0.0), |(count, sum), delay| (count + 1, sum + self.rank(delay)));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The ranks of a loss and of the others.
    pub fn ranks(&self, own: f64, others: impl Iterator<Item = f64>) -> Ranks {
        let mut ranks: Vec<f64> = others.map(|delay| self.rank(delay)).collect();
        let losses = ranks.len();
        let others = (losses >= FEWEST_OTHERS).then(|| Others {
            mean: ranks.iter().sum::<f64>() / losses as f64,
            quarter: *ranks.select_nth_unstable_by(losses / 4, f64::total_cmp).1,
            losses,
        });
        Ranks { own: self.rank(own), others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_no_rank_and_equal_delays_stand_in_the_middle() {
        let mut delays: Vec<f64> = (0..100).map(f64::from).collect();
        let ranks = |delays: &[f64]| Order::of(delays).expect("enough").ranks(50.0, [10.0, 90.0].into_iter());
        let before = ranks(&delays);
        delays[99] = 1e9;
        assert_eq!(ranks(&delays), before);
        assert!((before.own - 0.505).abs() < 1e-9 && (before.others.expect("enough").mean - 0.505).abs() < 1e-9, "{before:?}");
        assert_eq!(Order::of(&delays).expect("enough").ranks(50.0, [10.0].into_iter()).others, None);
        assert!((Order::of(&[3.0; 20]).expect("enough").rank(3.0) - 0.5).abs() < 1e-9);
        assert!(Order::of(&[3.0; 4]).is_none());
    }
}
