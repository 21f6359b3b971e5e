//! Octets that are read as a capture are analysed or refused, within bounds, and come out the same from several workers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::join::join;
use whyloss_capture::source::Source;

fuzz_target!(|octets: &[u8]| {
    let source = || Source::new("input".to_owned(), Box::new(Cursor::new(octets.to_vec())));
    let (Ok(first), Ok(second), Ok(third)) = (source(), source(), source()) else { return };
    let settings = Settings { connections: 16, memory: 1 << 19, rows: 64, tables: 1 << 18, workers: 1, ..Settings::default() };
    let Ok(analysis) = analyse(vec![first], &settings, &mut |_| ControlFlow::Continue(())) else { return };
    let facts = &analysis.facts;
    assert!(facts.segments + facts.others <= facts.packets);
    assert!(analysis.retransmissions.len() <= settings.rows && analysis.losses.len() <= settings.rows);
    assert!(facts.remarks.iter().all(|remark| remark.starts_with("input: ")));
    if let Ok(joined) = join(second, third, 1 << 12) {
        assert!(joined.sent.iter().all(|sent| sent.len() <= 1 << 12));
    }
});
