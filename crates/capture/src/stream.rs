//! The TCP segments of captures that are read one after the other as if they were one, in the order of time.

use crate::error::CaptureError;
use crate::headers::Segment;
use crate::order::InOrder;
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
    for source in sources {
        let name = source.name.clone();
        let about = records::read(source, &mut |record| {
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
