//! The TCP segments of captures that are read one after the other as if they were one, in the order of time.

use crate::error::{CaptureError, Kind};
use crate::headers::Segment;
use crate::order::InOrder;
use crate::overlaps::Overlaps;
use crate::records::{self, About, Record};
use crate::segments::Segments;
use crate::source::Source;
use std::ops::ControlFlow;

/// Records after which the work reports and can be stopped.
const STEP: u64 = 1 << 14;

/// What captures say of themselves, and what was noticed on the way.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Each file that was read, and what it says.
    pub files: Vec<(String, About)>,
    /// Somebody said to stop in the last of them.
    pub stopped: bool,
    /// Segments that stood so far behind earlier ones that they were not brought into the order of time.
    pub late: u64,
    /// Wrong checksums that are no damage.
    pub disbelieved: u64,
}

/// Reads captures and hands on their segments, numbered through all files.
///
/// `each` sees all records as they stand, and hears whether there is a segment in one. `watch` hears the number of records now and then; once it says to
/// stop, what was read is handed on and the rest is not read.
pub fn read(
    sources: Vec<Source>,
    each: &mut dyn FnMut(&Record, bool),
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    next: &mut dyn FnMut(&Segment),
) -> Result<Stream, CaptureError> {
    let mut stream = Stream::default();
    let mut segments = Segments::default();
    let mut in_order = InOrder::default();
    let mut before = 0;
    let mut overlaps = (sources.len() > 1).then(Overlaps::default);
    for (file, source) in sources.into_iter().enumerate() {
        let name = source.name.clone();
        let mut repeats = None;
        let about = records::read(source, &mut |record| {
            repeats = overlaps.as_mut().and_then(|overlaps| overlaps.note(file, record)).map(|other| (other, record.number));
            if repeats.is_some() {
                return ControlFlow::Break(());
            }
            let segment = segments.read(record);
            each(record, segment.is_some());
            if let Some(segment) = segment {
                in_order.push(Segment { number: before + segment.number, ..segment }, next);
            }
            if record.number % STEP == 0 && watch(before + record.number).is_break() {
                stream.stopped = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if let Some((other, packet)) = repeats {
            let other = stream.files[other].0.clone();
            return Err(CaptureError { kind: Kind::Repeats { packet, once: once([&other, &name]), other }, file: name });
        }
        before += about.packets;
        stream.files.push((name, about));
        if stream.stopped {
            break;
        }
    }
    in_order.finish(next);
    (stream.late, stream.disbelieved) = (in_order.late, segments.disbelieved);
    Ok(stream)
}

/// Commands of Wireshark that leave each packet of two captures once.
fn once(files: [&str; 2]) -> String {
    let [one, other] = files.map(|file| format!("'{}'", file.replace('\'', r"'\''")));
    format!("mergecap -w both.pcapng {one} {other} && editcap -d both.pcapng once.pcapng")
}
