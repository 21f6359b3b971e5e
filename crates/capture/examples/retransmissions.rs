//! Prints what was sent again in a capture: `cargo run -p whyloss-capture --example retransmissions -- FILE [sender|receiver]`.

use std::ops::ControlFlow;
use std::path::Path;
use whyloss_capture::connections::{Connection, Connections, Observer, Side};
use whyloss_capture::half::{Kind, Retransmission};
use whyloss_capture::headers::Segment;
use whyloss_capture::{link, records, source};

struct Print;

impl Observer for Print {
    fn on_retransmission(&mut self, connection: u64, side: Side, sent: Retransmission) {
        let unneeded = sent.unneeded.map_or("-", |why| why.name());
        println!(
            "{connection} {} {} {} {} {} {:?} {:.6} {}",
            side.name(),
            sent.number,
            sent.start as u32,
            sent.len,
            sent.trigger.name(),
            sent.before,
            sent.after.as_secs_f64(),
            unneeded
        );
    }

    fn on_segment(&mut self, _: &Connection, side: Side, segment: &Segment, kind: Kind) {
        if !matches!(kind, Kind::New | Kind::Retransmission(_)) {
            println!("# {} {} {kind:?}", segment.number, side.name());
        }
    }

    fn on_end(&mut self, connection: Connection) {
        for side in [Side::Client, Side::Server] {
            let half = connection.half(side);
            eprintln!(
                "{} {:?} {:?} {:?} acked {} {:?}",
                connection.id,
                side,
                connection.place(side),
                half.trips.smoothed(),
                half.acknowledged(),
                half.counts
            );
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file");
    let receiver = arguments.next().is_some_and(|side| side == "receiver");
    let source = source::Source::open(Path::new(&file)).unwrap_or_else(|error| panic!("{error}"));
    let mut connections = Connections::default();
    let about = records::read(source, &mut |record| {
        let lost = record.comment.is_some_and(|comment| comment.starts_with("lost") || comment.starts_with("dropped"));
        if receiver && lost {
            return ControlFlow::Continue(());
        }
        if let Ok(found) = link::ip_packet(record.link, record.octets) {
            if let Some(segment) = Segment::read(record, &found) {
                connections.on_segment(&segment, &mut Print);
            }
        }
        ControlFlow::Continue(())
    });
    connections.finish(&mut Print);
    eprintln!("{:?}", about.unwrap_or_else(|error| panic!("{error}")));
}
