use std::collections::BTreeSet;

use podium_api::{ENDPOINTS, Id};

use super::*;
use crate::fixtures::{d1, deployment};

#[test]
fn every_type_names_a_resource_and_what_happened_to_it() {
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    for event in EventType::ALL {
        let words: Vec<&str> = event.as_str().split('.').collect();
        assert!(
            words.len() == 3 && words[0] == "podium" && words.iter().all(|word| is_word(word)),
            "{event}"
        );
        assert_eq!(resource_of(*event), words[1]);
    }
}

#[test]
fn every_type_is_made_by_an_endpoint_or_by_a_change_of_status() {
    let mut made: BTreeSet<EventType> = ENDPOINTS.iter().filter_map(|endpoint| endpoint.event).collect();
    made.extend(DeploymentStatus::ALL.iter().map(|status| of_deployment_status(*status)));
    let regions = [(false, true), (true, false), (false, false)];
    for (before, after) in regions {
        for status in ClusterStatus::ALL {
            let other = if *status == ClusterStatus::Created {
                ClusterStatus::Updating
            } else {
                ClusterStatus::Created
            };
            made.extend(of_cluster((other, before), (*status, after)));
        }
    }
    made.extend(OperationState::ALL.iter().filter_map(|state| of_operation(*state)));
    // What the loops say of a deploy, a webhook and an alert, and a user who leaves.
    made.extend([T::DeploySucceeded, T::DeployFailed, T::WebhookDisabled, T::UserRemoved]);
    made.extend([T::AlertFiring, T::AlertResolved]);
    // What environments say, and what they could not say.
    made.extend([T::DagRunStarted, T::DagRunSucceeded, T::DagRunFailed, T::TaskFailed, T::TaskInterrupted]);
    made.insert(T::DeploymentEventsDropped);
    assert_eq!(made, EventType::ALL.iter().copied().collect());
}

#[test]
fn a_cluster_that_stays_as_it_is_makes_no_event() {
    use ClusterStatus::{Created, FailingOver, Updating};
    assert_eq!(of_cluster((Created, false), (Created, false)), None);
    assert_eq!(of_cluster((Updating, false), (Created, false)), Some(T::ClusterReady));
    assert_eq!(of_cluster((FailingOver, false), (Created, true)), Some(T::ClusterFailedOver));
    assert_eq!(of_cluster((FailingOver, true), (Created, false)), Some(T::ClusterFailedBack));
}

#[test]
fn an_event_says_where_it_happened_and_nothing_that_is_empty() {
    let (id, organization_id) = (Id::from_parts(1, 2, 3), OrganizationId::from_raw(Id::from_parts(4, 5, 6)));
    let reason = UserText::EMPTY;
    let about = Resource::new(id, deployment(d1())).in_status("HEALTHY", Some(&reason));
    let NewEvent { data, audience, .. } = NewEvent::new(T::DeploymentHealthy, organization_id, about, None);
    assert_eq!(audience.as_str(), "deployment.get");
    assert_eq!(
        (data.resource.r#type.as_str(), data.resource.id, data.resource.name),
        ("deployment", id, None)
    );
    assert_eq!((data.deployment_id, data.workspace_id.is_some()), (Some(d1()), true));
    assert_eq!((data.status.as_deref(), data.status_reason, data.actor), (Some("HEALTHY"), None, None));
}
