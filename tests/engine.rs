//! The engine's word: a completion depends on its request alone, whatever else runs, came before, or was given up.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod engine {
    mod added_words;
    mod known;
    mod service;
}

use std::sync::LazyLock;
use std::time::{Duration, Instant};
use wardround::diagnosis::Diagnosis;

use common::{GREEDY, OPTIONS, complete, tokens};
use wardround::engine::{
    Completion, Constraint, Engine, EngineError, EngineOptions, EngineStats, FinishReason, Grammar,
    Request, Sampling, Stop, Ticket, TokenLogprobs, Usage,
};
use wardround::model::config::Layer;
use wardround::model::{Config, Decoder, Family, WantedPrecision, WantedType, precision_of};
use wardround::ops::{Cpu, Machine, PAGE, Quantisation, StoredType};

const FAMILIES: [Family; 3] = [Family::Gemma3, Family::Llama, Family::Qwen3];

/// What a completion says: floats as bits, and nothing of how the engine came by it.
#[derive(Debug, PartialEq)]
struct Outcome {
    tokens: Vec<u32>,
    text: String,
    finish_reason: FinishReason,
    usage: Usage,
    logprobs: Vec<Likelihoods>,
    prompt_logprobs: Vec<Likelihoods>,
}

/// The chosen token's log-probability and rank, then the likeliest ones' log-probabilities; all with their ids.
type Likelihoods = Option<(u32, Vec<(u32, u32)>)>;

fn likelihoods(tokens: &[u32], logprobs: &[Option<TokenLogprobs>]) -> Vec<Likelihoods> {
    let likelihoods = |(&token, logprobs): (&u32, &Option<TokenLogprobs>)| {
        let logprobs = logprobs.as_ref()?;
        let top = logprobs.top.iter().copied();
        let all = std::iter::once((token, logprobs.chosen)).chain(top);
        Some((logprobs.rank, all.map(|(id, logprob)| (id, logprob.to_bits())).collect()))
    };
    tokens.iter().zip(logprobs).map(likelihoods).collect()
}

impl Outcome {
    fn of(prompt: &[u32], completion: &Completion) -> Outcome {
        let usage = Usage { cached_tokens: 0, ..completion.usage };
        Outcome {
            tokens: completion.tokens.clone(),
            text: completion.text.clone(),
            finish_reason: completion.finish_reason,
            usage,
            logprobs: likelihoods(&completion.tokens, &completion.logprobs),
            prompt_logprobs: likelihoods(prompt, &completion.prompt_logprobs),
        }
    }
}

/// A tiny model, requests, and what each gets alone on a fresh engine without drafts.
struct Model {
    name: String,
    family: Family,
    wanted: WantedPrecision,
    requests: Vec<Request>,
    alone: Vec<Outcome>,
}

/// Every family, with weights kept as stored (bf16), as f32, and in blocks of either kind; keys and values as bf16 and f32.
static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let auto = WantedPrecision::default();
    let wide = WantedType::Exactly(StoredType::F32);
    let kept = [
        auto,
        WantedPrecision { dtype: wide, kv: WantedType::Exactly(StoredType::Bf16), ..auto },
        WantedPrecision { quantisation: Quantisation::Q8_0, ..auto },
        WantedPrecision { quantisation: Quantisation::Int8, ..auto },
        WantedPrecision { quantisation: Quantisation::Q4K, kv: wide, ..auto },
    ];
    FAMILIES
        .iter()
        .flat_map(|&family| kept.map(|kept| Model::new(family, kept, requests)))
        .collect()
});

/// Every family, with requests whose drafts are often right.
static REPETITIVE: LazyLock<Vec<Model>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .zip([Quantisation::None, Quantisation::Q8_0, Quantisation::Int8])
        .map(|(&family, quantisation)| {
            let kept = WantedPrecision { quantisation, ..WantedPrecision::default() };
            Model::new(family, kept, repetitive)
        })
        .collect()
});

impl Model {
    fn new(family: Family, wanted: WantedPrecision, requests: fn(&[u32]) -> Vec<Request>) -> Model {
        let mut model = Model {
            name: format!("{} {wanted:?}", family.name()),
            family,
            wanted,
            requests: Vec::new(),
            alone: Vec::new(),
        };
        model.requests = requests(&model.config().eos_ids);
        let ops = Cpu::new(2).unwrap();
        let alone = model.requests.iter().map(|request| {
            let engine = model.engine(OPTIONS, &ops);
            Outcome::of(&request.tokens, &complete(&engine, request.clone()))
        });
        model.alone = alone.collect();
        model
    }

    /// Windows are cut to fewer positions than most prompts have.
    fn config(&self) -> Config {
        let path = common::synthetic(self.family).join("config.json");
        let mut config = Config::read(&path).unwrap();
        for layer in &mut config.layers {
            if let Layer::Sliding(window) = layer {
                *window = 40;
            }
        }
        config
    }

    fn decoder(&self, positions: usize, ops: &Cpu) -> Decoder<Cpu> {
        let files = common::weight_files(&common::synthetic(self.family));
        let config = self.config();
        let precision = precision_of(&config, &files, self.wanted, Machine::Cpu).unwrap();
        Decoder::load(ops, config, &files, precision, positions).unwrap()
    }

    fn engine(&self, options: EngineOptions, ops: &Cpu) -> Engine {
        let tokenizer = common::tokenizer(&common::synthetic(self.family));
        common::start(self.decoder(options.context, ops), tokenizer, options, ops)
    }

    /// Submits all requests at once, in this order, and compares each completion with the one made alone.
    fn check(&self, engine: &Engine, order: &[usize], how: &str) -> Vec<Completion> {
        let submit = |&index: &usize| (index, engine.submit(self.requests[index].clone()).unwrap());
        let tickets: Vec<(usize, Ticket)> = order.iter().map(submit).collect();
        let mut completions: Vec<(usize, Completion)> =
            tickets.into_iter().map(|(index, ticket)| (index, ticket.wait().unwrap())).collect();
        for (index, completion) in &completions {
            let prompt = &self.requests[*index].tokens;
            let (outcome, alone) = (Outcome::of(prompt, completion), &self.alone[*index]);
            assert!(
                outcome == *alone,
                "{}, request {index}, {how}: {outcome:?}, alone {alone:?}",
                self.name
            );
        }
        completions.sort_by_key(|(index, _)| *index);
        completions.into_iter().map(|(_, done)| done).collect()
    }

    /// Checks all requests in either order, and again until some were preempted: on a loaded machine they may come too slowly to
    /// meet.
    fn check_preempted(&self, engine: &Engine, how: &str) {
        let orders = [self.in_order(), self.in_order().into_iter().rev().collect()];
        let mut preemptions = 0;
        for (round, order) in orders.iter().cycle().enumerate() {
            if round >= orders.len() && preemptions > 0 {
                return;
            }
            assert!(round < 20, "{}, {how}: nothing was preempted", self.name);
            let completions = self.check(engine, order, &format!("{how}, in order {order:?}"));
            preemptions += completions.iter().map(|done| done.preemptions).sum::<usize>();
        }
    }

    fn in_order(&self) -> Vec<usize> {
        (0..self.requests.len()).collect()
    }

    /// Pages that the largest request takes at most.
    fn largest(&self) -> usize {
        let pages = |request: &Request| (request.tokens.len() + request.max_tokens).div_ceil(PAGE);
        self.requests.iter().map(pages).max().unwrap()
    }
}

/// Prompts of 1 to 400 tokens, which share prefixes of every kind: none, whole pages, a page and a token.
fn requests(eos_ids: &[u32]) -> Vec<Request> {
    let shared = tokens(1, 352);
    let prompt = |share: usize, own: usize, salt| [&shared[..share], &tokens(salt, own)].concat();
    let request = |tokens: Vec<u32>, seed| Request {
        tokens,
        seed,
        stop: Stop { ids: eos_ids.to_vec(), ..Stop::default() },
        max_tokens: 24,
        ..Request::default()
    };
    let constrained = |grammar| Some(Constraint { grammar, after: None });
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "score": {"enum": [1, 2, 3]}}, "required": ["name", "score"], "additionalProperties": false,
        "x-guidance": {"whitespace_flexible": false}}"#;
    let mut all = vec![
        request(prompt(0, 1, 2), 1),
        request(prompt(0, 31, 3), 1),
        request(prompt(32, 0, 4), 2),
        request(prompt(33, 0, 5), 2),
        request(prompt(64, 0, 6), 3),
        request(prompt(96, 101, 7), 4),
        request(prompt(352, 48, 8), 5),
        request(prompt(352, 48, 8), 6),
        request(prompt(256, 1, 9), 7),
        request(prompt(0, 97, 10), 8),
        request(prompt(128, 22, 11), 9),
        request(prompt(320, 64, 12), u64::MAX),
    ];
    for (index, request) in all.iter_mut().enumerate() {
        // Hot, or these models would repeat their last token; and one request that asks for no figures.
        request.sampling.temperature = 2.5;
        request.logprobs = (index != 3).then_some(index % 6);
    }
    all[0].sampling = GREEDY;
    all[3].sampling.top_k = Some(40);
    all[4].sampling.top_p = Some(0.9);
    all[5].sampling = Sampling {
        temperature: 0.8,
        min_p: Some(0.05),
        repetition_penalty: Some(1.3),
        ..Sampling::default()
    };
    all[7].sampling =
        Sampling { temperature: 1.6, top_k: Some(20), top_p: Some(0.95), ..Sampling::default() };
    all[8].constraint = constrained(Grammar::JsonSchema(schema.to_owned()));
    all[8].max_tokens = 60;
    all[9].constraint = constrained(Grammar::Regex("(yes|no|maybe), [a-z ]{5,30}!".to_owned()));
    all[10].stop.strings = vec!["e".to_owned(), " a".to_owned()];
    all[10].max_tokens = 60;
    let lark = "start: \"dose: \" NUMBER \" mg\"\nNUMBER: /[1-9][0-9]{0,40}/";
    all[11].constraint = constrained(Grammar::Lark(lark.to_owned()));
    all[11].pieces = true;
    all
}

/// The same, cooler and longer, so that these models repeat themselves: most in what they say, one in its prompt too.
fn repetitive(eos_ids: &[u32]) -> Vec<Request> {
    let mut all = requests(eos_ids);
    for (index, request) in all.iter_mut().enumerate() {
        request.max_tokens = 60;
        request.sampling.temperature = [0.0, 0.7, 1.2][index % 3];
    }
    all[6].tokens = tokens(13, 9).repeat(30);
    // A penalty that is felt, and still leaves something to repeat.
    all[5].sampling.repetition_penalty = Some(1.05);
    all[6].sampling.repetition_penalty = Some(1.2);
    // Texts of long runs, some of them dictated.
    let constrained = |grammar: &str| {
        Some(Constraint { grammar: Grammar::Regex(grammar.to_owned()), after: None })
    };
    all[7].constraint = constrained("((yes|no), ){12}(perhaps|certainly not)");
    all[9].constraint = constrained("[ab]{40}!");
    all
}

#[test]
fn the_requests_cover_what_they_are_there_for() {
    for model in MODELS.iter() {
        let alone = &model.alone;
        let reasons: Vec<FinishReason> =
            alone.iter().map(|outcome| outcome.finish_reason).collect();
        assert!(reasons.contains(&FinishReason::Stop) && reasons.contains(&FinishReason::Length));
        assert_eq!(reasons[10], FinishReason::Stop, "{}", model.name);
        let record: serde_json::Value = serde_json::from_str(&alone[8].text).unwrap();
        assert!(record["score"].as_u64().unwrap() <= 3);
        assert!(alone[8].usage.forced_tokens > 0 && alone[11].text.starts_with("dose: "));
        for (request, outcome) in model.requests.iter().zip(alone) {
            let figures = request.logprobs.map_or(0, |_| outcome.tokens.len());
            assert_eq!(outcome.logprobs.len(), figures);
            let sampled = outcome.logprobs.iter().flatten();
            // Rows that no token has are not named.
            assert!(sampled.clone().all(|(_, all)| Some(all.len() - 1) <= request.logprobs));
            let forced = outcome.usage.forced_tokens;
            assert!(request.logprobs.is_none() || sampled.count() + forced == figures);
        }
        assert_ne!(alone[6].tokens, alone[7].tokens, "{}", model.name);
    }
    // Widening bf16 is exact, and the root of 64, Gemma's scale, is the same in both. Where the machine multiplies
    // bf16 itself, activations are rounded to meet the weights.
    let cpu = Cpu::new(1).unwrap();
    let kind = |stored: StoredType| cpu.kind(stored.into());
    let rounds = kind(StoredType::Bf16) != kind(StoredType::F32);
    for models in MODELS.chunk_by(|a, b| a.family == b.family) {
        let [stored, widened, quantised @ ..] = models else { panic!("a family has five models") };
        assert!(stored.alone == widened.alone || rounds, "{}", stored.name);
        let kinds = [stored].into_iter().chain(quantised).collect::<Vec<_>>();
        for (index, kind) in kinds.iter().enumerate() {
            for other in &kinds[..index] {
                assert!(kind.alone != other.alone, "{} is {}", kind.name, other.name);
            }
        }
    }
}

#[test]
fn together_at_every_batch_size_as_alone() {
    let threads = [1, 2, 3].map(|threads| Cpu::new(threads).unwrap());
    for model in MODELS.iter() {
        for max_batch in 1..=16 {
            let prefill_rows = [1, 7, 64, 512][max_batch % 4];
            let ops = &threads[max_batch % 3];
            let mut order = model.in_order();
            if max_batch / 2 % 2 == 1 {
                order.reverse();
            }
            let options = EngineOptions { max_batch, prefill_rows, ..OPTIONS };
            let how = format!("{options:?}, {} threads, in order {order:?}", ops.threads());
            model.check(&model.engine(options, ops), &order, &how);
        }
    }
}

#[test]
fn resumed_from_the_prefix_index_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        let engine = model.engine(OPTIONS, &ops);
        model.check(&engine, &model.in_order(), "the first time");
        let again = model.check(&engine, &model.in_order(), "from the index");
        for (request, completion) in model.requests.iter().zip(again) {
            let (length, cached) = (request.tokens.len(), completion.usage.cached_tokens);
            // Tokens that a grammar dictates before anything is computed belong to what is looked for.
            match request.constraint {
                None => assert_eq!(cached, (length - 1) / PAGE * PAGE),
                Some(_) => assert!(cached >= (length - 1) / PAGE * PAGE && cached <= length),
            }
        }
    }
}

#[test]
fn preempted_in_between_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        for spare in [0, 5] {
            let options =
                EngineOptions { pages: model.largest() + spare, prefill_rows: 64, ..OPTIONS };
            let engine = model.engine(options, &ops);
            model.check_preempted(&engine, &format!("in {} pages", options.pages));
        }
    }
}

/// What `model`'s engine with these options counted over all of its requests, each as alone.
fn check_drafts(model: &Model, ops: &Cpu, options: EngineOptions) -> EngineStats {
    let engine = model.engine(options, ops);
    let reversed: Vec<usize> = model.in_order().into_iter().rev().collect();
    // The second time, prompts are found in pages that drafts were thrown out of.
    for order in [model.in_order(), reversed] {
        model.check(&engine, &order, &format!("{options:?}, in order {order:?}"));
    }
    engine.finish().unwrap()
}

#[test]
fn drafted_at_every_length_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        for draft in [1, 4, 8, 31] {
            for (max_batch, prefill_rows) in [(1, 512), (3, 7), (16, 64)] {
                let options = EngineOptions { max_batch, prefill_rows, draft, ..OPTIONS };
                let stats = check_drafts(model, &ops, options);
                let (drafted, accepted) = (stats.drafted_tokens, stats.accepted_tokens);
                let how = format!("{}, {options:?}: {accepted} of {drafted}", model.name);
                assert!(100 < accepted && accepted < drafted, "{how}");
            }
        }
        assert_eq!(check_drafts(model, &ops, OPTIONS).drafted_tokens, 0);
    }
}

#[test]
fn drafted_under_every_rule_as_without() {
    let ops = Cpu::new(2).unwrap();
    let mut right = Vec::new();
    for (index, what) in [
        (0, "greedy"),
        (1, "drawn"),
        (5, "penalised"),
        (6, "penalised and quoting"),
        (7, "dictated in part"),
        (9, "constrained"),
        (10, "stopped by a string"),
    ] {
        let accepted = REPETITIVE.iter().map(|model| {
            let options = EngineOptions { draft: 6, ..OPTIONS };
            let engine = model.engine(options, &ops);
            model.check(&engine, &[index], what);
            engine.finish().unwrap().accepted_tokens
        });
        right.push(accepted.sum::<u64>());
    }
    // What random weights repeat is chance: one kind may have no draft that is right.
    assert!(right.iter().filter(|right| **right > 3).count() > 4, "{right:?}");
}

#[test]
fn drafted_and_preempted_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        for spare in [0, 5] {
            let options = EngineOptions {
                pages: model.largest() + spare,
                prefill_rows: 64,
                draft: 8,
                ..OPTIONS
            };
            let engine = model.engine(options, &ops);
            model.check_preempted(&engine, &format!("{options:?}"));
            assert!(engine.finish().unwrap().accepted_tokens > 100);
        }
    }
}

#[test]
fn drafted_beside_neighbours_that_are_cancelled_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        let options = EngineOptions { max_batch: 6, draft: 8, ..OPTIONS };
        let engine = model.engine(options, &ops);
        let ask = |index: usize| engine.submit(model.requests[index].clone()).unwrap();
        let mut neighbours: Vec<Ticket> = [6, 0, 1, 2].map(ask).into();
        for index in model.in_order() {
            let outcome = Outcome::of(&model.requests[index].tokens, &ask(index).wait().unwrap());
            assert!(outcome == model.alone[index], "{}, request {index}", model.name);
            drop(neighbours.pop());
        }
    }
}

#[test]
fn beside_neighbours_that_are_cancelled_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        let options = EngineOptions { max_batch: 6, prefill_rows: 64, ..OPTIONS };
        let engine = model.engine(options, &ops);
        let neighbour = |index: usize| {
            let mut request = model.requests[index].clone();
            (request.seed, request.max_tokens) = (1000, 400);
            (request.constraint, request.stop) = (None, Stop::default());
            engine.submit(request).unwrap()
        };
        let early: Vec<Ticket> = (0..6).map(neighbour).collect();
        let late: Vec<Ticket> = (4..8).map(neighbour).collect();
        let wanted = model.requests.iter().cloned();
        let tickets: Vec<Ticket> = wanted.map(|request| engine.submit(request).unwrap()).collect();
        drop(early);
        let mut late = late.into_iter();
        for (index, ticket) in tickets.into_iter().enumerate() {
            let outcome = Outcome::of(&model.requests[index].tokens, &ticket.wait().unwrap());
            assert!(outcome == model.alone[index], "{}, request {index}", model.name);
            drop(late.next());
        }
    }
}

#[test]
fn a_prompt_that_is_being_computed_is_waited_for() {
    for family in FAMILIES {
        let options = EngineOptions { prefill_rows: 48, ..OPTIONS };
        let engine = common::synthetic_engine(family, options);
        let common_part = tokens(5, 300);
        for (own, shared) in [(0, 288), (7, 288), (52, 288)] {
            // Another first page each time: nothing is left from the round before.
            let prompt = [&tokens(own as u64 + 50, PAGE)[..], &common_part].concat();
            let ask = |salt| Request {
                tokens: [&prompt[..], &tokens(salt, own)].concat(),
                seed: salt,
                max_tokens: 4,
                ..Request::default()
            };
            let tickets: Vec<Ticket> =
                (0..8).map(|salt| engine.submit(ask(salt)).unwrap()).collect();
            let mut cached: Vec<usize> = tickets
                .into_iter()
                .map(|ticket| ticket.wait().unwrap().usage.cached_tokens)
                .collect();
            cached.sort_unstable();
            assert_eq!((cached[0], &cached[1..]), (0, &[shared + PAGE; 7][..]));
        }
    }
}

#[test]
fn what_can_never_run_is_refused_at_once() {
    let options = EngineOptions { pages: 4, context: 200, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Llama, options);
    let refuse = |tokens: Vec<u32>, max_tokens| {
        let request = Request { tokens, max_tokens, ..Request::default() };
        engine.submit(request).unwrap_err()
    };
    assert_eq!(refuse(vec![], 1), EngineError::EmptyPrompt);
    assert_eq!(refuse(vec![1], 0), EngineError::NothingToGenerate);
    let too_long = refuse(vec![1; 190], 11);
    let text =
        "a prompt of 190 tokens and a completion of up to 11 exceed the context of 200 tokens";
    assert_eq!(too_long.to_string(), text);
    assert!(too_long.hint().unwrap().contains("--context"));
    let too_many = refuse(vec![1; 100], 29);
    let text = "a prompt of 100 tokens and a completion of up to 29 need 5 pages of keys and values; the pool has 4";
    assert_eq!(too_many.to_string(), text);
    assert!(too_many.hint().unwrap().contains("--kv-tokens"));
    let unknown = refuse(vec![1, 2, 70_000], 1).to_string();
    assert!(unknown.starts_with("token id 70000 is beyond the model's "), "{unknown}");
    // What just fits runs.
    let request = Request { tokens: vec![301; 100], max_tokens: 28, ..Request::default() };
    assert_eq!(complete(&engine, request).tokens.len(), 28);
}

#[test]
fn a_dropped_ticket_makes_room() {
    let options = EngineOptions { pages: 64, max_batch: 1, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Qwen3, options);
    let long =
        Request { tokens: tokens(1, 40), sampling: GREEDY, max_tokens: 2000, ..Request::default() };
    let mut begun = long.clone();
    begun.pieces = true;
    let pieces = std::cell::Cell::new(0);
    let first_three = || pieces.replace(pieces.get() + 1) < 3;
    let ticket = engine.submit(begun).unwrap();
    assert!(ticket.wait_while(first_three).is_none());
    let short = Request { tokens: tokens(2, 40), max_tokens: 4, ..Request::default() };
    assert_eq!(complete(&engine, short).tokens.len(), 4);
    // How far the dropped one came can be read off the index.
    let other = common::synthetic_engine(Family::Qwen3, options);
    let whole = [&long.tokens[..], &complete(&other, long.clone()).tokens].concat();
    let probe = |engine| {
        let request = Request { tokens: whole.clone(), max_tokens: 1, ..Request::default() };
        complete(engine, request).usage.cached_tokens
    };
    assert_eq!(probe(&other), 2016);
    let computed = probe(&engine);
    assert!((PAGE..2016).contains(&computed), "{computed} of 2016 tokens were computed");
}

#[test]
fn a_seed_says_the_same_twice_and_another_seed_something_else() {
    let engine = common::synthetic_engine(Family::Gemma3, OPTIONS);
    let say = |seed| {
        let request = Request { tokens: tokens(3, 50), seed, max_tokens: 16, ..Request::default() };
        complete(&engine, request).tokens
    };
    let said: Vec<Vec<u32>> = (0..6).map(say).collect();
    assert!((0..6).all(|seed| say(seed) == said[seed as usize]));
    for (index, one) in said.iter().enumerate() {
        assert!(!said[..index].contains(one), "two seeds said {one:?}");
    }
    // The high half of a seed counts too.
    assert_ne!(say(1 << 40), said[0]);
}

/// Names of this process's threads.
#[cfg(target_os = "linux")]
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| name(task.unwrap())).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_dropped_engine_finishes_what_is_wanted_and_ends_its_thread() {
    let directory = common::synthetic(Family::Llama);
    let decoder = common::load(&directory, WantedType::Auto);
    let ops = Cpu::new(1).unwrap();
    let tokenizer = common::tokenizer(&directory);
    let engine = Engine::start("brief", decoder, tokenizer, &[1], ops, OPTIONS).unwrap();
    let is_running = || threads().iter().any(|name| name.trim() == "engine-brief");
    let ask = |max_tokens| Request { tokens: tokens(1, 20), max_tokens, ..Request::default() };
    complete(&engine, ask(1));
    assert!(is_running());
    let wanted = engine.submit(ask(30)).unwrap();
    drop(engine.submit(ask(3000)).unwrap());
    drop(engine);
    // A thread that was joined stands in the system's list a moment longer.
    let until = Instant::now() + Duration::from_secs(10);
    while is_running() {
        assert!(Instant::now() < until, "its thread goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(wanted.wait().unwrap().tokens.len(), 30);
}

fn says_the_panics_text(error: &EngineError) {
    let text = error.to_string();
    assert!(matches!(error, EngineError::Died { .. }), "{text}");
    assert!(text.contains("out of range for slice"), "{text}");
}

#[test]
fn an_engine_that_dies_says_so_and_leaves_the_others_alone() {
    let directory = common::synthetic(Family::Llama);
    let (ops, tokenizer) = (Cpu::new(2).unwrap(), common::tokenizer(&directory));
    let well = common::load(&directory, WantedType::Auto);
    let well = common::start(well, tokenizer.clone(), OPTIONS, &ops);
    // Its rotary tables end before its context does.
    let config = Config::read(&directory.join("config.json")).unwrap();
    let files = common::weight_files(&directory);
    let sick = Decoder::load(&ops, config, &files, StoredType::Bf16.into(), 16).unwrap();
    let sick = common::start(sick, tokenizer, OPTIONS, &ops);
    let ask = |length| Request { tokens: tokens(1, length), max_tokens: 40, ..Request::default() };
    let ill = [sick.submit(ask(10)).unwrap(), sick.submit(ask(12)).unwrap()];
    for ticket in ill {
        says_the_panics_text(&ticket.wait().unwrap_err());
    }
    let later = sick.submit(ask(4)).and_then(Ticket::wait);
    says_the_panics_text(&later.unwrap_err());
    says_the_panics_text(&sick.finish().unwrap_err());
    assert_eq!(complete(&well, ask(10)).tokens.len(), 40);
}

/// The completion, and its text as it came.
fn in_pieces(engine: &Engine, mut request: Request) -> (Completion, Vec<String>) {
    request.pieces = true;
    let mut pieces = Vec::new();
    let ticket = engine.submit(request).unwrap();
    let completion = ticket.wait_with(|piece| pieces.push(piece.to_owned())).unwrap();
    (completion, pieces)
}

/// Noise whose tokens are often bytes that make no character, or a part of one.
fn bytes(seed: u64) -> Request {
    let sampling = Sampling { temperature: 3.0, ..Sampling::default() };
    Request { tokens: tokens(seed, 9), seed, sampling, max_tokens: 80, ..Request::default() }
}

#[test]
fn pieces_make_the_text_broken_bytes_and_all() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        let mut broken = 0;
        for seed in 0..30 {
            let (completion, pieces) = in_pieces(&engine, bytes(seed));
            assert_eq!(pieces.concat(), completion.text, "{} {seed}", family.name());
            assert!(pieces.len() > 10 && pieces.iter().all(|piece| !piece.is_empty()));
            broken += completion.text.matches('\u{fffd}').count();
        }
        assert!(broken > 30, "no bytes were broken: {broken}");
    }
}

#[test]
fn a_stop_string_is_found_across_tokens() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        let tokenizer = common::tokenizer(&common::synthetic(family));
        let mut crossed = 0;
        for seed in 0..12 {
            let free = complete(&engine, bytes(seed));
            // From the middle of one token to the middle of the next but two.
            let text: Vec<String> = free.tokens.iter().map(|&id| tokenizer.decode(&[id])).collect();
            let [from, to] =
                [40, 43].map(|token| text[..token].concat().len() + text[token].len() / 2);
            let stop = free.text.get(from..to);
            // Broken bytes are no text that could be asked for.
            let Some(stop) = stop.filter(|stop| stop.len() > 2 && !stop.contains('\u{fffd}'))
            else {
                continue;
            };
            crossed += 1;
            let mut request = bytes(seed);
            request.stop.strings = vec!["no such text".to_owned(), stop.to_owned()];
            let (stopped, pieces) = in_pieces(&engine, request);
            let at = free.text.find(stop).unwrap();
            assert_eq!(stopped.text, free.text[..at], "{} {seed}", family.name());
            assert_eq!(pieces.concat(), stopped.text);
            assert_eq!(stopped.finish_reason, FinishReason::Stop);
            assert!(free.tokens.starts_with(&stopped.tokens));
            // It ended with the very token that completed the stop.
            let last = stopped.tokens.len() - 1;
            assert!(tokenizer.decode(&stopped.tokens).contains(stop));
            assert!(!tokenizer.decode(&stopped.tokens[..last]).contains(stop));
        }
        assert!(crossed > 2, "{}: {crossed} stops were tried", family.name());
    }
}

#[test]
fn a_stop_string_of_characters_in_several_tokens_is_found() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        for seed in 0..4 {
            let mut request = Request {
                tokens: tokens(seed, 9),
                seed,
                constraint: Some(Constraint {
                    grammar: Grammar::Regex("([😀ж]{3}、){4}".to_owned()),
                    after: None,
                }),
                max_tokens: 200,
                ..Request::default()
            };
            let (free, pieces) = in_pieces(&engine, request.clone());
            assert_eq!(free.text.chars().count(), 16, "{}", free.text);
            assert_eq!(pieces.concat(), free.text);
            assert!(!free.text.contains('\u{fffd}') && free.tokens.len() > 20);
            let middle: String = free.text.chars().skip(4).take(3).collect();
            request.stop.strings = vec![middle.clone()];
            let (stopped, pieces) = in_pieces(&engine, request);
            assert_eq!(stopped.text, free.text[..free.text.find(&middle).unwrap()]);
            assert_eq!(pieces.concat(), stopped.text);
            assert_eq!(stopped.finish_reason, FinishReason::Stop);
        }
    }
}
