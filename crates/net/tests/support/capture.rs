//! Captures for whoever has to find out what went wrong.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// A pcap file of raw IP packets.
#[derive(Debug)]
pub struct Capture(BufWriter<File>);

impl Capture {
    /// A new file in the directory that the environment variable `WHYLOSS_CAPTURE` names, if it names one.
    pub fn from_environment(what: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let directory = std::env::var_os("WHYLOSS_CAPTURE")?;
        let test = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let name = format!("{test}-{}-{what}.pcap", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut file = BufWriter::new(File::create(std::path::Path::new(&directory).join(name)).expect("a file for a capture"));
        // Magic number for nanoseconds, version 2.4, no time zone, snapshot length, LINKTYPE_RAW.
        for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
            file.write_all(&word.to_le_bytes()).expect("writing a capture");
        }
        Some(Self(file))
    }

    /// Appends an IP packet with the time now.
    pub fn add(&mut self, packet: &[u8]) {
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
        for word in [now.as_secs() as u32, now.subsec_nanos(), packet.len() as u32, packet.len() as u32] {
            self.0.write_all(&word.to_le_bytes()).expect("writing a capture");
        }
        self.0.write_all(packet).expect("writing a capture");
    }
}
