//! Radio stations in a row.

use super::channel::Input;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_transport::quantity::Length;

/// Stations in a row, `hops` hops of `spacing` each: host `node0`, routers `node1`, `node2`, … and a host at the other end. Flows
/// that do not say `from` and `to` go from `node0` to the other end. `[radio]` says what stations they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Number of hops.
    pub hops: u32,
    /// Distance from each station to the next; `"200 m"` if nothing is said.
    #[serde(default = "spacing")]
    pub spacing: Length,
    /// What happens to packets that have arrived at `node0` or at the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

const fn spacing() -> Length {
    Length(200_000)
}

#[cfg(test)]
mod tests {
    use crate::format::Radio;
    use crate::Scenario;
    use whyloss_sim::RadioSpec;

    #[test]
    fn what_a_file_says_of_a_radio_is_what_the_simulator_has() {
        let text = "[chain]\nhops = 1\n[radio]\nrts = '1500 B'\nshort_retries = 'none'\nlong_retries = 3\nqueue = '9 pkt'\n";
        let document = Scenario::from_toml(text, "t").unwrap().document().clone();
        let radio = document.radio.clone().unwrap();
        let RadioSpec { rts, short_retries, long_retries, power_w, .. } = radio.map(|channel| channel.spec(None));
        assert_eq!((rts, short_retries, long_retries, power_w), (Some(1500), None, Some(3), 0.2818));
        let json = Scenario::from_toml(text, "t").unwrap().to_json();
        assert_eq!((&json["radio"]["rts"], &json["radio"]["short_retries"]), (&"1500 B".into(), &"none".into()));
        assert_eq!(serde_json::from_value::<Radio>(json["radio"].clone()).unwrap(), radio);
    }
}
