//! Decision tables: every branch of the detection algorithms.

use super::Assessment::{Forgiven, Genuine, Spurious, Undecided};
use super::{
    AfterTimeout, Assessment, Aware, Eifel, Exit, FRto, FixedRto, Nrt, Pardon, Regain, Standard, Timeout, TimeoutPolicy,
    TimeoutWindow,
};
use crate::path::{Ack, Path};
use crate::segment::{Options, Timestamps};
use crate::time::{Duration, Instant};
use crate::verdict::{Cause, Verdict};

/// The timer expires with 1000..11000 outstanding; 1000..2000 is retransmitted with `TSval` 500.
const UNA: u64 = 1000;
const HEAD_END: u64 = 2000;
const RECOVER: u64 = 11_000;
const RETRANSMISSION: u32 = 500;

#[derive(Clone, Copy)]
struct Expiry {
    sack: bool,
    timestamps: bool,
    in_recovery: bool,
}

const FIRST: Expiry = Expiry { sack: false, timestamps: true, in_recovery: false };
const FIRST_SACK: Expiry = Expiry { sack: true, ..FIRST };
const AGAIN: Expiry = Expiry { in_recovery: true, ..FIRST };

/// An acknowledgement after the timeout. `una` is where it moves `SND.UNA` to.
#[derive(Clone, Copy)]
struct Answer {
    una: u64,
    acked: u64,
    duplicate: bool,
    original: bool,
    beyond: bool,
    new_data: bool,
    echo: Option<u32>,
    dsack: bool,
}

fn advance(from: u64, to: u64) -> Answer {
    Answer {
        una: to,
        acked: to - from,
        duplicate: false,
        original: to > HEAD_END,
        beyond: to > RECOVER,
        new_data: true,
        echo: None,
        dsack: false,
    }
}

fn duplicate(at: u64) -> Answer {
    Answer { duplicate: true, ..advance(at, at) }
}

/// Neither advances nor duplicates: a window update, or data from the peer.
fn neutral(at: u64) -> Answer {
    advance(at, at)
}

fn expire(policy: &mut dyn TimeoutPolicy, expiry: Expiry) -> bool {
    let path = Path { una: UNA, nxt: RECOVER, ..Path::default() };
    let response = policy.on_timeout(&Timeout {
        path: &path,
        consecutive: 1,
        silence: Duration::from_secs(1),
        verdict: &Verdict { cause: Cause::Unknown, score: 0.0 },
        sack: expiry.sack,
        timestamps: expiry.timestamps,
        in_recovery: expiry.in_recovery,
    });
    assert_eq!(response.window, TimeoutWindow::Collapse);
    assert!(response.back_off);
    response.head_only
}

fn answer(policy: &mut dyn TimeoutPolicy, number: u32, answer: Answer) -> Assessment {
    answer_with(policy, number, answer, Instant::ZERO, Duration::from_millis(1100))
}

fn answer_at(policy: &mut dyn TimeoutPolicy, number: u32, answer: Answer, now: Instant) -> Assessment {
    answer_with(policy, number, answer, now, Duration::from_millis(1100))
}

fn answer_after(policy: &mut dyn TimeoutPolicy, number: u32, answer: Answer, silence: Duration) -> Assessment {
    answer_with(policy, number, answer, Instant::ZERO, silence)
}

fn answer_with(policy: &mut dyn TimeoutPolicy, number: u32, answer: Answer, now: Instant, silence: Duration) -> Assessment {
    let path = Path { una: answer.una, nxt: RECOVER + 2000, now, ..Path::default() };
    let timestamps = answer.echo.map(|echo| Timestamps { value: 0, echo });
    let options = Options { timestamps, ..Options::default() };
    let ack = Ack {
        path: &path,
        acked: answer.acked,
        delivered: answer.acked,
        rtt: None,
        delay: None,
        newest_sent_at: None,
        duplicate: answer.duplicate,
        ece: false,
        in_recovery: false,
        window_limited: true,
        sample: None,
        options: &options,
    };
    policy.assess(&AfterTimeout {
        ack: &ack,
        number,
        silence,
        recover: RECOVER,
        head_end: HEAD_END,
        beyond_recover: answer.beyond,
        original_delivered: answer.original,
        new_data_possible: answer.new_data,
        retransmission_tsval: answer.echo.map(|_| RETRANSMISSION),
        dsack: answer.dsack,
    })
}

fn check(policy: &mut dyn TimeoutPolicy, expiry: Expiry, head_only: bool, script: &[(Answer, Assessment)]) {
    assert_eq!(expire(policy, expiry), head_only);
    for (number, (given, expected)) in (1..).zip(script) {
        assert_eq!(answer(policy, number, *given), *expected, "acknowledgement {number}");
    }
}

#[test]
fn standard_never_doubts() {
    check(&mut Standard, FIRST, false, &[(duplicate(UNA), Genuine)]);
    check(&mut Standard, FIRST_SACK, false, &[(advance(UNA, 5000), Genuine), (advance(5000, 9000), Genuine)]);
}

#[test]
fn frto_basic() {
    let forward = advance(UNA, HEAD_END);
    let table: &[&[(Answer, Assessment)]] = &[
        // 2a: a duplicate; everything at once; less than the retransmission; nothing new to send.
        &[(duplicate(UNA), Genuine), (advance(UNA, 3000), Genuine)],
        &[(advance(UNA, RECOVER), Genuine)],
        &[(advance(UNA, 1500), Genuine)],
        &[(Answer { new_data: false, ..forward }, Genuine)],
        // 2b, 3a: the second is a duplicate.
        &[(forward, Undecided), (duplicate(HEAD_END), Genuine), (advance(HEAD_END, 4000), Genuine)],
        // 2b, 3b: the second advances, by one segment or by all.
        &[(forward, Undecided), (advance(HEAD_END, 3000), Spurious)],
        &[(forward, Undecided), (advance(HEAD_END, RECOVER + 1000), Spurious)],
        // The first may cover more than the retransmission: delayed acknowledgements.
        &[(advance(UNA, 3000), Undecided), (advance(3000, 5000), Spurious)],
        // What is neither counts for nothing.
        &[(neutral(UNA), Undecided), (forward, Undecided), (neutral(HEAD_END), Undecided), (duplicate(HEAD_END), Genuine)],
    ];
    for script in table {
        check(&mut FRto::default(), FIRST, true, script);
    }
}

#[test]
fn frto_with_sack() {
    let forward = advance(UNA, HEAD_END);
    let sacked_original = Answer { original: true, ..duplicate(HEAD_END) };
    let sacked_new = Answer { beyond: true, ..duplicate(HEAD_END) };
    let table: &[&[(Answer, Assessment)]] = &[
        // 2: duplicates before the first advance only fill the scoreboard.
        &[(Answer { original: true, ..duplicate(UNA) }, Undecided), (forward, Undecided), (sacked_original, Spurious)],
        // 2a
        &[(duplicate(UNA), Undecided), (advance(UNA, RECOVER), Genuine)],
        &[(advance(UNA, 1500), Genuine)],
        &[(Answer { new_data: false, ..forward }, Genuine)],
        // 3a: new data overtakes the old, or a duplicate says nothing new.
        &[(forward, Undecided), (sacked_new, Genuine)],
        &[(forward, Undecided), (Answer { original: true, ..sacked_new }, Genuine)],
        &[(forward, Undecided), (advance(HEAD_END, RECOVER + 1000), Genuine)],
        &[(forward, Undecided), (duplicate(HEAD_END), Genuine)],
        // 3b
        &[(forward, Undecided), (sacked_original, Spurious)],
        &[(forward, Undecided), (advance(HEAD_END, 3000), Spurious)],
    ];
    for script in table {
        check(&mut FRto::default(), FIRST_SACK, true, script);
    }
}

#[test]
fn frto_takes_a_timeout_within_a_repair_for_genuine() {
    let mut policy = FRto::default();
    check(&mut policy, FIRST, true, &[(advance(UNA, HEAD_END), Undecided)]);
    check(&mut policy, AGAIN, false, &[(neutral(HEAD_END), Genuine), (advance(HEAD_END, 3000), Genuine)]);
    // The next repair begins anew.
    check(&mut policy, FIRST, true, &[(advance(UNA, HEAD_END), Undecided), (advance(HEAD_END, 3000), Spurious)]);
}

#[test]
fn eifel_by_the_echoed_timestamp() {
    let echo = |echo, answer: Answer| Answer { echo: Some(echo), ..answer };
    let table: &[&[(Answer, Assessment)]] = &[
        // Step 4: the original's timestamp, the retransmission's, a later one, none.
        &[(echo(499, advance(UNA, 3000)), Spurious)],
        &[(echo(500, advance(UNA, 3000)), Genuine)],
        &[(echo(501, advance(UNA, 3000)), Genuine)],
        &[(advance(UNA, 3000), Genuine)],
        // Step 3: a duplicate is no acceptable acknowledgement, whatever it echoes; the first that advances decides for good.
        &[(echo(499, duplicate(UNA)), Undecided), (echo(499, advance(UNA, 3000)), Spurious)],
        &[(echo(500, advance(UNA, 3000)), Genuine), (echo(499, advance(3000, 4000)), Genuine)],
        // Step 5: everything at once is ambiguous, and a D-SACK for the retransmission says that both arrived.
        &[(echo(499, advance(UNA, RECOVER)), Genuine)],
        &[(Answer { dsack: true, ..echo(499, advance(UNA, 3000)) }, Genuine)],
    ];
    for script in table {
        check(&mut Eifel::default(), FIRST, true, script);
    }
}

#[test]
fn eifel_trusts_everything_at_once_from_a_receiver_known_to_report_duplicates() {
    let mut policy = Eifel::default();
    check(&mut policy, FIRST, true, &[(Answer { dsack: true, echo: Some(500), ..advance(UNA, 3000) }, Genuine)]);
    check(&mut policy, FIRST, true, &[(Answer { echo: Some(499), ..advance(UNA, RECOVER) }, Spurious)]);
}

#[test]
fn eifel_keeps_waiting_through_several_expiries_but_not_after_a_verdict() {
    let original = Answer { echo: Some(499), ..advance(UNA, 3000) };
    let mut policy = Eifel::default();
    expire(&mut policy, FIRST);
    check(&mut policy, AGAIN, true, &[(original, Spurious)]);
    check(&mut policy, FIRST, true, &[(Answer { echo: Some(500), ..original }, Genuine)]);
    check(&mut policy, AGAIN, false, &[(original, Genuine)]);
}

#[test]
fn eifel_compares_timestamps_across_their_wrap() {
    // The clock wrapped between the original and the retransmission.
    let mut policy = Eifel::default();
    check(&mut policy, FIRST, true, &[(Answer { echo: Some(u32::MAX - 3), ..advance(UNA, 3000) }, Spurious)]);
}

#[test]
fn eifel_without_timestamps_is_standard() {
    let expiry = Expiry { timestamps: false, ..FIRST };
    check(&mut Eifel::default(), expiry, false, &[(advance(UNA, 3000), Genuine)]);
}

const RTO: Duration = Duration::from_secs(1);

/// An expiry as verdict-aware policies see it.
#[derive(Clone, Copy)]
struct Judged {
    cause: Cause,
    consecutive: u32,
    silence: Duration,
    at: Instant,
    expiry: Expiry,
}

const CORRUPTION: Judged =
    Judged { cause: Cause::Corruption, consecutive: 1, silence: RTO, at: Instant::from_nanos(100_000_000_000), expiry: FIRST };

/// A first expiry without timestamps and without anything new to send, so that the first acknowledgement decides.
const PLAIN: Judged = Judged { expiry: Expiry { timestamps: false, ..FIRST }, ..CORRUPTION };
const ADVANCE: Answer = Answer {
    una: RECOVER,
    acked: RECOVER - UNA,
    duplicate: false,
    original: true,
    beyond: false,
    new_data: false,
    echo: None,
    dsack: false,
};

fn expire_judged(policy: &mut dyn TimeoutPolicy, judged: Judged) -> super::TimeoutResponse {
    let path = Path { una: UNA, nxt: RECOVER, rto: RTO, now: judged.at, ..Path::default() };
    policy.on_timeout(&Timeout {
        path: &path,
        consecutive: judged.consecutive,
        silence: judged.silence,
        verdict: &Verdict { cause: judged.cause, score: 0.0 },
        sack: judged.expiry.sack,
        timestamps: judged.expiry.timestamps,
        in_recovery: judged.expiry.in_recovery,
    })
}

fn aware() -> Aware {
    Aware::new(3, 4.0, Exit::SlowStart)
}

const FORGIVEN: Assessment = Forgiven(Pardon { halvings: 0, timer: false, exit: Exit::SlowStart });

#[test]
fn aware_forgives_what_is_judged_corruption_and_safe_to_believe() {
    let table: &[(&str, Judged, Assessment)] = &[
        ("corruption", PLAIN, FORGIVEN),
        ("congestion", Judged { cause: Cause::Congestion, ..PLAIN }, Genuine),
        ("no verdict is congestion", Judged { cause: Cause::Unknown, ..PLAIN }, Genuine),
        ("the second in a row", Judged { consecutive: 2, ..PLAIN }, FORGIVEN),
        ("the third in a row", Judged { consecutive: 3, ..PLAIN }, Genuine),
        ("a silence of four timeouts", Judged { silence: RTO * 4, ..PLAIN }, FORGIVEN),
        ("an outage", Judged { silence: RTO * 4 + Duration::from_nanos(1), ..PLAIN }, Genuine),
        (
            "within the repair of a timeout that was not forgiven",
            Judged { expiry: Expiry { in_recovery: true, ..PLAIN.expiry }, ..PLAIN },
            Genuine,
        ),
    ];
    for (what, judged, expected) in table {
        let mut policy = aware();
        let response = expire_judged(&mut policy, *judged);
        assert_eq!(response.window, TimeoutWindow::Collapse, "{what}");
        assert!(response.back_off, "{what}");
        assert_eq!(response.head_only, *expected == FORGIVEN, "{what}");
        assert_eq!(answer(&mut policy, 1, ADVANCE), *expected, "{what}");
    }
}

#[test]
fn aware_takes_a_repair_with_one_unforgivable_expiry_for_congestion() {
    let again = |consecutive| Judged { consecutive, expiry: Expiry { in_recovery: true, ..PLAIN.expiry }, ..PLAIN };
    for (causes, expected) in [
        ([Cause::Corruption, Cause::Corruption], FORGIVEN),
        ([Cause::Congestion, Cause::Corruption], Genuine),
        ([Cause::Corruption, Cause::Congestion], Genuine),
    ] {
        let mut policy = aware();
        expire_judged(&mut policy, Judged { cause: causes[0], ..PLAIN });
        expire_judged(&mut policy, Judged { cause: causes[1], ..again(2) });
        assert_eq!(answer(&mut policy, 1, ADVANCE), expected, "{causes:?}");
    }
}

#[test]
fn aware_forgives_once_a_timeout() {
    let mut policy = aware();
    expire_judged(&mut policy, PLAIN);
    let at = |at| Judged { at, ..PLAIN };
    let mut pardoned = PLAIN.at + Duration::from_millis(70);
    let acknowledge = |policy: &mut Aware, now| answer_at(policy, 1, ADVANCE, now);
    assert_eq!(acknowledge(&mut policy, pardoned), FORGIVEN);
    for (after_ms, expected) in [(999, Genuine), (1000, FORGIVEN), (999, Genuine), (1001, FORGIVEN)] {
        let now = pardoned + Duration::from_millis(after_ms);
        expire_judged(&mut policy, at(now));
        assert_eq!(acknowledge(&mut policy, now), expected);
        if expected == FORGIVEN {
            pardoned = now;
        }
    }
}

#[test]
fn aware_waits_until_the_loss_is_certain() {
    // The peer says nothing for so long after the expiry that it may as well have been away.
    let mut policy = aware();
    expire_judged(&mut policy, PLAIN);
    assert_eq!(answer_after(&mut policy, 1, ADVANCE, RTO * 5), Genuine);
    // F-RTO: two new segments leave; a duplicate says that something was lost, an advance that nothing was.
    let forward = advance(UNA, HEAD_END);
    for (last, expected) in [(duplicate(HEAD_END), FORGIVEN), (advance(HEAD_END, 4000), Spurious)] {
        let mut policy = aware();
        expire_judged(&mut policy, PLAIN);
        assert_eq!(answer(&mut policy, 1, forward), Undecided);
        assert_eq!(answer(&mut policy, 2, last), expected);
    }
    // A duplicate first: the loss is certain, but not yet repaired.
    let mut policy = aware();
    expire_judged(&mut policy, PLAIN);
    assert_eq!(answer(&mut policy, 1, duplicate(UNA)), Undecided);
    assert_eq!(answer(&mut policy, 2, forward), FORGIVEN);
    // Timestamps: what the first acknowledgement that advances echoes.
    for (cause, echo, expected) in [
        (Cause::Corruption, RETRANSMISSION - 1, Spurious),
        (Cause::Corruption, RETRANSMISSION, FORGIVEN),
        (Cause::Congestion, RETRANSMISSION - 1, Spurious),
        (Cause::Congestion, RETRANSMISSION, Genuine),
    ] {
        let mut policy = aware();
        expire_judged(&mut policy, Judged { cause, ..CORRUPTION });
        assert_eq!(answer(&mut policy, 1, Answer { echo: Some(echo), ..duplicate(UNA) }), Undecided);
        assert_eq!(answer(&mut policy, 2, Answer { echo: Some(echo), ..advance(UNA, 3000) }), expected, "{cause:?} {echo}");
    }
}

#[test]
fn fixed_rto_doubles_as_often_as_it_is_said_to() {
    let doublings = |policy: &mut FixedRto, cause: Cause| -> String {
        let expiry = |consecutive| expire_judged(policy, Judged { cause, consecutive, ..PLAIN }).back_off;
        (1..=7).map(expiry).map(|doubles| if doubles { 'x' } else { '-' }).collect()
    };
    let (congestion, corruption) = (Cause::Congestion, Cause::Corruption);
    for (limit, first_doubles, any_verdict, cause, expected) in [
        (3, true, true, congestion, "x---xxx"),
        (0, true, true, congestion, "x------"),
        (3, false, true, congestion, "---xxxx"),
        (0, false, true, corruption, "-------"),
        (3, false, false, corruption, "---xxxx"),
        (3, false, false, congestion, "xxxxxxx"),
    ] {
        let mut policy = FixedRto { limit, first_doubles, any_verdict, regain: false };
        assert_eq!(doublings(&mut policy, cause), expected);
        assert_eq!(answer(&mut policy, 1, ADVANCE), Genuine);
    }
}

/// What NRT makes of a timeout on a path of 100 to 200 ms, after a last sample of `before`, when the acknowledgements of the repair
/// bring these samples in milliseconds. The last one ends the repair.
fn nrt(before: u64, repair: &[u64], ece: bool, judged: Judged) -> Vec<Assessment> {
    nrt_after(&mut Nrt::new(0.5, 8, Duration::from_millis(2), 3.0), before, repair, ece, judged)
}

/// The same of a policy that knows the path already.
fn nrt_after(policy: &mut Nrt, before: u64, repair: &[u64], ece: bool, judged: Judged) -> Vec<Assessment> {
    let ms = Duration::from_millis;
    let options = Options::default();
    let acknowledge = |policy: &mut Nrt, now: Instant, rtt: u64, ece: bool| {
        let path = Path { now, ..Path::default() };
        let sent = (now.as_nanos() > ms(rtt).as_nanos()).then(|| Instant::from_nanos(now.as_nanos() - ms(rtt).as_nanos()));
        policy.on_ack(&Ack {
            path: &path,
            acked: 1000,
            delivered: 1000,
            rtt: None,
            delay: Some(ms(rtt)),
            newest_sent_at: sent,
            duplicate: false,
            ece,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &options,
        });
    };
    for rtt in [100, 200, before] {
        acknowledge(policy, judged.at, rtt, false);
    }
    let path = Path { una: UNA, nxt: RECOVER, rto: RTO, now: judged.at, cwnd: 3000, mss: 1000, ..Path::default() };
    let response = policy.on_timeout(&Timeout {
        path: &path,
        consecutive: judged.consecutive,
        silence: judged.silence,
        verdict: &Verdict { cause: judged.cause, score: 0.0 },
        sack: false,
        timestamps: true,
        in_recovery: false,
    });
    assert!(response.back_off && response.head_only);
    let answers = (1..).zip(repair).map(|(number, &rtt)| {
        let last = number as usize == repair.len();
        acknowledge(policy, judged.at + ms(500), rtt, ece);
        let una = if last { RECOVER } else { UNA + 1000 * u64::from(number) };
        answer(policy, number, Answer { una, acked: 1000, echo: Some(RETRANSMISSION), ..ADVANCE })
    });
    answers.collect()
}

#[test]
fn nrt_forgives_when_the_queues_are_empty_before_and_after() {
    use super::Assessment::Repairing;
    let all = Forgiven(Pardon { halvings: 0, timer: true, exit: Exit::SlowStart });
    // A window of three segments waits for three samples.
    assert_eq!(nrt(149, &[149, 100, 200, 200], false, CORRUPTION)[..3], [Repairing, Repairing, all]);
    assert_eq!(nrt(149, &[150, 100, 150, 100], false, CORRUPTION)[..3], [Repairing, Repairing, Genuine], "the median is 150");
    assert_eq!(nrt(149, &[120], false, CORRUPTION), [all], "the repair ends first");
    assert_eq!(nrt(150, &[100], false, CORRUPTION), [Genuine], "half full before");
    assert_eq!(nrt(100, &[100], true, CORRUPTION), [Genuine], "ECN");
    assert_eq!(nrt(100, &[600], false, CORRUPTION), [Genuine], "no sample: it was sent before the silence");
    let half = Forgiven(Pardon { halvings: 1, timer: true, exit: Exit::SlowStart });
    assert_eq!(nrt(100, &[100], false, Judged { consecutive: 2, silence: RTO * 2, ..CORRUPTION }), [half]);
    assert_eq!(nrt(100, &[100], false, Judged { consecutive: 3, ..CORRUPTION }), [Genuine]);
    assert_eq!(nrt(100, &[100], false, Judged { silence: RTO * 3, ..CORRUPTION }), [Genuine], "an outage");
}

#[test]
fn nrt_goes_on_measuring_after_an_undo() {
    let mut policy = Nrt::new(0.5, 8, Duration::from_millis(2), 3.0);
    assert_eq!(nrt_after(&mut policy, 100, &[100, 100], false, CORRUPTION)[..1], [Assessment::Repairing]);
    policy.on_timeout(&Timeout {
        path: &Path { una: UNA, nxt: RECOVER, rto: RTO, now: CORRUPTION.at, cwnd: 3000, mss: 1000, ..Path::default() },
        consecutive: 1,
        silence: RTO,
        verdict: &Verdict { cause: Cause::Corruption, score: 0.0 },
        sack: true,
        timestamps: true,
        in_recovery: false,
    });
    policy.on_undone();
    // The queues are full before the next timeout, which it can only know if it has listened since.
    assert_eq!(nrt_after(&mut policy, 200, &[100], false, CORRUPTION), [Genuine]);
}

#[test]
fn slow_start_leads_back_only_without_congestion() {
    let mut bulk_repeat = FixedRto { limit: 3, first_doubles: false, any_verdict: false, regain: true };
    for policy in [&mut Regain as &mut dyn TimeoutPolicy, &mut bulk_repeat] {
        for (cause, window) in [
            (Cause::Corruption, TimeoutWindow::Regain),
            (Cause::Congestion, TimeoutWindow::Collapse),
            (Cause::Unknown, TimeoutWindow::Collapse),
        ] {
            assert_eq!(expire_judged(policy, Judged { cause, ..PLAIN }).window, window, "{cause:?} {policy:?}");
        }
        assert_eq!(answer(policy, 1, ADVANCE), Genuine);
    }
}
