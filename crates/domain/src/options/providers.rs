//! Cloud providers: regions, machines and networks, from `data/providers.json`.

use std::sync::LazyLock;

use podium_api::enums::CloudProvider;
use podium_api::options::{ProviderInstanceType, ProviderRegion};
use serde::{Deserialize, Deserializer};

/// How many nodes a pool can have at most.
pub struct NodeCounts {
    pub min: u32,
    /// What to suggest.
    pub default: u32,
    pub max: u32,
}

const NODE_COUNTS: NodeCounts = NodeCounts { min: 2, default: 20, max: 100 };

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    pub provider: CloudProvider,
    pub default_region: String,
    /// The name of the machine of nodes to suggest.
    pub default_node_instance: String,
    pub default_database_instance: String,
    pub ranges: Ranges,
    #[serde(deserialize_with = "regions")]
    pub regions: Vec<ProviderRegion>,
    pub node_instances: Vec<ProviderInstanceType>,
    pub database_instances: Vec<ProviderInstanceType>,
}

/// Networks to suggest; only some providers have more than the first.
#[derive(Debug, Deserialize)]
pub struct Ranges {
    pub vpc: String,
    pub pod: Option<String>,
    pub service: Option<String>,
    pub peering: Option<String>,
}

#[derive(Deserialize)]
struct Region {
    name: String,
    location: String,
    #[serde(default)]
    limited: bool,
}

fn regions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ProviderRegion>, D::Error> {
    let regions = Vec::<Region>::deserialize(deserializer)?;
    let region = |Region { name, location, limited }| ProviderRegion {
        name,
        location,
        limited,
        banned_instances: Vec::new(),
    };
    Ok(regions.into_iter().map(region).collect())
}

impl Provider {
    pub fn region(&self, name: &str) -> Option<&ProviderRegion> {
        self.regions.iter().find(|region| region.name == name)
    }

    pub fn node_instance(&self, name: &str) -> Option<&ProviderInstanceType> {
        self.node_instances.iter().find(|instance| instance.name == name)
    }

    pub fn database_instance(&self, name: &str) -> Option<&ProviderInstanceType> {
        self.database_instances.iter().find(|instance| instance.name == name)
    }
}

static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/providers.json"))
        .expect("providers.json is a list of providers")
});

pub fn providers() -> &'static [Provider] {
    &PROVIDERS
}

pub fn provider(provider: CloudProvider) -> &'static Provider {
    providers().iter().find(|known| known.provider == provider).expect("every provider is in the catalogue")
}

pub fn region(of: CloudProvider, name: &str) -> Option<&'static ProviderRegion> {
    provider(of).region(name)
}

/// How many nodes a pool can have at most.
pub const fn node_counts() -> NodeCounts {
    NODE_COUNTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ipnet::Ipv4Net;

    use super::*;

    #[test]
    fn every_provider_has_what_it_suggests() {
        for word in CloudProvider::ALL {
            let provider = provider(*word);
            let region = provider.region(&provider.default_region).expect("the default region is a region");
            assert!(!region.limited, "{word}: the default region takes clusters");
            assert!(provider.node_instance(&provider.default_node_instance).is_some(), "{word}");
            assert!(provider.database_instance(&provider.default_database_instance).is_some(), "{word}");
            let Ranges { vpc, pod, service, peering } = &provider.ranges;
            for range in [Some(vpc), pod.as_ref(), service.as_ref(), peering.as_ref()].into_iter().flatten() {
                let net: Ipv4Net = range.parse().expect("a range");
                assert_eq!(net.trunc(), net, "{range}");
            }
        }
        assert_eq!(providers().len(), CloudProvider::ALL.len());
    }

    #[test]
    fn names_occur_once() {
        for provider in providers() {
            let regions = provider.regions.iter().map(|region| &region.name);
            let instances = provider.node_instances.iter().chain(&provider.database_instances);
            let names: Vec<&String> = regions.chain(instances.map(|instance| &instance.name)).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{}", provider.provider);
            assert!(provider.regions.iter().filter(|region| !region.limited).count() > 1);
            assert!(provider.regions.is_sorted_by_key(|region| &region.name), "{}", provider.provider);
        }
    }
}
