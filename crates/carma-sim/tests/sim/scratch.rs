
#[test]
fn x() {
    use carma_core::*;
    use carma_sim::*;
    let d = std::env::var("CARMA_DATA").unwrap();
    let open = |f: &str| std::fs::File::open(format!("{d}/{f}")).unwrap();
    let sc = Catalogue::from_solo(open("solo_a100_40gb.csv")).unwrap();
    let p = read_pairs(open("pairs_a100_40gb.csv"), &sc).unwrap();
    let k = read_crowds(open("crowds_a100_40gb.csv"), &sc).unwrap();
    let c = Catalogue::shipped();
    let cal = calibrate(&p, &k, &sc);
    println!(" mk cal {:?} {:?} crowd {} dev {} {:?}", cal.fitted, cal.held_out, cal.model.crowd, cal.model.pair_deviation, cal.crowds);
    let mut model = cal.model;
    if let Ok(x) = std::env::var("CROWD") {
        model.crowd = x.parse().unwrap();
    }
    let mut rd = csv::Reader::from_reader(open("philly60_jobs.csv"));
    let mut trace = Trace::default();
    for r in rd.records() {
        let r = r.unwrap();
        trace.jobs.push(TraceJob {
            name: r[0].into(),
            submitted: Seconds::new(r[1].parse().unwrap()).unwrap(),
            workload: c.find(&r[2]),
            gpus: r[3].parse().unwrap(),
            duration: Some(Seconds::new(r[5].parse().unwrap()).unwrap()),
            owner: None,
        });
    }
    let servers: Servers = "3xA100-40GB".parse().unwrap();
    let mut rd = csv::Reader::from_reader(open("philly60_measured.csv"));
    let env = |n: &str, v: f64| std::env::var(n).ok().and_then(|x| x.parse().ok()).unwrap_or(v);
    let physics = Physics {
        first_memory: env("FIRST", 1.0),
        growth: (env("GROW", 20.0), 0.8),
        spare_memory: env("SPARE", 0.0),
        telemetry: env("TEL", 0.05),
        reading: env("READ", 0.76),
        loading: (env("LOAD", 15.0), 0.3),
        winding_down: (env("WIND", 25.0), 0.3),
        quiet: env("QUIET", 0.2),
        ..Physics::default()
    };
    let seeds = env("SEEDS", 20.0) as u64;
    let mut errs = vec![];
    let mut je = vec![];
    let mut oo = vec![];
    let mut base = 0.0;
    for r in rd.records() {
        let r = r.unwrap();
        let name = &r[0];
        let (pol, est) = match name {
            "OR-MAGM no thresholds" => ("or-magm", ""),
            "OR-LUG no thresholds" => ("or-lug", ""),
            "OR-RR" => ("or-rr", ""),
            n if n.starts_with("EST-MAGM ") => ("est-magm", &n[9..]),
            n => (n, ""),
        };
        let mut settings = Settings { preset: Some(Preset::Aegis), policy: Some(pol.to_lowercase()), ..Settings::default() };
        if name.ends_with("no thresholds") {
            settings.screen.get_or_insert_default().enabled = Some(false);
        }
        if env("WHOLE", 1.0) > 0.0 {
            settings.recovery.get_or_insert_default().ladder = Some(vec![Rung::WholeGpu]);
        }
        let memory =
            if est.is_empty() { Estimator::Oracle } else { Estimator::Table(Estimates::read(open("estimates.csv"), est, &c).unwrap()) };
        let knowledge = Knowledge { memory, ..Knowledge::default() };
        let s: Vec<RunSummary> = (0..seeds)
            .map(|seed| {
                Simulation {
                    catalogue: &c,
                    interference: &model,
                    physics: physics.clone(),
                    trace: &trace,
                    servers: &servers,
                    sharing: Sharing::Streams,
                    settings: &settings,
                    knowledge: &knowledge,
                    disturbances: &[],
                    seed,
                    timeline: false,
                }
                .run()
                .unwrap()
                .summary()
            })
            .collect();
        if std::env::var("DUMP").is_ok_and(|d| d == *name) {
            let run = Simulation {
                catalogue: &c,
                interference: &model,
                physics: physics.clone(),
                trace: &trace,
                servers: &servers,
                sharing: Sharing::Streams,
                settings: &settings,
                knowledge: &knowledge,
                disturbances: &[],
                seed: 0,
                timeline: false,
            }
            .run()
            .unwrap();
            let mut l = vec![];
            for (i, j) in run.jobs.iter().enumerate() {
                for a in &j.attempts {
                    l.push((
                        a.launched,
                        format!(
                            "{:3} {:32} gpu {:?} {:8.0} -> {:8.0} x{:.2} {:?}",
                            i + 1,
                            c.get(trace.jobs[i].workload.unwrap()).name,
                            a.gpus,
                            a.launched.get(),
                            a.ended.unwrap().get(),
                            (a.ended.unwrap() - a.launched).get() / j.alone,
                            a.verdict.clone().unwrap()
                        ),
                    ));
                }
            }
            l.sort();
            for x in l {
                println!("{}", x.1);
            }
        }
        let m = |f: fn(&RunSummary) -> f64| mean(&s.iter().map(f).collect::<Vec<_>>());
        let sd = |f: fn(&RunSummary) -> f64| {
            let mu = m(f);
            (s.iter().map(|x| (f(x) - mu).powi(2)).sum::<f64>() / s.len() as f64).sqrt()
        };
        let num = |i: usize| r[i].parse::<f64>().unwrap_or(f64::NAN);
        if name == "Exclusive" {
            base = m(|s| s.energy);
        }
        let e = m(|s| s.makespan) / num(1) - 1.0;
        let j = m(|s| s.mean_jct) / num(4) - 1.0;
        let o = m(|s| s.oom_attempts as f64) - num(7);
        errs.push(e.abs());
        je.push(j.abs());
        oo.push(o.abs());
        println!(
            "{name:24} mk {:6.0} ±{:5.0} {:6.0} {:+.3} | jct {:+.3} p95 {:+.3} exec {:6.0} {:6.0} {:+.3}| oom {:.1} {:.0} | en {:.3} {:.3} | act smact {:.3} {:.3} mem {:.1} {:.1} smocc {:.2} {:.2}",
            m(|s| s.makespan),
            sd(|s| s.makespan),
            num(1),
            e,
            j,
            m(|s| s.p95_jct) / num(5) - 1.0,
            m(|s| s.mean_execution),
            num(6),
            m(|s| s.mean_execution) / num(6) - 1.0,
            m(|s| s.oom_attempts as f64),
            num(7),
            m(|s| s.energy) / base,
            num(8),
            m(|s| s.smact / s.active),
            num(10),
            m(|s| s.memory_mib / s.active / 1024.0),
            num(9),
            m(|s| s.smocc / s.active),
            num(11)
        );
    }
    println!("mk {:.3} jct {:.3} oom {:.2}", mean(&errs), mean(&je), mean(&oo));
}
