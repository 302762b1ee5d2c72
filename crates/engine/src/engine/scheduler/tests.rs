//! Tests of `scheduler.rs`.

use super::*;
use crate::engine::Request;
use crate::engine::events::Events;

const PREFILL_ROWS: usize = 100;

fn scheduler(pages: usize, max_batch: usize, draft: usize) -> Scheduler {
    with_slots(0, pages, max_batch, draft)
}

/// Of a model with states, where there are slots for them.
fn with_slots(slots: usize, pages: usize, max_batch: usize, draft: usize) -> Scheduler {
    Scheduler::new(EngineOptions {
        pages,
        max_batch,
        prefill_rows: PREFILL_ROWS,
        context: 4096,
        known_logit_rows: 8,
        slots,
        pages_at_start: false,
        draft,
    })
}

/// Tokens that no prompt of another `seed` has.
fn prompt(seed: u32, length: usize) -> Vec<u32> {
    (0..length as u32).map(|index| 10_000 * seed + index).collect()
}

fn add(scheduler: &mut Scheduler, age: u64, tokens: Vec<u32>) {
    add_of(scheduler, 0, age, tokens);
}

fn add_of(scheduler: &mut Scheduler, caller: u64, age: u64, tokens: Vec<u32>) {
    let request = Request { tokens, max_tokens: 50, caller, ..Request::default() };
    let (events, handle) = Events::new(Box::new(|_| {}), Default::default());
    // Wanted to the end of the test.
    std::mem::forget(handle);
    scheduler.add(Sequence::new(age, request, None, events));
}

/// Computes a step; gives its sequences' ages and rows.
fn step(scheduler: &mut Scheduler) -> Vec<(u64, usize)> {
    let scheduled = scheduler.schedule();
    let step = scheduled.iter().map(|part| (scheduler.running[part.sequence].age, part.rows));
    let step = step.collect();
    for part in scheduled {
        let sequence = &mut scheduler.running[part.sequence];
        assert!(sequence.pages.len() * PAGE >= sequence.computed + part.rows);
        sequence.advance(part.rows);
        scheduler.register_pages(part.sequence);
    }
    step
}

/// As if `token` had been drawn for the running sequence `index`.
fn say(scheduler: &mut Scheduler, index: usize, token: u32) {
    scheduler.running[index].tokens.push(token);
}

#[test]
fn prompts_share_the_budget_oldest_first_and_decoding_costs_none() {
    let mut scheduler = scheduler(100, 8, 0);
    for (age, length) in [(0, 70), (1, 90), (2, 230)] {
        add(&mut scheduler, age, prompt(age as u32, length));
    }
    assert_eq!(step(&mut scheduler), [(0, 70), (1, 30)]);
    say(&mut scheduler, 0, 1);
    assert_eq!(step(&mut scheduler), [(0, 1), (1, 60), (2, 40)]);
    say(&mut scheduler, 0, 2);
    say(&mut scheduler, 1, 1);
    assert_eq!(step(&mut scheduler), [(0, 1), (1, 1), (2, 100)]);
    // The last 90 rows of the prompt; nothing was drawn for the others.
    assert_eq!(step(&mut scheduler), [(2, 90)]);
    assert!(step(&mut scheduler).is_empty());
    assert!(!scheduler.is_idle());
}

#[test]
fn no_more_run_than_a_batch_holds() {
    let mut scheduler = scheduler(100, 2, 0);
    (0..3).for_each(|age| add(&mut scheduler, age, prompt(age as u32, 10)));
    assert_eq!(step(&mut scheduler), [(0, 10), (1, 10)]);
    scheduler.remove(0);
    assert_eq!(step(&mut scheduler), [(2, 10)]);
}

/// One request of 256 sequences kept the two tokens of another caller waiting until sixteen of them were through.
#[test]
fn a_full_batch_of_one_caller_keeps_no_other_waiting_for_a_step() {
    let mut scheduler = scheduler(1000, 4, 0);
    (0..256).for_each(|age| add_of(&mut scheduler, 1, age, prompt(age as u32, 5)));
    assert_eq!(step(&mut scheduler), [(0, 5), (1, 5), (2, 5), (3, 5)]);
    add_of(&mut scheduler, 2, 256, prompt(256, 5));
    add_of(&mut scheduler, 2, 257, prompt(257, 5));
    assert_eq!(step(&mut scheduler), [(256, 5)]);
    assert_eq!(scheduler.counts.preemptions, 1);
    // It has its place, and no more of the others is taken for its second.
    assert!(step(&mut scheduler).is_empty());
    scheduler.remove(0);
    // Then both have their turns: what made room of the one, the second of the other.
    assert_eq!(step(&mut scheduler), [(3, 5)]);
    scheduler.remove(0);
    assert_eq!(step(&mut scheduler), [(257, 5)]);
}

#[test]
fn the_youngest_makes_room_and_resumes_from_the_prefix_index() {
    let mut scheduler = scheduler(4, 8, 0);
    (0..2).for_each(|age| add(&mut scheduler, age, prompt(age as u32, 50)));
    assert_eq!(step(&mut scheduler), [(0, 50), (1, 50)]);
    (0..14).for_each(|token| say(&mut scheduler, 0, token));
    say(&mut scheduler, 1, 1);
    assert_eq!(step(&mut scheduler), [(0, 14), (1, 1)]);
    // The first page of 64 positions is full: its next token needs a third page, and all four are taken.
    say(&mut scheduler, 0, 14);
    say(&mut scheduler, 1, 2);
    assert_eq!(step(&mut scheduler), [(0, 1)]);
    assert_eq!((scheduler.counts.preemptions, scheduler.pool.in_use()), (1, 3));
    // It does not come back while its pages are missing.
    say(&mut scheduler, 0, 15);
    assert_eq!(step(&mut scheduler), [(0, 1)]);
    scheduler.remove(0);
    // Of its 52 tokens those of the full page were kept.
    assert_eq!(step(&mut scheduler), [(1, 52 - PAGE)]);
    let resumed = &scheduler.running[0];
    assert_eq!((resumed.preemptions, resumed.usage.cached_tokens), (1, 0));
}

#[test]
fn a_shared_prefix_is_waited_for_and_found_while_others_pass() {
    let mut scheduler = scheduler(100, 8, 0);
    add(&mut scheduler, 0, prompt(7, 80));
    add(&mut scheduler, 1, prompt(7, 80));
    add(&mut scheduler, 2, prompt(8, 10));
    assert_eq!(step(&mut scheduler), [(2, 10), (0, 80)]);
    // The last token is always computed, for its logits.
    assert_eq!(step(&mut scheduler), [(1, 80 - 2 * PAGE)]);
    assert_eq!(scheduler.running[1].usage.cached_tokens, 2 * PAGE);
    assert_eq!(scheduler.pool.in_use(), 3 + 1 + 1);
}

#[test]
fn a_draft_takes_the_rows_that_are_left_and_no_page_of_anybody() {
    let mut one = scheduler(100, 8, 4);
    add(&mut one, 0, [5, 6, 7, 8, 9].repeat(10));
    assert_eq!(step(&mut one), [(0, 50)]);
    // What followed the last three tokens the last time.
    say(&mut one, 0, 5);
    let scheduled = one.schedule();
    assert_eq!(scheduled[0].rows, 1 + 4);
    assert_eq!(one.running[0].draft, [6, 7, 8, 9]);
    // The first two were drawn.
    [6, 7, 1].into_iter().for_each(|token| say(&mut one, 0, token));
    assert_eq!(one.running[0].advance(scheduled[0].rows), 2);
    assert_eq!((one.running[0].computed, one.running[0].pending()), (53, 1));

    // Of the 50 tokens of a completion the last needs no row: after 48 a single one is drafted.
    (0..43).for_each(|_| say(&mut one, 0, 3));
    let pending = one.running[0].pending();
    assert!(pending > DECODE_ROWS && one.schedule()[0].rows == pending);
    one.running[0].advance(pending);
    say(&mut one, 0, 3);
    assert_eq!(one.schedule()[0].rows, 1 + 1);

    // Two pages hold 64 positions, and the other sequence has the third: no row is drafted beyond them.
    let mut full = scheduler(3, 8, 4);
    add(&mut full, 0, [5, 6, 7, 8, 9].repeat(12));
    add(&mut full, 1, prompt(1, 20));
    assert_eq!(step(&mut full), [(1, 20), (0, 60)]);
    [5, 6, 7].into_iter().for_each(|token| say(&mut full, 0, token));
    assert_eq!(step(&mut full), [(0, 3)]);
    assert_eq!(full.counts.preemptions, 0);
}

#[test]
fn a_state_is_copied_where_prompts_part_and_where_one_ends() {
    let mut scheduler = with_slots(6, 100, 3, 0);
    let tail = |seed: u32, length| [prompt(7, 96), prompt(seed, length)].concat();
    add(&mut scheduler, 0, tail(1, 40));
    add(&mut scheduler, 1, tail(2, 30));
    // The second waits for what both begin with, and the first stops there.
    assert_eq!(step(&mut scheduler), [(0, 96)]);
    let copies = std::mem::take(&mut scheduler.pool.snapshots.copies);
    let [(0, copy)] = copies[..] else { panic!("{copies:?}") };
    // Then it stops where its prompt's last page ends.
    assert_eq!(step(&mut scheduler), [(1, 30), (0, 32)]);
    let copies = std::mem::take(&mut scheduler.pool.snapshots.copies);
    assert_eq!((copies[0], copies[1].0, copies.len()), ((copy, 2), 0, 2));
    assert_eq!(scheduler.running[1].usage.cached_tokens, 96);
    assert_eq!(step(&mut scheduler), [(0, 8)]);
    // The same prompt again, one that parts elsewhere, and that one's like.
    add(&mut scheduler, 2, tail(1, 40));
    assert_eq!(step(&mut scheduler), [(2, 8)]);
    scheduler.remove(2);
    let other = || [prompt(7, 70), prompt(3, 10)].concat();
    add(&mut scheduler, 3, other());
    assert_eq!(step(&mut scheduler), [(3, 64)]);
    assert_eq!(step(&mut scheduler), [(3, 16)]);
    scheduler.remove(2);
    add(&mut scheduler, 4, other());
    assert_eq!(step(&mut scheduler), [(4, 16)]);
}

#[test]
fn where_no_slot_is_left_a_prompt_is_computed_from_its_start() {
    let mut scheduler = with_slots(2, 100, 2, 0);
    add(&mut scheduler, 0, prompt(1, 50));
    add(&mut scheduler, 1, prompt(2, 50));
    // Both have come to their last pages' ends, and no slot is left for copies.
    assert_eq!(step(&mut scheduler), [(0, 32), (1, 32)]);
    assert!(scheduler.pool.snapshots.copies.is_empty());
    assert_eq!(step(&mut scheduler), [(0, 18), (1, 18)]);
    scheduler.remove(0);
    add(&mut scheduler, 2, prompt(1, 50));
    assert_eq!(step(&mut scheduler), [(2, 32)]);
    assert_eq!(scheduler.running[1].usage.cached_tokens, 0);
}

#[test]
fn whoever_made_room_goes_on_from_a_copy_of_its_state() {
    let mut scheduler = with_slots(8, 4, 8, 0);
    (0..2).for_each(|age| add(&mut scheduler, age, prompt(age as u32, 50)));
    assert_eq!(step(&mut scheduler), [(0, 32), (1, 32)]);
    assert_eq!(step(&mut scheduler), [(0, 18), (1, 18)]);
    (0..15).for_each(|token| say(&mut scheduler, 0, token));
    say(&mut scheduler, 1, 1);
    assert_eq!(step(&mut scheduler), [(0, 15)]);
    assert_eq!((scheduler.counts.preemptions, scheduler.running.len()), (1, 1));
    scheduler.remove(0);
    assert_eq!(step(&mut scheduler), [(1, 51 - PAGE)]);
}

#[test]
fn drafts_leave_a_state_as_it_was() {
    let mut one = with_slots(8, 100, 8, 4);
    add(&mut one, 0, [5, 6, 7, 8, 9].repeat(10));
    // The last rows of the prompt are few enough to draft behind them.
    assert_eq!((step(&mut one), step(&mut one)), (vec![(0, 32)], vec![(0, 18 + 4)]));
    say(&mut one, 0, 5);
    assert_eq!(one.schedule()[0].rows, 1 + 4);
    [6, 7, 1].into_iter().for_each(|token| say(&mut one, 0, token));
    assert_eq!(one.running[0].advance(5), 2);
    // The two that were right come again.
    assert_eq!((one.running[0].computed, one.running[0].pending()), (51, 3));
}
