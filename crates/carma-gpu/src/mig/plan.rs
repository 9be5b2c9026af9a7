//! From the present to the wanted partition of a GPU: which instances go, stay, and are created.

use std::cmp::Reverse;
use std::fmt;

use thiserror::Error;

use super::layout::Layout;
use super::profile::{Profile, ProfileName};
use super::step::{Part, Plan, Step};
use super::{Instance, MigState, Mode, Placement, Process};

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// This GPU does not support MIG.
    #[error("this GPU does not support MIG")]
    Unsupported,
    /// The mode changes with the next reset, and no step is possible before.
    #[error("MIG is switched with the next reset of the GPU: run `nvidia-smi --gpu-reset` as root, or restart the machine")]
    ResetPending,
    /// It has no such instances.
    #[error("this GPU has no MIG profile {name}; it has {}", listed(known))]
    UnknownProfile {
        /// The requested profile.
        name: ProfileName,
        /// The supported profiles.
        known: Vec<ProfileName>,
    },
    /// It has fewer of a kind.
    #[error("this GPU has room for {most} MIG instance(s) of profile {name}, not {wanted}")]
    TooMany {
        /// The profile.
        name: ProfileName,
        /// The requested number.
        wanted: usize,
        /// The largest possible number.
        most: u32,
    },
    /// The total is too large.
    #[error("{layout} needs {wanted} compute slices; this GPU has {there}")]
    TooManySlices {
        /// The requested layout.
        layout: Layout,
        /// The needed slices.
        wanted: u32,
        /// The available slices.
        there: u32,
    },
    /// They overlap wherever they are put.
    #[error("{0} cannot be placed: the instances would overlap in memory")]
    NoPlacement(Layout),
    /// There are instances, and their placement is not known.
    #[error("the placement of MIG instances is visible only to root: run this as root")]
    Hidden,
    /// A process runs on an instance that would be removed.
    #[error("{what} is in use by {}: wait for its end", listed(processes))]
    Busy {
        /// The instance.
        what: String,
        /// The processes on it.
        processes: Vec<Process>,
    },
}

fn listed<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Finds the steps to a layout that keep as many instances as possible, those in use before others.
pub fn plan(state: &MigState, layout: &Layout, profiles: &[Profile]) -> Result<Plan, PlanError> {
    if state.mode == Mode::Unsupported {
        return Err(PlanError::Unsupported);
    }
    if state.pending != state.mode {
        return Err(PlanError::ResetPending);
    }
    if state.instances.iter().any(|instance| instance.placement.is_none()) {
        return Err(PlanError::Hidden);
    }
    let target = if *layout == Layout::Off { Mode::Off } else { Mode::On };
    let switch = (state.mode != target).then_some(Step::Switch(target));
    if switch.is_some() && !state.processes.is_empty() {
        return Err(PlanError::Busy { what: "the GPU".to_owned(), processes: state.processes.clone() });
    }
    let (kept, created) = match layout {
        Layout::Off => (Vec::new(), Vec::new()),
        Layout::Instances(wanted) => arrange(state, layout, &check(layout, wanted, profiles)?)?,
    };
    let gone = || state.instances.iter().filter(|instance| !kept.contains(*instance));
    for instance in gone() {
        let processes: Vec<Process> = state.processes_on(instance).cloned().collect();
        if !processes.is_empty() {
            return Err(PlanError::Busy { what: format!("MIG instance {} ({})", instance.gpu_instance, instance.profile), processes });
        }
    }
    let destroyed = gone().filter_map(|instance| {
        let profile_id = profiles.iter().find(|profile| profile.name == instance.profile)?.id;
        Some(Step::Destroy(instance.gpu_instance, Part { profile: instance.profile, profile_id, placement: instance.placement? }))
    });
    let created = created.into_iter().map(Step::Create);
    // MIG is switched on before instances are created, and off after the last one is destroyed.
    let mut steps: Vec<Step> = destroyed.chain(created).collect();
    let place = if target == Mode::On { 0 } else { steps.len() };
    steps.splice(place..place, switch);
    Ok(Plan { kept, steps })
}

/// The wanted profiles, if there are enough.
fn check<'a>(layout: &Layout, wanted: &[ProfileName], profiles: &'a [Profile]) -> Result<Vec<&'a Profile>, PlanError> {
    let of_name = |name: &ProfileName| {
        let unknown = || PlanError::UnknownProfile { name: *name, known: profiles.iter().map(|profile| profile.name).collect() };
        profiles.iter().find(|profile| profile.name == *name).ok_or_else(unknown)
    };
    let kinds = wanted.iter().map(of_name).collect::<Result<Vec<_>, _>>()?;
    for profile in &kinds {
        let count = wanted.iter().filter(|name| **name == profile.name).count();
        if count > profile.most as usize {
            return Err(PlanError::TooMany { name: profile.name, wanted: count, most: profile.most });
        }
    }
    let needed = wanted.iter().map(|name| name.slices).sum();
    let there = profiles.iter().map(|profile| profile.name.slices).max().unwrap_or_default();
    if needed > there {
        return Err(PlanError::TooManySlices { layout: layout.clone(), wanted: needed, there });
    }
    Ok(kinds)
}

/// The kept instances, and the new ones with their placements.
fn arrange(state: &MigState, layout: &Layout, wanted: &[&Profile]) -> Result<(Vec<Instance>, Vec<Part>), PlanError> {
    let mut usable: Vec<&Instance> = state.instances.iter().filter(|instance| instance.whole().is_some()).collect();
    usable.sort_by_key(|instance| state.processes_on(instance).next().is_none());
    let busy = usable.iter().take_while(|instance| state.processes_on(instance).next().is_some()).count();
    // A GPU has so few instances that all choices of kept ones can be tried, the best first.
    let mut choices: Vec<u32> = (0..1 << usable.len()).collect();
    choices.sort_by_key(|choice| Reverse(((choice & ((1 << busy) - 1)).count_ones(), choice.count_ones(), choice.reverse_bits())));
    let attempt = |choice: u32| {
        let kept: Vec<&Instance> =
            usable.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 != 0).map(|(_, instance)| *instance).collect();
        let mut missing = wanted.to_vec();
        for instance in &kept {
            missing.remove(missing.iter().position(|profile| profile.name == instance.profile)?);
        }
        let taken: Vec<Placement> = kept.iter().filter_map(|instance| instance.placement).collect();
        let made = fit(&mut missing, &taken)?;
        Some((kept.into_iter().cloned().collect(), made))
    };
    choices.into_iter().find_map(attempt).ok_or_else(|| PlanError::NoPlacement(layout.clone()))
}

/// Placements for instances beside the taken ones, the largest first.
fn fit(wanted: &mut [&Profile], taken: &[Placement]) -> Option<Vec<Part>> {
    fn search(wanted: &[&Profile], taken: &[Placement], made: &mut Vec<Part>) -> bool {
        let Some((profile, rest)) = wanted.split_first() else { return true };
        // Equal instances are placed in order: any other order gives the same layout.
        let after = made.last().filter(|last| last.profile == profile.name).map(|last| last.placement.start);
        for placement in profile.placements.iter().copied().filter(|placement| after.is_none_or(|after| placement.start > after)) {
            if taken.iter().copied().chain(made.iter().map(|part| part.placement)).any(|other| other.overlaps(placement)) {
                continue;
            }
            made.push(Part { profile: profile.name, profile_id: profile.id, placement });
            if search(rest, taken, made) {
                return true;
            }
            made.pop();
        }
        false
    }
    let size = |profile: &Profile| profile.placements.first().map_or(0, |placement| placement.size);
    wanted.sort_by_key(|profile| Reverse((size(profile), profile.name)));
    let mut made = Vec::new();
    search(wanted, taken, &mut made).then_some(made)
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;

    use super::*;
    use crate::mig::ComputeInstance;

    /// Kinds of instances of an A100 with 40 GB, as NVIDIA's user guide lists them: name, number, most, places, memory slices.
    fn profiles() -> Vec<Profile> {
        let kinds: [(&str, u32, u32, &[u32], u32); 7] = [
            ("1g.5gb", 19, 7, &[0, 1, 2, 3, 4, 5, 6], 1),
            ("1g.5gb+me", 20, 1, &[0, 1, 2, 3, 4, 5, 6], 1),
            ("1g.10gb", 15, 4, &[0, 2, 4, 6], 2),
            ("2g.10gb", 14, 3, &[0, 2, 4], 2),
            ("3g.20gb", 9, 2, &[0, 4], 4),
            ("4g.20gb", 5, 1, &[0], 4),
            ("7g.40gb", 0, 1, &[0], 8),
        ];
        let profile = |(name, id, most, starts, size): (&str, u32, u32, &[u32], u32)| Profile {
            name: name.parse().unwrap(),
            id,
            memory: MiB(u64::from(size) * 4864),
            most,
            placements: starts.iter().map(|start| Placement { start: *start, size }).collect(),
        };
        kinds.into_iter().map(profile).collect()
    }

    /// A GPU with these instances, in the order of their numbers: kind, first memory slice, processes.
    fn cut(instances: &[(&str, u32, &[u32])]) -> MigState {
        let profiles = profiles();
        let instance = |(number, (name, start, _)): (usize, &(&str, u32, &[u32]))| {
            let profile = profiles.iter().find(|profile| profile.name.to_string() == *name).unwrap();
            let uuid = format!("MIG-{number}").parse().unwrap();
            Instance {
                gpu_instance: number as u32,
                profile: profile.name,
                placement: profile.placements.iter().find(|placement| placement.start == *start).copied(),
                memory: profile.memory,
                slices: profile.name.slices,
                compute: vec![ComputeInstance { id: 0, uuid, slices: profile.name.slices }],
            }
        };
        let process = |number: usize, pid: u32| Process { pid, name: Some("python".to_owned()), gpu_instance: Some(number as u32) };
        let processes =
            |(number, (_, _, pids)): (usize, &(&str, u32, &[u32]))| pids.iter().map(|pid| process(number, *pid)).collect::<Vec<_>>();
        MigState {
            mode: Mode::On,
            pending: Mode::On,
            instances: instances.iter().enumerate().map(instance).collect(),
            processes: instances.iter().enumerate().flat_map(processes).collect(),
        }
    }

    fn whole(processes: Vec<Process>) -> MigState {
        MigState { mode: Mode::Off, pending: Mode::Off, instances: Vec::new(), processes }
    }

    /// The plan, or why there is none, as text.
    fn outcome(state: &MigState, layout: &str) -> String {
        match plan(state, &layout.parse().unwrap(), &profiles()) {
            Ok(plan) => plan.steps.iter().map(Step::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_whole_gpu_is_cut_where_all_fit() {
        let layouts =
            ["3g.20gb,3g.20gb", "4g.20gb,3g.20gb", "4g.20gb,2g.10gb,1g.5gb", "7x1g.5gb", "4x1g.10gb", "7g.40gb", "2x2g.10gb,3g.20gb"];
        insta::assert_snapshot!(layouts.map(|layout| outcome(&whole(Vec::new()), layout)).join("\n"), @r#"
        switch MIG on; create 3g.20gb at 0:4; create 3g.20gb at 4:4
        switch MIG on; create 4g.20gb at 0:4; create 3g.20gb at 4:4
        switch MIG on; create 4g.20gb at 0:4; create 2g.10gb at 4:2; create 1g.5gb at 6:1
        switch MIG on; create 1g.5gb at 0:1; create 1g.5gb at 1:1; create 1g.5gb at 2:1; create 1g.5gb at 3:1; create 1g.5gb at 4:1; create 1g.5gb at 5:1; create 1g.5gb at 6:1
        switch MIG on; create 1g.10gb at 0:2; create 1g.10gb at 2:2; create 1g.10gb at 4:2; create 1g.10gb at 6:2
        switch MIG on; create 7g.40gb at 0:8
        switch MIG on; create 3g.20gb at 4:4; create 2g.10gb at 0:2; create 2g.10gb at 2:2
        "#);
    }

    #[test]
    fn impossible_layouts_give_the_reason() {
        let layouts = ["4g.20gb,4g.20gb", "8x1g.5gb", "4g.20gb,3g.20gb,1g.5gb", "2x1g.5gb+me", "2g.20gb", "3g.20gb,3x1g.10gb"];
        insta::assert_snapshot!(layouts.map(|layout| outcome(&cut(&[]), layout)).join("\n"), @r#"
        this GPU has room for 1 MIG instance(s) of profile 4g.20gb, not 2
        this GPU has room for 7 MIG instance(s) of profile 1g.5gb, not 8
        4g.20gb,3g.20gb,1g.5gb needs 8 compute slices; this GPU has 7
        this GPU has room for 1 MIG instance(s) of profile 1g.5gb+me, not 2
        this GPU has no MIG profile 2g.20gb; it has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb
        3g.20gb,3x1g.10gb cannot be placed: the instances would overlap in memory
        "#);
    }

    #[test]
    fn matching_instances_stay_and_used_ones_first() {
        let state = cut(&[("1g.5gb", 0, &[]), ("1g.5gb", 1, &[7]), ("3g.20gb", 4, &[8])]);
        let cases = ["3g.20gb,2x1g.5gb", "3g.20gb,1g.5gb", "3g.20gb,2g.10gb,1g.5gb", "4g.20gb,3g.20gb", "2x3g.20gb", "off"];
        insta::assert_snapshot!(cases.map(|layout| format!("{layout}: {}", outcome(&state, layout))).join("\n"), @r#"
        3g.20gb,2x1g.5gb: 
        3g.20gb,1g.5gb: destroy instance 0: 1g.5gb at 0:1
        3g.20gb,2g.10gb,1g.5gb: destroy instance 0: 1g.5gb at 0:1; create 2g.10gb at 2:2
        4g.20gb,3g.20gb: MIG instance 1 (1g.5gb) is in use by process 7 (python): wait for its end
        2x3g.20gb: MIG instance 1 (1g.5gb) is in use by process 7 (python): wait for its end
        off: the GPU is in use by process 7 (python), process 8 (python): wait for its end
        "#);
        // The blocking one is moved, the other is not.
        insta::assert_snapshot!(outcome(&cut(&[("1g.5gb", 0, &[]), ("1g.5gb", 6, &[])]), "4g.20gb,2x1g.5gb"), @"destroy instance 0: 1g.5gb at 0:1; create 4g.20gb at 0:4; create 1g.5gb at 4:1");
    }

    #[test]
    fn no_mode_is_switched_under_a_process() {
        let process = Process { pid: 7, name: None, gpu_instance: None };
        insta::assert_snapshot!(outcome(&whole(vec![process]), "7x1g.5gb"), @"the GPU is in use by process 7: wait for its end");
        insta::assert_snapshot!(outcome(&cut(&[("1g.5gb", 0, &[])]), "off"), @"destroy instance 0: 1g.5gb at 0:1; switch MIG off");
        assert_eq!(outcome(&whole(Vec::new()), "off"), "");
        let pending = MigState { pending: Mode::On, ..whole(Vec::new()) };
        assert_eq!(plan(&pending, &Layout::Off, &profiles()), Err(PlanError::ResetPending));
        let mut hidden = cut(&[("1g.5gb", 0, &[])]);
        hidden.instances[0].placement = None;
        assert_eq!(plan(&hidden, &Layout::Off, &profiles()), Err(PlanError::Hidden));
    }

    #[test]
    fn a_gpu_instance_without_all_its_compute_slices_is_made_anew() {
        let mut state = cut(&[("3g.20gb", 4, &[])]);
        state.instances[0].compute.clear();
        insta::assert_snapshot!(outcome(&state, "3g.20gb"), @"destroy instance 0: 3g.20gb at 4:4; create 3g.20gb at 0:4");
    }
}
