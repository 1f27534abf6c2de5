//! Resource metrics of components, from the kernel and their supervisors.

use std::collections::HashMap;
use std::fs;

use podium_api::DeploymentId;
use podium_domain::deployments::plan::Health;

use super::identity::booted_at;
use super::plane::{Plane, UNREADABLE_COMPONENT};
use super::process::{group_of, pids};
use super::state::State;
use super::supervisor::Handle;
use crate::{ComponentMetrics, EnvironmentMetrics};

/// The metrics of every environment of a plane.
pub(super) fn of(plane: &Plane) -> Vec<EnvironmentMetrics> {
    let seen: Vec<_> = {
        let supervisors = plane.supervisors();
        let known = |(id, handle): (&DeploymentId, &Handle)| {
            let components = handle.view.observed().components;
            let known = handle.view.lock();
            (*id, components, known.heartbeats.clone(), known.disk)
        };
        supervisors.iter().map(known).collect()
    };
    let (memory, booted) = (memory_of_groups(), booted_at());
    let metrics = seen.into_iter().map(|(id, components, heartbeats, disk)| {
        let state = State::read(&plane.layout.environment(id).state()).ok().flatten().unwrap_or_default();
        let component = |component: podium_domain::deployments::plan::Component| {
            let process = state.processes.get(&component.name).map(|started| &started.identity);
            let process = process.filter(|process| process.is_alive());
            ComponentMetrics {
                restarts: Some(state.restarts.get(&component.name).copied().unwrap_or(0)),
                memory: process.and_then(|process| memory.get(&process.pid).copied()),
                started_at: process.zip(booted).map(|(process, booted)| process.started_at(booted)),
                heartbeat_at: heartbeats.get(&component.name).copied(),
                name: component.name,
                is_up: component.health == Health::Up,
                problem: match component.health {
                    Health::Up => None,
                    Health::Down(why) => Some(why.user_text().clone()),
                },
            }
        };
        EnvironmentMetrics { id, components: components.into_iter().map(component).collect(), disk }
    });
    let unreadable = plane.unreadable_ids().into_iter().map(|id| {
        let down = ComponentMetrics { name: UNREADABLE_COMPONENT.into(), ..ComponentMetrics::default() };
        EnvironmentMetrics { id, components: vec![down], disk: None }
    });
    let mut metrics: Vec<EnvironmentMetrics> = metrics.chain(unreadable).collect();
    metrics.sort_by_key(|metrics| metrics.id);
    metrics
}

/// The resident memory of every process group in bytes. Memory that members share is counted for each of them.
fn memory_of_groups() -> HashMap<i32, u64> {
    let page = rustix::param::page_size() as u64;
    let mut groups = HashMap::new();
    for pid in pids() {
        let Some(group) = group_of(pid) else { continue };
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
        *groups.entry(group).or_default() += pages * page;
    }
    groups
}
