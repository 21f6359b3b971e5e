//! `whyloss serve` and `whyloss fetch` in a namespace.

use serde_json::Value as Json;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc;
use whyloss_net::deliver::{self, DeliverError, ServerNews};
use whyloss_net::namespace::Namespace;
use whyloss_net::Setup;
use whyloss_transport::scheme::Selection;

/// A host with a scheme on a device.
pub fn setup(tun: &str, addresses: Vec<IpAddr>, scheme: &str) -> Setup {
    Setup { tun: tun.to_owned(), addresses, selection: Selection::scheme(scheme), ..Setup::default() }
}

/// Serves `folder` in `namespace` to `clients` clients while `job` runs with the URLs; gives the report and what the job gave.
pub fn serving<T>(
    namespace: &Namespace,
    setup: &Setup,
    folder: &Path,
    clients: u64,
    job: impl FnOnce(Vec<String>) -> T,
) -> (Json, T) {
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let server = scope.spawn(move || {
            namespace.run(|| {
                deliver::serve(setup, folder, 80, Some(clients), |news| {
                    if let ServerNews::Listening(urls) = news {
                        tell.send(urls).expect("somebody listens");
                    }
                    ControlFlow::Continue(())
                })
            })
        });
        let done = told.recv().map(job);
        let report = server.join().expect("the server's thread").unwrap_or_else(|error| panic!("serving: {error}"));
        (report, done.expect("the server tells where it listens"))
    })
}

/// Fetches `url` in `namespace` to a file; gives the report.
pub fn fetch(namespace: &Namespace, setup: &Setup, url: &str, output: &Path) -> Result<Json, DeliverError> {
    namespace.run(|| deliver::fetch(setup, url, Some(output), |_| ControlFlow::Continue(())))
}
