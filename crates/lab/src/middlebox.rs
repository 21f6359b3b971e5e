//! Middleboxes of a scenario: checked, and handed to the simulator.

use crate::error::{argument, nearest, InputError};
use crate::format::Middlebox;
use crate::network::{Network, Placed};

impl Network {
    /// Finds routers and links of the scenario's middleboxes.
    pub(crate) fn place_middleboxes(&mut self, all: &[Middlebox]) -> Result<(), InputError> {
        for (index, middlebox) in all.iter().enumerate() {
            let placed = self.place(middlebox).map_err(|error| {
                let field = format!("middlebox[{index}].{}", error.field);
                error.at(field)
            })?;
            self.middleboxes.push(placed);
        }
        Ok(())
    }

    fn place(&self, middlebox: &Middlebox) -> Result<Placed, InputError> {
        let wrong = |problem: &str, field: &str, found: &str, names: Vec<&str>| {
            let near = nearest(found, names.iter().copied());
            let allowed = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
            InputError::new(problem).at(field).found(format!("\"{found}\"")).nearest(near).allowed(allowed)
        };
        let routers = || self.nodes.iter().filter(|node| !node.host).map(|node| node.name.as_str()).collect();
        let at = self.nodes.iter().position(|node| node.name == middlebox.at);
        let at = match at {
            Some(at) if !self.nodes[at].host => at,
            Some(_) => return Err(wrong("a host, not a router", "at", &middlebox.at, routers())),
            None => return Err(wrong("no such router", "at", &middlebox.at, routers())),
        };
        let ends_here = || self.links.iter().filter(|link| link.ends.contains(&at)).map(|link| link.name.as_str()).collect();
        let link = self.links.iter().position(|link| link.name == middlebox.link);
        let link = match link {
            Some(link) if self.links[link].ends.contains(&at) => link,
            Some(_) => return Err(wrong("the link does not end at this router", "link", &middlebox.link, ends_here())),
            None => return Err(wrong("no such link", "link", &middlebox.link, ends_here())),
        };
        middlebox.agent().map_err(|error| argument(error, |name| format!("parameters.{name}")))?;
        Ok(middlebox.placed(at, link))
    }
}
