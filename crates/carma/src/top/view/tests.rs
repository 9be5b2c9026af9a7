//! Pictures of the whole screen.

use std::time::Duration;

use carma_core::{Metric, Outcome};
use carma_manager::api::ArrayPlace;
use carma_manager::store::Phase;
use ratatui::style::Color;

use super::super::fixtures::{answers, busy, event, gpu, model_of, press, running, tenant, waiting};
use super::super::model::{Message, Model, Size};
use super::pictures::{COLOURED, PLAIN, drawn, picture, styles, text};
use super::*;
use crate::manager::sample;

#[test]
fn a_busy_manager_on_a_small_terminal_and_on_a_large_one() {
    let model = model_of(busy());
    insta::assert_snapshot!("busy-80x24", picture(&model, 80, 24));
    insta::assert_snapshot!("busy-140x40", picture(&model, 140, 40));
    let ascii = text(&drawn(&model, 80, 24, Appearance { colour: false, unicode: false }));
    assert!(ascii.is_ascii(), "{ascii}");
    insta::assert_snapshot!("busy-ascii", ascii);
}

#[test]
fn with_colours_jobs_differ_by_them_and_without_by_letters() {
    let model = model_of(busy());
    insta::assert_snapshot!("busy-colours", styles(&drawn(&model, 80, 24, COLOURED)));
    let plain = drawn(&model, 80, 24, PLAIN);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn an_empty_manager() {
    insta::assert_snapshot!("empty", picture(&model_of(answers(Vec::new(), Vec::new())), 80, 24));
    let unknown = Model::new("https://server:7080".to_owned(), Size { columns: 80, rows: 24 });
    assert!(picture(&unknown, 80, 24).contains("carma https://server:7080"));
}

#[test]
fn many_gpus_have_a_row_each_and_scroll() {
    let gpus = (0..64).map(|ordinal| gpu(ordinal, vec![tenant(ordinal.into(), "job", 20, Some(18))], 18)).collect();
    let jobs = (0..64).map(|job| running(job, "job", "ada", &[job as u16], 20)).collect();
    let mut model = model_of(answers(gpus, jobs));
    insta::assert_snapshot!("many-gpus-80x24", picture(&model, 80, 24));
    press(&mut model, "\t\tG");
    insta::assert_snapshot!("many-gpus-140x40", picture(&model, 140, 40));
}

#[test]
fn long_and_hostile_names_stay_in_their_columns() {
    let mut busy = busy();
    let jobs = &mut busy.queue.jobs;
    jobs[0].name = Some("a-very-long-name-that-somebody-gave-to-a-job-and-it-goes-on".to_owned());
    jobs[1].name = Some("\x1b[31mred\u{202e}\x07\n".to_owned());
    jobs[2].name = Some("日本語の名前は幅が二倍です".to_owned());
    jobs[3].array = Some(ArrayPlace { array: carma_core::ArrayId(123_456), index: 98_765 });
    (jobs[4].user, jobs[4].devices) = ("somebody-with-a-long-name".to_owned(), running(0, "", "", &[0, 1, 2, 3, 4, 5, 6, 7], 1).devices);
    busy.gpus[0].name = "a GPU of a kind with a name that does not end in time".to_owned();
    busy.gpus[0].tenants[0].name = Some("\x1b[2Jevil".to_owned());
    let model = model_of(busy);
    let (small, large) = (picture(&model, 80, 24), picture(&model, 140, 40));
    assert!(![&small, &large].into_iter().any(|picture| picture.chars().any(|letter| letter.is_control() && letter != '\n')));
    insta::assert_snapshot!("long-names", small);
}

#[test]
fn lost_drained_and_foreign_gpus_are_shown() {
    let mut busy = busy();
    busy.status.problems = vec!["GPU 2 is lost".to_owned()];
    busy.gpus[1].foreign = 2;
    (busy.gpus[2].lost, busy.gpus[2].memory_used, busy.gpus[2].power, busy.gpus[2].temperature) = (true, None, None, None);
    busy.gpus[2].utilisation = carma_core::Utilisation::default();
    (busy.gpus[3].drained, busy.gpus[3].closed) = (true, vec!["is drained".to_owned()]);
    let mut model = model_of(busy.clone());
    press(&mut model, "\t\tG");
    insta::assert_snapshot!("lost-gpu", picture(&model, 80, 24));
    let rest = (4..20).map(|ordinal| gpu(ordinal, Vec::new(), 0));
    busy.gpus.extend(rest);
    assert!(picture(&model_of(busy), 80, 24).contains("LOST"), "in one row too");
}

#[test]
fn gpus_of_other_servers_have_the_name_of_their_node_and_pools_a_line() {
    let mut busy = busy();
    for (place, node) in [(2, "gn1"), (3, "gpu-node-with-a-long-name-017.cluster.example")] {
        busy.gpus[place].device = carma_core::DeviceId::gpu(carma_core::ServerId(place as u32 - 1), 0);
        busy.gpus[place].node = Some(node.to_owned());
    }
    let settings = serde_json::json!({"gpus": 1, "time": 3600.0, "max": 4, "backlog": 2, "idle": 300.0, "patience": 60.0});
    let pilot = |state: &str| serde_json::json!({"name": state, "pool": "gpu", "state": state, "requested": 0, "batch_job": "4711", "batch_state": "PENDING (Priority)"});
    busy.pools = serde_json::from_value(serde_json::json!([
        {"name": "gpu", "settings": settings, "pilots": [pilot("pending"), pilot("connected"), pilot("requesting")], "note": null},
        {"name": "night", "settings": settings, "paused": {"by": "root"}, "pilots": [], "note": "paused by root"},
        {"name": "quiet", "settings": settings, "pilots": [], "note": "no job waits for it"},
    ]))
    .unwrap();
    let mut model = model_of(busy.clone());
    press(&mut model, "\t\tG");
    insta::assert_snapshot!("servers-80x24", picture(&model, 80, 24));
    insta::assert_snapshot!("servers-140x40", picture(&model, 140, 40));
    let rest = (4..20).map(|ordinal| gpu(ordinal, Vec::new(), 0));
    busy.gpus.extend(rest);
    insta::assert_snapshot!("servers-many", picture(&model_of(busy), 80, 24));
}

#[test]
fn while_the_manager_is_away_old_data_is_shown_with_the_reason() {
    let mut model = model_of(busy());
    let why = "cannot reach the manager at /run/carma/carma.sock: Connection refused (os error 111)";
    model.update(Message::Away(why.to_owned()), Duration::from_secs(3));
    insta::assert_snapshot!("away", picture(&model, 80, 24));
    model.update(Message::Answers(Box::new(busy())), Duration::from_secs(4));
    assert!(!picture(&model, 80, 24).contains("cannot reach"));
    model.update(Message::ActionText(why.to_owned()), Duration::from_secs(5));
    model.update(Message::Away(why.to_owned()), Duration::from_secs(6));
    model.update(Message::Answers(Box::new(busy())), Duration::from_secs(7));
    assert!(!picture(&model, 80, 24).contains("cannot reach"), "nor below");
    model.update(Message::Away(why.to_owned()), Duration::from_secs(8));
    model.update(Message::ActionText("job 1 is cancelled".to_owned()), Duration::from_secs(9));
    model.update(Message::Answers(Box::new(busy())), Duration::from_secs(10));
    assert!(picture(&model, 80, 24).contains("job 1 is cancelled"), "it was back by then");
    model.update(Message::Tick, Duration::from_secs(17));
    assert!(picture(&model, 80, 24).contains("q leave"), "keys are shown again");
    model.update(Message::Tick, Duration::from_secs(36));
    assert!(picture(&model, 80, 24).contains("! the manager has not answered for 26 s"));
}

#[test]
fn long_refusals_are_wrapped() {
    let mut model = model_of(busy());
    press(&mut model, "h");
    let shown = picture(&model, 80, 24);
    assert!(
        shown.ends_with(" job 1 \"resnet50\" is running: only estimating, queued, recovering or preempted\n   jobs can be held\n"),
        "{shown}"
    );
    let small = picture(&model, 40, 10);
    assert!(
        small.ends_with(" job 1 \"resnet50\" is running: only\n   estimating, queued, recovering or\n   preempted jobs can be held\n"),
        "{small}"
    );
}

#[test]
fn charts_show_all_kept_samples() {
    let mut model = model_of(busy());
    let mut later = busy();
    let at = later.samples[0].at[0];
    // Ten minutes: idle in the first half, busy in the second.
    for samples in &mut later.samples {
        samples.at = (0..600).map(|second| carma_manager::store::UnixMillis(at.0 + 600_000 + second * 1000)).collect();
        samples.utilisation[Metric::Smact] = (0..600).map(|second| Some(f64::from(u8::from(second >= 300)))).collect();
        samples.utilisation[Metric::Smocc] = vec![None; 600];
        samples.utilisation[Metric::Drama] = vec![Some(0.0); 600];
        samples.power = vec![None; 600];
    }
    model.update(Message::Answers(Box::new(later)), Duration::from_secs(2));
    let shown = picture(&model, 80, 24);
    assert!(shown.contains("SMACT ▁▁▁▄███ 0.60 SMOCC         0.30 DRAMA ▁▁▁▁▁▁▁ 0.20"), "{shown}");
}

#[test]
fn a_metric_that_few_gpus_have_is_shown_where_one_has_it() {
    let mut answers = busy();
    assert!(!picture(&model_of(busy()), 140, 40).contains("TENSO"));
    answers.gpus[0].utilisation[Metric::Tensor] = Some(carma_core::Fraction::clamped(0.37));
    let shown = picture(&model_of(answers), 140, 40);
    assert!(shown.contains("TENSO") && shown.contains("0.37"), "{shown}");
}

#[test]
fn actions_need_a_confirmation() {
    let mut model = model_of(busy());
    press(&mut model, "c");
    insta::assert_snapshot!("confirmation", picture(&model, 80, 24));
    press(&mut model, "njc");
    assert!(picture(&model, 80, 24).contains("job 2 \"inception\" is not yours: it is for bob and operators to cancel it"));
}

#[test]
fn a_job_its_log_and_help() {
    let mut model = model_of(busy());
    press(&mut model, "jjjjj\n");
    let mut job = sample();
    job.state = carma_core::State::Done { at: carma_core::Time::ZERO, outcome: Outcome::Failed { code: 1 } };
    let detail = Message::Detail("5".to_owned(), Ok((Box::new(job), None)));
    model.update(detail, Duration::from_secs(2));
    let shown = picture(&model, 80, 24);
    assert!(shown.contains("─ Job 5 lines 1-21 of 3") && shown.contains("beforehand"), "{shown}");
    press(&mut model, "l");
    let log: Vec<String> = (1..=40).map(|step| format!("\x1b[32mstep {step}\x1b[0m")).collect();
    model.update(Message::Log("5".to_owned(), Ok(log.join("\n").into_bytes())), Duration::from_secs(2));
    press(&mut model, "kk");
    insta::assert_snapshot!("log", picture(&model, 80, 24));
    press(&mut model, "\x1b?");
    insta::assert_snapshot!("help", picture(&model, 80, 24));
}

#[test]
fn long_lines_about_a_job_are_wrapped_and_scrolled_to_their_end() {
    let mut model = model_of(busy());
    press(&mut model, "jjjjj\n");
    let reason = format!("job 5 is too large: it asks for {} the end", "8 GPUs of 80 GiB, and no server has them; ".repeat(60));
    model.update(Message::Detail("5".to_owned(), Err(reason)), Duration::from_secs(2));
    let shown = picture(&model, 80, 24);
    assert!(shown.contains("lines 1-21 of 3") && !shown.contains('…'), "{shown}");
    press(&mut model, "G");
    assert!(picture(&model, 80, 24).contains("the end\n"));
}

#[test]
fn filters_and_orders_are_shown() {
    let mut model = model_of(busy());
    press(&mut model, "su/user:ada sw");
    let typing = picture(&model, 80, 24);
    assert!(typing.contains("| 2 listed | by time | mine | /user:ada sw_"), "{typing}");
    press(&mut model, "xyz\n");
    assert!(picture(&model, 80, 24).contains("no job fits: Esc shows all"));
    press(&mut model, "\x1be\t");
    let events = picture(&model, 80, 24);
    assert!(events.contains("8 listed") || !events.contains("listed"), "{events}");
    assert!(events.contains("recoveries and failures") && !events.contains("launched"), "{events}");
}

#[test]
fn scrolled_events_say_so_and_follow_again_outside_their_pane() {
    let mut model = model_of(busy());
    press(&mut model, "\tjj");
    model.update(Message::Event(event(7, "machine", serde_json::Value::Null)), Duration::from_secs(3));
    assert!(picture(&model, 80, 24).contains("─ Events 3 newer, Home follows again ─"));
    press(&mut model, "\t");
    let left = picture(&model, 80, 24);
    assert!(left.contains("─ Events ─") && left.contains(" 08:00:07 job 7 machine\n"), "{left}");
}

#[test]
fn any_terminal_size_can_be_drawn() {
    let mut model = model_of(busy());
    press(&mut model, "c");
    let sizes = [(1, 1), (20, 3), (40, 10), (41, 11), (60, 15), (79, 23), (300, 5), (300, 100)];
    for panel in ["", "n?", "\x1b\n", "\x1bl"] {
        press(&mut model, panel);
        for (width, height) in sizes {
            picture(&model, width, height);
        }
    }
    model.update(Message::Event(event(7, "machine", serde_json::Value::Null)), Duration::from_secs(3));
    let held = carma_manager::api::QueueRow { state: Phase::Held, ..waiting(1, "", "", 1) };
    let model = model_of(answers(Vec::new(), vec![held]));
    for (width, height) in sizes {
        picture(&model, width, height);
    }
}
