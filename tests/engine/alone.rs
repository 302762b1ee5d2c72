//! What each request gets alone: a tiny model, its requests, and their outcomes, which the engine's tests compare with.

use wardround::engine::{
    Completion, Constraint, Engine, EngineOptions, FinishReason, Grammar, Request, Sampling, Stop,
    Ticket, TokenLogprobs, Usage,
};
use wardround::model::{Config, Decoder, Family, WantedPrecision, precision_of};
use wardround::ops::{Cpu, Machine, PAGE};

use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

pub const FAMILIES: [Family; 7] = Family::ALL;

/// What a completion says: floats as bits, and nothing of how the engine came by it.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub tokens: Vec<u32>,
    pub text: String,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    pub logprobs: Vec<Likelihoods>,
    pub prompt_logprobs: Vec<Likelihoods>,
}

/// The chosen token's log-probability and rank, then the likeliest ones' log-probabilities; all with their ids.
pub type Likelihoods = Option<(u32, Vec<(u32, u32)>)>;

pub fn likelihoods(tokens: &[u32], logprobs: &[Option<TokenLogprobs>]) -> Vec<Likelihoods> {
    let likelihoods = |(&token, logprobs): (&u32, &Option<TokenLogprobs>)| {
        let logprobs = logprobs.as_ref()?;
        let top = logprobs.top.iter().copied();
        let all = std::iter::once((token, logprobs.chosen)).chain(top);
        Some((logprobs.rank, all.map(|(id, logprob)| (id, logprob.to_bits())).collect()))
    };
    tokens.iter().zip(logprobs).map(likelihoods).collect()
}

impl Outcome {
    pub fn of(prompt: &[u32], completion: &Completion) -> Outcome {
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
pub struct Model {
    pub name: String,
    pub family: Family,
    wanted: WantedPrecision,
    pub requests: Vec<Request>,
    pub alone: Vec<Outcome>,
}

impl Model {
    pub fn new(
        family: Family,
        wanted: WantedPrecision,
        requests: fn(&[u32]) -> Vec<Request>,
    ) -> Model {
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
        config.windows.iter_mut().flatten().for_each(|window| *window = 40);
        config
    }

    pub fn decoder(&self, positions: usize, ops: &Cpu) -> Decoder<Cpu> {
        let files = common::weight_files(&common::synthetic(self.family));
        let config = self.config();
        let precision = precision_of(&config, &files, self.wanted, Machine::Cpu).unwrap();
        Decoder::load(ops, config, &files, precision, positions).unwrap()
    }

    pub fn engine(&self, options: EngineOptions, ops: &Cpu) -> Engine {
        let tokenizer = common::tokenizer(&common::synthetic(self.family));
        common::start(self.decoder(options.context, ops), tokenizer, options, ops)
    }

    /// Submits all requests at once, in this order, and compares each completion with the one made alone.
    pub fn check(&self, engine: &Engine, order: &[usize], how: &str) -> Vec<Completion> {
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
    pub fn check_preempted(&self, engine: &Engine, how: &str) {
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

    pub fn in_order(&self) -> Vec<usize> {
        (0..self.requests.len()).collect()
    }

    /// Pages that the largest request takes at most.
    pub fn largest(&self) -> usize {
        let pages = |request: &Request| (request.tokens.len() + request.max_tokens).div_ceil(PAGE);
        self.requests.iter().map(pages).max().unwrap()
    }
}

/// Prompts of 1 to 400 tokens, which share prefixes of every kind: none, whole pages, a page and a token.
pub fn requests(eos_ids: &[u32]) -> Vec<Request> {
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
