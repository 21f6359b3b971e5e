//! Sequence arithmetic against plain integers.

use proptest::prelude::*;
use whyloss_transport::Seq;

/// The furthest that serial arithmetic tells before from after.
const HALF: i64 = 1 << 31;

proptest! {
    /// A number finds the position that it was cut from, as long as that is less than half the circle away.
    #[test]
    fn a_number_finds_its_position(reference in (1u64 << 33)..u64::MAX >> 1, distance in -HALF..HALF) {
        let position = reference.wrapping_add_signed(distance);
        prop_assert_eq!(Seq::from(position).near(reference), position);
    }

    /// And whatever it finds is the nearest position with that number.
    #[test]
    fn no_position_with_that_number_is_nearer(reference in (1u64 << 33)..u64::MAX >> 1, number: u32) {
        let found = Seq(number).near(reference);
        prop_assert_eq!(found as u32, number);
        for other in [found - (1 << 32), found + (1 << 32)] {
            prop_assert!(found.abs_diff(reference) <= other.abs_diff(reference));
        }
    }

    /// Order and distance agree with those of positions less than half the circle apart, wherever the circle closes.
    #[test]
    fn order_is_that_of_positions(base in (1u64 << 33)..u64::MAX >> 1, distance in -HALF + 1..HALF) {
        let (a, b) = (Seq::from(base), Seq::from(base.wrapping_add_signed(distance)));
        prop_assert_eq!(i64::from(b - a), distance);
        prop_assert_eq!(a.precedes(b), distance > 0);
        prop_assert_eq!(b.precedes(a), distance < 0);
    }

    /// Adding is adding to the position.
    #[test]
    fn adding_wraps(base: u64, count: u32) {
        prop_assert_eq!(Seq::from(base) + count, Seq::from(base.wrapping_add(u64::from(count))));
    }
}
