//! Scripted panels with planted causes, which must be found exactly.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::data::{Item, Question};
use crate::experiment::chain::Chain;
use crate::experiment::fixtures;
use crate::experiment::plan::MemberPlan;
use crate::experiment::run::Started;
use crate::panel::scripted::{Script, panel};
use crate::prompts::PromptSet;
use crate::record::{CallKey, CallLine, Message, Says};
use crate::systems::{SystemConfig, Task, scripted};

type Reply = fn(&CallKey, &str) -> char;

/// A run of a system on questions, of which the script has the answers, and what it takes to have it again.
struct Scene {
    config: SystemConfig,
    items: Vec<Item>,
    reply: Reply,
    contents: Contents,
    /// Calls that a model had to answer since the run.
    answered: Arc<AtomicU32>,
}

fn json(answer: char) -> String {
    format!(
        r#"{{"reasoning": "so", "explanation": "so", "agree": "no", "answer": "{answer}", "confidence": 0.9}}"#
    )
}

impl Scene {
    fn new(config: SystemConfig, reply: Reply) -> Scene {
        let question = |id: &str| {
            let question = "He has a fever. Which one?".to_owned();
            Question { id: id.to_owned(), question, ..scripted::question(4) }
        };
        let items: Vec<Item> = ["q1", "q2"].map(|id| Item::from(question(id))).into();
        let mut plan = fixtures::plan();
        plan.system = config.plan_name().to_owned();
        let member = plan.panel[0].clone();
        let slots = config.slots().into_iter();
        plan.panel = slots.map(|slot| MemberPlan { agent: slot.agent, ..member.clone() }).collect();
        let contents = Contents {
            path: "run".into(),
            plan,
            versions: Vec::new(),
            plan_sha256: "0".repeat(64),
            texts: Default::default(),
            calls: Chain::empty(""),
            items: Chain::empty(""),
            searches: Chain::empty(""),
        };
        let mut scene = Scene { config, items, reply, contents, answered: Arc::default() };
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut started = scene.started("own", reply);
        let log = calls.clone();
        started.panel.recorder =
            Box::new(move |call: &CallLine| log.lock().unwrap().push(call.clone()));
        let lines = scene.items.iter().map(|item| {
            let task = Task { panel: &started.panel, dataset: "medqa", item, run: 1 };
            started.system.answer(&task).unwrap()
        });
        scene.contents.items.records = lines.collect();
        scene.contents.calls.records = calls.lock().unwrap().clone();
        scene.answered.store(0, Ordering::Relaxed);
        scene
    }

    fn medmad(reply: Reply) -> Scene {
        Scene::new(SystemConfig::parse("medmad", &["t_max=2"]).unwrap(), reply)
    }

    fn script(&self, model: &'static str, reply: Reply) -> Script {
        let said = move |key: &CallKey, messages: &[Message]| {
            let shown: String = messages.iter().map(|message| message.content.as_str()).collect();
            json(reply(key, &shown))
        };
        Script::new(said).model(model, self.answered.clone())
    }

    fn started(&self, model: &'static str, reply: Reply) -> Started {
        let plan = self.contents.plan.clone();
        let agents: Vec<String> = plan.panel.iter().map(|member| member.agent.clone()).collect();
        let (panel, _) = panel(&agents, self.script(model, reply));
        let system = self.config.build(&PromptSet::embedded(), &scripted::exemplars()).unwrap();
        Started { plan, system, items: self.items.clone(), panel }
    }

    /// With a panel on which `ddx` may be put on a model that says D.
    fn what_if(&self, changes: &[Change], shapley: bool) -> Result<WhatIf, Failure> {
        let tell = |_| ();
        let asked = Asked { items: &[], changes, shapley, allow_version: false, tell: &tell };
        let wanted = wanted(&self.contents, &[])?;
        let put = check(&asked, &self.contents, &self.items, &wanted)?;
        let other: Arc<dyn crate::panel::Responder> = Arc::new(self.script("other", |_, _| 'D'));
        let swaps = changes.iter().filter_map(Change::swap);
        let swapped = swaps.map(|swap| (swap.agent.clone(), other.clone())).collect();
        let started = self.started("own", self.reply);
        self.answered.store(0, Ordering::Relaxed);
        Ward::new(&self.contents, started, wanted, swapped, &[]).examine(put, &asked)
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed) as usize
    }

    #[track_caller]
    fn refused(&self, changes: &[Change], parts: &[&str]) {
        let error = self.what_if(changes, false).unwrap_err();
        let told = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
}

fn without(agent: &str) -> Change {
    Change::Without(agent.to_owned())
}

fn answer(text: &str) -> Change {
    Change::Answer(text.parse().unwrap())
}

/// Agents and the values of the first item.
fn parts(found: &WhatIf) -> Vec<(&str, String)> {
    let values = found.items[0].shapley.as_ref().unwrap().values.iter();
    values.map(|value| (value.agent.as_str(), value.to_string())).collect()
}

/// The guide says C and stays with it; the others say A and go over to the C that they are shown.
fn guided(key: &CallKey, shown: &str) -> char {
    if key.agent == "guide" || shown.contains("Answer: C |") { 'C' } else { 'A' }
}

/// Two say A and the guide B, who gives in to the two.
fn outvoted(key: &CallKey, shown: &str) -> char {
    let is_shown_two = shown.matches("Answer: A |").count() == 2;
    if key.agent == "guide" && !is_shown_two { 'B' } else { 'A' }
}

#[test]
fn an_agent_that_alone_decides_has_all_of_the_value() {
    let scene = Scene::medmad(guided);
    let found = scene.what_if(&[], true).unwrap();
    assert_eq!(parts(&found), [("sym", "0".into()), ("ddx", "0".into()), ("guide", "1".into())]);
    let course = &found.items[0];
    assert_eq!((course.before.as_str(), course.after.as_str(), course.new), ("C", "C", 0));
    assert_eq!(course.diagnoses.authority, ["guide"]);
    // One of two others is not more than half of them, and right was nobody.
    assert_eq!(course.diagnoses.conformed, []);
    assert!(course.diagnoses.suppressed_minority.is_empty());
    let answers = course.shapley.as_ref().unwrap().coalitions.iter();
    assert_eq!(answers.map(|one| one.answer.as_str()).collect::<String>(), "AAACCCC");
    // Both items: of {sym, guide} and {ddx, guide} two calls of the second round each; all others are the run's. Of one item the guide is
    // shown the same in both, since nobody's name is said: that call is known the second time.
    assert_eq!((scene.answered(), found.calls.computed), (7, 7));

    let found = scene.what_if(&[without("guide")], false).unwrap();
    assert!(found.items.iter().all(|course| (course.after.as_str(), course.new) == ("A", 0)));
    assert_eq!(
        (scene.answered(), &*found.items[0].diagnoses.authority),
        (0, &["guide".to_owned()][..])
    );
}

#[test]
fn a_dummy_has_nothing_and_equals_have_equal_shares() {
    let scene = Scene::medmad(outvoted);
    let found = scene.what_if(&[], true).unwrap();
    assert_eq!(
        parts(&found),
        [("sym", "1/2".into()), ("ddx", "1/2".into()), ("guide", "0".into())]
    );
    let shapley = found.items[0].shapley.as_ref().unwrap();
    assert_eq!(shapley.values.iter().map(|value| value.parts).sum::<i64>(), shapley.values[0].of);
    let diagnoses = &found.items[0].diagnoses;
    assert_eq!(diagnoses.suppressed_minority, ["guide"]);
    assert_eq!(diagnoses.conformed.len(), 1);
    let told = diagnoses.in_words();
    assert_eq!(told[1], "conformity: guide goes over from B to A in round 1");
    assert!(diagnoses.authority.is_empty());
}

#[test]
fn what_does_not_depend_on_the_change_is_the_runs_and_is_not_answered_again() {
    let scene = Scene::medmad(outvoted);
    let log = scene.contents.calls.by_key();
    // The others debate: the first answers are the run's.
    let found = scene.what_if(&[without("sym")], false).unwrap();
    let course = &found.items[0];
    assert_eq!((course.logged, course.new), (2, 4));
    assert_eq!((scene.answered(), found.calls.computed, found.calls.logged), (8, 8, 4));
    assert!(course.calls.iter().all(|call| call.round > 0 && call.agent != "sym"));
    let gone = course.votes.iter().find(|vote| vote.agent == "sym").unwrap();
    assert_eq!((gone.before.as_deref(), gone.after.as_deref()), (Some("A"), None));

    // Made to say what it said, an agent changes nothing.
    let found = scene.what_if(&[answer("guide@0=B")], false).unwrap();
    assert_eq!((found.items[0].logged, found.items[0].new, scene.answered()), (6, 0, 0));
    assert!(found.items[0].calls.is_empty() && !found.items[0].votes.iter().any(Vote::is_changed));

    // Where it agrees, nobody debates: its own call is the run's but for the answer.
    let found = scene.what_if(&[answer("guide@0=A")], false).unwrap();
    let [changed] = &found.items[0].calls[..] else { panic!("{found:#?}") };
    let own = log[&changed.key()];
    assert_eq!((changed.record.says(), scene.answered()), (Says::Answer("A"), 0));
    assert_eq!(changed.text, own.text.replace("\"B\"", "\"A\""));
    assert_eq!((&changed.request, &changed.messages), (&own.request, &own.messages));

    // Two of three: the debate is another.
    let found = scene.what_if(&[answer("sym@0=B"), answer("sym@1=B")], false).unwrap();
    let course = &found.items[0];
    assert_eq!(course.votes.iter().filter(|vote| vote.round == 0 && vote.is_changed()).count(), 1);
    assert_eq!(course.logged, 3);
    assert!(course.new > 0);
}

#[test]
fn other_models_and_lost_sentences_are_changes_too() {
    let scene = Scene::medmad(|_, shown| if shown.contains("fever") { 'A' } else { 'B' });
    let swap = || Change::Swap("ddx=other".parse().unwrap());
    let found = scene.what_if(&[swap()], false).unwrap();
    let course = &found.items[0];
    let ddx = course.votes.iter().find(|vote| vote.agent == "ddx").unwrap();
    assert_eq!((ddx.before.as_deref(), ddx.after.as_deref()), (Some("A"), Some("D")));
    assert_eq!((course.after.as_str(), course.logged), ("A", 2));

    let found = scene.what_if(&[Change::DropSentence(1)], false).unwrap();
    let course = &found.items[0];
    assert_eq!((course.after.as_str(), course.logged, course.new), ("B", 0, 3));
    assert_eq!(
        (course.dropped.as_slice(), course.gold.as_deref()),
        (&["He has a fever.".to_owned()][..], Some("B"))
    );
    let found = scene.what_if(&[Change::DropSentence(2)], false).unwrap();
    assert!(!found.items[0].is_changed());

    // Together, and every coalition of the rest.
    let found = scene.what_if(&[swap(), Change::DropSentence(1), without("guide")], true).unwrap();
    assert_eq!(found.changes, ["ddx on other", "without sentence 1", "without guide"]);
    assert_eq!(parts(&found), [("sym", "1".into()), ("ddx", "0".into())]);
}

#[test]
fn systems_go_on_with_whoever_is_there_or_say_whom_they_need() {
    let vote = tempfile::tempdir().unwrap();
    let file = vote.path().join("vote.toml");
    let text = "takes = \"questions\"\nagents = [\"one\", \"two\", \"judge\"]\n[[stage]]\nname = \"first\"\nagents = [\"one\", \"two\"]\nuser = \"{question} {options}\"\nfields = [{ key = \"answer\", is = \"answer\" }]\n[[stage]]\nname = \"last\"\nwhen = \"disagree\"\nagents = [\"judge\"]\nuser = \"{question} {first}\"\nreply = \"letter\"\n";
    std::fs::write(&file, text).unwrap();
    let of_agent: Reply =
        |key, _| if ["one", "agent-1", "doctor-1"].contains(&&*key.agent) { 'B' } else { 'A' };
    let own = Scene::new(SystemConfig::open::<&str>(&file, &[]).unwrap(), of_agent);
    assert_eq!(own.what_if(&[without("two")], false).unwrap().items[0].after, "B");
    own.refused(&[without("judge")], &["without judge", "asks for `last`"]);
    let seven = "takes = \"questions\"\nagents = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\"]\n[[stage]]\nname = \"all\"\nuser = \"{question} {options}\"\nfields = [{ key = \"answer\", is = \"answer\" }]\n";
    std::fs::write(&file, seven).unwrap();
    let seven = Scene::new(SystemConfig::open::<&str>(&file, &[]).unwrap(), of_agent);
    assert!(seven.what_if(&[], true).unwrap_err().to_string().contains("7 agents, and 6 at most"));

    let named = |name: &str| Scene::new(SystemConfig::named(name).unwrap(), of_agent);
    let reconcile = named("reconcile");
    let agents = reconcile.config.slots();
    let found = reconcile.what_if(&[without(&agents[1].agent)], false).unwrap();
    assert!(
        found.items[0]
            .votes
            .iter()
            .all(|vote| vote.agent != agents[1].agent || vote.after.is_none())
    );

    let medagents = named("medagents");
    let found = medagents.what_if(&[without("doctor-2")], false).unwrap();
    let doctors = found.items[0]
        .votes
        .iter()
        .filter(|vote| vote.agent.starts_with("doctor") && vote.round == 0);
    assert_eq!(doctors.map(|vote| vote.after.is_some()).collect::<Vec<_>>(), [true, false, true]);
    medagents.refused(&[without("gatherer")], &["without gatherer"]);
    let error = medagents.what_if(&[], true).unwrap_err();
    assert!(error.to_string().contains("whom the system asks"), "{error}");

    named("no-debate").what_if(&[without("ddx")], true).unwrap();
    named("self-consistency").refused(&[without("solo")], &["nobody is left"]);
}

#[test]
fn what_the_run_does_not_have_is_refused() {
    let scene = Scene::medmad(outvoted);
    scene.refused(&[without("dx")], &["no such agent", "sym, ddx, guide"]);
    scene.refused(&[answer("dx@0=A")], &["no such agent"]);
    scene.refused(&[answer("ddx@7=A")], &["in round 7", "count from 0"]);
    scene.refused(&[answer("ddx@0=E")], &["not an option of q1", "A, B, C, D"]);
    scene.refused(&[Change::DropSentence(3)], &["q1 has 2", "count from 1"]);
    scene.refused(&[without("ddx"), answer("ddx@0=A")], &["ddx is left out"]);
    scene.refused(&["sym", "ddx", "guide"].map(without), &["nobody is left"]);
    // Neither the first counts nor the last.
    let swap =
        |model: &str| Change::Swap(Swap { agent: "ddx".to_owned(), model: model.to_owned() });
    for (one, other, told) in [
        (answer("ddx@0=A"), answer("ddx@0=B"), "ddx's answer in round 0 is changed twice"),
        (swap("one"), swap("other"), "the model of ddx is changed twice"),
        (without("ddx"), without("ddx"), "whether ddx is there is changed twice"),
        (Change::DropSentence(1), Change::DropSentence(1), "sentence 1 is changed twice"),
    ] {
        scene.refused(&[one, other], &[told]);
    }

    // A log that lacks what the run's answers came from shows nothing about a change.
    let mut torn = Scene::medmad(outvoted);
    torn.contents.calls.records.pop();
    torn.refused(&[without("sym")], &["1 of its calls are not in it"]);
    let mut other = Scene::medmad(outvoted);
    other.reply = guided;
    for call in &mut other.contents.calls.records {
        call.request.clear();
    }
    other.refused(&[without("sym")], &["does not give it again"]);
}
