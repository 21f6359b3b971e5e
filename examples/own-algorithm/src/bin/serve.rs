//! A web server on real packets whose TCP sends with Scalable TCP. Needs root, for the TUN device.
//!
//! `cargo run --bin serve -- FOLDER`, then fetch what it names with any browser or `curl` of this machine.

use own_algorithm::PART;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use whyloss_net::deliver::{serve, ServerNews};
use whyloss_net::Setup;
use whyloss_transport::scheme::Selection;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a file or folder to offer")?;
    let mut setup = Setup { profile: "linux".to_owned(), ..Setup::default() };
    setup.catalogue.add(&PART)?;
    setup.selection = Selection { congestion: Some(PART.name.to_owned()), ..Selection::default() };
    let report = serve(&setup, Path::new(&folder), 80, None, |news| {
        match news {
            ServerNews::Listening(urls) => println!("try: curl -o /dev/null {}", urls.join(" ")),
            ServerNews::Finished(transfer) => println!("{} octets, {} sent again", transfer.octets, transfer.retransmissions),
            ServerNews::Tick => {}
        }
        ControlFlow::Continue(())
    })?;
    println!("{report:#}");
    Ok(())
}
