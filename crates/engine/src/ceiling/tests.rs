//! Work below its ceiling, beyond it, and what is told of it.

use std::sync::atomic::AtomicBool;

use super::*;

const MIB: usize = 1 << 20;

fn small() -> Ceiling {
    Ceiling::new(8 * MIB, Duration::from_secs(60))
}

#[test]
fn work_below_its_ceiling_gives_what_it_gives() {
    let text = bounded("work", small(), || "x".repeat(7 * MIB)).unwrap();
    assert_eq!(text.len(), 7 * MIB);
    // What is freed is not counted.
    let again = bounded("work", small(), || (0..100).map(|_| vec![1_u8; 4 * MIB].len()).sum());
    assert_eq!(again, Ok(400 * MIB));
}

#[test]
fn work_that_passes_its_ceiling_is_an_error_and_the_process_goes_on() {
    let full = Err(CeilingError::Memory { what: "work", bytes: 8 * MIB });
    assert_eq!(bounded("work", small(), || "x".repeat(9 * MIB).len()), full);
    let doubled = || {
        let mut text = "x".to_owned();
        loop {
            text = text.clone() + &text;
        }
    };
    assert_eq!(bounded("work", small(), doubled), full.map(|_: usize| ()));
    let grown = || {
        let mut numbers = Vec::new();
        loop {
            numbers.push(1_u64);
        }
    };
    assert!(bounded("work", small(), grown).is_err_and(|error| error.is_loss()));
    assert_eq!(bounded("work", small(), || 1), Ok(1));
}

#[test]
fn work_that_takes_too_long_is_an_error_and_stops_at_its_next_allocation() {
    let ceiling = Ceiling::new(8 * MIB, Duration::from_millis(50));
    let done = bounded("work", ceiling, || {
        loop {
            std::hint::black_box(vec![1_u8; 100]);
        }
    });
    assert_eq!(done, Err::<(), _>(CeilingError::Time { what: "work", time: ceiling.time }));
}

/// Otherwise a busy machine would refuse a model's files, and bar their template until the program ends.
#[test]
#[cfg(target_os = "linux")]
fn time_is_what_the_thread_computes_and_not_what_passes_meanwhile() {
    let ceiling = Ceiling::new(8 * MIB, Duration::from_millis(500));
    let waited = bounded("work", ceiling, || thread::sleep(Duration::from_millis(1500)));
    assert_eq!(waited, Ok(()));
    // What computes on is stopped where it allocates nothing too, and while others compute.
    let ceiling = Ceiling { time: Duration::from_millis(50), ..ceiling };
    let late = CeilingError::Time { what: "work", time: ceiling.time };
    let is_over = Arc::new(AtomicBool::new(false));
    let spins = || {
        let is_over = is_over.clone();
        move || while !is_over.load(Ordering::Relaxed) {}
    };
    let others = [spins(), spins()].map(thread::spawn);
    let stopped = bounded("work", ceiling, spins());
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(stopped, Err(late));
    for other in others {
        other.join().unwrap();
    }
}

/// A thread that waits without end computes nothing: the clock ends it.
#[test]
fn work_that_only_waits_is_ended_by_the_clock() {
    let source = Source::default();
    let ceiling = Ceiling::new(8 * MIB, Duration::from_millis(50));
    let waits = || thread::sleep(Duration::from_secs(600));
    let late = CeilingError::Time { what: "work", time: ceiling.time };
    let began = Instant::now();
    assert_eq!(source.bounded("work", ceiling, waits), Err(late.clone()));
    assert!(began.elapsed() >= ceiling.time && began.elapsed() < Duration::from_secs(60));
    assert_eq!(source.bounded("work", ceiling, || ()), Err(late));
}

#[test]
fn a_panic_is_an_error_and_below_the_ceiling_too() {
    let panicked = CeilingError::Panicked { what: "work" };
    let done = bounded("work", small(), || -> usize { panic!("it does") });
    assert_eq!(done, Err(panicked.clone()));
    let deep = bounded("work", small(), || bounded("deeper", small(), || panic!("it does")));
    assert_eq!(deep, Ok(Err::<(), _>(CeilingError::Panicked { what: "deeper" })));
}

/// Otherwise nobody could write to the standard error any more.
#[test]
fn a_thread_is_not_stopped_in_the_middle_of_a_panic() {
    let done = bounded("work", small(), || {
        let _held = vec![1_u8; 8 * MIB - 200];
        panic!("a message that needs memory: {}", "x".repeat(10));
    });
    assert!(matches!(
        done,
        Err::<(), _>(CeilingError::Panicked { .. } | CeilingError::Memory { .. })
    ));
    eprintln!("others still write");
}

#[test]
fn work_within_work_is_under_the_outer_ceiling() {
    let large = Ceiling { bytes: usize::MAX, ..small() };
    let done = bounded("outer", small(), move || bounded("inner", large, || vec![1; 9 * MIB]));
    assert_eq!(done, Err(CeilingError::Memory { what: "outer", bytes: 8 * MIB }));
}

#[test]
fn what_others_allocated_is_no_credit() {
    let given = vec![1_u8; 64 * MIB];
    let done = bounded("work", small(), move || {
        drop(given);
        "x".repeat(9 * MIB).len()
    });
    assert_eq!(done, Err(CeilingError::Memory { what: "work", bytes: 8 * MIB }));
}

#[test]
fn a_source_that_was_stopped_is_not_tried_again() {
    let source = Source::default();
    assert_eq!(source.bounded("it", small(), || 1), Ok(1));
    let first = source.bounded("it", small(), || "x".repeat(9 * MIB).len()).unwrap_err();
    let again = source.bounded("it", small(), || panic!("it is tried again"));
    assert_eq!(again, Err::<usize, _>(first));
}
