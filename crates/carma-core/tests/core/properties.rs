//! Invariants under random events.

mod backfill;
mod checks;
mod endings;
mod events;
mod fairness;
mod found;
mod order;
mod power;
mod restart;
mod search;
mod servers;
mod shares;
mod starvation;
mod stepping;
mod stream;
mod switches;
mod time_slices;
mod trims;
mod world;

use proptest::prelude::*;

use events::{Step, setups, steps};
use world::World;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// After every event: the books agree, reserved memory fits, wide jobs are whole, order and gates and floors are kept, and
    /// refused events change nothing. At the end: the log replays, a scheduler that is handed the jobs back has them all, and when events
    /// dry up no job is forgotten.
    #[test]
    fn the_guarantees_hold_for_random_events(setup in setups(), steps in prop::collection::vec(steps(), 0..120)) {
        let mut world = World::new(&setup);
        for step in &steps {
            world.step(step);
        }
        world.replay();
        world.restart();
        world.dry_up();
    }

    /// The same steps make the same log, byte for byte.
    #[test]
    fn same_events_same_actions(setup in setups(), steps in prop::collection::vec(steps(), 0..60)) {
        let run = |steps: &[Step]| {
            let mut world = World::new(&setup);
            for step in steps {
                world.step(step);
            }
            world.log()
        };
        prop_assert_eq!(run(&steps), run(&steps));
    }

    /// Fair share changes nothing as long as there is one user.
    #[test]
    fn fair_share_changes_nothing_for_one_user(setup in setups(), steps in prop::collection::vec(steps(), 0..60)) {
        let mut worlds = [true, false].map(|fair| (fair, World::new(&setup.clone().of_one_user(fair))));
        for step in steps {
            let states = worlds.each_mut().map(|(fair, world)| {
                world.step(&step.clone().of_one_user(*fair));
                world.scheduler().jobs().map(|job| (job.id(), job.state.clone())).collect::<Vec<_>>()
            });
            prop_assert_eq!(&states[0], &states[1]);
        }
    }
}
